//! A mission's directory: what its members share, and its report.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::{MissionId, Time, mission::State};

/// What members find in the directory that they share: what all should know, what they say to each other, and one
/// directory for each of them.
const PARTS: [&str; 4] = ["context", "messages/inbox", "messages/outbox", "agents"];

/// The directory of a mission.
pub(crate) fn of(state_dir: &Path, mission: MissionId) -> PathBuf {
    state_dir.join("missions").join(mission.to_string())
}

/// The part of it that every member sees.
pub(crate) fn shared(state_dir: &Path, mission: MissionId) -> PathBuf {
    of(state_dir, mission).join("shared")
}

/// Makes it, with the objective and the plan for all to read. Repeating is harmless.
pub(super) fn make(state_dir: &Path, state: &State) -> io::Result<()> {
    let shared = shared(state_dir, state.id());
    for part in PARTS {
        DirBuilder::new().recursive(true).mode(0o700).create(shared.join(part))?;
    }
    for slot in state.slots() {
        let own = shared.join("agents").join(slot.assignment.name.as_str());
        DirBuilder::new().recursive(true).mode(0o700).create(own)?;
    }
    put(&shared.join("context/objective.md"), &format!("{}\n", state.plan().objective))?;
    put(&shared.join("context/plan.toml"), &state.plan().to_toml())
}

/// The closing report, in place of an older one.
pub(super) fn write_report(state_dir: &Path, state: &State, now: Time) -> io::Result<()> {
    let dir = of(state_dir, state.id());
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    put(&dir.join("report.md"), &state.report(now))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(part, path)
}
