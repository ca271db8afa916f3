//! The machines that a list is asked of: how each is reached, that it is tried again later, and what it had last.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    time::{Duration, Instant},
};

use ostler_client::{Client, Error, Home, Session, Way};
use ostler_domain::{Time, node::Node};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::{failure::Failure, nodes, words};

/// A machine that did not answer is tried again after this time, while somebody watches.
const AGAIN: Duration = Duration::from_secs(15);
/// How long a machine that was reached may take to say what it has.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Another machine.
pub(super) struct Machine {
    pub(super) name: String,
    node: Node,
    link: Link,
}

enum Link {
    Opening(JoinHandle<Result<Client, Error>>),
    Open(Client),
    Closed { since: Instant, why: String },
}

impl Machine {
    /// All that have a name, on the way to each.
    pub(super) fn all(home: &Home, batch: bool) -> Result<Vec<Machine>, Failure> {
        let reached = |(name, node): (String, Node)| {
            let link = open(home, &name, node.clone(), batch);
            Machine { name, node, link }
        };
        Ok(nodes::named(home)?.into_iter().map(reached).collect())
    }

    /// Waits until it is reached or is not. One that is tried again is not waited for: what the others say is not held up.
    pub(super) async fn reach(&mut self, home: &Home, is_first: bool) {
        match &mut self.link {
            Link::Opening(way) if is_first || way.is_finished() => {
                self.link = match way.await {
                    Ok(Ok(client)) => Link::Open(client),
                    Ok(Err(error)) => closed(&error.into()),
                    Err(error) => Link::Closed { since: Instant::now(), why: error.to_string() },
                };
            }
            // Whoever watches a table is not asked for a password in the middle of it.
            Link::Closed { since, .. } if since.elapsed() >= AGAIN => {
                self.link = open(home, &self.name, self.node.clone(), true);
            }
            Link::Opening(_) | Link::Open(_) | Link::Closed { .. } => {}
        }
    }

    pub(super) fn client(&self) -> Option<Client> {
        match &self.link {
            Link::Open(client) => Some(client.clone()),
            Link::Opening(_) | Link::Closed { .. } => None,
        }
    }

    /// It was reached, and did not say what it was asked.
    pub(super) fn close(&mut self, failure: &Failure) {
        self.link = closed(failure);
    }

    /// Why it does not answer.
    pub(super) fn why(&self) -> String {
        match &self.link {
            Link::Opening(_) | Link::Open(_) => "it is tried again".to_owned(),
            Link::Closed { why, .. } => why.clone(),
        }
    }
}

fn open(home: &Home, name: &str, node: Node, batch: bool) -> Link {
    let (way, home): (Way, Home) = (nodes::way(name, node, batch), home.clone());
    Link::Opening(tokio::spawn(async move { Client::connect_by(&way, &home).await }))
}

fn closed(failure: &Failure) -> Link {
    let refusal = failure.to_refusal();
    Link::Closed { since: Instant::now(), why: refusal.why.unwrap_or(refusal.message) }
}

/// What a machine had last.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) at: Time,
    pub(super) rows: Vec<(Session, String)>,
}

fn file(home: &Home, node: &str) -> PathBuf {
    home.state().join("nodes").join(format!("{node}.json"))
}

impl Kept {
    pub(super) fn of(home: &Home, node: &str) -> Option<Kept> {
        serde_json::from_slice(&fs::read(file(home, node)).ok()?).ok()
    }

    pub(super) fn write(home: &Home, node: &str, rows: &[(Session, String)]) -> io::Result<()> {
        let file = file(home, node);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(home.state().join("nodes"))?;
        let kept = Kept { at: words::now(), rows: rows.to_vec() };
        let fresh = file.with_extension(std::process::id().to_string());
        let mut out =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        out.write_all(&serde_json::to_vec(&kept)?)?;
        fs::rename(fresh, file)
    }
}
