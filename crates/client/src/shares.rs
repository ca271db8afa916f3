//! Giving others a part of this machine, and the hub that it is connected to.

use std::time::Duration;

use ostler_domain::{
    hub::Listed,
    share::{Access, Scope},
};
use ostler_wire::{
    from_proto,
    pb::{self, share_service_client::ShareServiceClient as Service},
    reply::{NewShare, Share},
};

use crate::{Client, Error};

impl Client {
    /// Shares a session, a conversation or a campaign for a while. Its token is told once.
    pub async fn create_share(
        &self,
        name: &str,
        access: Access,
        scope: Scope,
        lives: Duration,
    ) -> Result<NewShare, Error> {
        let request = pb::CreateShareRequest {
            name: name.to_owned(),
            access: access.as_str().to_owned(),
            scope: scope.to_string(),
            seconds: lives.as_secs(),
        };
        // Once: the token of a share whose answer was lost is lost too.
        let answer =
            self.ask_once(|channel| async move { Service::new(channel).create_share(request).await }).await?;
        Ok(from_proto::new_share(answer)?)
    }

    /// Lists what is shared, the newest first.
    pub async fn shares(&self) -> Result<Vec<Share>, Error> {
        let request = pb::ListSharesRequest {};
        let answer = self.ask(async |channel| Service::new(channel).list_shares(request).await).await?;
        Ok(answer.shares.into_iter().map(from_proto::share).collect::<Result<_, _>>()?)
    }

    /// Takes a share back, by name or id.
    pub async fn revoke_share(&self, share: &str) -> Result<Share, Error> {
        let request = pb::RevokeShareRequest { share: share.to_owned() };
        let answer =
            self.ask_once(|channel| async move { Service::new(channel).revoke_share(request).await }).await?;
        Ok(from_proto::share(from_proto::required(answer.share, "share")?)?)
    }

    /// What all machines of the hub list, as it knows them.
    pub async fn hub_lists(&self) -> Result<Vec<Listed>, Error> {
        let request = pb::ListHubRequest {};
        let answer = self.ask(async |channel| Service::new(channel).list_hub(request).await).await?;
        // What cannot be understood is a newer hub's.
        Ok(serde_json::from_str(&answer.nodes).unwrap_or_default())
    }
}
