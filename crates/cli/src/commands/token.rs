//! `ostler api token`: who may come in by the HTTP door.

use clap::{Args, Subcommand};
use ostler_client::{Client, reply::HttpToken};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List tokens, and browsers that were let in
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Make a token for a program; it is printed once, and only its hash is kept
    #[command(alias = "create")]
    Add {
        /// Its name; what it does is recorded under it
        #[arg(value_name = "NAME")]
        name: String,
        /// It may look and not touch
        #[arg(long)]
        read_only: bool,
    },
    /// Take a token back, or turn a browser out
    #[command(aliases = ["revoke", "remove", "delete"])]
    Rm {
        /// The token's name or id
        #[arg(value_name = "TOKEN")]
        token: String,
    },
}

#[derive(Serialize)]
struct TokenForm<'a> {
    name: &'a str,
    id: &'a str,
    kind: &'static str,
    read_only: bool,
    /// The approval that it may answer, and nothing else.
    approval: Option<&'a str>,
    created: String,
    last_used: Option<String>,
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

impl<'a> TokenForm<'a> {
    fn new(token: &'a HttpToken, secret: Option<&'a str>) -> Self {
        Self {
            name: &token.name,
            id: &token.id,
            kind: kind(token),
            read_only: token.read_only,
            approval: token.approval.as_deref(),
            created: words::rfc3339(token.created),
            last_used: token.last_used.map(words::rfc3339),
            expires: token.expires.map(words::rfc3339),
            secret,
        }
    }
}

const fn kind(token: &HttpToken) -> &'static str {
    if token.is_browser { "browser" } else { "token" }
}

pub(crate) async fn run(app: &App, args: TokenArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb.unwrap_or_else(|| Verb::Ls(ListArgs::default())) {
        Verb::Ls(args) => {
            return listing::run(app, Some(&client), &args, &Tokens { client: &client, args: &args }).await;
        }
        Verb::Add { name, read_only } => {
            let made = client.create_token(&name, read_only).await?;
            if app.ui.is_json() {
                app.ui.json(&TokenForm::new(&made.token, Some(&made.secret)))?;
            } else {
                app.ui.data(&Line::of(&made.secret))?;
                app.ui.remark(
                    &Line::new().faint(
                        "told once: keep it where nobody reads it. It goes into Authorization: Bearer …",
                    ),
                );
            }
        }
        Verb::Rm { token } => {
            let gone = client.revoke_token(&token).await?;
            if app.ui.is_json() {
                app.ui.json(&TokenForm::new(&gone, None))?;
            } else {
                app.ui.data(&Line::of(format!("{} {} opens nothing any more", kind(&gone), gone.name)))?;
            }
        }
    }
    Ok(exit_code::OK)
}

/// With nothing in it yet.
pub(super) fn table() -> Table {
    Table::new(["ID", "NAME", "KIND", "MAY", "LAST USED"].map(Column::new))
}

struct Tokens<'a> {
    client: &'a Client,
    args: &'a ListArgs,
}

impl List for Tokens<'_> {
    type Row = HttpToken;
    const ROWS: &'static str = "tokens";

    async fn find(&self) -> Result<Found<HttpToken>, Failure> {
        Ok(Found::whole(self.client.tokens().await?, self.args.most(None)))
    }

    fn id(&self, token: &HttpToken) -> String {
        token.id.clone()
    }

    fn name(&self, token: &HttpToken) -> String {
        token.name.clone()
    }

    fn form(&self, token: &HttpToken) -> impl Serialize {
        TokenForm::new(token, None)
    }

    async fn screen(&self, found: &Found<HttpToken>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let hint = |command: &str, effect: &str| {
                Line::toned(Tone::Accent, format!("  {command:<28}")).faint(effect)
            };
            let remarks = vec![
                Line::of("Nobody may come in by HTTP."),
                hint("ostler open", "lets a browser in"),
                hint("ostler api token add NAME", "makes a token for a program"),
            ];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let now = words::now();
        let mut table = table();
        for token in &found.rows {
            let used = token
                .last_used
                .map_or_else(|| "never".to_owned(), |at| format!("{} ago", words::age(now.since(at))));
            table.row(vec![
                Line::toned(Tone::Accent, &token.id),
                Line::new().strong(&token.name),
                Line::of(kind(token)),
                Line::of(ostler_form::words::may(token)),
                Line::of(used),
            ]);
        }
        Ok(Screen { table: Some(table), ..Screen::default() })
    }
}
