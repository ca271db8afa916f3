//! What an assignment's work is, in one word: the same work is never done twice in a mission.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Assignment, Work,
    plan::{CompleteWhen, Given, Worktree},
};
use crate::{MissionId, session::Approve};

/// A digest of the mission, the assignment, its instance, task and inputs, and of how it is run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    pub fn of(mission: MissionId, assignment: &Assignment, work: &Work) -> Key {
        let mut digest = Sha256::new();
        // Each part with its length: no two rows of parts become the same bytes.
        let mut add = |part: &str| {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        };
        add(&mission.to_string());
        add(assignment.name.as_str());
        add(&assignment.instance.to_string());
        add(&work.task);
        for given in &work.inputs {
            match given {
                Given::File(path) => [add("file"), add(path)],
                Given::Text(text) => [add("text"), add(text)],
            };
        }
        add("run as");
        add(work.agent.as_ref().map_or("", |agent| agent.as_str()));
        add(work.provider.as_deref().unwrap_or_default());
        add(work.model.as_deref().unwrap_or_default());
        add(match work.approve {
            None => "",
            Some(Approve::Ask) => "ask",
            Some(Approve::All) => "all",
            Some(Approve::Nobody) => "nobody",
            Some(Approve::Policy) => "policy",
        });
        match &work.complete_when {
            CompleteWhen::Turn => add("turn"),
            CompleteWhen::Done => add("done"),
            CompleteWhen::Check(command) => [add("check"), add(command)][0],
        }
        match &work.worktree {
            Worktree::None => add("root"),
            Worktree::Own => add("own tree"),
            Worktree::Branch(branch) => [add("branch"), add(branch)][0],
        }
        work.paths.iter().for_each(|path| add(path));
        let short: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Key(short)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
