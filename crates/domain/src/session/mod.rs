//! One session: one life of one agent process.
//!
//! ```text
//!  created ──► starting ──► live ──► stopping ──► ended
//!     │            │          │                     ▲
//!     └────────────┴──────────┴─────────────────────┘   (the process ended, or never was)
//! ```
//!
//! Stored are events. [`State`] is what they add up to ([`State::apply`], total); [`decide`] turns a request or
//! a report into further events and effects; [`State::view`] projects the words that people see. An ended
//! session never changes again.

mod apply;
mod config;
mod decide;
mod handing;
pub mod held;
mod holds;
mod inbox;
mod input;
mod intake;
mod ledger;
mod obituary;
mod open;
mod out_of_memory;
mod phase;
mod project;
mod redacted;
mod refused;
mod restart;
mod standing;
mod state;
mod watchdog;

pub use config::{
    AgentRef, Approve, Begin, Billing, Config, Created, RestartPolicy, Sandbox, WatchdogLimits,
    approval_limit,
};
pub use decide::{create, decide, effects_to_repeat};
pub use holds::{Hold, Holds};
pub use input::{
    AgentRequest, BudgetUse, CallUsage, Context, Decision, Effect, ExitFacts, How, Input, Ladder, Report,
    Request, Spawn, StopRequested, StopRule,
};
pub use intake::Intake;
pub use ledger::Ledger;
pub use obituary::{Ended, Obituary, Restart, RestartRefusal};
pub use open::{OpenApproval, OpenCall, OpenTurn, RateLimit, Stall, Waiting};
pub use out_of_memory::{LargestProcess, OutOfMemory};
pub use phase::{Desired, Outcome, Phase};
pub use project::{Attention, Doing, Link, Status, View};
pub use refused::Refused;
pub use restart::back_off;
pub use standing::{Mark, Rank};
pub use state::State;
pub use watchdog::{Watchdog, WatchdogRung};
