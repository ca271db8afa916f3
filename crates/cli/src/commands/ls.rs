//! `ostler ls`: sessions, those that need you first.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use clap::Args;
use ostler_client::{
    Campaign, Client, GetUsage, Session,
    query::EventFilter,
    reply::{UsageBy, UsageRow},
};
use ostler_domain::{
    SessionId,
    budget::Period,
    limits::{PAGE_DEFAULT, PAGE_MOST},
    price::Dollars,
    query::{Page, Scope, SessionFilter},
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    filters::Filters,
    form::{SessionForm, SessionsForm},
    output::{Format, Line},
    screen::{
        money::Today,
        row,
        sessions::{self, Beside, CampaignNames, ListStyle},
    },
    words,
};

/// How soon a change is shown, at the earliest: a busy agent changes many times a second.
const REDRAW: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Ended ones too
    #[arg(short, long)]
    all: bool,
    /// Show changes as they happen
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    filters: Filters,
    /// The N newest; 0 means all [default: all that are current, or 50 with -a]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long)]
    cursor: Option<u64>,
    /// Leave the heads of the columns out
    #[arg(long)]
    no_headers: bool,
}

impl LsArgs {
    pub(super) fn of_all(self) -> Self {
        Self { all: true, ..self }
    }
}

/// What was found.
struct Found {
    rows: Vec<Session>,
    next_cursor: Option<u64>,
}

pub(crate) async fn run(app: &App, args: LsArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let filter = args.filters.resolve(app, &client, args.all).await?;
    if args.watch {
        return watch(app, &client, &filter, &args).await;
    }
    let (found, names) = tokio::join!(find(&client, &filter, &args), names(app, &client));
    show(app, &client, &filter, &args, &found?, &names?).await?;
    Ok(exit_code::OK)
}

async fn find(client: &Client, filter: &SessionFilter, args: &LsArgs) -> Result<Found, Failure> {
    let most = match (args.limit, filter.scope) {
        (Some(0), _) | (None, Scope::Current { .. } | Scope::NotEnded) => usize::MAX,
        (Some(limit), _) => limit as usize,
        (None, Scope::All) => PAGE_DEFAULT as usize,
    };
    let mut found = Found { rows: Vec::new(), next_cursor: args.cursor };
    loop {
        let room = u32::try_from(most - found.rows.len()).unwrap_or(PAGE_MOST).min(PAGE_MOST);
        let listed = client.sessions(filter, Page { limit: room, cursor: found.next_cursor }).await?;
        found.rows.extend(listed.rows);
        found.next_cursor = listed.next_cursor;
        if found.next_cursor.is_none() || found.rows.len() >= most {
            break;
        }
    }
    // Stable: within a rank the newest stay first.
    found.rows.sort_by_key(row::rank);
    Ok(found)
}

fn only_ids(app: &App) -> bool {
    app.ui.is_quiet() || app.ui.format() == Some(Format::Name)
}

/// The names of campaigns, where they are shown.
async fn names(app: &App, client: &Client) -> Result<CampaignNames, Failure> {
    if only_ids(app) { Ok(CampaignNames::default()) } else { app.campaign_names(client).await }
}

async fn show(
    app: &App,
    client: &Client,
    filter: &SessionFilter,
    args: &LsArgs,
    found: &Found,
    names: &CampaignNames,
) -> Result<(), Failure> {
    let ui = &app.ui;
    if only_ids(app) {
        return found.rows.iter().try_for_each(|session| ui.data(&Line::of(session.id.to_string())));
    }
    let form = |session: &Session| SessionForm::new(session, &names.of(&session.campaign));
    match ui.format() {
        Some(Format::Json) => ui.json(&SessionsForm {
            sessions: found.rows.iter().map(form).collect(),
            next_cursor: found.next_cursor.map(|cursor| cursor.to_string()),
        }),
        Some(Format::Jsonl) => found.rows.iter().try_for_each(|session| ui.json(&form(session))),
        format => show_table(app, client, filter, args, found, names, format == Some(Format::Wide)).await,
    }
}

