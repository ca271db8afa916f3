//! Campaigns, and the providers of this machine.

use axum::{
    Extension,
    extract::Path,
    routing::{get, post},
};
use ostler_domain::{Policy, Refusal};
use ostler_form::{AgentForm, CampaignForm, Object, ProviderForm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Endpoint, Form, asked::PageAsked, names, of, sessions::endpoint};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Wanted, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/campaigns" "listCampaigns" "Lists campaigns with their policies", Some(of::<PageAsked>), None, Form::Page("campaigns", of::<CampaignForm>), get(list)),
        endpoint!("get" "/v1/campaigns/{who}" "getCampaign" "One campaign", None, None, Form::One(of::<CampaignForm>), get(show)),
        endpoint!("post" "/v1/campaigns/{who}/set" "setCampaign" "Changes its policy: all of the settings, or none", None, Some(of::<Set>), Form::One(of::<ChangeForm>), post(set)),
        endpoint!("get" "/v1/agents" "listAgents" "Lists the agents that are registered", Some(of::<PageAsked>), None, Form::Page("agents", of::<AgentForm>), get(agents)),
        endpoint!("get" "/v1/providers" "listProviders" "Agent programs: what is installed, and what it lacks", None, None, Form::Page("providers", of::<ProviderForm>), get(providers)),
    ]
}

async fn list(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<PageAsked>) -> Answer {
    let listed = visitor.client.campaigns(asked.page()?).await?;
    let rows = listed.rows.iter().map(CampaignForm::new).collect();
    Ok(json(&Object { name: "campaigns", rows, next_cursor: listed.next_cursor }))
}

async fn show(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    Ok(json(&CampaignForm::new(&visitor.client.campaign(&who).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Set {
    /// Each as it is typed: net.allow+=registry.example.
    settings: Vec<String>,
    /// Says what would be different, and changes nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What a change of a campaign's policy comes to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CampaignChange")]
struct ChangeForm {
    id: String,
    name: String,
    /// `- KEY VALUE` as it was and `+ KEY VALUE` as it is, for what is different.
    lines: Vec<String>,
    is_done: bool,
}

async fn set(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Set { settings, dry_run }): Wanted<Set>,
) -> Answer {
    let before = visitor.client.campaign(&who).await?;
    let after = match dry_run {
        true => {
            let changed = before.policy.clone().changed_by(&settings);
            changed.map_err(|fault| Refusal::invalid(fault.to_string()))?
        }
        false => visitor.client.set_campaign(&who, settings).await?.policy,
    };
    let said = |policy: &Policy| -> Vec<(String, String)> {
        policy.lines().into_iter().map(|line| (line.key.to_string(), line.value)).collect()
    };
    let (was, is) = (said(&before.policy), said(&after));
    let only = |here: &[(String, String)], there: &[(String, String)], sign: &str| -> Vec<String> {
        let lines = here.iter().filter(|line| !there.contains(line));
        lines.map(|(key, value)| format!("{sign} {key} {value}")).collect()
    };
    let lines = [only(&was, &is, "-"), only(&is, &was, "+")].concat();
    let (id, name) = (before.id.to_string(), before.name.to_string());
    Ok(json(&ChangeForm { id, name, lines, is_done: !dry_run }))
}

async fn agents(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<PageAsked>) -> Answer {
    let listed = visitor.client.agents(None, asked.page()?).await?;
    let names = names(&visitor.client).await?;
    let rows = listed.rows.iter().map(|agent| AgentForm::new(agent, &names.of(&agent.campaign))).collect();
    Ok(json(&Object { name: "agents", rows, next_cursor: listed.next_cursor }))
}

async fn providers(Extension(visitor): Extension<Visitor>) -> Answer {
    let rows = visitor.client.providers().await?;
    Ok(json(&Object { name: "providers", rows, next_cursor: None }))
}
