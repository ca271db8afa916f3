//! The store as its users see it: what is committed stays, what is refused leaves no trace, and damage is said.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod backup;
mod bulk;
mod check;
mod commit;
mod events;
mod faults;
mod golden;
mod identity;
mod mission_samples;
mod opening;
mod reindex;
mod retention;
mod rows;
mod samples;
mod search;
mod sessions;
mod shown;
mod sql;
mod support;
mod tickets;
