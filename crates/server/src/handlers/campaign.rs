//! CampaignService.

use ostler_domain::query::Page;
use ostler_wire::{
    from_proto,
    pb::{self, campaign_service_server::CampaignService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, invalid, refused};
use crate::Served;

#[async_trait]
impl CampaignService for Served {
    async fn add_campaign(
        &self,
        request: Request<pb::AddCampaignRequest>,
    ) -> Result<Response<pb::AddCampaignResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let wanted = from_proto::add_campaign(request.into_inner()).map_err(invalid)?;
        let campaign = self.engine.add_campaign(&wanted.path, wanted.name, change).await.map_err(refused)?;
        let campaign = self.engine.look_at_campaign(&campaign.id.to_string()).await.map_err(refused)?;
        Ok(Response::new(pb::AddCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }

    async fn get_campaign(
        &self,
        request: Request<pb::GetCampaignRequest>,
    ) -> Result<Response<pb::GetCampaignResponse>, Status> {
        let campaign = self.engine.look_at_campaign(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(pb::GetCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }

    async fn list_campaigns(
        &self,
        request: Request<pb::ListCampaignsRequest>,
    ) -> Result<Response<pb::ListCampaignsResponse>, Status> {
        let pb::ListCampaignsRequest { limit, cursor, names_only } = request.into_inner();
        let page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let answer = match names_only {
            true => {
                let all = self.engine.campaign_names().await.map_err(refused)?;
                answer(&all, page, |(id, name)| to_proto::campaign_name(*id, name))
            }
            false => answer(&self.engine.campaigns().await.map_err(refused)?, page, to_proto::campaign),
        };
        Ok(Response::new(answer))
    }

    async fn set_campaign(
        &self,
        request: Request<pb::SetCampaignRequest>,
    ) -> Result<Response<pb::SetCampaignResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::SetCampaignRequest { who, settings, .. } = request.into_inner();
        let campaign = self.engine.set_campaign(&who, &settings, change).await.map_err(refused)?;
        Ok(Response::new(pb::SetCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }

    async fn relink_campaign(
        &self,
        request: Request<pb::RelinkCampaignRequest>,
    ) -> Result<Response<pb::RelinkCampaignResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::RelinkCampaignRequest { who, path, .. } = request.into_inner();
        let campaign = self.engine.relink_campaign(&who, path.as_deref(), change).await.map_err(refused)?;
        Ok(Response::new(pb::RelinkCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }

    async fn remove_campaign(
        &self,
        request: Request<pb::RemoveCampaignRequest>,
    ) -> Result<Response<pb::RemoveCampaignResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let campaign = self.engine.remove_campaign(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(pb::RemoveCampaignResponse { campaign: Some(to_proto::campaign(&campaign)) }))
    }
}

/// Campaigns are few and are held together: a cursor is the number of those before it.
fn answer<T>(all: &[T], page: Page, row: impl Fn(&T) -> pb::Campaign) -> pb::ListCampaignsResponse {
    let start = usize::try_from(page.cursor.unwrap_or(0)).unwrap_or(usize::MAX).min(all.len());
    let end = start.saturating_add(page.limit as usize).min(all.len());
    let next = (end < all.len()).then_some(end as u64);
    pb::ListCampaignsResponse {
        campaigns: all[start..end].iter().map(row).collect(),
        next_cursor: to_proto::cursor(next),
    }
}
