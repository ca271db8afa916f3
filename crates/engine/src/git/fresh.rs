//! Whether there is anything new in a tree since a moment: a commit, a file, a change of one. No snapshot is taken for it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ostler_domain::{
    Time,
    campaign::Campaign,
    limits::{FRESH_ENTRIES, GIT_TIME},
    session::{Sandbox, View},
};
use tokio::task::spawn_blocking;

use super::{
    inside::{self, Access, NotDone},
    is_repository,
    worktree::git_directory,
};
use crate::{Engine, shared::Shared};

pub(super) const FRESH: &str = concat!(include_str!("left.sh"), include_str!("fresh.sh"));
/// What git may say: the names of very many files.
const MOST_SAID: usize = 8 * 1024 * 1024;
/// The kernel stamps files with a clock that is late by up to a tick.
const LATE: Duration = Duration::from_millis(20);

impl Engine {
    /// Whether anything is new since then where a session works, or in this directory beside. What git ignores does not
    /// count; where git cannot be asked, all that is there does.
    pub(crate) async fn has_new_files(&self, view: &View, beside: Option<PathBuf>, since: Time) -> bool {
        let shared = &self.shared;
        let tree = PathBuf::from(&view.working_dir);
        let mut places = Vec::from_iter(beside);
        let asked = match shared.store.campaign(view.campaign).await {
            Ok(Some(row)) if shared.sandbox() == Sandbox::On && is_repository(&tree) => {
                shared.fresh_by_git(&row.campaign, view, &tree, since).await
            }
            _ => Err(NotDone::Failed("git cannot be asked".to_owned())),
        };
        match asked {
            Ok(true) => return true,
            Ok(false) => {}
            Err(why) => {
                tracing::debug!(session = %view.id, %why, "the directory itself is looked at");
                places.push(tree);
            }
        }
        let look = move || places.iter().any(|place| has_fresh(place, moment(since), FRESH_ENTRIES));
        spawn_blocking(look).await.unwrap_or_default()
    }
}

impl Shared {
    async fn fresh_by_git(
        &self,
        campaign: &Campaign,
        view: &View,
        tree: &Path,
        since: Time,
    ) -> Result<bool, NotDone> {
        let confinement = inside::around(tree, Access::ReadOnly, &campaign.policy.hide, None);
        let mut confinement = confinement.map_err(NotDone::because)?;
        if view.worktree.is_some() {
            confinement.git = Some(git_directory(campaign, tree, false).map_err(NotDone::because)?);
        }
        let document = inside::script(confinement, FRESH, &[&tree.to_string_lossy()]);
        let _room = self.git.at_once.acquire().await;
        let said = inside::run(&self.program, &document, GIT_TIME, MOST_SAID).await?.text();
        let (tree, since) = (tree.to_owned(), moment(since));
        let look = move || said.lines().any(|line| is_fresh(line, &tree, since));
        Ok(spawn_blocking(look).await.unwrap_or_default())
    }
}

fn moment(since: Time) -> SystemTime {
    let micros = u64::try_from(since.micros()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_micros(micros).saturating_sub(LATE)
}

/// Whether a line of what git said is about something new.
fn is_fresh(line: &str, tree: &Path, since: SystemTime) -> bool {
    if let Some(seconds) = line.strip_prefix("commit ").and_then(|seconds| seconds.parse().ok()) {
        // It says no more than the second.
        return UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_secs(1) > since;
    }
    let Some(file) = line.strip_prefix("file ") else { return false };
    let file = tree.join(file);
    // Of one that is gone its directory knows.
    let there = [Some(file.as_path()), file.parent()];
    there.into_iter().flatten().find_map(changed_at).is_some_and(|at| at >= since)
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(path).ok()?.modified().ok()
}

/// Whether anything in a directory was changed since then, as far as so many entries say. No link is followed.
fn has_fresh(dir: &Path, since: SystemTime, most: usize) -> bool {
    let mut left = vec![dir.to_owned()];
    let mut seen = 0;
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > most {
                return false;
            }
            let Ok(found) = entry.metadata() else { continue };
            if found.modified().is_ok_and(|at| at >= since) {
                return true;
            }
            if found.is_dir() && entry.file_name() != ".git" {
                left.push(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_since_then_is_new_and_an_older_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/er/file");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "text").unwrap();
        let at = changed_at(&file).unwrap();
        let later = at + Duration::from_secs(60);
        assert!(has_fresh(dir.path(), at, 100));
        assert!(!has_fresh(dir.path(), later, 100));
        assert!(!has_fresh(dir.path(), at, 0), "no more is looked at than is said");
        let line = "file deep/er/file";
        assert!(is_fresh(line, dir.path(), at) && !is_fresh(line, dir.path(), later));
        assert!(is_fresh("file deep/er/gone", dir.path(), at), "its directory was changed");
    }

    #[test]
    fn a_commit_of_the_same_second_is_new() {
        let since = moment(Time::from_micros(5_900_000));
        assert!(is_fresh("commit 5", Path::new("/"), since));
        assert!(!is_fresh("commit 4", Path::new("/"), since));
        assert!(!is_fresh("commit", Path::new("/"), since));
    }
}
