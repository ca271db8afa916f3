//! `ostler hub`: the place where several machines' sessions are seen. Run on one machine; the others connect to it.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use ostler_hub::{Key, Keys, Options, Sort, USUAL_ADDRESS};
use serde::Serialize;

use super::with_runtime;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct HubArgs {
    /// Where the hub keeps what it has [default: `hub` in Ostler's state directory]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Be the hub, in this terminal
    Run {
        /// Where to listen
        #[arg(long, value_name = "ADDRESS", default_value = USUAL_ADDRESS)]
        listen: SocketAddr,
        /// A certificate in PEM; without one, a proxy in front of it speaks TLS
        #[arg(long, value_name = "PATH", requires = "key")]
        cert: Option<PathBuf>,
        /// The certificate's key
        #[arg(long, value_name = "PATH", requires = "cert")]
        key: Option<PathBuf>,
        /// A name by which it is reached, beside the machine's own; several times
        #[arg(long, value_name = "NAME")]
        host: Vec<String>,
    },
    /// Machines that may connect: add, ls, rm
    Node {
        #[command(subcommand)]
        verb: KeyVerb,
    },
    /// People and programs that may look: add, ls, rm
    Viewer {
        #[command(subcommand)]
        verb: KeyVerb,
    },
}

#[derive(Debug, Subcommand)]
enum KeyVerb {
    /// Make a key; it is printed once, and only its hash is kept
    Add {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// A machine whose `ls --node all` lists the others too
        #[arg(long)]
        sees_all: bool,
    },
    /// List the keys
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Take a key back
    Rm {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Serialize)]
struct KeyForm {
    name: String,
    kind: &'static str,
    sees_all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

pub(crate) fn run(app: &App, args: HubArgs) -> Result<u8, Failure> {
    let dir = match args.dir {
        Some(dir) => dir,
        None => app.home()?.state().join("hub"),
    };
    match args.verb {
        Verb::Run { listen, cert, key, host } => {
            ostler_hub::run(&Options { dir, listen, tls: cert.zip(key), hosts: host })?;
            Ok(exit_code::OK)
        }
        Verb::Node { verb } => keys(app, &Keys::in_dir(&dir), Sort::Node, verb),
        Verb::Viewer { verb } => keys(app, &Keys::in_dir(&dir), Sort::Viewer, verb),
    }
}

fn keys(app: &App, keys: &Keys, sort: Sort, verb: KeyVerb) -> Result<u8, Failure> {
    match verb {
        KeyVerb::Add { name, sees_all } => {
            let token = keys.add(&name, sort, sees_all)?;
            if app.ui.is_json() {
                app.ui.json(&KeyForm { name, kind: sort.as_str(), sees_all, token: Some(token) })?;
            } else {
                app.ui.data(&Line::of(&token))?;
                let next = match sort {
                    Sort::Node => {
                        "on that machine, in a file: ostler config set hub.url=URL hub.token_file=PATH"
                    }
                    Sort::Viewer => "Authorization: Bearer …, or HUB/open/TOKEN in a browser",
                };
                app.ui.remark(&Line::new().faint("told once   ").with(Tone::Accent, next));
            }
        }
        KeyVerb::Ls(args) => {
            return with_runtime(listing::run(app, None, &args, &Known { keys, sort, args: &args }));
        }
        KeyVerb::Rm { name } => {
            keys.remove(&name, sort)?;
            app.ui.remark(&Line::of(format!("{} {name} may come no more", sort.as_str())));
        }
    }
    Ok(exit_code::OK)
}

/// With nothing in it yet.
pub(super) fn table() -> Table {
    Table::new(["NAME", "SEES"].map(Column::new))
}

struct Known<'a> {
    keys: &'a Keys,
    sort: Sort,
    args: &'a ListArgs,
}

impl List for Known<'_> {
    type Row = Key;
    const ROWS: &'static str = "keys";

    async fn find(&self) -> Result<Found<Key>, Failure> {
        let mut keys = self.keys.all()?;
        keys.retain(|key| key.sort == self.sort);
        Ok(Found::whole(keys, self.args.most(None)))
    }

    fn id(&self, key: &Key) -> String {
        key.name.clone()
    }

    fn form(&self, key: &Key) -> impl Serialize {
        KeyForm { name: key.name.clone(), kind: key.sort.as_str(), sees_all: key.sees_all, token: None }
    }

    async fn screen(&self, found: &Found<Key>) -> Result<Screen, Failure> {
        let sort = self.sort.as_str();
        if found.rows.is_empty() {
            let remarks = vec![
                Line::of(format!("There is no {sort}.")),
                Line::toned(Tone::Accent, format!("  ostler hub {sort} add NAME")),
            ];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let mut table = table();
        for key in &found.rows {
            let sees = if key.sees_all || key.sort == Sort::Viewer { "all" } else { "itself" };
            table.row(vec![Line::new().strong(&key.name), Line::of(sees)]);
        }
        Ok(Screen { table: Some(table), ..Screen::default() })
    }
}
