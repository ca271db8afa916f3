//! The session that `-` means: the last one started or touched from this terminal.
//!
//! One small file per terminal in the run directory. A terminal is its session leader with that one's start time, so
//! a later terminal with the same number does not inherit what `-` means: `stop -` must never stop a stranger's. The steps of a
//! job in CI have no terminal, and often nothing else in common than where they work: there it is the checkout.

use std::{
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use ostler_client::Home;
use ostler_domain::{Reason, Refusal, SessionId};

use crate::failure::Failure;

/// Files of terminals that nobody has used for this long are removed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30 * 24 * 3_600);

pub(crate) struct LastSession {
    file: PathBuf,
}

impl LastSession {
    /// `node`: the machine whose sessions are meant, if that is another one.
    pub(crate) fn of_this_terminal(home: &Home, node: Option<&str>) -> Self {
        let place = node.map(|node| format!("-{}", node.replace(['/', '.'], "_"))).unwrap_or_default();
        let whose = job().unwrap_or_else(terminal);
        Self { file: home.run().join("last").join(format!("{whose}{place}")) }
    }

    pub(crate) fn read(&self) -> Result<String, Failure> {
        let id = fs::read_to_string(&self.file).ok().and_then(|text| text.trim().parse::<SessionId>().ok());
        id.map(|id| id.to_string()).ok_or_else(|| {
            Refusal::new(
                Reason::SessionUnknown,
                "no session was started or named in this terminal yet, so \"-\" means none",
            )
            .hint("ostler ls", "lists the sessions there are")
            .into()
        })
    }

    /// Remembers. A convenience: where it cannot, the command itself goes on.
    pub(crate) fn write(&self, session: &SessionId) {
        let _ = self.try_write(session);
    }

    fn try_write(&self, session: &SessionId) -> std::io::Result<()> {
        let Some(dir) = self.file.parent() else { return Ok(()) };
        if !dir.exists() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        if !self.file.exists() {
            forget_old(dir);
        }
        // Renamed into place: a reader never sees half an id.
        let fresh = self.file.with_extension(std::process::id().to_string());
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        writeln!(file, "{session}")?;
        fs::rename(&fresh, &self.file)
    }
}

fn forget_old(dir: &std::path::Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        let age =
            entry.metadata().and_then(|file| file.modified()).ok().and_then(|at| now.duration_since(at).ok());
        if age.is_some_and(|age| age > FORGOTTEN_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The job in CI that this is a step of, if it is one: `CI` is set by all that have them.
fn job() -> Option<String> {
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    let has_terminal = stat_fields("self").get(4).is_some_and(|device| device != "0");
    if !is_ci || has_terminal {
        return None;
    }
    let here = std::env::current_dir().ok()?;
    let checkout = crate::app::git_root(here.to_str()?);
    let about = fs::metadata(&checkout).ok()?;
    Some(format!("ci-{}-{}", about.dev(), about.ino()))
}

/// This terminal: its device, its session leader, and when that one started.
fn terminal() -> String {
    let own = stat_fields("self");
    let field = |fields: &[String], n: usize| fields.get(n).cloned().unwrap_or_default();
    // Fields 6 (session), 7 (terminal) and 22 (start time) of proc_pid_stat(5); the first kept here is field 3.
    let (leader, device) = (field(&own, 3), field(&own, 4));
    let started = field(&stat_fields(&leader), 19);
    format!("{device}-{leader}-{started}")
}

fn stat_fields(pid: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is a name in parentheses that may hold anything, parentheses too.
    let after_name = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    after_name.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ostler_domain::Time;

    use super::*;

    #[test]
    fn remembers_per_terminal_and_for_its_owner_only() {
        let root = std::env::temp_dir().join(format!("ostler-last-{}", std::process::id()));
        let last = LastSession::of_this_terminal(&Home::at(&root), None);
        assert_eq!(last.read().unwrap_err().reason(), Some(Reason::SessionUnknown));
        let (one, two) = (SessionId::new(Time::from_micros(1), 1), SessionId::new(Time::from_micros(1), 2));
        last.write(&one);
        last.write(&two);
        assert_eq!(last.read().unwrap(), two.to_string());
        let mode = fs::metadata(&last.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(last.file.parent().unwrap()).unwrap().count(), 1);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_terminal_is_its_leader_and_when_that_one_started() {
        let parts: Vec<_> = terminal().split('-').map(str::to_owned).collect();
        assert!(parts.iter().rev().take(2).all(|part| part.chars().all(|c| c.is_ascii_digit())), "{parts:?}");
    }
}
