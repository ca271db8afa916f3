//! `ostler ls --node all`: the sessions of this machine and of all that have a name, in one list. What a machine that
//! does not answer had last is shown too, and is said to be old.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::PathBuf};

use ostler_client::{Client, Home, Session};
use ostler_domain::{
    Time,
    limits::PAGE_MOST,
    node::Node,
    query::{Page, SessionFilter},
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::ls::LsArgs;
use crate::{
    app::App,
    failure::Failure,
    filters,
    form::SessionForm,
    listing::{self, Found, List, Screen},
    nodes,
    output::Line,
    screen::{
        row,
        sessions::{self, Beside, Shown},
    },
    words,
};

pub(super) async fn run(app: &App, args: LsArgs) -> Result<u8, Failure> {
    if args.list.watch {
        return Err(Failure::usage("-w watches one machine; leave --node all out"));
    }
    if args.filters.is_any() {
        return Err(Failure::usage("--node all lists everything; filters are for one machine, --node NAME"));
    }
    let list = Everywhere { app, home: app.home()?, args: &args };
    listing::run(app, None, &args.list, &list).await
}

struct Everywhere<'a> {
    app: &'a App,
    home: Home,
    args: &'a LsArgs,
}

/// A session of a machine.
struct Row {
    node: String,
    session: Session,
    campaign: String,
    /// When it was so, where the machine does not answer.
    stale: Option<Time>,
    /// Why it does not.
    why: Option<String>,
}

/// What a machine had last.
#[derive(Serialize, Deserialize)]
struct Kept {
    at: Time,
    rows: Vec<(Session, String)>,
}

#[derive(Serialize)]
struct Form<'a> {
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_since: Option<String>,
    #[serde(flatten)]
    session: SessionForm,
}

/// What came of asking one machine.
struct Asked {
    node: String,
    answer: Result<Vec<(Session, String)>, Failure>,
}

impl List for Everywhere<'_> {
    type Row = Row;
    const ROWS: &'static str = "sessions";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        let mut asked = JoinSet::new();
        let (all, batch) = (self.args.all, self.app.is_batch());
        for (name, node) in nodes::named(&self.home)? {
            let home = self.home.clone();
            asked.spawn(async move {
                let way = nodes::way(&name, node, batch);
                let answer = match Client::connect_by(&way, &home).await {
                    Ok(client) => sessions_of(&client, all).await,
                    Err(error) => Err(error.into()),
                };
                Asked { node: name, answer }
            });
        }
        let here = async { sessions_of(&self.app.client_here().await?, all).await };
        let mut rows: Vec<Row> = here.await?.into_iter().map(|row| Row::of(Node::HERE, row)).collect();
        for Asked { node, answer } in asked.join_all().await {
            rows.extend(self.rows_of(&node, answer));
        }
        rows.sort_by(|a, b| {
            row::by_rank(&a.session, &b.session)
                .then_with(|| a.node.cmp(&b.node))
                .then_with(|| row::in_order(&a.session, &b.session))
        });
        Ok(Found::whole(rows, self.args.list.most(None)))
    }

    fn id(&self, row: &Row) -> String {
        row.session.id.to_string()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        let session = SessionForm::new(&row.session, &row.campaign);
        serde_json::to_value(Form { node: &row.node, stale_since: row.stale.map(words::rfc3339), session })
            .unwrap_or_default()
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        let shown: Vec<Shown<'_>> = found
            .rows
            .iter()
            .map(|row| Shown {
                session: &row.session,
                campaign: &row.campaign,
                node: Some(&row.node),
                stale: row.stale,
            })
            .collect();
        let sessions: Vec<&Session> = found.rows.iter().map(|row| &row.session).collect();
        let mut remarks = vec![match sessions.is_empty() {
            true => Line::of("No sessions on any machine."),
            false => sessions::summary(&sessions, &Beside::default()),
        }];
        let mut told = Vec::new();
        for row in &found.rows {
            if let Some(why) = row.why.as_ref().filter(|_| !told.contains(&&row.node)) {
                let since = row.stale.map(|at| words::age(words::now().since(at))).unwrap_or_default();
                remarks.push(
                    Line::of(format!("{} does not answer, its rows are {since} old", row.node))
                        .faint(format!("   {why}")),
                );
                told.push(&row.node);
            }
        }
        let table = (!shown.is_empty()).then(|| sessions::table(&shown, words::now()));
        Ok(Screen { table, remarks, ..Screen::default() })
    }
}

impl Row {
    fn of(node: &str, (session, campaign): (Session, String)) -> Row {
        Row { node: node.to_owned(), session, campaign, stale: None, why: None }
    }
}

impl Everywhere<'_> {
    fn rows_of(&self, node: &str, answer: Result<Vec<(Session, String)>, Failure>) -> Vec<Row> {
        match answer {
            Ok(rows) => {
                // A convenience: where it cannot be kept, the list is whole all the same.
                let _ = self.keep(node, &rows);
                rows.into_iter().map(|row| Row::of(node, row)).collect()
            }
            Err(failure) => {
                let refusal = failure.to_refusal();
                let why = refusal.why.unwrap_or(refusal.message);
                let Some(kept) = self.kept(node) else {
                    self.app
                        .ui
                        .remark(&Line::of(format!("{node} does not answer")).faint(format!("   {why}")));
                    return Vec::new();
                };
                let rows = kept.rows.into_iter().map(|row| Row::of(node, row));
                rows.map(|row| Row { stale: Some(kept.at), why: Some(why.clone()), ..row }).collect()
            }
        }
    }

    fn file(&self, node: &str) -> PathBuf {
        self.home.state().join("nodes").join(format!("{node}.json"))
    }

    fn kept(&self, node: &str) -> Option<Kept> {
        serde_json::from_slice(&fs::read(self.file(node)).ok()?).ok()
    }

    fn keep(&self, node: &str, rows: &[(Session, String)]) -> std::io::Result<()> {
        let file = self.file(node);
        fs::create_dir_all(self.home.state().join("nodes"))?;
        let kept = Kept { at: words::now(), rows: rows.to_vec() };
        let fresh = file.with_extension(std::process::id().to_string());
        let mut out =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        out.write_all(&serde_json::to_vec(&kept)?)?;
        fs::rename(fresh, file)
    }
}

async fn sessions_of(client: &Client, all: bool) -> Result<Vec<(Session, String)>, Failure> {
    let filter = SessionFilter { scope: filters::scope(all), ..SessionFilter::default() };
    let names = crate::app::campaign_names(client).await?;
    let mut rows = Vec::new();
    let mut page = Page::of(PAGE_MOST, None);
    loop {
        let listed = client.sessions(&filter, page).await?;
        rows.extend(listed.rows.into_iter().map(|session| (session.clone(), names.of(&session.campaign))));
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(rows),
        }
    }
}
