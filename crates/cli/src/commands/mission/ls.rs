//! `ostler mission ls`.

use clap::Args;
use ostler_client::{Client, Mission};
use ostler_domain::{
    Time,
    mission::{Filter, Status},
};
use serde::Serialize;

use super::form::MissionForm;
use crate::{
    app::{App, campaign_names},
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    parse, screen, words,
};

/// Missions that are listed where nobody says how many.
const USUALLY: u32 = 50;

#[derive(Debug, Args)]
pub(super) struct LsArgs {
    /// In this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// How it stands: created, running, paused, completed, partial, failed, cancelled
    #[arg(long = "status", value_parser = status, value_delimiter = ',', value_name = "WORDS")]
    statuses: Vec<Status>,
    /// Made from then on: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// Those that are over too
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    list: ListArgs,
}

fn status(text: &str) -> Result<Status, String> {
    let known = || Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
    Status::parse(text).ok_or_else(|| format!("\"{text}\" is none of {}", known()))
}

pub(super) async fn run(app: &App, args: LsArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let campaign = match &args.campaign {
        Some(who) => Some(client.campaign(&app.campaign_operand(who)?).await?.id),
        None => None,
    };
    let filter = Filter { campaign, statuses: args.statuses, over_too: args.all, since: args.since };
    let missions = Missions { client: &client, filter, most: args.list.most(Some(USUALLY)) };
    listing::run(app, Some(&client), &args.list, &missions).await
}

struct Missions<'a> {
    client: &'a Client,
    filter: Filter,
    most: Option<u32>,
}

impl List for Missions<'_> {
    type Row = (Mission, String);
    const ROWS: &'static str = "missions";

    async fn find(&self) -> Result<Found<(Mission, String)>, Failure> {
        let names = campaign_names(self.client).await?;
        let found =
            Found::paged(self.most, None, async |page| self.client.missions(&self.filter, page).await)
                .await?;
        let named = |mission: Mission| {
            let name = names.of(&mission.campaign);
            (mission, name)
        };
        Ok(Found { rows: found.rows.into_iter().map(named).collect(), next_cursor: found.next_cursor })
    }

    fn id(&self, (mission, _): &(Mission, String)) -> String {
        mission.id.to_string()
    }

    fn name(&self, (mission, _): &(Mission, String)) -> String {
        mission.name.to_string()
    }

    fn form(&self, (mission, campaign): &(Mission, String)) -> impl Serialize {
        MissionForm::new(mission, campaign)
    }

    async fn screen(&self, found: &Found<(Mission, String)>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let is_all = self.filter.over_too;
            let is_filtered = self.filter != Filter { over_too: is_all, ..Filter::default() };
            let remarks = screen::mission::list::empty(is_filtered, is_all);
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let table = screen::mission::list::table(&found.rows, words::now());
        Ok(Screen { table: Some(table), ..Screen::default() })
    }
}
