//! What differs between two snapshots.

use std::collections::BTreeSet;

use ostler_domain::{
    CampaignId, Reason, Refusal,
    event::SeenCommit,
    handoff::Made,
    limits::{DIFF_BYTES, DIFF_FILES, GIT_TIME},
    session::View,
    snapshot::{Difference, FileChange, Point, Snapshot, Span, Tree, files},
    text::one_line,
};

use super::inside::{self, Access, NotDone, Said};
use crate::{Engine, shared::Shared};

impl Engine {
    /// What a session changed: since it began, in a turn, or between two.
    pub async fn difference(&self, who: &str, span: &Span, with_patch: bool) -> Result<Difference, Refusal> {
        let view = self.session(who).await?;
        let work = self.settled_work(&view).await?;
        // The end first: of a turn that is not there, that is the one that was named.
        let to = span.to.as_ref().map(|wanted| point(&view, &work, wanted)).transpose()?;
        let from = point(&view, &work, span.from.as_ref().unwrap_or(&Point::Turn(0)))?;
        let to = to.or_else(|| work.last()).unwrap_or(from);
        let (from, to) = (from.clone(), to.clone());
        let (a, b) = (from.commit.clone().unwrap_or_default(), to.commit.clone().unwrap_or_default());
        let (mut files, is_cut) =
            self.shared.changed_files(view.campaign, &a, &b, Repositories::Named).await?;
        let mut difference = Difference { from, to, files: Vec::new(), patch: Vec::new(), is_cut };
        if files.len() > DIFF_FILES {
            files.truncate(DIFF_FILES);
            difference.is_cut = true;
        }
        difference.files = files;
        if with_patch {
            let plain =
                ["diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"];
            let whole: Vec<&str> = plain.into_iter().chain(["--binary", "--full-index"]).collect();
            let mut said = self.shared.ask_snapshots(view.campaign, &whole, &[&a, &b], DIFF_BYTES).await?;
            difference.is_cut |= said.is_cut;
            if said.is_cut {
                // No binary file takes the room of lines that can be read.
                said = self.shared.ask_snapshots(view.campaign, &plain, &[&a, &b], DIFF_BYTES).await?;
            }
            difference.patch = said.bytes;
        }
        Ok(difference)
    }
}

/// How much of a commit's name is told with its subject.
pub(crate) const HASH_SHOWN: usize = 12;

impl Engine {
    /// What a session made of its tree. What of it cannot be told is left out: its work goes on without that.
    pub(crate) async fn made(&self, view: &View) -> Made {
        let work = match self.settled_work(view).await {
            Ok(work) => work,
            Err(refusal) => {
                tracing::warn!(session = %view.id, %refusal, "what it made of its tree is not known");
                return Made::default();
            }
        };
        let told = |commit: &SeenCommit| {
            let hash: String = commit.hash.chars().take(HASH_SHOWN).collect();
            format!("{hash} {}", commit.subject)
        };
        let commits = work.commits.iter().rev().map(told).collect();
        let taken = |snapshot: &Snapshot| snapshot.commit.clone();
        let ends = work.snapshots.iter().find_map(taken).zip(work.snapshots.iter().rev().find_map(taken));
        let files = match ends.filter(|(first, last)| first != last) {
            None => Ok(Vec::new()),
            Some((first, last)) => self
                .shared
                .changed_files(view.campaign, &first, &last, Repositories::Named)
                .await
                .map(|it| it.0),
        };
        let files = files.unwrap_or_else(|refusal| {
            tracing::warn!(session = %view.id, %refusal, "the files that it changed are not known");
            Vec::new()
        });
        Made { files: files.into_iter().map(|file| file.path).collect(), commits }
    }
}

/// What becomes of repositories within a tree, of which a snapshot has nothing but the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repositories {
    Named,
    LeftOut,
}

impl Shared {
    /// The files that differ, and whether there are more than can be told.
    pub(super) async fn changed_files(
        &self,
        campaign: CampaignId,
        from: &str,
        to: &str,
        repositories: Repositories,
    ) -> Result<(Vec<FileChange>, bool), Refusal> {
        let args = [
            "diff-tree",
            "-r",
            "--no-renames",
            "--raw",
            "--numstat",
            "-z",
            match repositories {
                Repositories::Named => "--ignore-submodules=none",
                Repositories::LeftOut => "--ignore-submodules=all",
            },
        ];
        let said = self.ask_snapshots(campaign, &args, &[from, to], DIFF_BYTES).await?;
        Ok((files(&said.bytes), said.is_cut))
    }

    /// Asks a campaign's repository of snapshots, which cannot be changed meanwhile from inside.
    pub(super) async fn ask_snapshots(
        &self,
        campaign: CampaignId,
        args: &[&str],
        names: &[&str],
        most: usize,
    ) -> Result<Said, Refusal> {
        let repository = super::repository(&self.options.state_dir, campaign).map_err(unreadable)?;
        let confinement = inside::around(&repository, Access::ReadOnly, &[], None).map_err(unreadable)?;
        let git_dir = format!("--git-dir={}", repository.display());
        let all = [git_dir.as_str()].into_iter().chain(args.iter().copied()).chain(names.iter().copied());
        let program = "/usr/bin/git";
        let document = inside::document(confinement, program, all.map(str::to_owned).collect());
        inside::run(&self.program, &document, GIT_TIME, most).await.map_err(not_done)
    }
}

fn unreadable(error: std::io::Error) -> Refusal {
    Refusal::internal("the snapshots cannot be read").because(error.to_string())
}

pub(super) fn not_done(why: NotDone) -> Refusal {
    let reason = if matches!(why, NotDone::TooLong(_)) { Reason::TimedOut } else { Reason::Internal };
    Refusal::new(reason, "git could not do it").because(why.to_string())
}

/// The snapshot that is meant, or why there is none.
pub(super) fn point<'a>(view: &View, work: &'a Tree, wanted: &Point) -> Result<&'a Snapshot, Refusal> {
    if let Some(found) = wanted.of(&work.snapshots) {
        return Ok(found);
    }
    let who = view.id.short();
    let message = match wanted {
        Point::Turn(0) => format!("there is no snapshot of what session {who} began with"),
        Point::Turn(turn) => format!("there is no snapshot of turn {turn} of session {who}"),
        Point::Commit(name) => format!("session {who} has no snapshot {}", one_line(name, 64)),
    };
    let refusal = Refusal::new(Reason::SnapshotUnknown, message);
    let failed = |taken: &&Snapshot| matches!(wanted, Point::Turn(turn) if taken.turn == *turn);
    let why = work.snapshots.iter().rev().filter(failed).find_map(|taken| taken.why.clone());
    // Of a turn there may be several: one more is taken before files are put back.
    let taken: BTreeSet<u32> =
        work.snapshots.iter().filter(|taken| taken.commit.is_some()).map(|taken| taken.turn).collect();
    let taken: Vec<String> = taken.iter().map(u32::to_string).collect();
    Err(match why {
        Some(why) => refusal.because(why),
        None if work.snapshots.is_empty() => refusal
            .because("snapshots are taken in git repositories, and elsewhere where the campaign says so")
            .hint(
                format!("ostler campaign set {} snapshots=always", view.campaign.short()),
                "has files written down in this directory too, from the next session on",
            ),
        None => refusal.because(format!("there are snapshots of turns {}", taken.join(", "))),
    })
}
