//! Answers, and what is answered when there is none.

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::{StatusCode, Uri, request::Parts},
    response::{IntoResponse, Response},
};
use ostler_client::{Error, protocol};
use ostler_domain::{
    Reason, Refusal,
    text::{nearest, one_line},
};
use ostler_form::{ErrorForm, to_json};
use schemars::{JsonSchema, schema_for};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

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

/// Refuses what nobody reads behind the `?`: a filter that is misspelt would be one that is not there.
pub(crate) fn check_query<'a>(uri: &Uri, known: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    // What is no query at all is refused by whoever reads it.
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else { return Ok(()) };
    let known: Vec<&str> = known.into_iter().collect();
    let Some((unknown, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    Err(no_such(unknown, "parameter", "behind the ?", &known).into())
}

/// What is said of a word that nobody reads.
fn no_such(word: &str, kind: &str, place: &str, known: &[&str]) -> Refusal {
    let takes = match known {
        [] => format!("nothing is asked for {place} here"),
        known => format!("there are {}", known.join(", ")),
    };
    let why = match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}? {takes}"),
        None => takes,
    };
    let refusal = Refusal::invalid(format!("there is no {kind} \"{}\"", one_line(word, 40)));
    refusal.because(why).hint("ostler api openapi", "says what each means")
}

/// What is wanted, as JSON.
pub(crate) struct Wanted<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + JsonSchema> FromRequest<S> for Wanted<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            let refusal = Refusal::new(Reason::TooLarge, "what is wanted is too long");
            Failure::new(error.status(), refusal.because(error.body_text()))
        })?;
        read(&bytes).map(Wanted)
    }
}

/// Reads what is wanted. What cannot be is refused in one way (400), whether it is no JSON, has a field that nobody reads,
/// or a value that is none.
fn read<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, Failure> {
    let error = match Json::<T>::from_bytes(bytes) {
        Ok(Json(wanted)) => return Ok(wanted),
        Err(error) => error,
    };
    let fields = schema_for!(T).get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let known: Vec<&str> = fields.keys().map(String::as_str).collect();
    let said = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let mut said = said.as_object().into_iter().flat_map(Map::keys);
    if let Some(unknown) = said.find(|name| !known.contains(&name.as_str())) {
        return Err(no_such(unknown, "field", "in the body", &known).into());
    }
    // Behind what axum says of every body that cannot be read.
    let text = error.body_text();
    let why = text.split_once(": ").map_or(text.as_str(), |(_, why)| why);
    Err(Refusal::invalid("what is wanted makes no sense").because(why).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_is_refused_with_what_was_meant() {
        let check = |uri: &str, known: &[&str]| {
            check_query(&uri.parse().unwrap(), known.iter().copied()).map_err(|failure| {
                let Failure { status, refusal } = failure;
                (status.as_u16(), format!("{}: {}", refusal.message, refusal.why.unwrap_or_default()))
            })
        };
        let known = ["status", "limit", "needs_me"];
        assert_eq!(check("/v1/sessions", &known), Ok(()));
        assert_eq!(check("/v1/sessions?status=&needs%5Fme=true&limit=1", &known), Ok(()));
        let (status, why) = check("/v1/sessions?limit=1&statsu=FAILED", &known).unwrap_err();
        assert_eq!(status, 400);
        assert_eq!(
            why,
            "there is no parameter \"statsu\": did you mean status? there are status, limit, needs_me"
        );
        let (_, why) = check("/v1/status?x=1", &[]).unwrap_err();
        assert!(why.contains("\"x\"") && why.contains("nothing is asked for"), "{why}");
    }

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sent {
        prompt: String,
        #[serde(default)]
        turns: u32,
    }

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[test]
    fn a_body_that_cannot_be_is_refused_in_one_way_that_names_what_is_wrong() {
        fn refused<T: DeserializeOwned + JsonSchema + std::fmt::Debug>(body: &str) -> String {
            let Failure { status, refusal } = read::<T>(body.as_bytes()).unwrap_err();
            assert_eq!(
                (status, refusal.reason),
                (StatusCode::BAD_REQUEST, Reason::InvalidArgument),
                "{body}"
            );
            format!("{}: {}", refusal.message, refusal.why.unwrap_or_default())
        }
        let sent = read::<Sent>(br#"{"prompt":"a","turns":2}"#).unwrap();
        assert_eq!((sent.prompt.as_str(), sent.turns), ("a", 2));
        let unknown = refused::<Sent>(r#"{"promt":"a"}"#);
        assert_eq!(unknown, "there is no field \"promt\": did you mean prompt? there are prompt, turns");
        let unknown = refused::<Empty>(r#"{"x":1}"#);
        assert_eq!(unknown, "there is no field \"x\": nothing is asked for in the body here");
        for (body, named) in [
            (r#"{"turns":1}"#, "missing field `prompt`"),
            (r#"{"prompt":"a","turns":"many"}"#, "turns: invalid type"),
            (r#"{"prompt":"#, "EOF"),
            ("", "EOF"),
            ("[]", "invalid"),
        ] {
            let why = refused::<Sent>(body);
            assert!(why.contains(named), "{body}: {why}");
        }
    }
}
