//! What lists are asked for by, in the words of the command line's filters.

use std::{collections::HashMap, time::Duration};

use ostler_client::Client;
use ostler_domain::{
    CampaignId, Refusal, Time,
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter, no_such, words},
    session::{Attention, Outcome, Status},
    time::span,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{clock, reply::Failure};

/// How long those that failed stay among the current ones.
const FAILED_SHOWN: Duration = Duration::from_secs(86_400);

/// Behind the `?` of everything that is about sessions.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SessionsAsked {
    /// Ended ones too; else those that live and those that failed within a day.
    pub(crate) all: bool,
    /// Only those that wait for a person.
    pub(crate) needs_me: bool,
    /// Name, id, or a path in it. This and the words below may be several, with commas between them: one is to fit.
    pub(crate) campaign: Option<String>,
    /// The agent's name.
    pub(crate) agent: Option<String>,
    /// The agent's role.
    pub(crate) role: Option<String>,
    /// Id or external reference.
    pub(crate) ticket: Option<String>,
    /// Name or id.
    pub(crate) mission: Option<String>,
    /// A session of it.
    pub(crate) chain: Option<String>,
    /// The agent program.
    pub(crate) provider: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// The branch that it works on.
    pub(crate) branch: Option<String>,
    /// CREATED, STARTING, RUNNING, WORKING, STOPPING, STOPPED, FAILED.
    pub(crate) status: Option<String>,
    /// Such as waiting_approval.
    pub(crate) attention: Option<String>,
    /// Such as crashed.
    pub(crate) outcome: Option<String>,
    /// Created at or after: a moment in RFC 3339, or a span before now such as 2h.
    pub(crate) since: Option<String>,
    /// Created before.
    pub(crate) until: Option<String>,
    /// Rows of a page.
    pub(crate) limit: Option<u32>,
    /// Where the page begins: the `next_cursor` of the one before.
    pub(crate) cursor: Option<String>,
}

/// Behind the `?` of the lists of work: missions and tickets.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WorkAsked {
    /// Missions that are over too, and tickets that are archived.
    pub(crate) all: bool,
    /// Name, id, or a path in it.
    pub(crate) campaign: Option<String>,
    /// Such as running,paused of missions, and open,running of tickets.
    pub(crate) status: Option<String>,
    /// Rows of a page.
    pub(crate) limit: Option<u32>,
    /// Where the page begins: the `next_cursor` of the one before.
    pub(crate) cursor: Option<String>,
}

impl WorkAsked {
    pub(crate) fn page(&self) -> Result<Page, Failure> {
        page(self.limit, self.cursor.as_deref())
    }

    pub(crate) async fn campaign(&self, client: &Client) -> Result<Option<CampaignId>, Failure> {
        campaign(client, &self.campaign).await
    }
}

async fn campaign(client: &Client, named: &Option<String>) -> Result<Option<CampaignId>, Failure> {
    Ok(match said(named) {
        Some(campaign) => Some(client.campaign(campaign).await?.id),
        None => None,
    })
}

/// Only where a page begins.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PageAsked {
    /// Rows of a page.
    pub(crate) limit: Option<u32>,
    /// Where the page begins: the `next_cursor` of the one before.
    pub(crate) cursor: Option<String>,
}

impl PageAsked {
    pub(crate) fn page(&self) -> Result<Page, Failure> {
        page(self.limit, self.cursor.as_deref())
    }
}

impl SessionsAsked {
    pub(crate) fn page(&self) -> Result<Page, Failure> {
        page(self.limit, self.cursor.as_deref())
    }

