//! HttpService.

use ostler_wire::{
    pb::{self, http_service_server::HttpService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::{Served, peer};

#[async_trait]
impl HttpService for Served {
    async fn open_http(
        &self,
        request: Request<pb::OpenHttpRequest>,
    ) -> Result<Response<pb::OpenHttpResponse>, Status> {
        let (by, person) = (peer::by(&request), peer::person_of(&request));
        let opened =
            self.http.open(&by, person.as_deref(), &request.get_ref().path).await.map_err(refused)?;
        Ok(Response::new(to_proto::way_in(opened)))
    }

    async fn close_http(
        &self,
        request: Request<pb::CloseHttpRequest>,
    ) -> Result<Response<pb::CloseHttpResponse>, Status> {
        let was_open = self.http.close(&peer::by(&request)).await.map_err(refused)?;
        Ok(Response::new(pb::CloseHttpResponse { was_open }))
    }

    async fn create_token(
        &self,
        request: Request<pb::CreateTokenRequest>,
    ) -> Result<Response<pb::CreateTokenResponse>, Status> {
        let by = peer::by(&request);
        let pb::CreateTokenRequest { name, read_only } = request.into_inner();
        let made = self.http.create_token(&by, &name, read_only).await.map_err(refused)?;
        Ok(Response::new(to_proto::new_token(made)))
    }

    async fn list_tokens(
        &self,
        _request: Request<pb::ListTokensRequest>,
    ) -> Result<Response<pb::ListTokensResponse>, Status> {
        let tokens = self.http.tokens().await.map_err(refused)?;
        Ok(Response::new(pb::ListTokensResponse {
            tokens: tokens.into_iter().map(to_proto::http_token).collect(),
        }))
    }

    async fn revoke_token(
        &self,
        request: Request<pb::RevokeTokenRequest>,
    ) -> Result<Response<pb::RevokeTokenResponse>, Status> {
        let revoked =
            self.http.revoke_token(&peer::by(&request), &request.get_ref().token).await.map_err(refused)?;
        Ok(Response::new(pb::RevokeTokenResponse { token: Some(to_proto::http_token(revoked)) }))
    }
}
