//! The HTTP door of the daemon: the JSON API, the stream of events, and the dashboard.
//!
//! It has no state and no rules of its own but who may come in (`ring`). Whatever it is asked it asks of the daemon's
//! services, through the same client that everybody has, for whoever came in. What must hold of a request before anybody
//! looks at it is decided in [`ostler_domain::http`], purely, and held in `guard`.
#![forbid(unsafe_code)]

mod api;
mod assets;
mod card;
mod checkup;
mod clock;
mod crowd;
mod door;
mod feed;
mod guard;
mod openapi;
mod pages;
mod reply;
mod ring;
mod routes;
mod serve;
mod share;
mod stream;
mod uplink;

pub use door::{Audit, Door, Household};
pub use openapi::document as openapi;
pub use uplink::HubSettings;
