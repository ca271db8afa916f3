//! `ostler node`: other machines, reached by SSH; and one that is to be taken down.

mod drain;

use clap::{Args, Subcommand};
use ostler_client::{Client, Home, reply::NodeStatus};
use ostler_domain::{
    Refusal,
    node::{Address, Node},
};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{
    app::App,
    commands::config,
    consent::DryRun,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    nodes,
    output::{Column, Line, Table, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Give a machine a name, for --node NAME
    #[command(alias = "create")]
    Add {
        /// What to call it here
        name: String,
        /// ssh://host, ssh://user@host, ssh://user@host:2222; SSH's own configuration may say the rest
        address: String,
        /// What Ostler is called there, if not `ostler`
        #[arg(long, value_name = "PATH")]
        program: Option<String>,
    },
    /// Machines, and whether they answer
    #[command(alias = "list")]
    Ls {
        #[command(flatten)]
        list: ListArgs,
    },
    /// One machine, and why it does not answer
    #[command(alias = "get")]
    Show {
        /// Its name here
        name: String,
    },
    /// Before a machine is taken down: nothing new starts, and what runs goes on (--node for another one)
    Drain(drain::DrainArgs),
    /// Forget a name; nothing over there is changed
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Its name here
        name: String,
        #[command(flatten)]
        dry: DryRun,
    },
}

impl NodeArgs {
    /// Whether only a daemon is asked, wherever that is.
    pub(crate) fn is_of_any_machine(&self) -> bool {
        matches!(self.verb, Verb::Drain(_))
    }
}

pub(crate) async fn run(app: &App, args: NodeArgs) -> Result<u8, Failure> {
    let home = app.home()?;
    match args.verb {
        Verb::Drain(args) => drain::run(app, args).await,
        Verb::Add { name, address, program } => add(app, &home, &name, &address, program).await,
        Verb::Ls { list } => {
            listing::run(app, None, &list, &Nodes { home: &home, list: &list, batch: app.is_batch() }).await
        }
        Verb::Show { name } => show(app, &home, &name).await,
        Verb::Rm { name, dry } => {
            let mut named = nodes::named(&home)?;
            let Some(node) = named.remove(&name) else { return Err(nodes::unknown(&name, &named).into()) };
            let form = Forgotten { name: &name, address: node.address.to_string() };
            if dry.said(&app.ui, &format!("forget {name}, {}", form.address), &form)? {
                return Ok(exit_code::OK);
            }
            config::unset(app, &format!("nodes.{name}"))?;
            if app.ui.is_json() {
                app.ui.json(&form)?;
            }
            app.ui.remark(&Line::of(format!("{name} is forgotten")));
            Ok(exit_code::OK)
        }
    }
}

async fn add(
    app: &App,
    home: &Home,
    name: &str,
    address: &str,
    program: Option<String>,
) -> Result<u8, Failure> {
    if let Some(fault) = Node::name_fault(name) {
        return Err(Failure::usage(fault));
    }
    let address = Address::parse(address).map_err(|no| {
        let refusal = Refusal::invalid(no.to_string());
        let meant = format!("ssh://{address}");
        match Address::parse(&meant) {
            Ok(_) => refusal.hint(format!("ostler node add {name} {meant}"), "is how SSH gets there"),
            Err(_) => refusal.hint(format!("ostler node add {name} ssh://HOST"), "is the form of it"),
        }
    })?;
    let node = Node { address, program };
    if let Some(before) = nodes::named(home)?.get(name).filter(|before| **before != node) {
        app.ui.remark(&Line::of(format!("{name} was {}", before.address)));
    }
    let fields = [("address", Some(node.address.to_string())), ("program", node.program.clone())];
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    config::set_section(app, &format!("nodes.{name}"), fields)?;
    let row = Row::ask(home, name.to_owned(), node, app.is_batch()).await;
    if app.ui.is_json() {
        app.ui.json(&row.form())?;
        return Ok(exit_code::OK);
    }
    app.ui.remark(&Line::of(format!("{name}  ")).plain(row.address.clone()).plain("  ").append(row.state()));
    if let Err(why) = &row.answer {
        // It has its name all the same: it may be asleep.
        app.ui.remark(&Line::new().faint(format!("why: {why}")));
    }
    Ok(exit_code::OK)
}

async fn show(app: &App, home: &Home, name: &str) -> Result<u8, Failure> {
    let mut named = nodes::named(home)?;
    let Some(node) = named.remove(name) else { return Err(nodes::unknown(name, &named).into()) };
    let program = node.program().to_owned();
    let row = Row::ask(home, name.to_owned(), node, app.is_batch()).await;
    if app.ui.is_json() {
        app.ui.json(&row.form())?;
        return Ok(exit_code::OK);
    }
    let mut lines = vec![
        Line::new().strong(name).plain("  ").append(row.state()),
        Line::new().faint("address  ").plain(row.address.clone()),
        Line::new().faint("program  ").plain(program),
    ];
    match &row.answer {
        Ok(status) => lines.extend([
            Line::new().faint("version  ").plain(status.version.clone()),
            Line::new()
                .faint("sessions ")
                .plain(format!("{} live, {} recorded", status.live_sessions, status.recorded_sessions)),
        ]),
        Err(why) => lines.push(Line::new().faint("why      ").plain(why.clone())),
    }
    app.ui.data_lines(&lines)?;
    Ok(exit_code::OK)
}

