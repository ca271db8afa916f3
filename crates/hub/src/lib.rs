//! `ostler hub run`: several machines' sessions in one place.
//!
//! Nodes connect here, forward their logs and say what they list; people look at all of it, and whoever has a share token of
//! a node has that node do what the token allows. The hub decides nothing about agents: it keeps a copy, and passes on.
//! One thread for each connection, and files for what must outlive it; no runtime, no database.
#![forbid(unsafe_code)]

mod house;
mod http;
mod keys;
mod log;
mod node;
mod page;
mod places;
mod relay;
mod serve;

use std::{net::SocketAddr, path::PathBuf};

pub use keys::{Key, Keys, Sort};
pub use serve::run;

/// Where a hub listens when nobody says.
pub const USUAL_ADDRESS: &str = "127.0.0.1:7879";

/// What a hub is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its state.
    pub dir: PathBuf,
    pub listen: SocketAddr,
    /// A certificate and its key, in PEM; without them, somebody in front of it speaks TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Names by which it is reached, beside the machine's own.
    pub hosts: Vec<String>,
}
