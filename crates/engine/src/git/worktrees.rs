//! The work trees that there are: how each stands, and removing those with which nothing would be lost.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Event, Reason, Refusal,
    campaign::Campaign,
    event::WorktreeRemoved,
    limits::{GIT_TIME, PAGE_MOST, WORKTREES_LOOKED_AT},
    query::{Page, Scope, SessionFilter},
    snapshot::Cause,
    text::{one_line, shell_word},
    worktree::{Condition, Kept, RemovedWorktree, Standing, Worktree, short},
};
use ostler_store::WorktreeRow;

use super::{
    diff::not_done,
    inside::{self, Access, NotDone},
    snapshot::Look,
};
use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    campaign::check_same,
};

const FORGET: &str = include_str!("worktree_forget.sh");
const MOST_SAID: usize = 64 * 1024;

impl Engine {
    /// The work trees of a campaign, or of all, with how each stands now.
    pub async fn worktrees(&self, campaign: Option<&str>) -> Result<Vec<Kept>, Refusal> {
        let only = match campaign {
            Some(campaign) => Some(self.campaign(campaign).await?.id),
            None => None,
        };
        let rows = self.shared.store.worktrees().await?.into_iter();
        let rows = rows.filter(|row| only.is_none_or(|only| row.campaign == only)).take(WORKTREES_LOOKED_AT);
        let mut all = Vec::new();
        for row in rows {
            all.push(self.stands(row).await?);
        }
        Ok(all)
    }

    /// The work tree at a path, whether it was removed or not.
    pub(crate) async fn worktree_at(&self, path: &str) -> Result<Option<Kept>, Refusal> {
        match self.shared.store.worktree(path).await? {
            Some(row) => Ok(Some(self.stands(row).await?)),
            None => Ok(None),
        }
    }

    /// The work tree that a canonical path is in.
    pub(crate) async fn worktree_row_around(&self, path: &str) -> Result<Option<WorktreeRow>, Refusal> {
        let below = fs::canonicalize(self.shared.options.state_dir.join("worktrees"));
        if !below.is_ok_and(|below| Path::new(path).starts_with(below)) {
            return Ok(None);
        }
        let rows = self.shared.store.worktrees().await?;
        Ok(rows.into_iter().find(|row| row.worktree.holds(path)))
    }

    /// The work tree that a file is in.
    pub(super) async fn worktree_around(&self, file: &str) -> Result<Option<Worktree>, Refusal> {
        let parent = Path::new(file).parent().and_then(|parent| fs::canonicalize(parent).ok());
        let Some(parent) = parent else { return Ok(None) };
        Ok(self.worktree_row_around(&parent.to_string_lossy()).await?.map(|row| row.worktree))
    }

