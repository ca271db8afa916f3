//! Talks to the Ostler daemon: starts agents, follows what they do, answers them, reads the record.
//!
//! ```no_run
//! use ostler_client::{Client, CreateSession, Watched, query::EventFilter};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(&ostler_client::home()?).await?;
//! let mut ask = CreateSession::new("shop", "script");
//! ask.initial_message = Some("fix the flaky login test".to_owned());
//! let session = client.create_session(ask).await?;
//!
//! let filter = EventFilter { session: Some(session.id), ..EventFilter::default() };
//! let mut watch = client.watch(filter, Some(0)).await?;
//! while let Some(item) = watch.next().await {
//!     match item? {
//!         Watched::Event(event) => println!("{} {}", event.seq, event.event.kind()),
//!         Watched::Unknown(event) => println!("{} {} (newer than this program)", event.seq, event.kind),
//!         Watched::Reconnected => println!("the daemon is back; nothing was missed"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **Types** are those of the core (`ostler-domain`); a [`Session`] is one row of `ostler ls`.
//! - **Naming things**: a `who` is what a person types: an id or a unique part of one, a name, a provider's id.
//! - **Failures**: [`Error::Refused`] is the daemon's answer, with a stable reason, a sentence and what to try. The
//!   other kinds are about reaching it; [`Error::to_refusal`] puts all of them into that one form.
//! - **The daemon may restart at any moment.** Every change carries an id of its own and is asked again with that
//!   id when the connection breaks, so it happens once. A [`Watch`] goes on from its cursor.
//! - **Runtime**: tokio, a current-thread one is enough. A [`Client`] is cheap to clone.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod admin;
mod call;
mod campaigns;
mod client;
mod commands;
mod error;
mod events;
mod incoming;
mod providers;
mod relay;
mod session_socket;
mod sessions;
mod socket;
mod start;
mod watch;

pub use client::Client;
pub use commands::PrepareCommand;
pub use error::Error;
pub use incoming::Incoming;
pub use ostler_domain::{
    campaign::Campaign,
    home::{Home, HomeError},
    provider::CallerKeys,
    query,
    session::View as Session,
};
pub use ostler_wire::{InvalidField, reply, request};
pub use ostler_wire::{
    reply::{AnswerGiven, Approval, Delivery, EventPage, NodeStatus, Received, Sent, UnknownEvent},
    request::{
        AddCampaign, AnswerApproval, CreateSession, GetUsage, ListEvents, Place, ResumeSession, SendMessage,
    },
};
pub use relay::{Way, serve as serve_relay};
pub use session_socket::{Said, SessionSocket};
pub use watch::{Watch, Watched};

/// Finds the directories of the daemon from this process's environment.
pub fn home() -> Result<Home, HomeError> {
    Home::resolve(|name| std::env::var(name).ok())
}
