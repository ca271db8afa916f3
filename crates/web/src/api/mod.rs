//! The JSON API: the words, cursors and reasons of gRPC, the forms of the command line. One list of what can be asked:
//! the paths that are served and what is said about them are made from it.

mod approvals;
mod asked;
mod campaigns;
mod cost;
mod missions;
mod node;
mod search;
mod sessions;
mod tickets;

use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

pub(crate) use asked::{Names, SessionsAsked, names};
pub(crate) use cost::prices;
pub(crate) use search::SearchAsked;

/// One thing that can be asked.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// A sentence, and a name that is unique.
    pub(crate) about: &'static str,
    pub(crate) id: &'static str,
    /// What may stand behind the `?`, as it is read.
    pub(crate) query: Option<Shape>,
    /// What a change takes, as it is read.
    pub(crate) body: Option<Shape>,
    /// What is answered, as it is written.
    pub(crate) answer: Form,
    pub(crate) serve: MethodRouter,
}

/// How something looks as JSON, from its type.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn of<T: JsonSchema>(made: &mut SchemaGenerator) -> Schema {
    made.subschema_for::<T>()
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    One(Shape),
    /// A page of a list, under this name.
    Page(&'static str, Shape),
    /// `text/event-stream` of these.
    Stream(Shape),
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let parts = [
        sessions::endpoints(),
        approvals::endpoints(),
        missions::endpoints(),
        tickets::endpoints(),
        campaigns::endpoints(),
        search::endpoints(),
        cost::endpoints(),
        node::endpoints(),
        crate::stream::endpoints(),
    ];
    parts.into_iter().flatten().collect()
}
