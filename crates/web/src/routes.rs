//! Every path that there is.

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use ostler_domain::{Reason, Refusal};

use crate::{
    Door, api, assets, card,
    guard::{self, Guard, Origin, Visitor},
    openapi, pages,
    reply::{Answer, Failure, check_query},
};

pub(crate) fn router(door: Door, port: u16) -> Router {
    let guard = Guard { door, port };
    let mut router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        // Looking whether a link is there must not use it up; unless it is said, a HEAD is a GET.
        .route("/open/{secret}", get(let_in).head(wrong_method).with_state(guard.clone()))
        .route("/approvals/{id}", get(card::card))
        .route("/assets/{name}", get(assets::asset));
    for endpoint in api::endpoints() {
        let known = openapi::parameters_of(endpoint.id);
        let check = move |request: Request, next: Next| async move {
            match check_query(request.uri(), known.iter().map(String::as_str)) {
                Ok(()) => next.run(request).await,
                Err(failure) => failure.into_response(),
            }
        };
        router = router.route(endpoint.path, endpoint.serve.route_layer(middleware::from_fn(check)));
    }
    router
        .merge(pages::router())
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        // The guard has read it, and has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(guard, guard::guard))
}

async fn metrics(Extension(visitor): Extension<Visitor>) -> Answer {
    let text = visitor.client.metrics().await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

/// Takes a link's secret for a cookie, and the secret out of the address.
async fn let_in(
    State(guard): State<Guard>,
    Extension(Origin(origin)): Extension<Origin>,
    Path(secret): Path<String>,
) -> Response {
    let let_in = match guard.door.inner.ring.let_in(&secret) {
        Ok(Some(let_in)) => let_in,
        Ok(None) => return assets::stale_link(),
        Err(refusal) => return Failure::from(refusal).into_response(),
    };
    guard.door.let_in(&let_in.person);
    let (name, age) = (guard::cookie_name(guard.port), let_in.lives.as_secs());
    // Who comes by another name than the machine's own comes by TLS.
    let secure = if origin.starts_with("https:") { "; Secure" } else { "" };
    let cookie =
        format!("{name}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}", let_in.cookie);
    // A page that goes on by itself, and no redirect: who clicks the link on somebody else's page would be sent on
    // without the cookie, which is for our own pages only.
    let mut answer = assets::come_in(&let_in.path);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

/// For people a page like the others, for programs what they read.
async fn nowhere(request: Request) -> Response {
    match request.extensions().get::<Visitor>().cloned() {
        Some(visitor) if guard::wants_page(&request) => {
            pages::page(Extension(visitor), request.uri().clone()).await
        }
        _ => Failure::nowhere().into_response(),
    }
}

async fn wrong_method() -> Failure {
    let refusal = Refusal::new(Reason::InvalidArgument, "this cannot be done here")
        .hint("ostler api openapi", "says what can");
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, refusal)
}
