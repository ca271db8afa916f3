//! ProviderService.

use ostler_wire::{
    from_proto,
    pb::{self, provider_service_server::ProviderService},
    reply::LoginPlan,
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{invalid, refused};
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

    async fn list_models(
        &self,
        request: Request<pb::ListModelsRequest>,
    ) -> Result<Response<pb::ListModelsResponse>, Status> {
        let pb::ListModelsRequest { provider, keys } = request.into_inner();
        let keys = from_proto::caller_keys(keys).map_err(invalid)?;
        let models = self.engine.models(&provider, &keys).await.map_err(refused)?;
        Ok(Response::new(to_proto::models(models)))
    }

    async fn prepare_login(
        &self,
        request: Request<pb::PrepareLoginRequest>,
    ) -> Result<Response<pb::PrepareLoginResponse>, Status> {
        let pb::PrepareLoginRequest { provider, profile } = request.into_inner();
        let profile = from_proto::login_of(profile).map_err(invalid)?;
        let plan = self.engine.prepare_login(&provider, profile.as_ref()).await.map_err(refused)?;
        let plan = LoginPlan {
            program: plan.program,
            args: plan.args,
            environment: plan.environment,
            file: plan.file,
        };
        Ok(Response::new(to_proto::login_plan(plan)))
    }
}
