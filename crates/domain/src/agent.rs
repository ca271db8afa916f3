//! Agents: named identities in a campaign, which outlive every process that was theirs.
//!
//! An agent says what its sessions are started with where nobody says otherwise. What is dialogue belongs to its
//! conversations, and what was done belongs to tickets.

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, CampaignId, Name, Time,
    budget::{Amount, CampaignBudget},
    config::check_provider,
    setting::{Assignment, SettingFault, unknown_key},
};

/// The role of an agent of which nobody said one.
pub const USUAL_ROLE: &str = "agent";

/// Longest system prompt: it is said again at the start of every session.
pub const SYSTEM_PROMPT_BYTES: usize = 64 * 1024;

/// A registered agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub campaign: CampaignId,
    /// Unique among the agents of its campaign.
    pub name: Name,
    pub added: Time,
    #[serde(flatten)]
    pub profile: Profile,
}

/// What an agent's sessions are started with. What is absent is the campaign's or the machine's to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    #[serde(default = "usual_role")]
    pub role: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which of the provider's keys it uses: a name of `providers.NAME.profiles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_profile: Option<Name>,
    /// Said to the provider's program before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Of each of its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    /// Of all of them together, and their helpers, in a stretch of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_budget: Option<CampaignBudget>,
}

/// The keys of `agent set`.
pub const KEYS: &[&str] = &["role", "provider", "model", "auth_profile", "system_prompt", "budget"];

fn usual_role() -> Name {
    Name::slug(USUAL_ROLE).unwrap_or_else(|| unreachable!("the usual role is a name"))
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            role: usual_role(),
            provider: None,
            model: None,
            auth_profile: None,
            system_prompt: None,
            budget: None,
            period_budget: None,
        }
    }
}

/// What `budget=` says: what one session may use, what all of the agent's may in a period, or both.
struct Budgets {
    session: Option<Amount>,
    period: Option<CampaignBudget>,
}

impl Budgets {
    const FORMS: &str =
        "2usd, 500k or 2usd,500k for each session; 10usd/day, 2M/month or 50usd/total for all of them";

    fn parse(text: &str) -> Option<Budgets> {
        let mut budgets = Budgets { session: None, period: None };
        for part in text.split_whitespace() {
            match part.contains('/') {
                true => budgets.period = Some(CampaignBudget::parse(part)?),
                false => budgets.session = Some(Amount::parse(part).ok()?),
            }
        }
        Some(budgets)
    }
}

impl Profile {
    /// The profile with settings changed: all of them, or the first that is refused.
    pub fn changed_by<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a String>,
    ) -> Result<Profile, SettingFault> {
        let mut profile = self.clone();
        for text in settings {
            profile.change(&Assignment::parse(text)?)?;
        }
        Ok(profile)
    }

    fn change(&mut self, setting: &Assignment) -> Result<(), SettingFault> {
        let name = |text: &str| text.parse::<Name>().ok();
        match setting.key.as_str() {
            "role" => self.role = setting.word(name, "a name such as reviewer")?.unwrap_or_else(usual_role),
            "provider" => {
                let provider = setting.word(|text| Some(text.to_owned()), "a provider's name")?;
                if let Some(provider) = &provider {
                    check_provider(provider).map_err(|unknown| SettingFault(unknown.why))?;
                }
                self.provider = provider;
            }
            "model" => {
                let model = |text: &str| (!text.contains(char::is_whitespace)).then(|| text.to_owned());
                self.model = setting.word(model, "a model's name, as its provider has it")?;
            }
            "auth_profile" => self.auth_profile = setting.word(name, "a name such as work")?,
            "system_prompt" => {
                let fits = |text: &str| (text.len() <= SYSTEM_PROMPT_BYTES).then(|| text.to_owned());
                self.system_prompt = setting.word(fits, "a text of at most 64 KiB")?;
            }
            "budget" => match setting.word(Budgets::parse, Budgets::FORMS)? {
                Some(said) => {
                    self.budget = said.session.or(self.budget);
                    self.period_budget = said.period.or(self.period_budget);
                }
                None => (self.budget, self.period_budget) = (None, None),
            },
            other => return Err(unknown_key(other, KEYS)),
        }
        Ok(())
    }

    /// What was said, by key: `KEY=VALUE` gives the same profile again.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let Self { role, provider, model, auth_profile, system_prompt, .. } = self;
        [
            (role.as_str() != USUAL_ROLE).then(|| ("role", role.to_string())),
            provider.clone().map(|provider| ("provider", provider)),
            model.clone().map(|model| ("model", model)),
            auth_profile.as_ref().map(|name| ("auth_profile", name.to_string())),
            system_prompt.clone().map(|text| ("system_prompt", text)),
            self.budgets().map(|budgets| ("budget", budgets)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// What each of its sessions may use, and what all of them may, as it is typed.
    pub fn budgets(&self) -> Option<String> {
        let (session, period) =
            (self.budget.map(|one| one.to_string()), self.period_budget.map(|all| all.to_string()));
        match (session, period) {
            (Some(session), Some(period)) => Some(format!("{session} {period}")),
            (session, period) => session.or(period),
        }
    }

    /// The settings that make this profile of the usual one.
    pub fn settings(&self) -> Vec<String> {
        self.values().into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

impl Agent {
    /// `campaign/role/name`.
    pub fn address(&self, campaign: &str) -> String {
        format!("{campaign}/{}/{}", self.profile.role, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(settings: &[&str]) -> Result<Profile, SettingFault> {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        Profile::default().changed_by(&settings)
    }

    #[test]
    fn settings_give_the_same_profile_again() {
        let profile = changed(&[
            "role=reviewer",
            "provider=codex",
            "model=gpt-5.5",
            "auth_profile=work",
            "system_prompt=Be brief = good.\nSecond line.",
            "budget=2usd,500k",
            "budget=10usd/day",
        ])
        .unwrap();
        assert_eq!(Profile::default().changed_by(&profile.settings()).unwrap(), profile);
        assert_eq!(profile.budget.unwrap().tokens, Some(500_000));
        assert_eq!(profile.period_budget.unwrap().to_string(), "10usd/day");
        // Each is changed without the other.
        let other = profile.changed_by(&["budget=20usd/month".to_owned()]).unwrap();
        assert_eq!(
            (other.budget, other.period_budget.unwrap().to_string()),
            (profile.budget, "20usd/month".to_owned())
        );
        let older: Profile = serde_json::from_str(r#"{"role":"reviewer","budget":{"tokens":5}}"#).unwrap();
        assert_eq!((older.budget.unwrap().tokens, older.period_budget), (Some(5), None));
        let unset = profile.changed_by(&KEYS.iter().map(|key| format!("{key}=")).collect::<Vec<_>>());
        assert_eq!(unset.unwrap(), Profile::default());
    }

    #[test]
    fn values_are_checked() {
        let long = format!("system_prompt={}", "x".repeat(SYSTEM_PROMPT_BYTES + 1));
        for wrong in [
            "role=two words",
            "provider=nope",
            "model=a b",
            "budget=lots",
            "budget=5usd/week",
            "colour=red",
            "role+=x",
            &long,
        ] {
            assert!(changed(&[wrong]).is_err(), "{wrong:.40}");
        }
    }
}
