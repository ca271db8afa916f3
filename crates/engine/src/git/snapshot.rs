//! Taking snapshots: off the way of agents, and never to their harm.

use std::{path::Path, sync::Arc};

use ostler_domain::{
    CampaignId, Event, Refusal, SessionId,
    event::{CommitsSeen, SnapshotTaken},
    limits::{
        SNAPSHOT_SETTLES, SNAPSHOT_START_WAIT, SNAPSHOT_TIME, SNAPSHOT_TREE_BYTES, SNAPSHOT_TREE_FILES,
    },
    session::{Attention, Created, Sandbox, View},
    snapshot::{Cause, Changed, Report, Tree, report},
    worktree::Worktree,
};
use ostler_store::{Commit, SeenWork, Urgency};
use tokio::time::timeout;

use super::{
    inside::{self, Access, NotDone},
    worktree::git_directory,
};
use crate::{Engine, shared::Shared};

const TAKE: &str = include_str!("take.sh");
/// What a look may say: a hundred commits and a few names.
const MOST_SAID: usize = 256 * 1024;

/// What is looked at, and for whom.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) session: SessionId,
    pub(super) campaign: CampaignId,
    pub(super) tree: String,
    /// What the tree's line of snapshots is called.
    pub(super) line: String,
    /// The tree is no campaign's root, but a work tree beside it.
    pub(super) is_worktree: bool,
    pub(super) hidden: Vec<String>,
    pub(super) turn: u32,
    pub(super) cause: Cause,
    /// The snapshot that the tree was just put back to: its lines are from where they are there.
    pub(super) put_back_to: Option<String>,
}

impl Shared {
    /// Snapshot of what a session finds, unless an earlier attempt to start it came that far. Its agent waits for that, but
    /// not for long.
    pub(crate) async fn snapshot_at_start(self: &Arc<Self>, created: &Created) {
        if !super::is_written_down(Path::new(&created.config.working_dir), created.policy.snapshots) {
            return;
        }
        if self.store.snapshots(created.id).await.is_ok_and(|known| !known.is_empty()) {
            return;
        }
        let looking = self.look_later(created, 0, Cause::Start);
        let _ = timeout(SNAPSHOT_START_WAIT, looking).await;
    }

    /// Snapshot of what a turn left. Nobody waits for it.
    pub(crate) fn snapshot_after(self: &Arc<Self>, created: &Created, turn: u32) {
        let tree = Path::new(&created.config.working_dir);
        if created.sandbox == Sandbox::On && super::is_written_down(tree, created.policy.snapshots) {
            drop(self.look_later(created, turn, Cause::Turn));
        }
    }

    fn look_later(
        self: &Arc<Self>,
        created: &Created,
        turn: u32,
        cause: Cause,
    ) -> tokio::task::JoinHandle<()> {
        let shared = self.clone();
        let look = Look {
            session: created.id,
            campaign: created.campaign,
            tree: created.config.working_dir.clone(),
            line: line(created.config.worktree.as_ref()),
            is_worktree: created.config.worktree.is_some(),
            hidden: created.policy.hide.clone(),
            turn,
            cause,
            put_back_to: None,
        };
        let is_confined = created.sandbox == Sandbox::On;
        self.tasks.spawn(async move {
            tokio::select! {
                () = shared.shutdown.cancelled() => {}
                () = shared.look_and_record(look, is_confined) => {}
            }
        })
    }

    async fn look_and_record(&self, look: Look, is_confined: bool) {
        let recorded = if is_confined {
            let _alone = self.git.alone(look.campaign).await;
            let _room = self.git.at_once.acquire().await;
            self.take(&look).await.map(|_| ())
        } else {
            let why = "git is run inside a sandbox only, and this session has none".to_owned();
            self.record_snapshot(&look, None, Changed::default(), Some(why)).await
        };
        if let Err(refusal) = recorded {
            tracing::warn!(session = %look.session, %refusal, "a snapshot could not be recorded");
        }
    }

