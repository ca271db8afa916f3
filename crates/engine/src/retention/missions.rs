//! What missions that are over have left behind: the directory that their members shared goes to the archive, their work
//! trees go, and nothing of it while anything in one of them is not elsewhere too.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::{
    Event, MissionId, Reason, Refusal,
    event::MissionArchived,
    limits::PAGE_MOST,
    mission::{Filter, Listed as Mission, Status},
    query::{Page, Scope, SessionFilter},
    retention::{MissionRules, MissionStep},
    worktree::Kept,
};

use super::settle::{blocking, put_aside, remove_going};
use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    mission::shared_dir,
};

/// How hard files are compressed: as tapes are.
const LEVEL: i32 = 3;

impl Engine {
    /// What the rules come to now for missions, in one campaign or in all.
    pub async fn plan_missions(&self, campaign: Option<&str>) -> Result<Vec<MissionStep>, Refusal> {
        let only = match campaign {
            Some(campaign) => Some(self.campaign(campaign).await?.id),
            None => None,
        };
        let machine = self.shared.options.providers.retention()?;
        let mut steps = Vec::new();
        for row in self.shared.store.recorded_campaigns().await? {
            let rules = row.policy.retention.or(machine).missions;
            if only.is_some_and(|only| row.id != only) || !rules.do_something() {
                continue;
            }
            let statuses = vec![Status::Completed, Status::Partial, Status::Failed, Status::Cancelled];
            let filter = Filter { campaign: Some(row.id), statuses, ..Filter::default() };
            let mut page = Page::of(PAGE_MOST, None);
            loop {
                let listed = self.shared.store.missions(&filter, page).await?;
                for mission in listed.rows {
                    steps.extend(self.judge_mission(&mission, row.name.as_str(), &rules).await?);
                }
                match listed.next_cursor {
                    Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                    None => break,
                }
            }
        }
        Ok(steps)
    }

    /// Does what the rules say now with what missions have left behind.
    pub async fn archive_missions(
        &self,
        campaign: Option<&str>,
        change: &Change,
    ) -> Result<Vec<MissionStep>, Refusal> {
        let mut done = Vec::new();
        for step in self.plan_missions(campaign).await? {
            done.push(match step.spared {
                Some(_) => step,
                None => match self.archive_mission(&step, change).await {
                    Ok(archived) => archived,
                    Err(refusal) if refusal.reason == Reason::ShuttingDown => return Err(refusal),
                    // Others are not to stay as they are for it.
                    Err(refusal) => MissionStep { spared: Some(refusal.to_string()), ..step },
                },
            });
        }
        Ok(done)
    }

