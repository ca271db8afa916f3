//! Which sessions a command is about: the same flags everywhere.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, Session};
use ostler_domain::{
    CampaignId, Kind, Refusal, Time,
    price::Dollars,
    query::{EventFilter, Scope, SessionFilter, no_such},
    session::{Attention, Outcome, Status},
};

use crate::{app::App, failure::Failure, parse, words};

/// Failures of this long ago are still news.
const FAILURES_ARE_NEWS: Duration = Duration::from_secs(24 * 3_600);

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filters {
    /// In this campaign: name, id or a path in it. Here and below: one, or several with commas between them
    #[arg(short = 'C', long, value_delimiter = ',', value_parser = word, value_name = "CAMPAIGN", alias = "rig")]
    pub(crate) campaign: Vec<String>,
    /// Of this agent: its name, address or id; of this name, where none is registered
    #[arg(long, value_delimiter = ',', value_parser = word, value_name = "AGENT")]
    pub(crate) agent: Vec<String>,
    /// Of agents with this role
    #[arg(long, value_delimiter = ',', value_parser = word)]
    pub(crate) role: Vec<String>,
    /// Created while this branch was checked out, or seen to make commits on it
    #[arg(long, value_delimiter = ',', value_parser = word)]
    pub(crate) branch: Vec<String>,
    /// Of this provider
    #[arg(long, value_delimiter = ',', value_parser = word)]
    pub(crate) provider: Vec<String>,
    /// With this model
    #[arg(short, long, value_delimiter = ',', value_parser = word)]
    pub(crate) model: Vec<String>,
    /// In one of these states, e.g. WORKING,FAILED
    #[arg(long, value_delimiter = ',', value_parser = status)]
    pub(crate) status: Vec<Status>,
    /// About one of these, e.g. waiting_approval,stalled
    #[arg(long, value_delimiter = ',', value_parser = attention, value_name = "WORD")]
    pub(crate) attention: Vec<Attention>,
    /// Ended in one of these ways, e.g. crashed,oom
    #[arg(long, value_delimiter = ',', value_parser = outcome)]
    pub(crate) outcome: Vec<Outcome>,
    /// In the chain of this session
    #[arg(long, value_delimiter = ',', value_parser = word, value_name = "WHO")]
    pub(crate) chain: Vec<String>,
    /// Of this ticket
    #[arg(long, value_delimiter = ',', value_parser = word)]
    pub(crate) ticket: Vec<String>,
    /// Of members of this mission: name, id, part of an id
    #[arg(long, value_delimiter = ',', value_parser = word, value_name = "MISSION")]
    pub(crate) mission: Vec<String>,
    /// From then on: 2h (ago), today, 2026-01-31. Sessions: created, or with --attention or --needs-me so since then;
    /// events and calls: recorded
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    pub(crate) since: Option<Time>,
    /// Before then
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    pub(crate) until: Option<Time>,
    /// Cost this much or more so far: 2.50 (dollars)
    #[arg(long, value_parser = dollars, value_name = "AMOUNT")]
    pub(crate) min_cost: Option<Dollars>,
    /// Only those that wait for a person
    #[arg(long)]
    pub(crate) needs_me: bool,
}

impl Filters {
    /// All of them, as the command line knows them.
    pub(crate) const IDS: [&'static str; 16] = [
        "campaign",
        "agent",
        "role",
        "branch",
        "provider",
        "model",
        "status",
        "attention",
        "outcome",
        "chain",
        "ticket",
        "mission",
        "since",
        "until",
        "min_cost",
        "needs_me",
    ];

    /// Whether it is about what sessions are doing, so that `--since` is about that too.
    fn is_about_attention(&self) -> bool {
        self.needs_me || !self.attention.is_empty()
    }

    /// Says whether a session has been what is asked for long enough: `--attention idle --since 2h` means those that have
    /// been idle for two hours.
    pub(crate) fn has_lasted(&self, session: &Session) -> bool {
        !self.is_about_attention() || self.since.is_none_or(|since| session.attention_since <= since)
    }

    /// Says whether anything in particular is asked for.
    pub(crate) fn is_any(&self) -> bool {
        let Self {
            campaign,
            agent,
            role,
            branch,
            provider,
            model,
            status,
            attention,
            outcome,
            chain,
            ticket,
            mission,
            since,
            until,
            min_cost,
            needs_me,
        } = self;
        let words = [campaign, agent, role, branch, provider, model, chain, ticket, mission];
        words.iter().any(|words| !words.is_empty())
            || !(status.is_empty() && attention.is_empty() && outcome.is_empty())
            || since.is_some()
            || until.is_some()
            || min_cost.is_some()
            || *needs_me
    }

