//! A mission's directory: what its members share, and its report.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::{MessageId, MissionId, Name, Time, message::Receipt, mission::State};
use ostler_providers::HomeFile;
use serde_json::json;

use crate::confine::{files_in, make_dirs, write_home_files};

/// What members find in the directory that they share: what all should know, what they say to each other, and one
/// directory for each of them.
const CONTEXT: &str = "context";
const INBOX: &str = "messages/inbox";
const OUTBOX: &str = "messages/outbox";
const AGENTS: &str = "agents";
/// Files of a member's own directory that are handed on, by name.
const FILES: usize = 100;

/// The directory of a mission.
pub(crate) fn of(state_dir: &Path, mission: MissionId) -> PathBuf {
    state_dir.join("missions").join(mission.to_string())
}

/// The part of it that every member sees.
pub(crate) fn shared(state_dir: &Path, mission: MissionId) -> PathBuf {
    of(state_dir, mission).join("shared")
}

/// What every member reads in it and none changes: what they are to do is said there. Made again if it is gone.
pub(crate) fn kept(shared: &Path) -> io::Result<PathBuf> {
    make_dirs(shared, &[CONTEXT.into()])?;
    Ok(shared.join(CONTEXT))
}

/// Makes it, with the objective and the plan for all to read. Repeating is harmless, also while members write there: it is
/// theirs to change, so nothing that lies there is believed, and no link is followed.
pub(super) fn make(state_dir: &Path, state: &State) -> io::Result<()> {
    let shared = shared(state_dir, state.id());
    DirBuilder::new().recursive(true).mode(0o700).create(&shared)?;
    make_dirs(&shared, &[CONTEXT.into(), INBOX.into(), OUTBOX.into(), AGENTS.into()])?;
    let context = |name: &str, text: String| HomeFile { path: Path::new(CONTEXT).join(name), text };
    let objective = context("objective.md", format!("{}\n", state.plan().objective));
    write_home_files(&shared, &[objective, context("plan.toml", state.plan().to_toml())])
}

/// The directory in it that a member has for what it hands on.
pub(super) fn own(state_dir: &Path, mission: MissionId, member: &Name) -> PathBuf {
    shared(state_dir, mission).join(AGENTS).join(member.as_str())
}

/// A member's own places in it.
pub(super) fn make_own(state_dir: &Path, mission: MissionId, member: &Name) -> io::Result<()> {
    let own = [INBOX, OUTBOX, AGENTS].map(|part| Path::new(part).join(member.as_str()));
    make_dirs(&shared(state_dir, mission), &own)
}

/// A message from one member to another, for both to read: what was said, and how far it has come.
pub(super) fn put_message(state_dir: &Path, mission: MissionId, said: &SaidBetween<'_>) -> io::Result<()> {
    let SaidBetween { id, from, to, text, receipt } = said;
    let of = |part: &str, whose: &Name, name: String| Path::new(part).join(whose.as_str()).join(name);
    let inbox =
        HomeFile { path: of(INBOX, to, format!("{id}.md")), text: format!("From {from}:\n\n{text}\n") };
    let told = format!("{}\n", json!({"message": id, "to": to, "receipt": receipt.as_str()}));
    let outbox = HomeFile { path: of(OUTBOX, from, format!("{id}.json")), text: told };
    write_home_files(&shared(state_dir, mission), &[inbox, outbox])
}

/// Something that one member said to another.
pub(super) struct SaidBetween<'a> {
    pub(super) id: MessageId,
    pub(super) from: &'a Name,
    pub(super) to: &'a Name,
    pub(super) text: &'a str,
    pub(super) receipt: Receipt,
}

/// The files that a member has put into its own directory, for those who come after it; below the directory that all share.
pub(super) fn files_of(state_dir: &Path, mission: MissionId, member: &Name) -> Vec<String> {
    let own = Path::new(AGENTS).join(member.as_str());
    // Whoever put something else in its place hands nothing on.
    let mut names = files_in(&shared(state_dir, mission), &own, FILES).unwrap_or_default();
    names.retain(|name| !name.contains(char::is_control));
    names.sort();
    names.iter().map(|name| own.join(name).display().to_string()).collect()
}

/// The closing report, in place of an older one.
pub(super) fn write_report(state_dir: &Path, state: &State, now: Time) -> io::Result<()> {
    let dir = of(state_dir, state.id());
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    put(&dir.join("report.md"), &state.report(now, &BTreeMap::new()))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_through_a_link_that_a_member_has_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let (mission, id) =
            (MissionId::new(Time::from_micros(1), 1), MessageId::new(Time::from_micros(1), 2));
        let shared = shared(dir.path(), mission);
        fs::create_dir_all(shared.join(AGENTS)).unwrap();
        let (from, to) = ("ann".parse().unwrap(), "ben".parse().unwrap());
        let said = SaidBetween { id, from: &from, to: &to, text: "hello", receipt: Receipt::Seen };
        put_message(dir.path(), mission, &said).unwrap();
        let inbox = fs::read_to_string(shared.join(format!("messages/inbox/ben/{id}.md"))).unwrap();
        assert_eq!(inbox, "From ann:\n\nhello\n");
        let outbox = fs::read_to_string(shared.join(format!("messages/outbox/ann/{id}.json"))).unwrap();
        assert_eq!(outbox, format!("{{\"message\":\"{id}\",\"receipt\":\"seen\",\"to\":\"ben\"}}\n"));

        let trap = dir.path().join("trap");
        fs::create_dir(&trap).unwrap();
        fs::write(trap.join("secret"), "").unwrap();
        fs::remove_dir_all(shared.join("messages/inbox")).unwrap();
        symlink(&trap, shared.join("messages/inbox")).unwrap();
        assert!(put_message(dir.path(), mission, &said).is_err());
        assert!(make_dirs(&shared, &["messages/inbox/ben".into()]).is_err());
        symlink(&trap, shared.join("agents/ben")).unwrap();
        assert_eq!(files_of(dir.path(), mission, &to), Vec::<String>::new());
        assert_eq!(fs::read_dir(&trap).unwrap().count(), 1);

        fs::create_dir(shared.join("agents/ann")).unwrap();
        fs::write(shared.join("agents/ann/report.md"), "").unwrap();
        symlink("/etc/passwd", shared.join("agents/ann/link")).unwrap();
        assert_eq!(files_of(dir.path(), mission, &from), ["agents/ann/report.md"]);
    }
}
