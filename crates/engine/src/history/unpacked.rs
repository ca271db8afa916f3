//! What OpenClaw keeps in databases: each is written out below the state, as files of its older form, and these are looked
//! through like any store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Time,
    history::{Source, Store, bits},
};
use ostler_store::unpack_openclaw;

use super::stores::{self, Dialogue, Seen};

/// Where OpenClaw keeps an agent's dialogues since 2026.9.
const DATABASE: &str = "openclaw-agent.sqlite";
/// The directory below the state.
const DIR: &str = "openclaw";

/// What a store has.
pub(super) struct Looked {
    pub(super) dialogues: Vec<Dialogue>,
    /// The store, and what its databases were written out to.
    pub(super) stores: Vec<Store>,
    /// Why there is more than could be read.
    pub(super) why_not: Option<String>,
}

/// The dialogues of a store that have changed, those of its databases too.
pub(super) fn look(
    store: &Store,
    since: Option<Time>,
    seen: &Seen,
    state_dir: &Path,
) -> Result<Looked, String> {
    let mut dialogues = stores::look(store, since, seen)?;
    let mut stores = vec![store.clone()];
    let databases = databases(store);
    if databases.is_empty() {
        return Ok(Looked { dialogues, stores, why_not: None });
    }
    let root = state_dir.join(DIR).join(format!("{:032x}", bits(&[store.dir.as_bytes()])));
    let mut unread = Vec::new();
    for (agent, database) in &databases {
        if let Err(why) = unpack_openclaw(database, &root.join("agents").join(agent)) {
            unread.push(format!("of {agent}: {why}"));
        }
    }
    let own = Store { source: store.source, dir: root.to_string_lossy().into_owned() };
    if root.is_dir() {
        dialogues.extend(stores::look(&own, since, seen)?);
        stores.push(own);
    }
    let why_not = (!unread.is_empty()).then(|| {
        format!(
            "what OpenClaw keeps in {DATABASE} is not read ({}); files of its older form, in agents/*/sessions, are: of what it had \
             before that database, `openclaw doctor --session-sqlite restore` makes them in a copy of its directory",
            unread.join("; ")
        )
    });
    Ok(Looked { dialogues, stores, why_not })
}

/// The databases of a store, each with its agent's name. Links are not followed.
fn databases(store: &Store) -> Vec<(String, PathBuf)> {
    if store.source != Source::OpenClaw {
        return Vec::new();
    }
    let agents = fs::read_dir(Path::new(&store.dir).join("agents")).into_iter().flatten().flatten();
    let of_agent = agents.filter_map(|agent| {
        let database = agent.path().join("agent").join(DATABASE);
        let is_file = fs::symlink_metadata(&database).is_ok_and(|about| about.is_file());
        let is_own = agent.file_type().is_ok_and(|kind| kind.is_dir());
        (is_file && is_own).then(|| Some((agent.file_name().to_str()?.to_owned(), database)))?
    });
    let mut found: Vec<_> = of_agent.collect();
    found.sort();
    found
}
