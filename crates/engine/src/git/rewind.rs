//! The way back: files as they were when a turn had ended.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Event, Reason, Refusal,
    event::Rewound,
    limits::{GIT_TIME, PAGE_MOST, REWIND_BYTES},
    query::{Page, Scope, SessionFilter},
    session::{Phase, Sandbox, Status, View},
    snapshot::{Cause, Changed, Point, Rewinding, Snapshot, Tree, turn_number},
    text::one_line,
};
use tokio::task::spawn_blocking;

use super::{
    diff::{Repositories, not_done, point},
    in_the_way::Exchange,
    inside::{self, Access, NotDone},
    snapshot::{Look, line},
    worktree::is_gone,
};
use crate::{Change, Engine, campaign::check_same};

const PUT_BACK: &str = include_str!("put_back.sh");
const MOST_SAID: usize = 64 * 1024;
/// The tree in which nothing is, as git knows it without having it.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// Names of what is in the way that are said.
const NAMED: usize = 3;

impl Engine {
    /// Puts a session's files back to a snapshot; `dry_run` says what that would change.
    pub async fn rewind(
        &self,
        who: &str,
        wanted: &str,
        dry_run: bool,
        change: Change,
    ) -> Result<Rewinding, Refusal> {
        let view = self.session(who).await?;
        if view.sandbox == Sandbox::Off {
            return Err(Refusal::new(Reason::SnapshotUnknown, "this session has no snapshots")
                .because("git is run inside a sandbox only, and this session has none"));
        }
        self.check_nobody_works(&view).await?;
        let work = self.settled_work(&view).await?;
        let to = self.snapshot_meant(&view, &work, wanted).await?;
        let target = to.commit.clone().unwrap_or_default();
        let campaign = self.campaign(&view.campaign.to_string()).await?;
        check_same(&campaign)?;
        let look = Look {
            session: view.id,
            campaign: view.campaign,
            tree: view.working_dir.clone(),
            line: line(view.worktree.as_ref()),
            is_worktree: view.worktree.is_some(),
            hidden: campaign.policy.hide.clone(),
            turn: view.turns,
            cause: Cause::Rewind,
            put_back_to: None,
        };
        let _alone = self.shared.git.alone(view.campaign).await;
        if let Some(gone) = view.worktree.as_ref().filter(|tree| is_gone(tree)) {
            if dry_run {
                let files = self.shared.changed_files(view.campaign, NOTHING, &target, Repositories::LeftOut);
                return Ok(Rewinding { to, before: String::new(), files: files.await?.0, is_done: false });
            }
            self.shared.make_again(&campaign, view.id, gone).await?;
        }
        // Nothing that is not written down is ever written over.
        let before = self.shared.take(&look).await?.ok_or_else(|| {
            Refusal::internal("nothing was changed: what is there now could not be written down first")
                .hint("ostler doctor", "looks at what is wrong")
        })?;
        // A repository within the tree stays as it is: its files are written down in itself, if at all.
        let (files, _) =
            self.shared.changed_files(view.campaign, &before, &target, Repositories::LeftOut).await?;
        let mut rewinding = Rewinding { to, before, files, is_done: false };
        if rewinding.files.is_empty() {
            return Ok(rewinding);
        }
        self.check_way(&look, &rewinding.before, &target).await?;
        if dry_run {
            return Ok(rewinding);
        }
        self.put_back(&look, &rewinding.before, &target).await?;
        let rewound = Rewound {
            session: view.id,
            campaign: view.campaign,
            turn: rewinding.to.turn,
            from: rewinding.before.clone(),
            to: target.clone(),
            changed: Changed::of(&rewinding.files),
            by: change.by,
        };
        self.shared.record_tree(Event::Rewound(rewound)).await?;
        // What is there now is what lines are asked about from here on.
        self.shared.take(&Look { put_back_to: Some(target), ..look }).await?;
        rewinding.is_done = true;
        Ok(rewinding)
    }

    /// The snapshot that somebody means: what a turn left, one by its own name, or that of a checkpoint of the session's
    /// ticket, whichever session came to it.
    async fn snapshot_meant(&self, view: &View, work: &Tree, wanted: &str) -> Result<Snapshot, Refusal> {
        let named = match turn_number(wanted) {
            Some(_) => None,
            None => self.checkpoint_of(view, wanted).await?,
        };
        let Some(checkpoint) = named else {
            let wanted = Point::parse(wanted).ok_or_else(|| no_point(view, wanted))?;
            return point(view, work, &wanted).cloned();
        };
        let of = checkpoint.at.map_or(view.id, |at| at.session);
        let meant = match (&checkpoint.snapshot, checkpoint.at) {
            (Some(name), _) => Point::parse(name).unwrap_or_else(|| Point::Commit(name.clone())),
            (None, Some(at)) => Point::Turn(at.turn),
            (None, None) => return Err(no_point(view, wanted)),
        };
        if of == view.id {
            return point(view, work, &meant).cloned();
        }
        let other = self.session(&of.to_string()).await?;
        let work = self.settled_work(&other).await?;
        point(&other, &work, &meant).cloned()
    }

