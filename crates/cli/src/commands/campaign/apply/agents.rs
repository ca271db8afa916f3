//! Agents as a file declares them, in the sections of their campaigns.

use std::collections::BTreeMap;

use ostler_client::{Agent, Client};
use ostler_domain::{
    Name, Refusal,
    agent::{KEYS, Profile},
};
use serde::Serialize;
use toml_edit::Item;

use super::{Difference, collect};
use crate::{commands::agent::read_files, failure::Failure};

/// An agent as it is declared.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    name: Name,
    /// `KEY=VALUE`, as they would be typed.
    settings: Vec<String>,
}

/// What is to be done about one.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Step {
    pub(super) agent: String,
    pub(super) is_new: bool,
    pub(super) changes: Vec<Difference>,
    #[serde(skip)]
    settings: Vec<String>,
}

impl Step {
    pub(super) fn is_change(&self) -> bool {
        self.is_new || !self.changes.is_empty()
    }

    pub(super) async fn make(&self, client: &Client, campaign: &str) -> Result<(), Failure> {
        match self.is_new {
            true => {
                let name = self.agent.parse().map_err(|_| Refusal::internal("a name is no name any more"))?;
                client.add_agent(campaign, &name, self.settings.clone()).await?
            }
            false => client.set_agent(&format!("{campaign}/{}", self.agent), self.settings.clone()).await?,
        };
        Ok(())
    }
}

/// Reads `[campaigns.NAME.agents.AGENT]`. What is wrong is said with where it is.
pub(super) fn declared(item: Option<&Item>) -> Result<Vec<Declared>, String> {
    let Some(item) = item else { return Ok(Vec::new()) };
    let table = item.as_table_like().ok_or("agents are sections: [campaigns.NAME.agents.AGENT]")?;
    table.iter().map(|(name, item)| one(name, item).map_err(|why| format!("agents.{name}: {why}"))).collect()
}

fn one(name: &str, item: &Item) -> Result<Declared, String> {
    let table = item.as_table_like().ok_or("it is no section")?;
    let name = name.parse().map_err(|fault| format!("it is no name: {fault}"))?;
    let mut settings = Vec::new();
    collect("", table, &mut settings)?;
    Ok(Declared { name, settings })
}

/// What differs between an agent that is there, or none, and the one that is declared. `there`: those of its campaign.
pub(super) fn step(campaign: &Name, declared: &Declared, there: &[Agent]) -> Result<Step, Failure> {
    let Declared { name, settings } = declared;
    let known = there.iter().find(|agent| agent.name == *name);
    let before = known.map(|agent| agent.profile.clone()).unwrap_or_default();
    let settings = read_files(settings.clone())?;
    let after = before.changed_by(&settings).map_err(|fault| {
        Refusal::invalid(format!("campaigns.{campaign}.agents.{name}: {fault}"))
            .because(format!("an agent has {}", KEYS.join(", ")))
            .hint("ostler help agent set", "says what they are")
    })?;
    let changes = differences(&before, &after);
    let is_new = known.is_none();
    let settings = if changes.is_empty() { Vec::new() } else { settings };
    Ok(Step { agent: name.to_string(), is_new, changes, settings })
}

fn differences(before: &Profile, after: &Profile) -> Vec<Difference> {
    let said = |profile: &Profile| profile.values().into_iter().collect::<BTreeMap<_, _>>();
    let (before, after) = (said(before), said(after));
    let words = |values: &BTreeMap<&'static str, String>, key: &str| {
        // A prompt is long: that it is another one is all that fits.
        let value = values.get(key).map(|value| ostler_domain::text::one_line(value, 60));
        value.unwrap_or_else(|| "default".to_owned())
    };
    let changed = KEYS.iter().filter(|key| before.get(*key) != after.get(*key));
    changed.map(|key| Difference { key, before: words(&before, key), after: words(&after, key) }).collect()
}
