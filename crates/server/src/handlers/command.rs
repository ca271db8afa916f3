//! CommandService.

use ostler_engine::WantedCommand;
use ostler_wire::pb::{self, command_service_server::CommandService};
use tonic::{Request, Response, Status, async_trait};

use super::{change, refused};
use crate::Served;

#[async_trait]
impl CommandService for Served {
    async fn prepare_command(
        &self,
        request: Request<pb::PrepareCommandRequest>,
    ) -> Result<Response<pb::PrepareCommandResponse>, Status> {
        // Deciding twice gives the same and changes nothing, so it needs no request id.
        let change = change(&request, "")?;
        let pb::PrepareCommandRequest { campaign, argv, unlisted, directory, session } = request.into_inner();
        let wanted = WantedCommand { campaign, argv, unlisted, directory, session };
        let document = self.engine.prepare_command(wanted, change).await.map_err(refused)?;
        let document =
            serde_json::to_string(&document).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(pb::PrepareCommandResponse { document }))
    }
}
