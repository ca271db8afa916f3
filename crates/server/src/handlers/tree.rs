//! TreeService.

use ostler_domain::{Refusal, snapshot::Span, text::one_line};
use ostler_wire::{
    pb::{self, tree_service_server::TreeService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, refused};
use crate::Served;

#[async_trait]
impl TreeService for Served {
    async fn get_tree(
        &self,
        request: Request<pb::GetTreeRequest>,
    ) -> Result<Response<pb::GetTreeResponse>, Status> {
        let tree = self.engine.tree(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(to_proto::tree(&tree)))
    }

    async fn get_difference(
        &self,
        request: Request<pb::GetDifferenceRequest>,
    ) -> Result<Response<pb::GetDifferenceResponse>, Status> {
        let pb::GetDifferenceRequest { who, span, with_patch } = request.into_inner();
        let span = match span.as_str() {
            "" => Span::default(),
            typed => Span::parse(typed).ok_or_else(|| refused(no_turn(typed)))?,
        };
        let difference = self.engine.difference(&who, &span, with_patch).await.map_err(refused)?;
        Ok(Response::new(to_proto::difference(difference)))
    }

    async fn rewind(
        &self,
        request: Request<pb::RewindRequest>,
    ) -> Result<Response<pb::RewindResponse>, Status> {
        let change = change(&request, "")?;
        let pb::RewindRequest { who, point, dry_run } = request.into_inner();
        let rewinding = self.engine.rewind(&who, &point, dry_run, change).await.map_err(refused)?;
        Ok(Response::new(to_proto::rewinding(&rewinding)))
    }

    async fn blame(&self, request: Request<pb::BlameRequest>) -> Result<Response<pb::BlameResponse>, Status> {
        let pb::BlameRequest { path, line } = request.into_inner();
        let blamed = self.engine.blame(&path, line.max(1)).await.map_err(refused)?;
        Ok(Response::new(to_proto::blamed(&blamed)))
    }

    async fn list_worktrees(
        &self,
        request: Request<pb::ListWorktreesRequest>,
    ) -> Result<Response<pb::ListWorktreesResponse>, Status> {
        let campaign = request.into_inner().campaign;
        let all = self.engine.worktrees(campaign.as_deref()).await.map_err(refused)?;
        let worktrees = all.iter().map(to_proto::kept).collect();
        Ok(Response::new(pb::ListWorktreesResponse { worktrees }))
    }

    async fn remove_worktree(
        &self,
        request: Request<pb::RemoveWorktreeRequest>,
    ) -> Result<Response<pb::RemoveWorktreeResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let removed = self.engine.remove_worktree(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(to_proto::removed_worktree(removed)))
    }
}

fn no_turn(typed: &str) -> Refusal {
    Refusal::invalid(format!("\"{}\" is no turn and no snapshot", one_line(typed, 64)))
        .because("a turn is a number, a span is 1..3, a snapshot is the beginning of its name")
}
