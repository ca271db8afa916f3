//! The sandbox: an agent sees its campaign, the system's programs and nothing else of the machine.
//!
//! ```text
//! keeper ──▶ warden             user, mount and network namespaces: builds the root, masks and re-masks
//!              └─▶ init         pid 1 of a pid namespace: reaps, relays the wait status; no capabilities
//!                    └─▶ agent  no_new_privs, no capabilities, limits, Landlock, seccomp
//! ```
//!
//! One module for each layer, in the order in which they are put on. Each either holds or refuses: there is no lesser
//! sandbox to fall back to. All `unsafe` is in `sys`.

#![deny(unsafe_code)]

pub mod channel;
mod cure;
mod exec_status;
mod log;
mod refusal;
mod repositories;
mod sys;
mod terminal;

mod warden;

mod identity;
mod namespaces;
mod net;

mod dev;
mod etc;
mod mounts;
mod proc;
mod root;
mod sources;

mod fingerprint;
mod git_links;
mod masks;
mod own_trees;
mod scan;
mod tooling;
mod work_tree;

mod init;

mod agent;
mod landlock;
mod limits;
mod links;
pub mod observe;
mod seccomp;
mod set_ids;

mod probe;

use std::process::ExitCode;

pub use probe::{Offer, check, probe, report};
pub use refusal::{Refusal, Stage};

/// Exit code of a warden, init or agent's process that refused to go on.
pub const EXIT_REFUSED: u8 = 126;

/// `ostler internal warden`: only a keeper starts it.
pub fn warden() -> ExitCode {
    warden::run()
}