    /// The name of the snapshot that is meant by a point of a session's work.
    pub(crate) async fn commit_at(&self, view: &View, wanted: &Point) -> Result<String, Refusal> {
        let work = self.settled_work(view).await?;
        Ok(point(view, &work, wanted)?.commit.clone().unwrap_or_default())
    }

    /// Nothing is put back where what no snapshot has would make room for it.
    async fn check_way(&self, look: &Look, before: &str, target: &str) -> Result<(), Refusal> {
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--abbrev=4",
            "--no-renames",
            "--diff-filter=ADT",
            "--ignore-submodules=none",
        ];
        let said = self.shared.ask_snapshots(look.campaign, &args, &[before, target], REWIND_BYTES).await?;
        if said.is_cut {
            return Err(Refusal::new(Reason::WrongState, "nothing was put back: too many files differ")
                .because("whether anything would be lost cannot be looked at for all of them"));
        }
        let tree = look.tree.clone();
        let lost = move || Exchange::read(&said.bytes).would_lose(Path::new(&tree));
        let lost = spawn_blocking(lost).await.map_err(|error| not_done(NotDone::because(error)))?;
        if lost.is_empty() { Ok(()) } else { Err(in_the_way(look, &lost)) }
    }

    async fn put_back(&self, look: &Look, before: &str, target: &str) -> Result<(), Refusal> {
        let failed = |error: std::io::Error| not_done(NotDone::because(error));
        let repository = super::repository(&self.shared.options.state_dir, look.campaign).map_err(failed)?;
        let tree = Path::new(&look.tree);
        let confinement = inside::around(tree, Access::Writable, &look.hidden, Some(&repository));
        let document =
            inside::script(confinement.map_err(failed)?, PUT_BACK, &[look.tree.as_str(), before, target]);
        let ended = inside::run_whatever(&self.shared.program, &document, GIT_TIME, MOST_SAID).await;
        let ended = ended.map_err(not_done)?;
        match ended.status.code() {
            Some(0) => Ok(()),
            _ => Err(Refusal::new(Reason::WrongState, "the files could not be put back")
                .because(ended.last_words())),
        }
    }

    /// Files are not changed under the hands of somebody who works with them.
    async fn check_nobody_works(&self, view: &View) -> Result<(), Refusal> {
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            campaigns: vec![view.campaign],
            ..SessionFilter::default()
        };
        let mut others = self.shared.store.list_sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
        others.iter_mut().for_each(|other| self.overlay(other));
        let at_work = |other: &&View| {
            let works = matches!(other.status, Status::Working) || other.phase == Phase::Starting;
            works && other.working_dir == view.working_dir
        };
        let Some(other) = others.iter().find(at_work) else { return Ok(()) };
        let who = other.id.short();
        Err(Refusal::new(Reason::WrongState, format!("session {who} works with these files now"))
            .because(format!("{} is {}", other.name, other.status.as_str()))
            .hint(format!("ostler wait {who}"), "waits until it has done")
            .hint(format!("ostler pause {who}"), "lets it rest where it is"))
    }
}

/// What is there and no snapshot has is never written over, whoever ignores it.
fn in_the_way(look: &Look, lost: &BTreeSet<PathBuf>) -> Refusal {
    let names: Vec<String> = lost.iter().map(|path| one_line(&path.to_string_lossy(), 120)).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    Refusal::new(Reason::WrongState, "nothing was put back: what no snapshot has would be lost")
        .because(format!(
            "{shown}{more} in {}: ignored by git, hidden, empty, or a repository of its own",
            one_line(&look.tree, 200)
        ))
        .hint(
            format!("ostler exec -C {} -- git status --ignored", look.campaign.short()),
            "says what git ignores; what is moved elsewhere is no longer in the way",
        )
}

fn no_point(view: &View, typed: &str) -> Refusal {
    let message = format!("\"{}\" is no turn, no snapshot and no checkpoint", one_line(typed, 64));
    let why = match &view.ticket {
        Some(ticket) => format!(
            "a turn is a number, a snapshot the beginning of its name, a checkpoint one of ticket {}",
            one_line(ticket, 64)
        ),
        None => {
            "a turn is a number, a snapshot the beginning of its name; checkpoints are those of a ticket, \
                 and this session has none"
                .to_owned()
        }
    };
    Refusal::invalid(message).because(why)
}