    /// Takes a snapshot and records it, or why there is none. The caller is alone with the repository.
    pub(super) async fn take(&self, look: &Look) -> Result<Option<String>, Refusal> {
        let known = self.store.snapshots(look.session).await?;
        let first = known.iter().find_map(|snapshot| snapshot.commit.clone());
        let seen = self.store.seen_work(look.session).await?;
        match self.looked(look, first.as_deref(), &seen).await {
            Ok(report) => {
                self.record_commits(look, &seen, &report).await?;
                let commit = report.snapshot.clone();
                let why = commit.is_none().then(|| "git did not say what it had written".to_owned());
                self.record_snapshot(look, commit.clone(), report.changed, why).await?;
                Ok(commit)
            }
            Err(not_done) => {
                if matches!(not_done, NotDone::TooLong(_)) {
                    self.git.took_too_long(Path::new(&look.tree));
                }
                tracing::info!(session = %look.session, why = %not_done, "no snapshot");
                self.record_snapshot(look, None, Changed::default(), Some(not_done.to_string())).await?;
                Ok(None)
            }
        }
    }

    pub(super) async fn looked(
        &self,
        look: &Look,
        first: Option<&str>,
        seen: &SeenWork,
    ) -> Result<Report, NotDone> {
        let tree = Path::new(&look.tree);
        if self.git.is_too_large(tree) {
            return Err(NotDone::Failed("the last look at this tree took too long".to_owned()));
        }
        if !super::is_repository(tree) {
            let (tree, most) = (tree.to_owned(), (SNAPSHOT_TREE_FILES, SNAPSHOT_TREE_BYTES));
            let counted = tokio::task::spawn_blocking(move || super::too_much(&tree, most)).await;
            if let Some(why) = counted.map_err(NotDone::because)? {
                return Err(NotDone::Failed(why));
            }
        }
        let repository =
            super::repository(&self.options.state_dir, look.campaign).map_err(NotDone::because)?;
        let confinement = inside::around(tree, Access::ReadOnly, &look.hidden, Some(&repository));
        let mut confinement = confinement.map_err(NotDone::because)?;
        let mut own = tree.join(".git");
        if look.is_worktree {
            let campaign = self.store.campaign(look.campaign).await.map_err(NotDone::because)?;
            let unknown = || NotDone::Failed("its campaign is not recorded".to_owned());
            let campaign = campaign.ok_or_else(unknown)?.campaign;
            let git = git_directory(&campaign, tree, false).map_err(NotDone::because)?;
            own.clone_from(&git.path);
            confinement.git = Some(git);
        }
        let own = own.to_string_lossy();
        let title = format!("session {} turn {}", look.session, look.turn);
        let args = [
            look.tree.as_str(),
            &look.line,
            &title,
            first.unwrap_or_default(),
            seen.head.as_deref().unwrap_or_default(),
            &own,
            look.put_back_to.as_deref().unwrap_or_default(),
        ];
        let document = inside::script(confinement, TAKE, &args);
        let said = inside::run(&self.program, &document, SNAPSHOT_TIME, MOST_SAID).await?;
        Ok(report(&said.text()))
    }

    async fn record_commits(&self, look: &Look, seen: &SeenWork, report: &Report) -> Result<(), Refusal> {
        if report.branch == seen.branch && report.head == seen.head {
            return Ok(());
        }
        let seen = CommitsSeen {
            session: look.session,
            turn: look.turn,
            branch: report.branch.clone(),
            head: report.head.clone(),
            commits: report.commits.clone(),
        };
        self.record_tree(Event::CommitsSeen(seen)).await
    }

    async fn record_snapshot(
        &self,
        look: &Look,
        commit: Option<String>,
        changed: Changed,
        why: Option<String>,
    ) -> Result<(), Refusal> {
        let taken = SnapshotTaken {
            session: look.session,
            campaign: look.campaign,
            turn: look.turn,
            cause: look.cause,
            commit,
            changed,
            why,
        };
        self.record_tree(Event::SnapshotTaken(taken)).await
    }

