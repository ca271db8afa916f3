//! Agent programs.

use ostler_domain::provider::Status;
use ostler_wire::{
    from_proto,
    pb::{self, provider_service_client::ProviderServiceClient as Service},
};

use crate::{Client, Error};

impl Client {
    /// All providers as the daemon's machine has them.
    pub async fn providers(&self) -> Result<Vec<Status>, Error> {
        let request = pb::ListProvidersRequest {};
        let answer = self.ask(async |channel| Service::new(channel).list_providers(request).await).await?;
        Ok(answer.providers.into_iter().map(from_proto::provider_status).collect())
    }
}
