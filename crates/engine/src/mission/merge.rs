//! Bringing the members' branches together: in a sandbox, on a tree of its own, and into the branch only when all of it
//! merges and the gate passes.

use ostler_domain::{
    CampaignId, SessionId,
    event::By,
    limits::{CHECK_WITHIN, MISSION_TEXT_BYTES},
    text::head,
};

use super::effects::told;
use crate::{Change, Engine, WantedCommand, git::inside};

/// `$1` is the branch, `$2` the gate; the branches that are merged follow. The commit is all that it prints.
///
/// Nothing of it touches the branch before the end. Where somebody has it checked out, it moves there as `git merge` would
/// move it, and stops at files that are changed and not committed: those are somebody's work.
const SCRIPT: &str = r#"
set -eu
into=$1 gate=$2
shift 2
root=$(pwd)
own() { git -c core.hooksPath=/dev/null -c commit.gpgsign=false -c merge.verifySignatures=false "$@"; }
old=$(own rev-parse --verify --quiet "refs/heads/$into^{commit}") || { echo "there is no branch $into" >&2; exit 1; }
place=$(mktemp -d)
own worktree add --quiet --detach "$place/merge" "$old" >&2
trap 'cd "$root"; own worktree remove --force "$place/merge" >&2 || true' EXIT
cd "$place/merge"
for branch in "$@"; do
    if ! own merge --quiet --no-ff -m "Merge $branch" "refs/heads/$branch" >&2; then
        echo "$branch does not merge; these files collide:" >&2
        own diff --name-only --diff-filter=U >&2
        exit 1
    fi
done
if [ -n "$gate" ] && ! sh -c "$gate" >&2; then
    echo "the gate failed: $gate" >&2
    exit 1
fi
new=$(own rev-parse HEAD)
cd "$root"
if [ "$(own symbolic-ref --quiet HEAD || true)" = "refs/heads/$into" ]; then
    own merge --quiet --ff-only "$new" >&2
else
    own update-ref "refs/heads/$into" "$new" "$old"
fi
echo "$new"
"#;

impl Engine {
    /// Merges the branches of these sessions, in this order. Says the commit, or why the branch is as it was.
    pub(super) async fn merge_members(
        &self,
        campaign: CampaignId,
        into: &str,
        gate: Option<&str>,
        from: &[(String, SessionId)],
        by: By,
    ) -> Result<String, String> {
        let mut argv =
            ["/bin/sh", "-c", SCRIPT, "ostler", into, gate.unwrap_or_default()].map(str::to_owned).to_vec();
        for (name, session) in from {
            let view = self.session(&session.to_string()).await.map_err(|refusal| told(&refusal))?;
            match view.branch {
                Some(branch) if branch != into => argv.push(branch),
                // It worked on that branch itself.
                Some(_) => {}
                None => return Err(format!("{name} worked on no branch")),
            }
        }
        let wanted = WantedCommand {
            campaign: campaign.to_string(),
            argv,
            unlisted: true,
            directory: None,
            session: None,
        };
        let document =
            self.prepare_command(wanted, Change::by(by)).await.map_err(|refusal| told(&refusal))?;
        let ended =
            inside::run_whatever(&self.shared.program, &document, CHECK_WITHIN, MISSION_TEXT_BYTES).await;
        let ended = ended.map_err(|not_done| not_done.to_string())?;
        if ended.status.success() {
            return Ok(ended.said.text().trim().to_owned());
        }
        let why = ended.why.text();
        let from = why.len().saturating_sub(MISSION_TEXT_BYTES);
        let end = (from..=why.len()).find_map(|at| why.get(at..)).unwrap_or_default();
        Err(head(end.trim(), MISSION_TEXT_BYTES).to_owned())
    }
}