    /// Clears away what a mission that is over has left behind, because a person says so.
    pub async fn remove_mission(&self, who: &str, change: Change) -> Result<MissionStep, Refusal> {
        let mission = self.mission(who).await?;
        let name = &mission.name;
        // It may have been removed: what was left behind is there all the same.
        let campaign = self.shared.store.campaign(mission.campaign).await?;
        let campaign = campaign.map(|row| row.campaign.name.to_string()).unwrap_or_default();
        let Some(step) = self.step(&mission, &campaign, String::new()).await? else {
            let message = format!("the mission {name} is {}, and not over", mission.status.as_str());
            return Err(Refusal::new(Reason::WrongState, message)
                .hint(format!("ostler mission cancel {name}"), "ends it")
                .hint(format!("ostler mission rm {name} ASSIGNMENT"), "takes away what has not begun"));
        };
        if let Some(why) = step.spared {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("what the mission {name} left behind stays"),
            )
            .because(why)
            .hint("ostler worktree ls", "lists work trees, and what keeps them"));
        }
        self.archive_mission(&step, &change).await
    }

    /// What a rule says of a mission; nothing where it is not due, or nothing is left.
    async fn judge_mission(
        &self,
        mission: &Mission,
        campaign: &str,
        rules: &MissionRules,
    ) -> Result<Option<MissionStep>, Refusal> {
        let now = self.shared.clock.now().wall;
        let due = mission.ended_at.and_then(|ended| rules.due(mission.status, ended, now));
        let Some(rule) = due else { return Ok(None) };
        if !self.shared_of(mission.id).exists() {
            return Ok(None);
        }
        self.step(mission, campaign, rule).await
    }

    /// How a mission that is over stands; none for one that is not.
    async fn step(
        &self,
        mission: &Mission,
        campaign: &str,
        rule: String,
    ) -> Result<Option<MissionStep>, Refusal> {
        let Some(ended) = mission.ended_at.filter(|_| mission.status.is_over()) else { return Ok(None) };
        let trees = self.trees_of(mission.id).await?;
        let keeping = trees.iter().find(|kept| !kept.standing.may_go());
        let why = |kept: &Kept| {
            let why = kept.kept_by().unwrap_or_else(|| kept.standing.as_str().to_owned());
            format!("its work tree {} is kept: {why}", kept.worktree.name())
        };
        Ok(Some(MissionStep {
            mission: mission.id,
            name: mission.name.clone(),
            campaign: mission.campaign,
            campaign_name: campaign.to_owned(),
            status: mission.status,
            ended,
            rule,
            worktrees: u32::try_from(trees.len()).unwrap_or(u32::MAX),
            bytes: 0,
            archived_bytes: 0,
            spared: keeping.map(why),
        }))
    }

    /// The work trees of its members that are still there.
    async fn trees_of(&self, mission: MissionId) -> Result<Vec<Kept>, Refusal> {
        let filter = SessionFilter { scope: Scope::All, missions: vec![mission], ..SessionFilter::default() };
        let mut paths = BTreeSet::new();
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = self.shared.store.list_sessions(&filter, page).await?;
            paths.extend(listed.rows.into_iter().filter_map(|view| Some(view.worktree?.path)));
            match listed.next_cursor {
                Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                None => break,
            }
        }
        let mut trees = Vec::new();
        for path in paths.iter().filter(|path| Path::new(path).exists()) {
            trees.extend(self.worktree_at(path).await?);
        }
        Ok(trees)
    }

    fn shared_of(&self, mission: MissionId) -> PathBuf {
        shared_dir::shared(&self.shared.options.state_dir, mission)
    }

    async fn archive_mission(&self, step: &MissionStep, change: &Change) -> Result<MissionStep, Refusal> {
        let _at_work = self.shared.retention.at_work.lock().await;
        // Looked at once more, each with the same care: somebody may have gone on in one of them.
        for kept in self.trees_of(step.mission).await? {
            self.remove_worktree(&kept.worktree.path, Change { request: None, ..change.clone() }).await?;
        }
        let shared = self.shared_of(step.mission);
        let archive = self.shared.options.state_dir.join("archive/missions").join(step.mission.to_string());
        let from = shared.clone();
        let (bytes, archived_bytes) = blocking(move || pack(&from, &archive.join("shared"))).await?;
        let archived = MissionArchived {
            mission: step.mission,
            rule: step.rule.clone(),
            worktrees: step.worktrees,
            bytes,
            archived_bytes,
            by: change.by.clone(),
        };
        self.record_nodes(vec![Event::MissionArchived(archived)], None).await?;
        let going = blocking(move || put_aside(&shared)).await?;
        remove_going([going]).await?;
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(change),
            action: "mission.archive",
            object: format!("{} {}", step.mission, step.name),
            decision: Decision::Allowed,
            reason: step.rule.clone(),
            policy: None,
        });
        Ok(MissionStep { bytes, archived_bytes, ..step.clone() })
    }
}

/// Writes a compressed form of every file below a directory to the same place below another. What is neither a file nor a
/// directory is left out: links lead elsewhere. What files took, and what they take.
fn pack(from: &Path, to: &Path) -> io::Result<(u64, u64)> {
    let (mut bytes, mut archived) = (0, 0);
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let entries = match fs::read_dir(from.join(&below)) {
            // Nothing was ever shared, or it was cleared away before.
            Err(error) if error.kind() == io::ErrorKind::NotFound && below.as_os_str().is_empty() => break,
            entries => entries?,
        };
        DirBuilder::new().recursive(true).mode(0o700).create(to.join(&below))?;
        for entry in entries {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, below.join(entry.file_name()));
            if kind.is_dir() {
                left.push(name);
            } else if kind.is_file() {
                let mut packed = to.join(&name).into_os_string();
                packed.push(".zst");
                let mut options = OpenOptions::new();
                let file = options.write(true).create(true).truncate(true).mode(0o600).open(&packed)?;
                let mut encoder = zstd::Encoder::new(file, LEVEL)?;
                bytes += io::copy(&mut fs::File::open(entry.path())?, &mut encoder)?;
                let mut file = encoder.finish()?;
                file.flush()?;
                file.sync_all()?;
                archived += file.metadata()?.len();
            }
        }
    }
    Ok((bytes, archived))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_file_is_packed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("shared"), dir.path().join("archive"));
        fs::create_dir_all(from.join("agents/a")).unwrap();
        fs::write(from.join("agents/a/notes.md"), "word ".repeat(1_000)).unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), from.join("link")).unwrap();
        let (bytes, archived) = pack(&from, &to).unwrap();
        assert!(bytes == 5_000 && archived > 0 && archived < 500, "{bytes} {archived}");
        let packed = fs::read(to.join("agents/a/notes.md.zst")).unwrap();
        let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("agents/a"), mode("agents/a/notes.md.zst")), (0o700, 0o600), "nobody else's");
        assert_eq!(zstd::decode_all(packed.as_slice()).unwrap(), "word ".repeat(1_000).as_bytes());
        assert!(!to.join("link.zst").exists());
        assert_eq!(pack(&dir.path().join("nothing"), &to).unwrap(), (0, 0));
    }
}
