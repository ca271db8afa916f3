//! What a session that is wanted must fulfil before it is made: texts, variables, a model that is named, reached and priced.

use ostler_domain::{
    Reason, Refusal, Secret,
    budget::unpriced,
    campaign::Campaign,
    limits::{MESSAGE_BYTES, MODEL_BYTES},
    policy::NetMode,
    price::Dollars,
    provider::{CallerKeys, Settings},
    session::{Billing, Config, Sandbox},
    text::one_line,
};
use ostler_providers::Provider;

use super::NewSession;
use crate::{Change, Engine, upstream};

/// What is known of a session that could start.
pub(super) struct Startable {
    pub(super) settings: Settings,
    /// What the command said that names the key.
    pub(super) said: Option<Secret>,
    /// It calls its model through its gateway.
    pub(super) has_model: bool,
}

/// How an agent comes to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By its gateway, which has the key.
    Gateway,
    /// By the login that it is lent.
    Login,
    /// By what its variables and its settings say.
    ItsOwn,
}

impl Way {
    pub(crate) fn of(has_model: bool, is_logged_in: bool) -> Way {
        match (has_model, is_logged_in) {
            (true, _) => Way::Gateway,
            (false, true) => Way::Login,
            (false, false) => Way::ItsOwn,
        }
    }
}

impl Engine {
    /// Refuses what could only fail to start: its program, its model, its key or its login is not there. What its agent and
    /// its conversation say of it is filled in.
    pub(crate) async fn check_could_start(
        &self,
        wanted: &mut NewSession,
        campaign: &Campaign,
        change: &Change,
    ) -> Result<(), Refusal> {
        self.whose(wanted, campaign).await?.fill(wanted, &self.shared);
        if wanted.provider.is_empty() {
            wanted.provider = self.usual_provider(wanted, campaign, change).await?;
        }
        let provider = self.shared.provider(&wanted.provider)?;
        self.check_startable(provider.as_ref(), wanted, campaign, &change.keys).await.map(drop)
    }

    pub(super) async fn check_startable(
        &self,
        provider: &dyn Provider,
        wanted: &NewSession,
        campaign: &Campaign,
        keys: &CallerKeys,
    ) -> Result<Startable, Refusal> {
        if let Some(key) = provider.unknown_setting(&wanted.provider_config) {
            return Err(Refusal::invalid(format!(
                "{} has no setting \"{}\"",
                provider.name(),
                one_line(key, 64)
            )));
        }
        let settings =
            self.shared.options.providers.of_account(provider.name(), wanted.auth_profile.as_ref())?;
        let home = self.shared.options.home_dir.as_deref();
        self.shared.programs.find(provider, &settings, home).await?;
        let said = upstream::check_key(provider, &settings, keys).await?;
        check_model(provider, &settings, wanted)?;
        let has_model = self.shared.has_model(provider, &settings, keys);
        self.shared.check_login(provider, &settings, has_model, &wanted.environment, &campaign.policy)?;
        let way = Way::of(has_model, self.shared.login(provider, &settings).is_some());
        self.check_model_is_reached(campaign, provider, way)?;
        Ok(Startable { settings, said, has_model })
    }

    /// A network without a gateway leads to no model that was configured; and a login to none without a network.
    pub(crate) fn check_model_is_reached(
        &self,
        campaign: &Campaign,
        provider: &dyn Provider,
        way: Way,
    ) -> Result<(), Refusal> {
        let mode = campaign.policy.net_mode.unwrap_or(provider.usual_network());
        let is_reached = match (mode, way) {
            (NetMode::Provider | NetMode::Open, _) | (_, Way::ItsOwn) => true,
            (NetMode::Host, way) => way == Way::Login,
            (NetMode::None, _) => false,
        };
        if is_reached || self.shared.sandbox() == Sandbox::Off {
            return Ok(());
        }
        let (name, provider) = (&campaign.name, provider.name());
        let why = match way {
            Way::Login => "and its login is good for its model's own server alone",
            _ => "which has no gateway; the key of the model is added there and nowhere else",
        };
        Err(Refusal::new(
            Reason::ModelUnreachable,
            format!("an agent in {name} cannot call the model of {provider}, so nothing was started"),
        )
        .because(format!("net.mode is {}, {why}", mode.as_str()))
        .hint(
            format!("ostler campaign set {name} net.mode=provider"),
            "lets agents call their model, and nothing else",
        ))
    }

