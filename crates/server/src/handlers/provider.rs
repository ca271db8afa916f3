//! ProviderService.

use ostler_wire::{
    pb::{self, provider_service_server::ProviderService},
    reply::LoginPlan,
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::Served;

#[async_trait]
impl ProviderService for Served {
    async fn list_providers(
        &self,
        request: Request<pb::ListProvidersRequest>,
    ) -> Result<Response<pb::ListProvidersResponse>, Status> {
        let providers = self.engine.providers(&request.get_ref().variables).await.map_err(refused)?;
        let providers = providers.into_iter().map(to_proto::provider_status).collect();
        Ok(Response::new(pb::ListProvidersResponse { providers }))
    }

    async fn prepare_login(
        &self,
        request: Request<pb::PrepareLoginRequest>,
    ) -> Result<Response<pb::PrepareLoginResponse>, Status> {
        let plan = self.engine.prepare_login(&request.get_ref().provider).await.map_err(refused)?;
        let plan = LoginPlan {
            program: plan.program,
            args: plan.args,
            environment: plan.environment,
            file: plan.file,
        };
        Ok(Response::new(to_proto::login_plan(plan)))
    }
}
