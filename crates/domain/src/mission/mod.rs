//! Missions: teams of agents with one objective.
//!
//! ```text
//!  plan (TOML) ──► graph (one DAG, whatever the strategy) ──► MISSION_CREATED
//!
//!  created ──► running ◄──► paused ──► completed | partial | failed | cancelled
//!                 ▲                        │
//!                 └────────── retry ───────┘
//! ```
//!
//! Stored are events. [`State`] is what they add up to ([`State::apply`], total); [`decide`] turns a request, or news
//! of a member's session, into further events and effects. A member's session is an ordinary one: what it does is in its
//! own events, and a mission knows it by its id. What is never run again, who waits and why, and what comes next follow
//! from the state alone, so a mission goes on after any crash where it stood.

mod answer;
mod apply;
mod asked;
mod assignment;
pub mod brief;
mod decide;
pub mod draw;
pub mod estimate;
pub mod eta;
pub mod forecast;
mod graph;
mod input;
mod key;
pub mod lease;
mod listed;
pub mod plan;
mod progress;
mod report;
mod slots;
mod state;
pub mod stuck;
mod succession;
mod wait;
mod words;

pub use answer::TaskAnswer;
pub use asked::{Asked, asked};
pub use assignment::{Assignment, Product, Spent};
pub use decide::{Preview, create, decide, effects_to_repeat, preview};
pub use graph::Graph;
pub use input::{
    Context, Decision, Effect, Errand, Input, Request, SessionEnd, StartSession, Stuck, StuckKind, Tried,
};
pub use key::Key;
pub use listed::{Counts, Filter, Listed, Membership};
pub use plan::{Fault, Faults, Member, Plan, Work};
pub use progress::{Progress, RoleCount};
pub use report::Standing;
pub use slots::Slots;
pub use state::{Collision, Merging, Slot, State, Step};
pub use succession::Succession;
pub use wait::{Beside, Wait};
pub use words::{AssignmentStatus, Hold, Interval, Status, StopRule, Strategy};