    /// Dollars cannot be counted for a model whose price nobody knows.
    pub(crate) fn check_price(&self, campaign: &Campaign, config: &Config) -> Result<(), Refusal> {
        let dollars = config.budget.and_then(|budget| budget.dollars);
        self.check_priced(
            dollars.or_else(|| campaign.policy.budget.and_then(|budget| budget.dollars)),
            config,
        )
    }

    /// The same for dollars of whoever else has a budget.
    pub(crate) fn check_priced(&self, dollars: Option<Dollars>, config: &Config) -> Result<(), Refusal> {
        if dollars.is_none() || config.billing == Billing::Plan {
            return Ok(());
        }
        let prices = self.shared.prices.certain()?;
        match config.model.as_deref().filter(|model| prices.quote(model).is_none()) {
            None => Ok(()),
            Some(model) => {
                let (why, cure) = unpriced(model);
                let message = "a budget in dollars needs a price, so nothing was started";
                Err(Refusal::new(Reason::PriceUnknown, message)
                    .because(why)
                    .hint(cure, "says what a million of its tokens cost")
                    .hint("ostler run --budget 500k \"…\"", "limits tokens instead"))
            }
        }
    }
}

/// Who pays. Without a key of ours, some programs call their model by a subscription; one that was given a key of its
/// own, or has logged in by one, does not.
pub(super) fn billing(
    provider: &dyn Provider,
    settings: &Settings,
    wanted: &NewSession,
    pays_by_call: bool,
) -> Billing {
    let is_key = |name: &String| name.ends_with("_API_KEY") || name.ends_with("_AUTH_TOKEN");
    let has_own_key = settings.env.keys().chain(wanted.environment.keys()).any(is_key);
    if provider.has_plans() && !pays_by_call && !has_own_key { Billing::Plan } else { Billing::Calls }
}

/// Refuses a session that nobody has named a model for, where there is no usual one.
fn check_model(provider: &dyn Provider, settings: &Settings, wanted: &NewSession) -> Result<(), Refusal> {
    if !provider.needs_model() || wanted.model.is_some() || settings.model.is_some() {
        return Ok(());
    }
    let name = provider.name();
    Err(Refusal::new(Reason::ProviderMissing, format!("no model is named for {name}"))
        .because("it has no usual one, and neither this session nor the configuration names one")
        .hint(format!("ostler run -p {name} -m MODEL \"…\""), "names it for this session")
        .hint(format!("ostler config set providers.{name}.model MODEL"), "names it for all"))
}

pub(super) fn check_texts(wanted: &NewSession) -> Result<(), Refusal> {
    if let Some(prompt) = &wanted.prompt {
        if prompt.len() > MESSAGE_BYTES {
            return Err(Refusal::new(
                Reason::TooLarge,
                format!("a prompt has at most {MESSAGE_BYTES} bytes"),
            )
            .because(format!("this one has {}", prompt.len())));
        }
        if prompt.trim().is_empty() {
            return Err(Refusal::invalid("the prompt is empty").hint("ostler run \"…\"", "says something"));
        }
    }
    if let Some(model) = &wanted.model {
        if model.trim().is_empty() {
            return Err(Refusal::invalid("the name of the model is empty")
                .hint("ostler run \"…\"", "takes the campaign's, else the provider's"));
        }
        if model.len() > MODEL_BYTES {
            return Err(Refusal::invalid(format!("the name of a model has at most {MODEL_BYTES} bytes")));
        }
    }
    Ok(())
}

pub(super) fn check_environment(wanted: &NewSession) -> Result<(), Refusal> {
    for (name, value) in &wanted.environment {
        let shown = ostler_domain::text::one_line(name, 64);
        if let Some(why) = ostler_domain::environment::refusal(name) {
            return Err(Refusal::invalid(format!("the variable \"{shown}\" cannot be set: {why}")));
        }
        if let Some(why) = ostler_domain::environment::value_refusal(value) {
            return Err(Refusal::invalid(format!("the value of {shown} is not text: {why}")));
        }
        // A session's variables are kept with it, as long as it is.
        if ostler_domain::redact::redact(value) != *value {
            let campaign = ostler_domain::text::one_line(&wanted.campaign, 64);
            return Err(Refusal::invalid(format!(
                "the value of {shown} looks like a secret, and would be written down"
            ))
            .hint(
                format!("ostler campaign set {campaign} env+={shown}"),
                "hands the daemon's variable of that name to agents, and writes it down nowhere",
            ));
        }
    }
    Ok(())
}