    /// Says whether only ended sessions, or also such, can fit.
    fn asks_for_the_ended(&self) -> bool {
        let ended = |status: &Status| matches!(status, Status::Stopped | Status::Failed);
        self.status.iter().any(ended) || !self.outcome.is_empty() || !self.chain.is_empty()
    }

    /// How far back a list looks.
    pub(crate) fn scope(&self, all: bool) -> Scope {
        scope(all || self.asks_for_the_ended())
    }

    /// Says whether a session fits as it was when its daemon last answered. What only that one knows fits none.
    pub(crate) fn fits(&self, session: &Session, campaign: &str) -> bool {
        let Self { role, branch, chain, mission, status, outcome, min_cost, .. } = self;
        let is =
            |wanted: &[String], found: &str| wanted.is_empty() || wanted.iter().any(|word| word == found);
        let agent = session.agent.as_ref();
        let name = agent.map_or(session.name.as_str(), |agent| agent.name.as_str());
        let role_fits = role.is_empty() || agent.is_some_and(|agent| is(role, agent.role.as_str()));
        let about =
            |about: Attention| self.attention.contains(&about) || (self.needs_me && about.needs_you());
        let is_asked_elsewhere =
            !(branch.is_empty() && chain.is_empty() && mission.is_empty()) || min_cost.is_some();
        !is_asked_elsewhere
            && (is(&self.campaign, campaign) || is(&self.campaign, &session.campaign.to_string()))
            && is(&self.agent, name)
            && role_fits
            && is(&self.provider, &session.provider)
            && is(&self.model, session.model.as_deref().unwrap_or_default())
            && is(&self.ticket, session.ticket.as_deref().unwrap_or_default())
            && (status.is_empty() || status.contains(&session.status))
            && (outcome.is_empty() || session.outcome.is_some_and(|how| outcome.contains(&how)))
            && (!self.is_about_attention() || session.attention.is_some_and(about))
            && self.until.is_none_or(|until| session.created_at < until)
            && match self.is_about_attention() {
                true => self.has_lasted(session),
                false => self.since.is_none_or(|since| session.created_at >= since),
            }
    }

    /// The question to the daemon.
    pub(crate) async fn resolve(
        &self,
        app: &App,
        client: &Client,
        all: bool,
    ) -> Result<SessionFilter, Failure> {
        let (mut campaigns, mut chains, mut missions) = (Vec::new(), Vec::new(), Vec::new());
        for who in &self.campaign {
            campaigns.push(client.campaign(&app.campaign_operand(who)?).await?.id);
        }
        let agents = self.agents(client, &mut campaigns).await?;
        for who in &self.chain {
            chains.push(client.session(&app.who(client, who).await?).await?.chain);
        }
        for who in &self.mission {
            missions.push(client.mission(who).await?.mission.id);
        }
        let mut attention = self.attention.clone();
        if self.needs_me {
            attention.extend(Attention::ALL.iter().copied().filter(|attention| attention.needs_you()));
        }
        Ok(SessionFilter {
            scope: self.scope(all),
            campaigns,
            chains,
            agents,
            roles: self.role.clone(),
            branches: self.branch.clone(),
            providers: self.provider.clone(),
            models: self.model.clone(),
            tickets: self.ticket.clone(),
            missions,
            statuses: self.status.clone(),
            attention,
            outcomes: self.outcome.clone(),
            since: self.since.filter(|_| !self.is_about_attention()),
            until: self.until,
            min_cost: self.min_cost,
            ..SessionFilter::default()
        })
    }

    /// The names of the agents. A bare name may be that of agents of several campaigns; an address or an id is one agent's,
    /// and its campaign is the one that is asked for.
    async fn agents(&self, client: &Client, campaigns: &mut Vec<CampaignId>) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let mut of = None;
        for who in &self.agent {
            if !(who.contains('/') || who.starts_with("agt_")) {
                names.push(who.clone());
                continue;
            }
            let agent = client.agent(who).await?;
            if !(campaigns.is_empty() || campaigns.contains(&agent.campaign)) {
                return Err(Failure::usage(format!("{} is an agent of another campaign", agent.name)));
            }
            if of.replace(agent.campaign).is_some_and(|other| other != agent.campaign) {
                return Err(Failure::usage("agents of several campaigns are asked for by their bare names"));
            }
            names.push(agent.name.to_string());
        }
        if let Some(campaign) = of {
            *campaigns = vec![campaign];
        }
        Ok(names)
    }

    /// The question about what sessions did: times are those of the deeds. Without a word about sessions also what
    /// belongs to none.
    pub(crate) async fn resolve_events(
        &self,
        app: &App,
        client: &Client,
        session: Option<&str>,
        kinds: &[Kind],
    ) -> Result<EventFilter, Failure> {
        let session = match session {
            Some(typed) => Some(app.session(client, typed).await?.id),
            None => None,
        };
        let timeless = Self { since: None, until: None, ..self.clone() };
        let sessions = match timeless.is_any() {
            true => Some(Box::new(timeless.resolve(app, client, true).await?)),
            false => None,
        };
        Ok(EventFilter { session, kinds: kinds.to_vec(), since: self.since, until: self.until, sessions })
    }
}