    async fn stands(&self, row: WorktreeRow) -> Result<Kept, Refusal> {
        let WorktreeRow { worktree, campaign, session, made, removed } = row;
        let session_name = self.shared.store.session(session).await?.map(|view| view.name.to_string());
        let is_live = self.worker_in(&worktree, campaign).await?.is_some();
        let known = self.shared.store.campaign(campaign).await?.map(|row| row.campaign);
        let looked = match &known {
            _ if removed.is_some() => Ok(Condition::default()),
            Some(campaign) => self.shared.worktree_condition(campaign, &worktree).await,
            None => Err(NotDone::Failed("its campaign is not recorded".to_owned())),
        };
        let (found, why) = match looked {
            Ok(found) => (Some(found), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Ok(Kept {
            standing: Standing::of(is_live, found.as_ref()),
            campaign_name: known.map(|known| known.name.to_string()).unwrap_or_default(),
            session_name: session_name.unwrap_or_default(),
            condition: found.unwrap_or_default(),
            worktree,
            campaign,
            session,
            made,
            removed,
            why,
        })
    }

    /// A session that has not ended and works in it.
    async fn worker_in(
        &self,
        tree: &Worktree,
        campaign: ostler_domain::CampaignId,
    ) -> Result<Option<ostler_domain::SessionId>, Refusal> {
        let filter =
            SessionFilter { scope: Scope::NotEnded, campaigns: vec![campaign], ..SessionFilter::default() };
        let mut cursor = None;
        loop {
            let page = self.shared.store.list_sessions(&filter, Page::of(PAGE_MOST, cursor)).await?;
            if let Some(found) = page.rows.iter().find(|view| view.working_dir == tree.path) {
                return Ok(Some(found.id));
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// The work tree that words mean: its path, its name, or a session that works or worked in it.
    async fn worktree_meant(&self, who: &str) -> Result<WorktreeRow, Refusal> {
        let rows = self.shared.store.worktrees().await?;
        if let Some(row) = rows.iter().find(|row| row.worktree.path == who) {
            return Ok(row.clone());
        }
        let path = self.session(who).await?.worktree.map(|tree| tree.path);
        rows.into_iter().find(|row| Some(&row.worktree.path) == path.as_ref()).ok_or_else(|| {
            Refusal::new(
                Reason::WorktreeRefused,
                format!("session {} has no work tree of its own", one_line(who, 64)),
            )
            .hint("ostler worktree ls", "lists those there are")
        })
    }

    /// Removes a work tree in which nothing is that is not elsewhere, too; or says what keeps it.
    pub async fn remove_worktree(&self, who: &str, change: Change) -> Result<RemovedWorktree, Refusal> {
        let fingerprint = format!("remove_worktree {who}");
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.removed_before(&reply).await;
        }
        let row = self.worktree_meant(who).await?;
        // Whoever wakes a session waits until it is gone, and then makes it again.
        let _alone = self.shared.git.alone(row.campaign).await;
        let campaign = self.shared.store.campaign(row.campaign).await?.map(|row| row.campaign);
        let kept = self.stands(row).await?;
        let Some(campaign) = campaign.filter(|_| kept.standing.may_go()) else { return Err(keeps(&kept)) };
        check_same(&campaign)?;
        let is_there = Path::new(&kept.worktree.path).symlink_metadata().is_ok();
        let snapshot = match kept.condition.head.is_some() {
            true => Some(self.last_snapshot(&campaign, &kept).await?),
            false => None,
        };
        if is_there {
            remove_directory(&kept.worktree.path).await?;
        }
        let branch_deleted = self.forget(&campaign, &kept.worktree).await?;
        let removed = WorktreeRemoved {
            session: kept.session,
            campaign: kept.campaign,
            path: kept.worktree.path.clone(),
            branch: kept.worktree.branch.clone(),
            commit: kept.condition.head.clone(),
            snapshot: snapshot.clone(),
            branch_deleted,
            by: change.by.clone(),
        };
        let reply = format!("{branch_deleted} {} {}", snapshot.as_deref().unwrap_or("-"), kept.worktree.path);
        let request = change.done(&fingerprint, reply);
        self.record_nodes(vec![Event::WorktreeRemoved(removed)], request).await?;
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(&change),
            action: "worktree.rm",
            object: format!("{} {}", kept.worktree.path, kept.worktree.branch),
            decision: Decision::Allowed,
            reason: kept.standing.as_str().to_owned(),
            policy: None,
        });
        Ok(RemovedWorktree { kept, branch_deleted, snapshot })
    }

    /// What was answered when it was removed, as far as that is still known.
    async fn removed_before(&self, reply: &str) -> Result<RemovedWorktree, Refusal> {
        let unread = || Refusal::internal("the stored answer of this request cannot be read");
        let mut parts = reply.splitn(3, ' ');
        let (Some(deleted), Some(snapshot), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unread());
        };
        let kept = self.worktree_at(path).await?.ok_or_else(unread)?;
        let snapshot = Some(snapshot.to_owned()).filter(|snapshot| snapshot != "-");
        Ok(RemovedWorktree { kept, branch_deleted: deleted == "true", snapshot })
    }

    /// What is there is written down before it goes, and nothing goes that could not be.
    async fn last_snapshot(&self, campaign: &Campaign, kept: &Kept) -> Result<String, Refusal> {
        let turn = self.shared.store.session(kept.session).await?.map_or(0, |view| view.turns);
        let look = Look {
            session: kept.session,
            campaign: kept.campaign,
            tree: kept.worktree.path.clone(),
            line: kept.worktree.line(),
            is_worktree: true,
            hidden: campaign.policy.hide.clone(),
            turn,
            cause: Cause::Removal,
            put_back_to: None,
        };
        self.shared.take(&look).await?.ok_or_else(|| {
            Refusal::internal("nothing was removed: what is there could not be written down first")
                .because(kept.worktree.path.clone())
                .hint("ostler events --kind SNAPSHOT_TAKEN", "says why")
                .hint("ostler doctor", "looks at what is wrong")
        })
    }

    /// Has the repository forget it, and the branch that was made for it. Whether that went too.
    async fn forget(&self, campaign: &Campaign, tree: &Worktree) -> Result<bool, Refusal> {
        let root = Path::new(&campaign.root.path);
        let confinement = inside::around(root, Access::Writable, &campaign.policy.hide, None);
        let confinement = confinement.map_err(|error| not_done(NotDone::because(error)))?;
        let branch = if tree.owns_branch() { tree.branch.as_str() } else { "" };
        let args = [campaign.root.path.as_str(), &tree.path, branch];
        let document = inside::script(confinement, FORGET, &args);
        let said = inside::run(&self.shared.program, &document, GIT_TIME, MOST_SAID).await;
        Ok(said.map_err(not_done)?.text().lines().any(|line| line == "deleted"))
    }
}

fn keeps(kept: &Kept) -> Refusal {
    let (tree, who) = (&kept.worktree, kept.session.short());
    let refusal = Refusal::new(Reason::WrongState, format!("the work tree {} is kept", tree.name()))
        .because(kept.kept_by().unwrap_or_default());
    match kept.standing {
        Standing::Live => refusal.hint(format!("ostler stop {who}"), "ends the session in an orderly way"),
        Standing::Uncommitted => refusal
            .hint(format!("git -C {} status", shell_word(&tree.path)), "says what it is")
            .hint(format!("ostler send {who} \"commit your work\""), "has the agent commit it"),
        Standing::Unmerged => {
            let refusal = refusal.hint(
                format!("git merge {}", shell_word(&tree.branch)),
                "in the campaign's directory, merges it",
            );
            let Some(left) = kept.condition.left.as_deref().map(short) else { return refusal };
            refusal.hint(format!("git branch NAME {left}"), "there, keeps what is on no branch")
        }
        Standing::Unknown | Standing::Gone | Standing::Clean => {
            refusal.hint("ostler worktree ls", "lists work trees, and what keeps them")
        }
    }
}

/// Moved aside first: half a work tree is nobody's.
async fn remove_directory(path: &str) -> Result<(), Refusal> {
    let (from, aside) = (PathBuf::from(path), aside(Path::new(path)));
    let remove = move || -> io::Result<()> {
        let _ = fs::remove_dir_all(&aside);
        fs::rename(&from, &aside)?;
        fs::remove_dir_all(&aside)
    };
    let removed =
        tokio::task::spawn_blocking(remove).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    removed.map_err(|error| Refusal::internal(format!("{path} cannot be removed")).because(error.to_string()))
}

/// No session is called like that.
fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.removed"))
}