#[derive(Serialize)]
struct Forgotten<'a> {
    name: &'a str,
    address: String,
}

struct Nodes<'a> {
    home: &'a Home,
    list: &'a ListArgs,
    batch: bool,
}

/// A machine, and what it says of itself.
struct Row {
    name: String,
    address: String,
    answer: Result<Said, String>,
}

/// What is shown of a machine that answers.
struct Said {
    version: String,
    live_sessions: u64,
    recorded_sessions: u64,
}

#[derive(Serialize)]
struct Form<'a> {
    name: &'a str,
    address: &'a str,
    state: &'static str,
    version: Option<&'a str>,
    sessions: Option<u64>,
    error: Option<&'a str>,
}

impl Row {
    async fn ask(home: &Home, name: String, node: Node, batch: bool) -> Row {
        let address = node.address.to_string();
        let way = nodes::way(&name, node, batch);
        let answer = async { Client::connect_by(&way, home).await?.status().await };
        let said = |status: NodeStatus| Said {
            version: status.version,
            live_sessions: status.live_sessions,
            recorded_sessions: status.store.sessions,
        };
        let answer = answer.await.map(said).map_err(|error| {
            let refusal = error.to_refusal();
            refusal.why.unwrap_or(refusal.message)
        });
        Row { name, address, answer }
    }

    fn state(&self) -> Line {
        match self.answer {
            Ok(_) => Line::toned(Tone::Good, "answers"),
            Err(_) => Line::toned(Tone::Bad, "offline"),
        }
    }

    fn form(&self) -> Form<'_> {
        let status = self.answer.as_ref().ok();
        Form {
            name: &self.name,
            address: &self.address,
            state: if status.is_some() { "answers" } else { "offline" },
            version: status.map(|status| status.version.as_str()),
            sessions: status.map(|status| status.live_sessions),
            error: self.answer.as_ref().err().map(String::as_str),
        }
    }
}

impl List for Nodes<'_> {
    type Row = Row;
    const ROWS: &'static str = "nodes";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        let mut asked = JoinSet::new();
        for (name, node) in nodes::named(self.home)? {
            let (home, batch) = (self.home.clone(), self.batch);
            asked.spawn(async move { Row::ask(&home, name, node, batch).await });
        }
        let mut rows = asked.join_all().await;
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Found::whole(rows, self.list.most(None)))
    }

    fn id(&self, row: &Row) -> String {
        row.name.clone()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        serde_json::to_value(row.form()).unwrap_or_default()
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: nobody(), ..Screen::default() });
        }
        Ok(Screen { table: Some(table(&found.rows)), ..Screen::default() })
    }
}

fn nobody() -> Vec<Line> {
    vec![
        Line::of("No other machines have a name here."),
        Line::of("  ostler node add NAME ssh://HOST").faint("   gives one a name; ssh must get there"),
    ]
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        Column::new("NAME"),
        Column::new("ADDRESS"),
        Column::new("STATE"),
        Column::new("VERSION"),
        Column::new("SESSIONS").right(),
        Column::new("WHY").gives_way_to(20),
    ]);
    for row in rows {
        let status = row.answer.as_ref().ok();
        let text = |text: Option<String>| text.map_or_else(|| Line::new().faint("–"), Line::of);
        table.row(vec![
            Line::new().strong(row.name.as_str()),
            Line::of(row.address.as_str()),
            row.state(),
            text(status.map(|status| status.version.clone())),
            text(status.map(|status| status.live_sessions.to_string())),
            Line::of(row.answer.as_ref().err().cloned().unwrap_or_default()),
        ]);
    }
    table
}

/// With nothing in it yet.
pub(super) fn empty_table() -> Table {
    table(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn in_all_looks() {
        let said = Said { version: "0.1.0".to_owned(), live_sessions: 57, recorded_sessions: 2_040 };
        let row = |name: &str, address: &str, answer| Row {
            name: name.to_owned(),
            address: address.to_owned(),
            answer,
        };
        let rows = [
            row("build1", "ssh://build1", Ok(said)),
            row(
                "build2",
                "ssh://ann@build2.example:2222",
                Err("ssh: connect to host build2.example port 2222: Connection refused".to_owned()),
            ),
        ];
        insta::assert_snapshot!(testing::in_all_looks(|look| {
            let mut lines = table(&rows).lines(look);
            lines.extend(nobody().iter().flat_map(|line| line.folded(look.width, 0)));
            lines
        }));
    }
}
