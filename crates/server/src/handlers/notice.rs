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

    async fn list_untold(
        &self,
        _request: Request<pb::ListUntoldRequest>,
    ) -> Result<Response<pb::ListUntoldResponse>, Status> {
        let untold = self.engine.untold().map_err(refused)?.into_iter();
        let channels = untold.map(|(channel, why)| pb::UntoldChannel { channel, why }).collect();
        Ok(Response::new(pb::ListUntoldResponse { channels }))
    }
}
