//! Bringing the members' branches together, in a sandbox: first on a tree of its own, with the gate, and then into the
//! branch, in one step.

use std::time::Duration;

use ostler_domain::{
    CampaignId, MissionId, Name, SessionId,
    event::By,
    limits::MISSION_TEXT_BYTES,
    mission::{Errand, State, Tried},
    session::View,
    text::{head, one_line, shell_word},
    worktree::{plural, short},
};
use tokio::{sync::watch, time::sleep};

use super::{
    effects::{AGAIN, TRIES},
    errands::Orders,
};
use crate::{
    Change, Engine, WantedCommand,
    attended::{Attended, Course, Wishes, Work},
    git::{
        inside::Ended,
        worktree::{Elsewhere, Left},
    },
};

const TRY: &str = include_str!("try_merge.sh");
const MOVE: &str = include_str!("move_branch.sh");
/// How long a branch may take to be moved: as long as its files take to be written where it is checked out.
const MOVE_WITHIN: Duration = Duration::from_secs(120);

/// A merge that is to be tried.
pub(super) struct Wanted {
    pub(super) mission: MissionId,
    pub(super) name: Name,
    pub(super) campaign: CampaignId,
    pub(super) into: String,
    pub(super) gate: Option<String>,
    /// Whose branches, in this order.
    pub(super) from: Vec<(String, SessionId)>,
}

/// Merges the branches beside the one that they are to come into, and runs the gate there.
pub(super) async fn try_it(orders: Orders, wanted: Wanted) -> Result<Tried, String> {
    let Wanted { mission, name: of, campaign, into, gate, from } = wanted;
    let mut args = vec![mission.to_string(), of.to_string(), into.clone(), gate.unwrap_or_default()];
    let (mut members, mut branches) = (Vec::new(), vec![into.clone()]);
    for (name, session) in from {
        let view = orders.engine.session(&session.to_string()).await.map_err(|refusal| refusal.told())?;
        match &view.branch {
            Some(branch) if *branch != into => {
                branches.push(branch.clone());
                args.extend([branch.clone(), shell_word(&view.working_dir)]);
            }
            // It worked on that branch itself.
            Some(_) => {}
            None => return Err(format!("{name} worked on no branch")),
        }
        members.push((name, view));
    }
    let mut left = Vec::new();
    for (name, view) in &members {
        left.extend(orders.engine.left_out(name, view, &branches).await?);
    }
    if !left.is_empty() {
        left.push(format!("do that, or discard it there, then: ostler mission retry {of}"));
        return Err(left.join("\n"));
    }
    let ended = orders.run(script(campaign, TRY, args)).await?;
    let said = ended.said.text();
    match said.trim().split_once(' ') {
        Some((old, commit)) if ended.status.success() => {
            Ok(Tried { old: old.to_owned(), commit: commit.to_owned() })
        }
        _ => Err(complaint(&ended)),
    }
}

fn script(campaign: CampaignId, text: &str, args: Vec<String>) -> WantedCommand {
    let mut argv = ["/bin/sh", "-c", text, "ostler"].map(str::to_owned).to_vec();
    argv.extend(args);
    WantedCommand { campaign: campaign.to_string(), argv, unlisted: true, directory: None, session: None }
}

/// The end of what it said.
fn complaint(ended: &Ended) -> String {
    let why = ended.why.text();
    let from = why.len().saturating_sub(MISSION_TEXT_BYTES);
    let end = (from..=why.len()).find_map(|at| why.get(at..)).unwrap_or_default();
    head(end.trim(), MISSION_TEXT_BYTES).to_owned()
}

impl Engine {
    /// What a member has in its tree and on none of the branches that are merged: the merge would silently be without it.
    async fn left_out(&self, name: &str, view: &View, branches: &[String]) -> Result<Vec<String>, String> {
        const SHOWN: usize = 8;
        let Some(tree) = &view.worktree else { return Ok(Vec::new()) };
        let campaign = self.campaign(&view.campaign.to_string()).await.map_err(|refusal| refusal.told())?;
        let left = self.shared.left_in(&campaign, tree, branches).await;
        let Left { files, elsewhere, beside } =
            left.map_err(|why| format!("whether {name} has committed all it did is not known: {why}"))?;
        let (mut lines, place) = (Vec::new(), shell_word(&tree.path));
        if !files.is_empty() {
            let shown: Vec<String> = files.iter().take(SHOWN).map(|file| one_line(file, 200)).collect();
            let more = files.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let shown = shown.join(", ");
            lines.push(format!("{name} left uncommitted: {shown}{more} (in {})", tree.path));
            lines.push(format!("commit it: git -C {place} add -A && git -C {place} commit"));
        }
        for Elsewhere { commits, head, branch } in elsewhere.into_iter().chain(beside) {
            let (own, commits) = (&tree.branch, plural(commits, "commit", "commits"));
            let head = short(&head);
            let on = branch.as_deref().map_or_else(|| "no branch".to_owned(), |on| one_line(on, 200));
            let (to, from) = (shell_word(own), shell_word(branch.as_deref().unwrap_or(head)));
            lines.push(format!("{name} has {commits} on {on}, not on {own}: {head} (in {})", tree.path));
            lines.push(format!("merge it: git -C {place} checkout {to} && git -C {place} merge {from}"));
            // A branch or a tag can be deleted; this has none.
            if branch.is_none() {
                let leave = format!("git -C {place} reset --keep {to} && git -C {place} checkout {to}");
                lines.push(format!("or give it up: git -C {place} checkout --detach {from} && {leave}"));
            }
        }
        Ok(lines)
    }

    /// Moves a branch to a merge, unless it has it. Says the commit, or why the branch is as it was.
    pub(super) async fn move_branch(
        &self,
        state: &State,
        into: &str,
        (old, commit): (&str, &str),
        by: &By,
    ) -> Result<String, String> {
        let args = [into, old, commit, state.name().as_str()].map(str::to_owned).to_vec();
        let wanted = script(state.campaign(), MOVE, args);
        // Any merge of the mission: the one before it may have been begun by a daemon that died.
        let lock = self.lock_of(state.id(), Errand::Merge { attempt: 0 });
        let mut why = String::new();
        // Whether an earlier one moved it, the next one finds out.
        for _ in 0..TRIES {
            let moved = async {
                let change = Change::by(by.clone());
                let document = self.prepare_command(wanted.clone(), change).await;
                let document = document.map_err(|refusal| refusal.told())?;
                let command = Attended {
                    document: &document,
                    lock: &lock,
                    // Killed in the middle, it would leave somebody's checkout half written.
                    to_its_end: true,
                    limit: MOVE_WITHIN,
                    most: MISSION_TEXT_BYTES,
                };
                let told = watch::Sender::new(false);
                let mut work = Work::new(&self.shared.at_work, &told);
                let ended = self.shared.attend(command, &mut Wishes::none(), &mut work).await;
                match ended.map_err(|not_done| not_done.to_string())? {
                    Course::ByItself(ended) if ended.status.success() => Ok(Ok(commit.to_owned())),
                    Course::ByItself(ended) if ended.status.code() == Some(1) => Ok(Err(complaint(&ended))),
                    Course::ByItself(ended) => Err(complaint(&ended)),
                    Course::Cut(_) => Err("it was ended".to_owned()),
                }
            };
            match moved.await {
                Ok(known) => return known,
                Err(again) => why = again,
            }
            sleep(AGAIN).await;
        }
        Err(format!("whether {into} was moved is not known: {why}"))
    }
}
