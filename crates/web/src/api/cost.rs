//! What was used, and what it cost.

use std::fs;

use axum::{Extension, routing::get};
use ostler_client::{Client, GetUsage};
use ostler_domain::{
    Refusal,
    price::{PriceBook, Prices},
    query::{Scope, SessionFilter},
    text::one_line,
};
use ostler_form::{
    cost::{By, CostsForm, SumForm, sums},
    rfc3339,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Endpoint, Form, SessionsAsked, asked, of, sessions::endpoint};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/cost" "getCost" "Tokens and money, added up", Some(of::<CostAsked>), None, Form::One(of::<CostsForm<'static>>), get(cost)),
    ]
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CostAsked {
    /// Session, agent, campaign, model, provider, day, ticket, chain or mission.
    by: Option<String>,
    /// Name, id, or a path in it.
    campaign: Option<String>,
    /// Of calls at or after: a moment in RFC 3339, or a span before now such as 7d.
    since: Option<String>,
    /// Of calls before.
    until: Option<String>,
}

async fn cost(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<CostAsked>) -> Answer {
    let by = match asked::said(&asked.by) {
        Some(word) => By::parse(word)
            .ok_or_else(|| Refusal::invalid(format!("by: there is no \"{}\"", one_line(word, 40))))?,
        None => By::Session,
    };
    let (since, until) = (asked::moment(&asked.since, "since")?, asked::moment(&asked.until, "until")?);
    let of = SessionsAsked { all: true, campaign: asked.campaign.clone(), ..SessionsAsked::default() };
    let filter = SessionFilter { scope: Scope::All, ..of.filter(&visitor.client).await? };
    let question = GetUsage { filter, since, until, by: None, limit: 0 };
    let prices = prices(&visitor.client);
    let sums = sums(&visitor.client, &question, by, &prices, &[]).await?;
    Ok(json(&CostsForm {
        by: by.word(),
        since: since.map(rfc3339),
        until: until.map(rfc3339),
        prices_date: &prices.date,
        total: SumForm::from(&sums.total),
        rows: sums.rows.iter().map(SumForm::from).collect(),
    }))
}

/// What models cost here. Whoever has written a table that cannot be read hears of it from `ostler cost`.
pub(crate) fn prices(client: &Client) -> Prices {
    let book = fs::read(client.home().config().join("prices.json")).unwrap_or_default();
    serde_json::from_slice::<PriceBook>(&book).unwrap_or_default().prices()
}
