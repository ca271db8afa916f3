//! The shell around the pure core: one actor per session, effects after commits, adoption at start.
//!
//! The engine starts keepers by executing this program again and never runs an agent itself. It decides nothing
//! that [`ostler_domain`] can decide, and keeps nothing that the store does not have, except who is connected.
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod admin;
mod admission;
mod agent;
mod agent_budget;
mod answer;
mod attended;
mod audit;
mod campaign;
mod campaign_files;
mod census;
mod cgroups;
mod change;
mod clock;
mod command;
mod confine;
mod conversation;
mod create;
mod deltas;
mod disk_use;
mod drain;
mod environment;
mod export;
mod fault;
mod fork;
mod git;
mod group;
mod halt;
mod handoff;
mod hidden_watch;
mod history;
mod keeper;
mod keys;
mod launch;
mod lending;
mod link;
mod logins;
mod lookout;
mod lost;
mod memory;
mod message;
mod metrics;
mod mirror;
mod mission;
mod models;
mod narrow;
mod native;
mod notices;
mod options;
mod place;
mod prices;
mod programs;
mod project_text;
mod promises;
mod provider;
mod readiness;
mod requests;
mod restart;
mod retention;
mod seance;
mod send;
mod send_policy;
mod serve;
mod session;
mod sessions;
mod shared;
mod sql;
mod start;
mod tape;
mod ticket;
mod tidy;
mod transcript;
mod upstream;
mod watch;
mod who;
mod worktree;

use std::sync::Arc;

pub use admin::DaemonStatus;
pub use admission::DiskRoom;
pub use answer::Answer;
pub use audit::Verified;
pub use change::Change;
pub use clock::Clock;
pub use command::WantedCommand;
pub use conversation::{NewConversation, Opened};
pub use create::NewSession;
pub use deltas::Delta;
pub use disk_use::DiskUse;
pub use export::ExportSettings;
pub use fork::NewFork;
pub use keeper::Program;
pub use logins::LoginPlan;
pub use message::MessagePlace;
pub use mission::{NewMission, PlannedMission, StoodStill, WantedPlan};
pub use models::Fetcher;
pub use native::Native;
pub use notices::{ChannelSettings, Linker, NoticeSettings, Post, Poster, Wanted};
pub use options::{Options, ProviderSettings};
pub use ostler_store::{
    ApprovalRow, ApprovalState, BackupProgress, CheckDepth, CheckReport, DirLock, Drain, Finding, Halt,
    MessageRow, Reindexed, SearchHit, Stats,
};
pub use requests::Raised;
pub use retention::Planning;
pub use send::{Accepted, Addressee, Sent, Words};
pub use sql::SqlAnswer;
pub use tape::{OwnRecord, Tape, TapePart};
pub use ticket::{LinkChange, NewCheckpoint, NewTicket};
pub use transcript::{Delivery, ImportedFile, Transcript};
pub use watch::Watch;

/// This version, as keepers and clients are told.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The running engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<shared::Shared>,
}
