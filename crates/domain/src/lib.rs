//! The pure core of Ostler.
//!
//! What a session is, what may happen to it, and what follows: ids, facts, decisions, budgets, limits. No
//! clock, no randomness, no I/O and no runtime: time and entropy come in as arguments, wishes go out as
//! data. The shell around it (store, engine, server) only carries things to and from here.
#![forbid(unsafe_code)]

pub mod admission;
pub mod agent;
pub mod approval;
pub mod ask;
pub mod attack;
pub mod budget;
pub mod call;
pub mod campaign;
pub mod chain;
pub mod command;
pub mod config;
pub mod confinement;
pub mod conversation;
pub mod denied;
pub mod environment;
pub mod event;
pub mod exchange;
pub mod gateway;
pub mod git_config;
pub mod git_index;
pub mod handoff;
pub mod hidden;
pub mod history;
pub mod home;
pub mod http;
pub mod hub;
pub mod id;
pub mod image;
pub mod limit_end;
pub mod limits;
pub mod log;
pub mod message;
pub mod metrics;
pub mod mission;
pub mod name;
pub mod node;
pub mod notice;
pub mod policy;
pub mod price;
pub mod provider;
pub mod query;
pub mod readiness;
pub mod reboot;
pub mod redact;
pub mod refusal;
pub mod retention;
pub mod seance;
pub mod secret;
pub mod service;
pub mod session;
pub mod setting;
pub mod share;
pub mod snapshot;
pub mod space;
pub mod sql;
pub mod telemetry;
pub mod text;
pub mod ticket;
pub mod time;
pub mod tool;
pub mod trace;
pub mod transcript;
pub mod usage;
pub mod usage_audit;
pub mod worktree;

pub use budget::Budget;
pub use event::{Event, Kind, Recorded};
pub use id::{
    AgentId, ApprovalId, AssignmentId, CampaignId, ConversationId, IdError, MessageId, MissionId, NodeId,
    RequestId, SessionId, TicketId,
};
pub use message::{Message, Mode, Receipt};
pub use name::{FreeNumber, Name, NameError};
pub use policy::Policy;
pub use refusal::{Hint, Reason, Refusal};
pub use secret::Secret;
pub use time::{Deadline, Now, Time};
pub use usage::Usage;