    pub(crate) async fn filter(&self, client: &Client) -> Result<SessionFilter, Failure> {
        let (mut campaigns, mut missions, mut chains) = (Vec::new(), Vec::new(), Vec::new());
        for campaign in listed(&self.campaign) {
            campaigns.push(client.campaign(campaign).await?.id);
        }
        for mission in listed(&self.mission) {
            missions.push(client.mission(mission).await?.mission.id);
        }
        for who in listed(&self.chain) {
            chains.push(client.session(who).await?.chain);
        }
        let own = |text: &Option<String>| listed(text).map(str::to_owned).collect();
        let mut attention = list(&self.attention, "attention", Attention::ALL, Attention::as_str)?;
        if self.needs_me {
            attention.extend(Attention::ALL.iter().filter(|attention| attention.needs_you()));
        }
        let scope = match self.all || !missions.is_empty() || !chains.is_empty() {
            true => Scope::All,
            false if self.needs_me => Scope::NotEnded,
            false => Scope::Current { failed_since: clock::now().minus(FAILED_SHOWN) },
        };
        Ok(SessionFilter {
            scope,
            campaigns,
            missions,
            chains,
            agents: own(&self.agent),
            roles: own(&self.role),
            tickets: own(&self.ticket),
            providers: own(&self.provider),
            models: own(&self.model),
            branches: own(&self.branch),
            statuses: list(&self.status, "status", Status::ALL, Status::as_str)?,
            attention,
            outcomes: list(&self.outcome, "outcome", Outcome::ALL, Outcome::as_str)?,
            since: moment(&self.since, "since")?,
            until: moment(&self.until, "until")?,
            ..SessionFilter::default()
        })
    }
}

/// What is there and not empty: a form sends its empty fields too.
pub(crate) fn said(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

pub(crate) fn page(limit: Option<u32>, cursor: Option<&str>) -> Result<Page, Failure> {
    let cursor = cursor.filter(|cursor| !cursor.is_empty()).map(str::parse).transpose();
    let cursor = cursor.map_err(|_| Refusal::invalid("cursor: not a cursor that a list has given out"))?;
    Ok(Page::of(limit.unwrap_or(0), cursor))
}

/// The words of a list.
fn listed(text: &Option<String>) -> impl Iterator<Item = &str> {
    said(text).into_iter().flat_map(words)
}

/// A list of words of which there are only these.
pub(crate) fn list<T: Copy>(
    text: &Option<String>,
    name: &str,
    known: &[T],
    word_of: fn(T) -> &'static str,
) -> Result<Vec<T>, Failure> {
    let words = || known.iter().map(|one| word_of(*one));
    let read = |word: &str| {
        let found = known.iter().copied().find(|one| word_of(*one).eq_ignore_ascii_case(word));
        found.ok_or_else(|| no_such(name, word, words()).into())
    };
    listed(text).map(read).collect()
}

pub(crate) fn moment(text: &Option<String>, name: &str) -> Result<Option<Time>, Failure> {
    let Some(text) = said(text) else { return Ok(None) };
    let moment = span(text).map(|ago| clock::now().minus(ago)).or_else(|| Time::from_rfc3339(text));
    let wrong = || {
        Refusal::invalid(format!("{name}: \"{text}\" is neither a moment in RFC 3339 nor a span such as 2h"))
    };
    Ok(Some(moment.ok_or_else(wrong)?))
}

/// What campaigns are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(HashMap<CampaignId, String>);

impl Names {
    /// Its name; its short id when it is not registered any more.
    pub(crate) fn of(&self, id: &CampaignId) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.short())
    }

    /// Of the campaign of each row.
    pub(crate) fn of_each<T>(&self, rows: &[T], campaign: impl Fn(&T) -> &CampaignId) -> Vec<String> {
        rows.iter().map(|row| self.of(campaign(row))).collect()
    }

    /// Of all, in order.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.values().cloned().collect();
        names.sort();
        names
    }
}

pub(crate) async fn names(client: &Client) -> Result<Names, Failure> {
    let mut names = Names::default();
    let mut page = Page::of(PAGE_MOST, None);
    loop {
        let listed = client.campaign_names(page).await?;
        names.0.extend(listed.rows.into_iter().map(|(id, name)| (id, name.to_string())));
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(names),
        }
    }
}
