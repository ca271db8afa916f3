//! NoticeService.

use ostler_wire::pb::{self, notice_service_server::NoticeService};
use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::Served;

#[async_trait]
impl NoticeService for Served {
    async fn test_channel(
        &self,
        request: Request<pb::TestChannelRequest>,
    ) -> Result<Response<pb::TestChannelResponse>, Status> {
        let told = self.engine.test_channel(&request.get_ref().channel).await.map_err(refused)?;
        Ok(Response::new(pb::TestChannelResponse { to: told.to.as_str().to_owned() }))
    }
}
