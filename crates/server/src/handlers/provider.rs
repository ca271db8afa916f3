//! ProviderService.

use ostler_wire::{
    pb::{self, provider_service_server::ProviderService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::Served;

#[async_trait]
impl ProviderService for Served {
    async fn list_providers(
        &self,
        _: Request<pb::ListProvidersRequest>,
    ) -> Result<Response<pb::ListProvidersResponse>, Status> {
        let providers = self.engine.providers().await.map_err(refused)?;
        let providers = providers.into_iter().map(to_proto::provider_status).collect();
        Ok(Response::new(pb::ListProvidersResponse { providers }))
    }
}
