//! `ostler ls`: sessions, those that need you first.

use std::{cell::RefCell, collections::HashSet};

use clap::Args;
use ostler_client::{Client, Session, reply::NodeStatus};
use ostler_domain::{
    SessionId,
    budget::{Period, Today},
    limits::PAGE_DEFAULT,
    query::{Page, Scope, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::App,
    failure::Failure,
    filters::Filters,
    form::SessionForm,
    listing::{self, Found, List, ListArgs, Screen},
    nodes::Where,
    output::{Format, Line},
    screen::{
        reboot, row,
        sessions::{self, Beside, CampaignNames, Part, Shown},
    },
    words,
};

#[derive(Debug, Default, Args)]
pub(crate) struct LsArgs {
    /// Ended ones too, the 50 newest if no limit is said
    #[arg(short, long)]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) filters: Filters,
    #[command(flatten)]
    pub(super) list: ListArgs,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long, help_heading = "List")]
    pub(super) cursor: Option<u64>,
}

impl LsArgs {
    pub(super) fn of_all(self) -> Self {
        Self { all: true, ..self }
    }
}

pub(crate) async fn run(app: &App, args: LsArgs) -> Result<u8, Failure> {
    if matches!(app.place()?, Where::Everywhere) {
        return super::ls_nodes::run(app, args).await;
    }
    let client = app.client().await?;
    let filter = args.filters.resolve(app, &client, args.all).await?;
    let list = Sessions {
        app,
        client: &client,
        most: args.list.most((filter.scope == Scope::All).then_some(PAGE_DEFAULT)),
        filter,
        cursor: args.cursor,
        is_filtered: args.filters.is_any(),
        filters: args.filters,
        about: RefCell::default(),
        cut: RefCell::default(),
    };
    listing::run(app, Some(&client), &args.list, &list).await
}

struct Sessions<'a> {
    app: &'a App,
    client: &'a Client,
    filter: SessionFilter,
    is_filtered: bool,
    filters: Filters,
    most: Option<u32>,
    cursor: Option<u64>,
    /// What was answered with the last rows.
    about: RefCell<About>,
    /// Found, and cut off: they are counted below the table.
    cut: RefCell<Vec<Session>>,
}

/// What a table has below it.
#[derive(Default)]
struct About {
    status: Option<NodeStatus>,
    today: Option<Today>,
}

/// A session and its campaign's name, where that is shown.
struct Row {
    session: Session,
    campaign: String,
}

impl List for Sessions<'_> {
    type Row = Row;
    const ROWS: &'static str = "sessions";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        let ask = async |page| self.client.sessions(&self.filter, page).await;
        // All at once: each of them alone would be a way there and back.
        let (found, live, names, about) = tokio::join!(
            Found::paged(self.most, self.cursor, ask),
            self.not_ended(),
            self.names(),
            self.about()
        );
        let (mut found, live, names) = (found?, live?, names?);
        self.about.replace(about);
        found.rows = joined(found.rows, live);
        found.rows.retain(|session| self.filters.has_lasted(session));
        // Stable: where the order says nothing, the newest stay first.
        found.rows.sort_by(row::in_order);
        let most = self.most.map_or(usize::MAX, |most| most as usize).min(found.rows.len());
        self.cut.replace(found.rows.split_off(most));
        let of = |session: Session| Row { campaign: names.of(&session.campaign), session };
        Ok(Found { rows: found.rows.into_iter().map(of).collect(), next_cursor: found.next_cursor })
    }

    fn id(&self, row: &Row) -> String {
        row.session.id.to_string()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        SessionForm::new(&row.session, &row.campaign)
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        let is_all = self.filter.scope == Scope::All;
        let About { status, today } = self.about.take();
        if found.rows.is_empty() {
            let none = Page::of(1, None);
            let is_first = (is_all && !self.is_filtered)
                || self.client.sessions(&SessionFilter::default(), none).await?.rows.is_empty();
            let mut remarks = sessions::empty(self.is_filtered, is_first);
            if !is_first {
                remarks.extend(self.restart_notice(status.as_ref()));
            }
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let rows: Vec<_> = found.rows.iter().map(|row| Shown::here(&row.session, &row.campaign)).collect();
        let table = sessions::table(&rows, words::now());
        let disk = status.as_ref().and_then(|status| status.disk).filter(|disk| disk.is_short());
        let is_page = found.next_cursor.is_some() || self.cursor.is_some();
        let there_are = status.as_ref().filter(|_| is_all && !self.is_filtered);
        let part = Part { shown: found.rows.len() as u64, of: there_are.map(|status| status.store.sessions) };
        let beside = Beside {
            today,
            part: is_page.then_some(part),
            disk: disk.map(|disk| {
                format!("disk nearly full, {} free: nothing new starts (ostler du)", words::bytes(disk.free))
            }),
            halted: status.as_ref().and_then(|status| status.halt.as_ref()).map(|halt| {
                let word = if halt.freeze { "frozen" } else { "halted" };
                format!("{word} by {}: ostler halt --release", halt.by.0)
            }),
            drained: status
                .as_ref()
                .and_then(|status| status.drain.as_ref())
                .map(|drain| format!("{}: ostler node drain --end", words::drained(drain))),
            more: match (found.next_cursor, is_all) {
                _ if !self.cut.borrow().is_empty() => Some("more: --limit 0".to_owned()),
                (Some(_), _) => Some("more: --limit 0".to_owned()),
                (None, false) => older(found, status.as_ref(), self.is_filtered),
                (None, true) => None,
            },
        };
        let cut = self.cut.take();
        let sessions: Vec<&Session> = found.rows.iter().map(|row| &row.session).chain(&cut).collect();
        let mut remarks = vec![sessions::summary(&sessions, &beside)];
        remarks.extend(self.restart_notice(status.as_ref()));
        Ok(Screen { table: Some(table), remarks, ..Screen::default() })
    }
}

