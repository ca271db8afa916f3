//! Answers, and what is answered when there is none.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use ostler_client::{Error, protocol};
use ostler_domain::{Reason, Refusal};
use ostler_form::{ErrorForm, to_json};
use serde::{Serialize, de::DeserializeOwned};

/// Why something is not answered: in the daemon's own form, with the number that HTTP has for it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) refusal: Refusal,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, refusal: Refusal) -> Self {
        Self { status, refusal }
    }

    /// Where there is nothing.
    pub(crate) fn nowhere() -> Self {
        let refusal = Refusal::new(Reason::InvalidArgument, "there is nothing here")
            .hint("ostler api openapi", "says what there is");
        Self::new(StatusCode::NOT_FOUND, refusal)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { status: status(refusal.reason), refusal }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        error.to_refusal().into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, json(&ErrorForm::new(&self.refusal, None))).into_response()
    }
}

/// The number for a reason. It follows from the gRPC code, so that there is one table.
fn status(reason: Reason) -> StatusCode {
    let code = i32::from(protocol::code(reason));
    // As google.rpc.Code numbers them and says what they are in HTTP; a state that forbids it is a conflict.
    match code {
        3 | 11 => StatusCode::BAD_REQUEST,
        4 => StatusCode::GATEWAY_TIMEOUT,
        5 => StatusCode::NOT_FOUND,
        6 | 9 | 10 => StatusCode::CONFLICT,
        7 => StatusCode::FORBIDDEN,
        8 => StatusCode::TOO_MANY_REQUESTS,
        12 => StatusCode::NOT_IMPLEMENTED,
        14 => StatusCode::SERVICE_UNAVAILABLE,
        16 => StatusCode::UNAUTHORIZED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

pub(crate) fn json(form: &impl Serialize) -> Response {
    ([("content-type", "application/json")], to_json(form) + "\n").into_response()
}

pub(crate) type Answer = Result<Response, Failure>;

/// What is asked for behind the `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Query(asked) = Query::from_request_parts(parts, state).await.map_err(|error| {
            Refusal::invalid("what is asked for makes no sense").because(error.body_text())
        })?;
        Ok(Asked(asked))
    }
}

/// What is wanted, as JSON.
pub(crate) struct Wanted<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Wanted<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let Json(wanted) = Json::from_request(request, state).await.map_err(|error| {
            let refusal = Refusal::invalid("what is wanted makes no sense").because(error.body_text());
            Failure::new(error.status(), refusal)
        })?;
        Ok(Wanted(wanted))
    }
}
