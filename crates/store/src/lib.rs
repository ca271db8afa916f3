//! The record on disk: one SQLite database, one writer, many readers.
//!
//! Three classes of tables, told apart by their prefix. `log_event` is the truth: every event, in the only
//! order there is. `node_*` is what this machine needs to go on: tape cursors, dialogue states, the outbox,
//! request ids. The rest is derived from the log and can be thrown away ([`Store::reindex`]).
//!
//! ```text
//!  commit(…) ─► encode, write blobs ─► writer thread: gather ─► BEGIN … COMMIT (durable) ─► answer ─► publish
//!  reads     ─► worker threads, one read-only connection each ─► short transactions
//!  search.db ◄─ its own thread, which follows the log
//! ```
//!
//! Architecture invariant: nothing is acknowledged or published before it is durable, and nothing but the
//! writer thread writes.
#![forbid(unsafe_code)]

mod commit;
mod drain;
mod error;
mod open;
mod store;

mod blob;
mod connect;
mod convert;
mod lock;
mod meter;
mod pool;
mod schema;
mod writer;

mod agent;
mod approval;
mod campaign;
mod conversation;
mod derive;
mod halt;
mod history;
mod image;
mod log;
mod lost;
mod message;
mod mirrored;
mod mission;
mod node;
mod prices;
mod retention;
mod session;
mod snapshot;
mod ticket;
mod transcript;
mod usage;
mod worktree;

mod backup;
mod bulk;
mod check;
mod openclaw;
mod published;
mod refused;
mod reindex;
mod search;
mod sql;
mod stats;
mod vacuum;

pub use approval::{ApprovalRow, ApprovalState};
pub use backup::{BackupError, BackupProgress};
pub use bulk::{Bulk, BulkLoaded};
pub use campaign::CampaignRow;
pub use check::{CheckDepth, CheckReport, Finding};
pub use commit::{Commit, Committed, OutboxRow, RequestReply, SessionCommit, TapeMark, Urgency};
pub use drain::Drain;
pub use error::{CommitError, Fault, FaultKind, LockError, OpenError, ReadError};
pub use halt::Halt;
pub use history::KnownHistory;
pub use lock::DirLock;
pub use lost::{LastCall, Lost};
pub use message::MessageRow;
pub use meter::{Counts, Spent};
pub use mission::DoneAssignment;
pub use open::{Opened, Options, Paths};
pub use openclaw::{Unpacked, Unreadable, unpack_openclaw};
pub use pool::block_on;
pub use published::Published;
pub use reindex::Reindexed;
pub use retention::{Candidate, Candidates};
pub use schema::VERSION as SCHEMA_VERSION;
pub use search::{Among, SearchHit};
pub use session::{FamilyOf, LoadedSession};
pub use snapshot::SeenWork;
pub use stats::Stats;
pub use store::{Batch, Store};
pub use ticket::RecentTicket;
pub use transcript::TranscriptMark;
pub use usage::CampaignSpent;
pub use vacuum::Vacuumed;
pub use worktree::WorktreeRow;
