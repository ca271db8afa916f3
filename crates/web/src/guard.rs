//! What every request must pass, and what every answer carries.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use ostler_client::Client;
use ostler_domain::{
    Reason, Refusal, RequestId,
    http::{self, Foreign, Proof, Sent},
};

use crate::{
    Door, assets, pages,
    reply::Failure,
    ring::{self, Guest},
    share,
};

/// The header in which a page shows that it is ours.
pub(crate) const CSRF: &str = "x-ostler-csrf";

/// Most of what somebody may send; a prompt is the longest of it.
const BODY_BYTES: usize = 1 << 20;
/// How long it may take: who sends it letter by letter would hold a place for ever.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// Scripts, styles and pictures are our own files; a page cannot be framed, cannot send forms, and reaches nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) door: Door,
    pub(crate) port: u16,
}

/// Whoever came in, and the way to the daemon's services for them.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) client: Client,
    pub(crate) guest: Guest,
    pub(crate) door: Door,
    /// What a page of theirs shows to be ours; none for programs.
    pub(crate) csrf: Option<String>,
}

impl Visitor {
    /// Waits until they may no longer stay.
    pub(crate) async fn turned_out(&self) {
        self.door.inner.ring.turned_out(&self.guest).await;
    }
}

/// The origin by which the door was reached.
#[derive(Clone)]
pub(crate) struct Origin(pub(crate) String);

/// The name of the cookie: cookies know no ports, and several people of one machine may have a door.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("ostler_{port}")
}

pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let wants_page = wants_page(&request);
    let answer = match pass(&guard, request) {
        Ok(request) => match served(&guard, request, next).await {
            Ok(answer) => answer,
            Err(failure) => failure.into_response(),
        },
        Err(failure) if wants_page && failure.status == StatusCode::UNAUTHORIZED => assets::shut(),
        Err(failure) if wants_page && failure.status == StatusCode::FORBIDDEN => {
            assets::refused(&failure.refusal.message)
        }
        Err(failure) => failure.into_response(),
    };
    with_headers(answer)
}

/// Serves whoever passed, if there is a place for them, when they have said all they want.
async fn served(guard: &Guard, request: Request, next: Next) -> Result<Response, Failure> {
    let Some(visitor) = request.extensions().get::<Visitor>() else { return Ok(next.run(request).await) };
    let seat = guard.door.inner.crowd.seat(&visitor.guest)?;
    let (head, body) = share::admitted(request).await?.into_parts();
    let body = tokio::time::timeout(BODY_WITHIN, to_bytes(body, BODY_BYTES)).await.map_err(|_| {
        let refusal = Refusal::new(Reason::TimedOut, "what is wanted took too long to come");
        let within = format!("a body is there within {} s of its head", BODY_WITHIN.as_secs());
        Failure::new(StatusCode::REQUEST_TIMEOUT, refusal.because(within))
    })?;
    let body = body.map_err(|error| {
        let refusal = Refusal::new(Reason::TooLarge, "what is wanted is too long");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, refusal.because(error.to_string()))
    })?;
    let answer = next.run(Request::from_parts(head, Body::from(body))).await;
    Ok(answer.map(|body| seat.until_sent(body)))
}

fn pass(guard: &Guard, mut request: Request) -> Result<Request, Failure> {
    let origin = own_origin(guard, &request)?;
    request.extensions_mut().insert(Origin(origin.clone()));
    if !is_text(request.uri().path()) {
        return Err(Refusal::invalid("this address makes no sense")
            .because("what stands in it behind a % is no UTF-8")
            .into());
    }
    // Asked of everybody: a page of somebody else's does not even learn whether somebody is let in.
    http::check_origin(text(request.headers(), header::ORIGIN), &origin).map_err(not_taken)?;
    if is_public(request.uri().path()) {
        return Ok(request);
    }
    let (visitor, proof) = visitor(guard, request.headers())?;
    let headers = request.headers();
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let sent = Sent {
        own_origin: &origin,
        origin: text(headers, header::ORIGIN),
        is_change,
        is_json: text(headers, header::CONTENT_TYPE).is_some_and(http::is_json),
        has_csrf: match (&visitor.csrf, headers.get(CSRF).and_then(|shown| shown.to_str().ok())) {
            (Some(csrf), Some(shown)) => ring::same(csrf, shown),
            _ => false,
        },
        proof,
    };
    http::check(sent).map_err(not_taken)?;
    if is_change && visitor.guest.read_only {
        return Err(forbidden("this token may look and not touch", "it was made with --read-only"));
    }
    if let Some(approval) = &visitor.guest.approval
        && !http::is_of_approval(request.method().as_str(), request.uri().path(), approval)
    {
        return Err(forbidden(
            "this link opened one approval, and nothing else",
            "it was sent with a notice",
        ));
    }
    let visitor = match named(request.headers(), &visitor.guest.name)?.filter(|_| is_change) {
        Some(id) => Visitor { client: visitor.client.as_request(id), ..visitor },
        None => visitor,
    };
    request.extensions_mut().insert(visitor);
    Ok(request)
}