fn dollars(text: &str) -> Result<Dollars, String> {
    let number = text.trim().trim_start_matches('$').trim_end_matches("usd");
    Dollars::parse(number).ok_or_else(|| format!("\"{text}\" is no amount; examples: 2.50, 2usd"))
}

/// How far back a list looks.
pub(crate) fn scope(all: bool) -> Scope {
    if all { Scope::All } else { Scope::Current { failed_since: words::now().minus(FAILURES_ARE_NEWS) } }
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(text).ok_or_else(|| unknown("status", text, Status::ALL.iter().map(|word| word.as_str())))
}

fn attention(text: &str) -> Result<Attention, String> {
    let known = || Attention::ALL.iter().map(|word| word.as_str());
    Attention::parse(&text.to_ascii_lowercase()).ok_or_else(|| unknown("attention", text, known()))
}

fn outcome(text: &str) -> Result<Outcome, String> {
    let known = || Outcome::ALL.iter().map(|word| word.as_str());
    Outcome::parse(&text.to_ascii_lowercase()).ok_or_else(|| unknown("outcome", text, known()))
}

fn unknown<'a>(what: &str, text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let Refusal { message, why, .. } = no_such(what, text, known);
    format!("{message}; {}", why.unwrap_or_default())
}

/// A word of a list: without one between two commas, everything would fit or nothing.
fn word(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("there is no word between two commas, or none at all".to_owned()),
        word => Ok(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(status("working"), Ok(Status::Working));
        assert_eq!(attention("Idle"), Ok(Attention::Idle));
        assert_eq!(outcome("OOM"), Ok(Outcome::Oom));
        assert!(status("gone").unwrap_err().contains("STOPPED"));
        assert!(outcome("crashd").unwrap_err().contains("the nearest is crashed"));
        assert_eq!(word(" a "), Ok("a".to_owned()));
        assert!(word("").is_err());
        assert_eq!(dollars("2.50"), Ok(Dollars(2_500_000)));
        assert_eq!((dollars("$2"), dollars("2usd")), (Ok(Dollars(2_000_000)), Ok(Dollars(2_000_000))));
        assert!(dollars("a lot").is_err());
    }

    #[test]
    fn all_filters_are_known_by_name() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            filters: Filters,
        }
        let line = <Line as clap::CommandFactory>::command();
        let ids: Vec<_> = line.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(ids, Filters::IDS);
        let line = <Line as clap::Parser>::parse_from(["x", "--attention", "idle", "--since", "2h"]);
        let mut session = crate::testing::fleet().remove(2);
        session.attention_since = words::now();
        assert!(!line.filters.has_lasted(&session));
        session.attention_since = words::now().minus(Duration::from_secs(3 * 3_600));
        assert!(line.filters.has_lasted(&session));
    }

    #[test]
    fn what_was_last_known_is_filtered_as_far_as_it_is_known() {
        let fleet = crate::testing::fleet();
        let fitting = |filters: Filters| -> Vec<&str> {
            let fits = fleet.iter().filter(|session| filters.fits(session, "shop"));
            fits.map(|session| session.name.as_str()).collect()
        };
        assert_eq!(fitting(Filters::default()).len(), fleet.len());
        let needs_me = fitting(Filters { needs_me: true, ..Filters::default() });
        assert!(!needs_me.is_empty() && needs_me.len() < fleet.len(), "{needs_me:?}");
        assert_eq!(
            fitting(Filters { agent: vec!["docs".to_owned(), "nobody".to_owned()], ..Filters::default() }),
            ["docs"]
        );
        let working = fitting(Filters { status: vec![Status::Working], ..Filters::default() });
        assert_eq!(working, ["migrate"]);
        assert!(fitting(Filters { campaign: vec!["site".to_owned()], ..Filters::default() }).is_empty());
        assert!(fitting(Filters { mission: vec!["m".to_owned()], ..Filters::default() }).is_empty());
    }

    #[test]
    fn asking_for_ended_ones_looks_at_all() {
        assert!(!Filters::default().is_any());
        assert!(Filters { status: vec![Status::Stopped], ..Filters::default() }.asks_for_the_ended());
        assert!(!Filters { status: vec![Status::Working], ..Filters::default() }.asks_for_the_ended());
        assert!(Filters { min_cost: Some(Dollars(1)), ..Filters::default() }.is_any());
        assert!(Filters { needs_me: true, ..Filters::default() }.is_any());
    }
}
