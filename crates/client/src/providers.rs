//! Agent programs.

use ostler_domain::{
    Name,
    provider::{Models, Status},
};
use ostler_wire::{
    from_proto,
    pb::{self, provider_service_client::ProviderServiceClient as Service},
    reply::LoginPlan,
    to_proto,
};

use crate::{Client, Error};

impl Client {
    /// All providers as the daemon's machine has them.
    pub async fn providers(&self) -> Result<Vec<Status>, Error> {
        let variables = self.keys.iter().map(|(variable, _)| variable.to_owned()).collect();
        let request = pb::ListProvidersRequest { variables };
        let answer =
            self.ask(async |channel| Service::new(channel).list_providers(request.clone()).await).await?;
        Ok(answer.providers.into_iter().map(from_proto::provider_status).collect())
    }

    /// The models that a provider's endpoint has, asked with the key that this client brings, or the daemon finds.
    pub async fn models(&self, provider: &str) -> Result<Models, Error> {
        let keys = to_proto::caller_keys(&self.keys);
        let request = pb::ListModelsRequest { provider: provider.to_owned(), keys };
        let answer =
            self.ask(async |channel| Service::new(channel).list_models(request.clone()).await).await?;
        Ok(from_proto::models(answer))
    }

    /// Makes ready for a login of a provider's program, which the caller then runs on a terminal.
    /// `profile` is the account that is to have it; none for the usual one.
    pub async fn prepare_login(&self, provider: &str, profile: Option<&Name>) -> Result<LoginPlan, Error> {
        let profile = profile.map(ToString::to_string);
        let request = pb::PrepareLoginRequest { provider: provider.to_owned(), profile };
        let answer =
            self.ask(async |channel| Service::new(channel).prepare_login(request.clone()).await).await?;
        Ok(from_proto::login_plan(answer))
    }
}
