//! One file per service. Each method: convert, ask the engine, convert back.

mod admin;
mod campaign;
mod command;
mod event;
mod provider;
mod session;
mod words;

use ostler_domain::Refusal;
use ostler_engine::Change;
use ostler_wire::{InvalidField, from_proto, status};
use tonic::{Request, Status};

use crate::peer;

/// Who asks for a change, and under which id.
fn change<T>(request: &Request<T>, request_id: &str) -> Result<Change, Status> {
    Ok(Change { by: peer::by(request), request: from_proto::request_id(request_id).map_err(invalid)? })
}

fn refused(refusal: Refusal) -> Status {
    status::from_refusal(&refusal)
}

fn invalid(invalid: InvalidField) -> Status {
    status::from_invalid(&invalid)
}
