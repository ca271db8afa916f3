//! Whoever has a share of this machine: what of their requests is let through, here and by a hub.

use axum::{
    body::Body,
    extract::Request,
    http::{StatusCode, Uri, header, uri::PathAndQuery},
};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use ostler_client::Session;
use ostler_domain::{
    Reason, Refusal,
    http::CHANGE_NAME,
    hub::{Answer, Command},
    limits::HUB_ANSWER_BYTES,
    redact::{blot_out, redacted},
    share::{Asked, Belongs, Denied, Scope, Verb, may},
};
use ostler_form::{ErrorForm, to_json};

use crate::{
    Door,
    guard::Visitor,
    reply::{Failure, check_query},
    ring::{self, SHARE, Shared},
    routes,
};

/// What may stand behind the `?` of a list whose campaign is given.
const OF_LISTS: [&str; 9] =
    ["all", "needs_me", "status", "attention", "outcome", "since", "until", "limit", "cursor"];
const OF_EVENTS: [&str; 3] = ["after", "kind", "limit"];

/// Lets a request through whose share allows it, as one that means exactly what was allowed.
pub(crate) async fn admitted(mut request: Request) -> Result<Request, Failure> {
    let Some(visitor) = request.extensions().get::<Visitor>().cloned() else { return Ok(request) };
    let Some(shared) = visitor.guest.share else { return Ok(request) };
    let asked = Asked::of(request.method().as_str(), request.uri().path());
    let asked =
        asked.ok_or_else(|| denied("a share has no such door", "ostler api openapi lists what there is"))?;
    let meant = meant(&visitor, shared, asked, request.uri()).await?;
    *request.uri_mut() = meant;
    Ok(request)
}

async fn meant(visitor: &Visitor, shared: Shared, asked: Asked, uri: &Uri) -> Result<Uri, Failure> {
    let path = uri.path().to_owned();
    match asked {
        Asked::List => match shared.scope {
            Scope::Campaign(id) => {
                if let Some(named) = value(uri, "campaign")
                    && !visitor.client.campaign(&named).await.is_ok_and(|campaign| campaign.id == id)
                {
                    return Err(denied("this share is of another campaign", &format!("it is of {id} alone")));
                }
                with_query(&path, uri, &OF_LISTS, ("campaign", &id.to_string()))
            }
            Scope::Session(_) | Scope::Conversation(_) => {
                let one = format!("it is of one session: /v1/sessions/{}", shared.scope);
                Err(denied("this share has no list", &one))
            }
        },
        Asked::Events => {
            let session = match (shared.scope, value(uri, "session")) {
                (Scope::Session(id), _) => id,
                (_, Some(who)) => held(visitor, shared, &who, Verb::Look).await?.id,
                (_, None) => {
                    return Err(denied("this share has the logs of sessions", "say which: session=ID"));
                }
            };
            with_query(&path, uri, &OF_EVENTS, ("session", &session.to_string()))
        }
        Asked::Session { who, verb } => {
            let session = held(visitor, shared, &who, verb).await?;
            // The name may be another's by the time it is looked up again; the id is this one's for ever.
            let rest = path.strip_prefix(&format!("/v1/sessions/{who}")).unwrap_or_default();
            Ok(with_path(uri, &format!("/v1/sessions/{}{rest}", session.id)))
        }
        Asked::Approval { id, verb } => {
            let approval = visitor.client.approval(&id).await.map_err(|_| elsewhere())?;
            held(visitor, shared, &approval.session.to_string(), verb).await?;
            let rest = path.strip_prefix(&format!("/v1/approvals/{id}")).unwrap_or_default();
            Ok(with_path(uri, &format!("/v1/approvals/{}{rest}", approval.id)))
        }
    }
}

/// The session that is meant, if it may be asked that. What is elsewhere and what is nowhere look the same.
async fn held(visitor: &Visitor, shared: Shared, who: &str, verb: Verb) -> Result<Session, Failure> {
    let session = visitor.client.session(who).await.map_err(|_| elsewhere())?;
    let of = Belongs { session: session.id, conversation: session.conversation, campaign: session.campaign };
    match may(shared.access, shared.scope, verb, &of) {
        Ok(()) => Ok(session),
        Err(Denied::Elsewhere) => Err(elsewhere()),
        Err(no) => Err(denied("this share does not allow that", &no.to_string())),
    }
}

fn elsewhere() -> Failure {
    denied("there is no such session in this share", &Denied::Elsewhere.to_string())
}

pub(crate) fn denied(what: &str, why: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, Refusal::new(Reason::PermissionDenied, what).because(why))
}

fn value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next_back()
}

/// The same with only these words behind the `?`, and one that is ours, whatever was said in its place.
fn with_query(path: &str, uri: &Uri, known: &[&str], own: (&str, &str)) -> Result<Uri, Failure> {
    check_query(uri, known.iter().copied().chain([own.0]))?;
    let own = format!("{}={}", own.0, own.1);
    let kept = uri.query().unwrap_or_default().split('&').filter(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        known.contains(&key)
    });
    let query: Vec<&str> = kept.chain([own.as_str()]).collect();
    Ok(made(uri, &format!("{path}?{}", query.join("&"))))
}

fn with_path(uri: &Uri, path: &str) -> Uri {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    made(uri, &format!("{path}{query}"))
}

fn made(uri: &Uri, text: &str) -> Uri {
    let mut parts = uri.clone().into_parts();
    // An id and what was an address before make an address.
    parts.path_and_query = text.parse::<PathAndQuery>().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

/// An answer as it may leave the machine: the record has what people said as they said it.
fn without_secrets(body: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(mut document) => {
            let has_changed = blot_out(&mut document);
            // As it was, to the byte, where there is nothing to blot out.
            if has_changed { document.to_string() } else { String::from_utf8_lossy(body).into_owned() }
        }
        Err(_) => redacted(String::from_utf8_lossy(body).into_owned()),
    }
}

impl Door {
    /// Does what came by a hub, as if it had come by the door itself: with a share token, and with nothing else.
    pub(crate) async fn by_hub(&self, command: &Command) -> Answer {
        let (status, body) = match self.asked_by_hub(command).await {
            Ok(answered) => answered,
            Err(refusal) => (StatusCode::FORBIDDEN.as_u16(), to_json(&ErrorForm::new(&refusal, None))),
        };
        Answer { id: command.id.clone(), status, body }
    }

    async fn asked_by_hub(&self, command: &Command) -> Result<(u16, String), Refusal> {
        if !command.token.starts_with(SHARE) {
            return Err(Refusal::new(Reason::PermissionDenied, "a hub passes on what shares allow"));
        }
        let invalid = |error: &dyn std::fmt::Display| Refusal::invalid(format!("no request: {error}"));
        let request = Request::builder()
            .method(command.method.as_str())
            .uri(command.path.as_str())
            .header(header::HOST, "localhost:0")
            .header(header::AUTHORIZATION, format!("Bearer {}", command.token))
            .header(header::CONTENT_TYPE, "application/json")
            // The same each time that this is asked: the next daemon does not do it again either.
            .header(CHANGE_NAME, ring::hash(&command.id))
            .body(Body::from(command.body.clone()))
            .map_err(|error| invalid(&error))?;
        let router = TowerToHyperService::new(routes::router(self.clone(), 0));
        let answer = router.call(request).await.map_err(|error| invalid(&error))?;
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), HUB_ANSWER_BYTES).await;
        let body = body.map_err(|_| Refusal::new(Reason::TooLarge, "the answer is too long for a hub"))?;
        Ok((status, without_secrets(&body)))
    }
}