/// The name that whoever asks gave to the change, in the daemon's form. Somebody else's same name is another one.
fn named(headers: &HeaderMap, person: &str) -> Result<Option<RequestId>, Failure> {
    let given = headers.get_all(http::CHANGE_NAME).iter().map(|value| value.to_str().ok());
    Ok(http::change_name(given)?.map(|key| ring::request_id(person, key)))
}

/// The origin by which the door was reached, if that is one of its own.
fn own_origin(guard: &Guard, request: &Request) -> Result<String, Failure> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    };
    // A request to a proxy names its host twice; both must be ours.
    let other = request.uri().authority().map(|authority| authority.as_str());
    let allowed = guard.door.allowed_hosts();
    let own = |host: &str| http::origin(host, guard.port, &allowed);
    host.and_then(own).filter(|_| other.is_none_or(|other| own(other).is_some())).ok_or_else(|| {
        let refusal = Refusal::new(Reason::PermissionDenied, "this door is not reached by that name")
            .because("its own names are localhost, 127.0.0.1 and [::1] with its port")
            .hint("ostler config set http.allowed_hosts '[\"NAME\"]'", "adds that of a proxy or a tunnel");
        Failure::new(StatusCode::MISDIRECTED_REQUEST, refusal)
    })
}

/// Whether a path is text when its `%XX` are read. Asked once: whoever takes a part of it would refuse it in words of its own.
fn is_text(path: &str) -> bool {
    std::str::from_utf8(&pages::bytes_of(path)).is_ok()
}

/// What anybody may have: whether it is alive, its files, and the exchange of a link.
fn is_public(path: &str) -> bool {
    path == "/healthz" || path.starts_with("/assets/") || path.starts_with("/open/")
}

fn visitor(guard: &Guard, headers: &HeaderMap) -> Result<(Visitor, Proof), Failure> {
    let token = text(headers, header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .and_then(|(scheme, token)| scheme.eq_ignore_ascii_case("Bearer").then_some(token));
    let cookie = || cookie(headers, &cookie_name(guard.port));
    let ring = &guard.door.inner.ring;
    let known = match token {
        Some(token) => ring.guest(token, false).map(|guest| (guest, None, Proof::Token)),
        None => cookie()
            .and_then(|cookie| Some((ring.guest(cookie, true)?, Some(ring::csrf(cookie)), Proof::Cookie))),
    };
    let Some((guest, csrf, proof)) = known else {
        let refusal = Refusal::new(Reason::PermissionDenied, "nobody knows who asks")
            .because("there is neither a token nor a cookie, or it is none that is known")
            .hint("ostler open", "lets a browser in")
            .hint("ostler api token add NAME", "makes a token for a program: Authorization: Bearer …");
        return Err(Failure::new(StatusCode::UNAUTHORIZED, refusal));
    };
    let client = guard.door.client(&guest.name);
    Ok((Visitor { client, guest, door: guard.door.clone(), csrf }, proof))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    pairs
        .flat_map(|pairs| pairs.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok();
    // What is no text, or there twice, is somebody's who plays tricks; it fits nothing.
    Some(first.filter(|_| values.next().is_none()).unwrap_or("?"))
}

pub(crate) fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let is_program = path.starts_with("/v1/") || path == "/metrics" || path.starts_with("/live");
    *request.method() == Method::GET && !is_program
}

fn not_taken(foreign: Foreign) -> Failure {
    forbidden("this request is not taken", foreign.why())
}

fn forbidden(what: &str, why: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, Refusal::new(Reason::PermissionDenied, what).because(why))
}

fn with_headers(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_text_or_is_refused() {
        for path in ["/v1/sessions/a%20b", "/%c3%a4", "/100%", "/%zz/%2", "/..%2f..", "/%00"] {
            assert!(is_text(path), "{path}");
        }
        for path in ["/v1/sessions/%ff", "/%c3", "/%c3/%a4", "/open/a%fe"] {
            assert!(!is_text(path), "{path}");
        }
    }
}