async fn show_table(
    app: &App,
    client: &Client,
    filter: &SessionFilter,
    args: &LsArgs,
    found: &Found,
    names: &CampaignNames,
    wide: bool,
) -> Result<(), Failure> {
    let ui = &app.ui;
    let is_all = filter.scope == Scope::All;
    if found.rows.is_empty() {
        let is_first =
            is_all || client.sessions(&SessionFilter::default(), Page::of(1, None)).await?.rows.is_empty();
        // Help for who looks, not a row for who reads.
        sessions::empty(args.filters.is_any(), is_first).iter().for_each(|line| ui.remark(line));
        return Ok(());
    }
    let now = words::now();
    let style = ListStyle { wide, heads: !args.no_headers };
    ui.data_lines(&sessions::table(&found.rows, names, style, now, ui.out_look()))?;
    let (status, today) = tokio::join!(client.status(), today(app, client));
    let beside = Beside {
        today: today.ok(),
        halted: status.ok().and_then(|status| status.halt).map(|halt| {
            format!(
                "{} by {}: ostler halt --release",
                if halt.freeze { "frozen" } else { "halted" },
                halt.by.0
            )
        }),
        more: match (found.next_cursor, is_all) {
            (Some(_), _) => Some("more: --limit 0".to_owned()),
            (None, false) => Some("older: ostler ls -a".to_owned()),
            (None, true) => None,
        },
    };
    ui.remark(&sessions::summary(&found.rows, &beside));
    Ok(())
}

/// What all sessions cost today, and of how much, where all campaigns that were at work have a budget for a day.
async fn today(app: &App, client: &Client) -> Result<Today, Failure> {
    let now = words::now();
    let campaigns = client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
    let of_day = |campaign: &Campaign| {
        let budget = campaign.policy.budget.filter(|budget| budget.period == Period::Day)?;
        Some((campaign.id.to_string(), budget.dollars?))
    };
    let budgets: BTreeMap<String, Dollars> = campaigns.iter().filter_map(of_day).collect();
    let since = match budgets.is_empty() {
        true => words::midnight(now, &app.zone()),
        false => Period::Day.start(now),
    };
    let by = Some(UsageBy::Campaign);
    let sums = client.usage(&GetUsage { since: Some(since), by, ..GetUsage::default() }).await?;
    let is_paid = |row: &&UsageRow| row.cost > Dollars(0) || !row.unpriced.is_zero();
    let all_have = sums.rows.iter().filter(is_paid).all(|row| budgets.contains_key(&row.key));
    let total = budgets.values().fold(0_u64, |sum, budget| sum.saturating_add(budget.0));
    Ok(Today {
        paid: sums.total.cost,
        plan: sums.total.plan,
        is_unknown: !sums.total.unpriced.is_zero(),
        budget: (all_have && !budgets.is_empty()).then_some(Dollars(total)),
        tokens: sums.total.usage.total(),
    })
}

async fn watch(app: &App, client: &Client, filter: &SessionFilter, args: &LsArgs) -> Result<u8, Failure> {
    let ui = &app.ui;
    let is_lines = ui.format() == Some(Format::Jsonl);
    if !is_lines && !ui.terminals().stdout_is_terminal {
        return Err(Failure::usage("-w draws on a terminal, and this is none: use -o jsonl"));
    }
    let mut events = client.watch(EventFilter::default(), None).await?;
    // Ages grow even when nothing happens.
    let second = Duration::from_secs(1);
    let mut seconds = interval_at(Instant::now() + second, second);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut printed: HashMap<SessionId, Session> = HashMap::new();
    loop {
        let drawn = Instant::now();
        let (found, names) = tokio::join!(find(client, filter, args), names(app, client));
        let (mut found, names) = (found?, names?);
        if is_lines {
            // A line for each that changed.
            found.rows.retain(|session| printed.get(&session.id) != Some(session));
            printed.extend(found.rows.iter().map(|session| (session.id, session.clone())));
        } else {
            ui.clear_screen()?;
        }
        show(app, client, filter, args, &found, &names).await?;
        ui.flush()?;
        tokio::select! {
            event = events.next() => if let Some(Err(error)) = event { return Err(error.into()) },
            _ = seconds.tick(), if !is_lines => {}
        }
        sleep_until(drawn + REDRAW).await;
    }
}
