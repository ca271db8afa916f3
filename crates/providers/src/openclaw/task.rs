//! Helpers that the agent started and that go on beside its turns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many helpers are remembered; an agent that starts more is still followed, the first ones no longer.
const REMEMBERED: usize = 256;

/// A helper's session, as its events name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Helper {
    title: String,
    is_running: bool,
}

/// The helpers of one session, by the key of their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Helpers(BTreeMap<String, Helper>);

/// What a `task` event changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// A helper seen for the first time: its events come only when they are asked for.
    pub(super) fresh: Option<String>,
    /// All that run now, if that is other than before.
    pub(super) running: Option<Vec<String>>,
}

impl Helpers {
    pub(super) fn is_one(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn running(&self) -> Vec<String> {
        self.0.values().filter(|helper| helper.is_running).map(|helper| helper.title.clone()).collect()
    }

    /// Takes in a `task` of the session `owner`.
    pub(super) fn take(&mut self, task: &Value, owner: &str) -> Option<Change> {
        let text = |name: &str| task[name].as_str();
        if text("ownerKey").or(text("sessionKey")) != Some(owner) {
            return None;
        }
        let key = text("childSessionKey")?;
        let before = self.running();
        let is_running = matches!(text("status"), Some("running" | "queued" | "pending"));
        let title = text("title").unwrap_or("helper").to_owned();
        let is_fresh = self.0.insert(key.to_owned(), Helper { title, is_running }).is_none();
        while self.0.len() > REMEMBERED {
            let ended = self.0.iter().find(|(_, helper)| !helper.is_running).map(|(key, _)| key.clone());
            let Some(ended) = ended.or_else(|| self.0.keys().next().cloned()) else { break };
            self.0.remove(&ended);
        }
        let running = self.running();
        Some(Change {
            fresh: is_fresh.then(|| key.to_owned()),
            running: (running != before).then_some(running),
        })
    }
}