impl Sessions<'_> {
    /// Those that may need somebody, however old they are: where only some rows are wanted, these come first. An object
    /// with a cursor goes on where it ended, and so keeps to the order of the pages.
    async fn not_ended(&self) -> Result<Vec<Session>, Failure> {
        if self.most.is_none() || self.cursor.is_some() || self.app.ui.format() == Some(Format::Json) {
            return Ok(Vec::new());
        }
        let filter = SessionFilter { scope: Scope::NotEnded, ..self.filter.clone() };
        let ask = async |page| self.client.sessions(&filter, page).await;
        Ok(Found::paged(None, None, ask).await?.rows)
    }

    /// That the machine restarted, until somebody says what becomes of whom it took along.
    fn restart_notice(&self, status: Option<&NodeStatus>) -> Vec<Line> {
        let restart =
            status.and_then(|status| status.machine_restart).filter(|_| !self.app.has_told_restart());
        restart.map_or_else(Vec::new, |restart| reboot::notice(&restart, words::now(), &self.app.zone()))
    }

    /// Asked for beside the rows, where people see a table. A daemon of another version may not know all of it.
    async fn about(&self) -> About {
        if !listing::is_table(self.app) {
            return About::default();
        }
        let midnight = Period::Day.start(words::now());
        let (status, today) = tokio::join!(self.client.status(), self.client.today(midnight));
        About { status: status.ok(), today: today.ok() }
    }

    /// The names of campaigns, where they are shown.
    async fn names(&self) -> Result<CampaignNames, Failure> {
        let ui = &self.app.ui;
        match listing::is_table(self.app) || ui.is_json() {
            true => self.app.campaign_names(self.client).await,
            false => Ok(CampaignNames::default()),
        }
    }
}

/// The rows of a page, and those that are not on it.
pub(super) fn joined(mut page: Vec<Session>, others: Vec<Session>) -> Vec<Session> {
    let known: HashSet<SessionId> = page.iter().map(|session| session.id).collect();
    page.extend(others.into_iter().filter(|session| !known.contains(&session.id)));
    page
}

/// How to see those that ended earlier, and how many they are where that is known.
fn older(found: &Found<Row>, status: Option<&NodeStatus>, is_filtered: bool) -> Option<String> {
    let count = status
        .filter(|_| !is_filtered)
        .map(|status| status.store.sessions.saturating_sub(found.rows.len() as u64));
    match count {
        Some(0) => None,
        Some(n) => Some(format!("{} older: ls -a", words::number(n))),
        None => Some("older: ls -a".to_owned()),
    }
}