    pub(super) async fn record_tree(&self, event: Event) -> Result<(), Refusal> {
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(self.clock.now().wall, event)],
            session: None,
            request: None,
        };
        self.store.commit(commit).await?;
        Ok(())
    }
}

/// The line of snapshots of a work tree, or of a campaign's own directory.
pub(super) fn line(tree: Option<&Worktree>) -> String {
    tree.map_or_else(|| "campaign".to_owned(), Worktree::line)
}

impl Engine {
    /// What a session has made of its tree. What its last turn left may still be looked at: that is waited for, a while.
    pub async fn tree(&self, who: &str) -> Result<Tree, Refusal> {
        let view = self.session(who).await?;
        let tree = self.settled_work(&view).await?;
        let worktree = match &view.worktree {
            Some(worktree) => self.worktree_at(&worktree.path).await?,
            None => None,
        };
        Ok(Tree { worktree, ..tree })
    }

    /// Sees what the last turn of a session that has ended left in a tree of its own, where the daemon that was to look
    /// died before: whoever is handed its work is handed all of it.
    pub(crate) async fn see_last_turn(&self, view: &View) -> Result<(), Refusal> {
        let (over, store) = (turns_over(view), &self.shared.store);
        if view.worktree.is_none() || view.outcome.is_none() || over == 0 {
            return Ok(());
        }
        let seen = self.settled_work(view).await?.snapshots.into_iter().any(|taken| taken.turn >= over);
        // What is there by now may be another's.
        if seen || store.continued_by(view.id).await?.is_some() {
            return Ok(());
        }
        if let Some(created) = self.looked_after(view).await? {
            let _ = self.shared.look_later(&created, over, Cause::Turn).await;
        }
        Ok(())
    }

    /// A session of whose tree there are snapshots, or will be.
    async fn looked_after(&self, view: &View) -> Result<Option<Created>, Refusal> {
        if view.sandbox != Sandbox::On {
            return Ok(None);
        }
        let loaded = self.shared.store.load_session(view.id).await?;
        let created = loaded.map(|loaded| loaded.state.created().clone());
        let tree = Path::new(&view.working_dir);
        Ok(created.filter(|created| super::is_written_down(tree, created.policy.snapshots)))
    }

    pub(super) async fn settled_work(&self, view: &View) -> Result<Tree, Refusal> {
        let mut published = self.shared.store.published();
        let settles = async {
            loop {
                published.borrow_and_update();
                let snapshots = self.shared.store.snapshots(view.id).await?;
                let last = snapshots.iter().map(|snapshot| snapshot.turn).max();
                let is_settled = match last {
                    Some(last) => last >= turns_over(view),
                    // Nobody looks, or the first look takes longer than its agent waited for it.
                    None => !self.may_settle(view) || self.looked_after(view).await?.is_none(),
                };
                if is_settled || !self.may_settle(view) || published.changed().await.is_err() {
                    return Ok::<_, Refusal>(snapshots);
                }
            }
        };
        let snapshots = match timeout(SNAPSHOT_SETTLES, settles).await {
            Ok(settled) => settled?,
            Err(_) => self.shared.store.snapshots(view.id).await?,
        };
        let SeenWork { branch, head, commits } = self.shared.store.seen_work(view.id).await?;
        Ok(Tree { snapshots, branch, head, commits, worktree: None })
    }

    /// Whether a snapshot may still be on its way: it is not when the session has been left alone for long.
    fn may_settle(&self, view: &View) -> bool {
        view.sandbox == Sandbox::On && self.shared.clock.now().wall < view.updated_at.plus(SNAPSHOT_SETTLES)
    }
}

/// How many turns have ended for certain: of one that is held nobody knows whether it is in the middle of one.
fn turns_over(view: &View) -> u32 {
    match view.attention {
        None | Some(Attention::Idle | Attention::TurnFailed) => view.turns,
        Some(_) => view.turns.saturating_sub(1),
    }
}
