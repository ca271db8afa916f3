//! The daemon itself: how it is, and the emergency.

use axum::{
    Extension,
    http::header,
    response::IntoResponse,
    routing::{get, post},
};
use ostler_form::{HaltForm, HaltedForm, StatusForm};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Endpoint, Form, of,
    sessions::{Nothing, endpoint},
};
use crate::{
    guard::Visitor,
    openapi,
    reply::{Answer, Wanted, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/status" "getStatus" "How the daemon is", None, None, Form::One(of::<StatusForm>), get(status)),
        endpoint!("post" "/v1/halt" "halt" "Kills all agents, or freezes them; nothing new starts", None, Some(of::<Halt>), Form::One(of::<HaltedForm>), post(halt)),
        endpoint!("post" "/v1/halt/release" "releaseHalt" "Ends the halt", None, Some(of::<Nothing>), Form::One(of::<HaltedForm>), post(release)),
        endpoint!("get" "/v1/openapi.json" "getOpenapi" "This description", None, None, Form::One(of::<Document>), get(description)),
    ]
}

async fn status(Extension(visitor): Extension<Visitor>) -> Answer {
    Ok(json(&StatusForm::new(&visitor.client.status().await?)))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Halt {
    /// Agents stand still instead of being killed.
    freeze: bool,
    /// Shown to everyone who asks for a session meanwhile.
    why: String,
}

async fn halt(Extension(visitor): Extension<Visitor>, Wanted(Halt { freeze, why }): Wanted<Halt>) -> Answer {
    let halt = visitor.client.halt(freeze, &why).await?;
    Ok(json(&HaltedForm { halt: Some(HaltForm::new(&halt.state)), sessions: halt.sessions }))
}

async fn release(Extension(visitor): Extension<Visitor>, Wanted(Nothing {}): Wanted<Nothing>) -> Answer {
    Ok(json(&HaltedForm { halt: None, sessions: visitor.client.release_halt().await? }))
}

/// This description: an OpenAPI document.
#[derive(JsonSchema)]
#[schemars(rename = "OpenApi", extend("type" = "object", "properties" = {}, "additionalProperties" = true))]
struct Document;

async fn description() -> Answer {
    Ok(([(header::CONTENT_TYPE, "application/json")], openapi::document()).into_response())
}
