//! ShareService.

use std::time::Duration;

use ostler_wire::{
    from_proto,
    pb::{self, share_service_server::ShareService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{invalid, refused};
use crate::{Served, peer};

#[async_trait]
impl ShareService for Served {
    async fn create_share(
        &self,
        request: Request<pb::CreateShareRequest>,
    ) -> Result<Response<pb::CreateShareResponse>, Status> {
        let by = peer::by(&request);
        let pb::CreateShareRequest { name, access, scope, seconds } = request.into_inner();
        let access = from_proto::access(&access).map_err(invalid)?;
        let scope = from_proto::scope(&scope).map_err(invalid)?;
        let lives = Duration::from_secs(seconds);
        let made = self.http.create_share(&by, &name, access, scope, lives).await.map_err(refused)?;
        Ok(Response::new(to_proto::new_share(made)))
    }

    async fn list_shares(
        &self,
        _request: Request<pb::ListSharesRequest>,
    ) -> Result<Response<pb::ListSharesResponse>, Status> {
        let shares = self.http.shares().await.map_err(refused)?;
        Ok(Response::new(pb::ListSharesResponse {
            shares: shares.into_iter().map(to_proto::share).collect(),
        }))
    }

    async fn revoke_share(
        &self,
        request: Request<pb::RevokeShareRequest>,
    ) -> Result<Response<pb::RevokeShareResponse>, Status> {
        let revoked =
            self.http.revoke_share(&peer::by(&request), &request.get_ref().share).await.map_err(refused)?;
        Ok(Response::new(pb::RevokeShareResponse { share: Some(to_proto::share(revoked)) }))
    }

    async fn list_hub(
        &self,
        _request: Request<pb::ListHubRequest>,
    ) -> Result<Response<pb::ListHubResponse>, Status> {
        let nodes = self.http.hub_lists().await.map_err(refused)?;
        Ok(Response::new(pb::ListHubResponse { nodes: serde_json::to_string(&nodes).unwrap_or_default() }))
    }
}
