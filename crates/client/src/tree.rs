//! What becomes of files: snapshots, what differs between them, and the way back.

use ostler_domain::{
    snapshot::{Blamed, Difference, Rewinding, Tree},
    worktree::{Kept, RemovedWorktree},
};
use ostler_wire::{
    from_proto,
    pb::{self, tree_service_client::TreeServiceClient as Service},
};

use crate::{Client, Error};

impl Client {
    /// Returns what a session has made of its tree. What its last turn left is waited for, a while.
    pub async fn tree(&self, who: &str) -> Result<Tree, Error> {
        let request = pb::GetTreeRequest { who: who.to_owned() };
        let answer = self.ask(async |channel| Service::new(channel).get_tree(request.clone()).await).await?;
        Ok(from_proto::tree(answer)?)
    }

    /// Returns what differs: since the session began, in a turn (`3`) or between two (`1..3`).
    pub async fn difference(&self, who: &str, span: &str, with_patch: bool) -> Result<Difference, Error> {
        let request = pb::GetDifferenceRequest { who: who.to_owned(), span: span.to_owned(), with_patch };
        let answer =
            self.ask(async |channel| Service::new(channel).get_difference(request.clone()).await).await?;
        Ok(from_proto::difference(answer)?)
    }

    /// Puts a session's files back to a turn or a snapshot, or says what that would change. Doing it again changes
    /// nothing more.
    pub async fn rewind(&self, who: &str, point: &str, dry_run: bool) -> Result<Rewinding, Error> {
        let request = pb::RewindRequest { who: who.to_owned(), point: point.to_owned(), dry_run };
        let answer = self.ask(async |channel| Service::new(channel).rewind(request.clone()).await).await?;
        Ok(from_proto::rewinding(answer)?)
    }

    /// Returns where a line of a file comes from; the path is absolute.
    pub async fn blame(&self, path: &str, line: u32) -> Result<Blamed, Error> {
        let request = pb::BlameRequest { path: path.to_owned(), line };
        let answer = self.ask(async |channel| Service::new(channel).blame(request.clone()).await).await?;
        Ok(from_proto::blamed(answer)?)
    }

    /// Returns the work trees that sessions have of their own, with how each stands now; of one campaign, or of all.
    pub async fn worktrees(&self, campaign: Option<&str>) -> Result<Vec<Kept>, Error> {
        let request = pb::ListWorktreesRequest { campaign: campaign.map(str::to_owned) };
        let answer =
            self.ask(async |channel| Service::new(channel).list_worktrees(request.clone()).await).await?;
        Ok(answer.worktrees.into_iter().map(from_proto::kept).collect::<Result<_, _>>()?)
    }

    /// Removes a work tree with which nothing would be lost: by its path, or by a session that worked in it. Any other is
    /// refused, with what keeps it.
    pub async fn remove_worktree(&self, who: &str) -> Result<RemovedWorktree, Error> {
        let request =
            pb::RemoveWorktreeRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).remove_worktree(request.clone()).await).await?;
        Ok(from_proto::removed_worktree(answer)?)
    }
}
