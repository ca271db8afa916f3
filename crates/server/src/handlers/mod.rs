//! One file per service. Each method: convert, ask the engine, convert back.

mod admin;
mod agent;
mod campaign;
mod command;
mod conversation;
mod event;
mod provider;
mod session;
mod ticket;
mod transcript;
mod tree;
mod words;

use std::collections::BTreeMap;

use ostler_domain::{Refusal, provider::CallerKeys};
use ostler_engine::Change;
use ostler_wire::{InvalidField, from_proto, status};
use tonic::{Request, Status};

use crate::peer;

/// Who asks for a change, and under which id.
fn change<T>(request: &Request<T>, request_id: &str) -> Result<Change, Status> {
    let request_id = from_proto::request_id(request_id).map_err(invalid)?;
    Ok(Change {
        by: peer::by(request),
        pid: peer::pid(request),
        request: request_id,
        keys: CallerKeys::default(),
    })
}

/// The same, with the keys that came along.
fn change_with_keys<T>(
    request: &mut Request<T>,
    request_id: impl Fn(&T) -> &str,
    keys: impl Fn(&mut T) -> &mut BTreeMap<String, String>,
) -> Result<Change, Status> {
    let brought = std::mem::take(keys(request.get_mut()));
    let change = change(request, request_id(request.get_ref()))?;
    Ok(change.with_keys(from_proto::caller_keys(brought).map_err(invalid)?))
}

fn refused(refusal: Refusal) -> Status {
    status::from_refusal(&refusal)
}

fn invalid(invalid: InvalidField) -> Status {
    status::from_invalid(&invalid)
}
