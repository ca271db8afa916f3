//! One file per service. Each method: convert, ask the engine, convert back.

mod admin;
mod agent;
mod campaign;
mod command;
mod conversation;
mod event;
mod history;
mod http;
mod mission;
mod notice;
mod provider;
mod retention;
mod session;
mod share;
mod sql;
mod tape;
mod ticket;
mod transcript;
mod tree;
mod words;

use std::{collections::BTreeMap, pin::Pin};

use ostler_domain::{Refusal, provider::CallerKeys};
use ostler_engine::Change;
use ostler_wire::{InvalidField, from_proto, status};
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};

use crate::peer;

/// Answers that wait for whoever asked; beyond them the work waits.
const WAITING: usize = 4;

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type News<T> = mpsc::Sender<Result<T, Status>>;

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

/// Answers as they come, and at the end why there are no more, if there should have been.
fn streamed<T: Send + 'static, F>(work: impl FnOnce(News<T>) -> F) -> Response<Streamed<T>>
where
    F: Future<Output = Result<(), Refusal>> + Send + 'static,
{
    let (news, answers) = mpsc::channel(WAITING);
    let work = work(news.clone());
    tokio::spawn(async move {
        if let Err(refusal) = work.await {
            let _ = news.send(Err(refused(refusal))).await;
        }
    });
    Response::new(Box::pin(ReceiverStream::new(answers)))
}
