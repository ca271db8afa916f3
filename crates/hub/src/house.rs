//! What the hub knows while it runs: its nodes, who of them is connected, and what waits for their answers.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ostler_domain::{
    Reason, Refusal, Time,
    hub::{Answer, Forwarded, Listed, Row},
};
use ostler_gateway::socket::Sayer;
use serde::{Deserialize, Serialize};

use crate::{
    Sort,
    keys::{Key, Keys, write_whole},
    log::Log,
};

pub(crate) struct House {
    dir: PathBuf,
    pub(crate) keys: Keys,
    nodes: Mutex<BTreeMap<String, Node>>,
    /// Something came.
    news: Condvar,
    next: AtomicU64,
}

/// A machine, connected or not.
pub(crate) struct Node {
    pub(crate) log: Log,
    kept: Kept,
    pub(crate) line: Option<Line>,
}

/// What outlives the hub beside the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    node: String,
    /// When something was heard of it last.
    heard: Time,
    rows: Vec<Row>,
}

/// The connection of a node.
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) sayer: Sayer,
    pub(crate) epoch: String,
    pub(crate) waiting: HashMap<String, SyncSender<Answer>>,
}

impl House {
    pub(crate) fn open(dir: &Path) -> io::Result<House> {
        let mut nodes = BTreeMap::new();
        let known = dir.join("nodes");
        for entry in fs::read_dir(&known).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            nodes.insert(name.clone(), Node::open(&known.join(&name))?);
        }
        Ok(House {
            dir: dir.to_owned(),
            keys: Keys::in_dir(dir),
            nodes: Mutex::new(nodes),
            news: Condvar::new(),
            next: AtomicU64::new(1),
        })
    }

    /// Numbers that nobody else has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a node that is known.
    pub(crate) fn with<T>(&self, name: &str, act: impl FnOnce(&mut Node) -> T) -> Option<T> {
        self.nodes().get_mut(name).map(act)
    }

    /// Does something with a node that has just come.
    pub(crate) fn with_new<T>(&self, name: &str, act: impl FnOnce(&mut Node) -> T) -> io::Result<T> {
        let mut nodes = self.nodes();
        if !nodes.contains_key(name) {
            nodes.insert(name.to_owned(), Node::open(&self.node_dir(name))?);
        }
        let Some(node) = nodes.get_mut(name) else { return Err(io::ErrorKind::NotFound.into()) };
        Ok(act(node))
    }

    fn node_dir(&self, name: &str) -> PathBuf {
        self.dir.join("nodes").join(name)
    }

    /// Somebody may be waiting for what came.
    pub(crate) fn tell(&self) {
        self.news.notify_all();
    }

    /// The first events of a node behind a place. None where there is no such node: one whose key was taken back is none.
    pub(crate) fn events(&self, name: &str, after: u64) -> Option<Result<Vec<Forwarded>, Refusal>> {
        if !self.is_node(name) {
            return None;
        }
        self.with(name, |node| node.events(after))
    }

    /// Waits for them; there are none when nothing came in time.
    pub(crate) fn await_events(
        &self,
        name: &str,
        after: u64,
        within: Duration,
    ) -> Option<Result<Vec<Forwarded>, Refusal>> {
        let nothing = |nodes: &mut BTreeMap<String, Node>| {
            nodes.get(name).is_none_or(|node| node.log.last().unwrap_or(0) == after)
        };
        drop(self.news.wait_timeout_while(self.nodes(), within, nothing));
        self.events(name, after)
    }

    /// Whether a machine of this name has a key.
    pub(crate) fn is_node(&self, name: &str) -> bool {
        self.keys.all().is_ok_and(|keys| has_node(&keys, name))
    }

    /// What all nodes listed last. A node whose key was taken back is none.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        let keys = self.keys.all().unwrap_or_default();
        let is_node = |name: &str| has_node(&keys, name);
        let nodes = self.nodes();
        let listed = nodes.iter().filter(|(name, _)| is_node(name)).map(|(name, node)| Listed {
            name: name.clone(),
            node: node.kept.node.clone(),
            stale_since: node.line.is_none().then(|| node.kept.heard.rfc3339()),
            rows: node.kept.rows.clone(),
        });
        listed.collect()
    }
}

fn has_node(keys: &[Key], name: &str) -> bool {
    keys.iter().any(|key| key.name == name && key.sort == Sort::Node)
}

/// Events of one answer.
pub(crate) const PAGE: usize = 500;

impl Node {
    fn open(dir: &Path) -> io::Result<Node> {
        let log = Log::open(dir)?;
        let kept = fs::read(dir.join("node.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Ok(Node { log, kept: kept.unwrap_or_default(), line: None })
    }

    fn events(&self, after: u64) -> Result<Vec<Forwarded>, Refusal> {
        self.log.check(after).map_err(|no| no.refusal(after))?;
        self.log.read(after, PAGE).map_err(|error| {
            Refusal::new(Reason::Internal, "the log cannot be read").because(error.to_string())
        })
    }

    /// Says who it is. A name that is another machine's now has another log.
    pub(crate) fn is(&mut self, node: &str, last: u64) -> io::Result<()> {
        let is_another = !self.kept.node.is_empty() && self.kept.node != node;
        if is_another || self.log.last().is_some_and(|had| had > last) {
            self.log.forget()?;
        }
        node.clone_into(&mut self.kept.node);
        Ok(())
    }

    pub(crate) fn heard(&mut self) {
        self.kept.heard = now();
    }

    pub(crate) fn lists(&mut self, rows: Vec<Row>) {
        self.kept.rows = rows;
    }

    pub(crate) fn keep(&self, house: &House, name: &str) {
        // What is listed comes anew with the next connection.
        let _ = write_whole(
            &house.node_dir(name).join("node.json"),
            &serde_json::to_vec(&self.kept).unwrap_or_default(),
        );
    }
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
