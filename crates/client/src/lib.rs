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
//! - **Types** are those of the core, here as [`domain`]; a [`Session`] is one row of `ostler ls`.
//! - **Naming things**: a `who` is what a person types: an id or a unique part of one, a name, a provider's id.
//! - **Failures**: [`Error::Refused`] is the daemon's answer, with a stable reason, a sentence and what to try. The
//!   other kinds are about reaching it; [`Error::to_refusal`] puts all of them into that one form.
//! - **The daemon may restart at any moment.** Every change carries an id of its own and is asked again with that
//!   id when the connection breaks, so it happens once. A [`Watch`] goes on from its cursor.
//! - **Runtime**: tokio, a current-thread one is enough. A [`Client`] is cheap to clone.
//!
//! # Who needs somebody
//!
//! ```no_run
//! use ostler_client::{AnswerApproval, Client, domain::session::Attention, query::{Page, Scope, SessionFilter}};
//!
//! # async fn example(client: Client) -> Result<(), ostler_client::Error> {
//! let waiting = SessionFilter {
//!     scope: Scope::NotEnded,
//!     attention: vec![Attention::WaitingApproval, Attention::WaitingInput],
//!     ..SessionFilter::default()
//! };
//! let mut cursor = None;
//! loop {
//!     let page = client.sessions(&waiting, Page::of(100, cursor)).await?;
//!     for session in &page.rows {
//!         println!("{} {}: {}", session.id.short(), session.name, session.evidence);
//!     }
//!     cursor = page.next_cursor;
//!     if cursor.is_none() {
//!         break;
//!     }
//! }
//! for asked in client.approvals(true, Page::of(100, None)).await?.rows {
//!     let allow = asked.tool == "Read";
//!     let message = if allow { String::new() } else { "not at night".to_owned() };
//!     let answer = AnswerApproval { approval: asked.id.to_string(), allow, always: false, message };
//!     client.answer_approval(answer).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Saying something, and hearing the answer
//!
//! A message is durable when [`Client::send_message`] returns, and is delivered once. Its receipts are events, and so is
//! the answer: a watch from the place before it misses neither.
//!
//! ```no_run
//! use ostler_client::{Client, SendMessage, Watched, domain::Event, query::EventFilter};
//!
//! # async fn example(client: Client) -> Result<(), ostler_client::Error> {
//! let before = client.status().await?.last_seq;
//! let ask = SendMessage { who: "api-auth".to_owned(), text: "and the tests?".to_owned(), ..SendMessage::default() };
//! let Some(sent) = client.send_message(ask).await?.sent() else { return Ok(()) };
//! let filter = EventFilter { session: Some(sent.session.id), ..EventFilter::default() };
//! let mut watch = client.watch(filter, Some(before)).await?;
//! while let Some(Watched::Event(recorded)) = watch.next().await.transpose()? {
//!     match recorded.event {
//!         Event::AgentCompletion(said) => println!("{}", said.text),
//!         Event::MessageAnswered(mark) if mark.id == sent.message => break,
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Teams
//!
//! A mission is the fold of its events: [`Client::mission_state`] reads them, and a watch for the kinds of
//! [`Client::MISSION_KINDS`] from the place that it names tells everything that comes after.
//!
//! ```no_run
//! use ostler_client::{Client, CreateMission, Watched, query::EventFilter};
//!
//! # async fn example(client: Client) -> Result<(), ostler_client::Error> {
//! let plan = "objective = \"Two greetings\"\n[[agents]]\nname = \"a\"\ntask = \"greet\"\n[[agents]]\nname = \"b\"\ntask = \"greet\"\n";
//! let wanted = CreateMission { campaign: "shop".to_owned(), plan: plan.to_owned(), starts: true, ..CreateMission::default() };
//! let mission = client.create_mission(wanted).await?;
//! let (mut state, seen) = client.mission_state(&mission.id.to_string()).await?;
//! let filter = EventFilter { kinds: Client::MISSION_KINDS.to_vec(), ..EventFilter::default() };
//! let mut watch = client.watch(filter, Some(seen)).await?;
//! while !state.is_over() {
//!     if let Some(Watched::Event(told)) = watch.next().await.transpose()?
//!         && told.event.mission() == Some(mission.id)
//!     {
//!         state.apply(told.time, &told.event);
//!         println!("{} of {} completed", state.progress().all.completed, state.progress().all.total);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Failures
//!
//! Every reason, with its exit code, its gRPC code and what to do, is in `docs/errors.md`.
//!
//! ```no_run
//! use ostler_client::{Client, CreateSession, Error, domain::Reason};
//!
//! # async fn example(client: Client) -> Result<(), Error> {
//! match client.create_session(CreateSession::new("shop", "claude-code")).await {
//!     Ok(session) => println!("{}", session.id),
//!     Err(Error::Refused(refusal)) if refusal.reason == Reason::Halted => println!("later: {refusal}"),
//!     Err(error) => {
//!         let refusal = error.to_refusal();
//!         for hint in &refusal.hints {
//!             println!("try {}: {}", hint.command, hint.effect);
//!         }
//!         return Err(error);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Other languages
//!
//! [`protocol`] has the protocol itself, as `ostler api proto` and `ostler api descriptor` print it; `examples/python` and
//! `examples/typescript` are whole clients made from it.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod admin;
mod agents;
mod call;
mod campaigns;
mod client;
mod commands;
mod conversations;
mod error;
mod events;
mod history;
mod http;
mod incoming;
mod missions;
mod notices;
mod providers;
mod relay;
mod retention;
mod sessions;
mod shares;
mod socket;
mod sql;
mod start;
mod tapes;
mod tickets;
mod transcripts;
mod tree;
mod watch;

pub use client::Client;
pub use commands::PrepareCommand;
pub use error::Error;
pub use incoming::Incoming;
pub use notices::{Notices, UntoldChannel, WantedNotices};
/// The types of the core, in and out of every method.
pub use ostler_domain as domain;
pub use ostler_domain::{
    agent::Agent,
    campaign::Campaign,
    conversation::Conversation,
    home::{Home, HomeError},
    mission::Listed as Mission,
    provider::CallerKeys,
    query,
    session::View as Session,
    ticket::Ticket,
};
pub use ostler_wire::{InvalidField, reply, request};
pub use ostler_wire::{
    reply::{AnswerGiven, Approval, Delivery, EventPage, NodeStatus, Received, Sent, Taken, UnknownEvent},
    request::{
        AddCampaign, AddTicket, AnswerApproval, CreateMission, CreateSession, GetUsage, LinkTicket,
        ListEvents, MakeCheckpoint, MessagePlace, MissionAction, Place, PlanMission, ResumeMission,
        ResumeSession, RetryMission, SendMessage,
    },
};
/// The protocol itself, for programs in other languages.
pub mod protocol {
    pub use ostler_wire::{FILE_DESCRIPTOR_SET as DESCRIPTORS, FILES, status::code};
}

pub use ostler_inside::{Said, SessionSocket};
pub use relay::{Way, person, serve as serve_relay};
pub use transcripts::{ImportedPiece, Transcript};
pub use watch::{Watch, Watched};

/// Finds the directories of the daemon from this process's environment.
pub fn home() -> Result<Home, HomeError> {
    Home::resolve(|name| std::env::var(name).ok())
}
