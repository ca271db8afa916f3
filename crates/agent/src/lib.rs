//! Agent programs of Ostler's own. They run as ordinary child processes under a keeper, like everybody else's,
//! and know nothing of the daemon.
#![forbid(unsafe_code)]

pub mod bridge;
pub mod coder;
pub mod script;
