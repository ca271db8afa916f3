//! Campaigns: directories that agents may work in.

use ostler_domain::{
    CampaignId, Name,
    campaign::Campaign,
    query::{Listed, Page},
};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, campaign_service_client::CampaignServiceClient as Service},
    request::AddCampaign,
    to_proto,
};

use crate::{Client, Error};

impl Client {
    /// Registers a directory. One that is registered already is returned as it is.
    pub async fn add_campaign(&self, request: AddCampaign) -> Result<Campaign, Error> {
        let request = to_proto::add_campaign(request, self.request_id());
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).add_campaign(request.clone()).await
            })
            .await?;
        Ok(read(answer.campaign)?)
    }

    /// Returns a campaign by its name, its id, or any path in it.
    pub async fn campaign(&self, who: &str) -> Result<Campaign, Error> {
        let request = pb::GetCampaignRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).get_campaign(request.clone()).await).await?;
        Ok(read(answer.campaign)?)
    }

    /// Lists campaigns in the order of their names.
    pub async fn campaigns(&self, page: Page) -> Result<Listed<Campaign>, Error> {
        self.list_campaigns(page, false, from_proto::campaign).await
    }

    /// Lists what campaigns are called, and nothing else of them.
    pub async fn campaign_names(&self, page: Page) -> Result<Listed<(CampaignId, Name)>, Error> {
        self.list_campaigns(page, true, from_proto::campaign_name).await
    }

    async fn list_campaigns<T>(
        &self,
        page: Page,
        names_only: bool,
        read: impl Fn(pb::Campaign) -> Result<T, InvalidField>,
    ) -> Result<Listed<T>, Error> {
        let cursor = to_proto::cursor(page.cursor);
        let request = pb::ListCampaignsRequest { limit: page.limit, cursor, names_only };
        let answer =
            self.ask(async |channel| Service::new(channel).list_campaigns(request.clone()).await).await?;
        Ok(from_proto::listed(answer.campaigns, &answer.next_cursor, read)?)
    }

    /// Changes what a campaign's agents may do, by settings such as `read+=@rust`: all of them, or none.
    pub async fn set_campaign(&self, who: &str, settings: Vec<String>) -> Result<Campaign, Error> {
        let request = pb::SetCampaignRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            settings,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).set_campaign(request.clone()).await
            })
            .await?;
        Ok(read(answer.campaign)?)
    }

    /// Says which directory is a campaign's, after it was moved or replaced. No path means the one that it has.
    pub async fn relink_campaign(&self, who: &str, path: Option<String>) -> Result<Campaign, Error> {
        let request = pb::RelinkCampaignRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            path,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).relink_campaign(request.clone()).await
            })
            .await?;
        Ok(read(answer.campaign)?)
    }

    /// Forgets a campaign in which nothing runs. Its record and its directory stay.
    pub async fn remove_campaign(&self, who: &str) -> Result<Campaign, Error> {
        let request =
            pb::RemoveCampaignRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).remove_campaign(request.clone()).await
            })
            .await?;
        Ok(read(answer.campaign)?)
    }
}

fn read(campaign: Option<pb::Campaign>) -> Result<Campaign, InvalidField> {
    let campaign = from_proto::required(campaign, "campaign")?;
    from_proto::campaign(campaign).map_err(|e| e.within("campaign"))
}
