//! The models that a provider's endpoint has, asked with the key that its sessions would show there.

use std::{fmt, sync::Arc, time::Duration};

use ostler_domain::{
    Refusal,
    provider::{CallerKeys, Models, listed_models},
};

use crate::{Engine, upstream};

/// Whoever looks at a list does not wait for long.
const WITHIN: Duration = Duration::from_secs(5);

/// Fetches something. Given by whoever has the network's tools; the engine has none.
#[derive(Clone)]
pub struct Fetcher(Arc<Fetch>);

type Fetch = dyn Fn(&str, &[(&str, String)], Duration) -> Result<(u16, Vec<u8>), String> + Send + Sync;

impl Fetcher {
    pub fn new(
        fetch: impl Fn(&str, &[(&str, String)], Duration) -> Result<(u16, Vec<u8>), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(fetch))
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetcher")
    }
}

impl Engine {
    /// Asks the endpoint of a provider which models it has.
    pub async fn models(&self, name: &str, keys: &CallerKeys) -> Result<Models, Refusal> {
        let provider = self.shared.provider(name)?;
        let settings = self.shared.options.providers.of(name)?;
        let Some(path) = provider.models_path() else {
            return Ok(Models::unknown("it calls no model"));
        };
        let is_logged_in = self.shared.login(provider.as_ref(), &settings).is_some();
        let brought = |variable: &str| keys.get(variable).cloned();
        let order = match upstream::order(provider.as_ref(), &settings, brought, None, is_logged_in).await {
            Ok(Some(order)) => order,
            Ok(None) => return Ok(Models::unknown("neither a key nor a base_url is configured")),
            Err(not_started) => return Ok(Models::unknown(&not_started.message)),
        };
        let upstream = &order.upstream;
        let scheme = if upstream.tls { "https" } else { "http" };
        let url = format!("{scheme}://{}{}{path}", upstream.authority(), upstream.prefix);
        // One of them wants to be told which of its own forms it is to speak.
        let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
        headers.extend(order.key.as_ref().and_then(|key| order.scheme.header(key)));
        let (fetch, asked) = (self.shared.options.fetch.clone(), url.clone());
        let answer = tokio::task::spawn_blocking(move || match fetch {
            Some(Fetcher(fetch)) => fetch(&asked, &headers, WITHIN),
            None => Err("this daemon fetches nothing".to_owned()),
        });
        let answer = answer.await.map_err(|error| Refusal::internal(error.to_string()))?;
        Ok(match answer {
            Ok((200, body)) => match listed_models(&body) {
                Some(models) => Models { models, asked: Some(url), why_not: None },
                None => Models::not_from(url, "its answer is no list of models".to_owned()),
            },
            Ok((status, _)) => Models::not_from(url, format!("it answered {status}")),
            Err(why) => Models::not_from(url, why),
        })
    }
}
