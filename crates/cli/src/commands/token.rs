//! `ostler api token`: who may come in by the HTTP door.

use clap::{Args, Subcommand};
use ostler_client::reply::HttpToken;
use ostler_form::Object;
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
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
    Ls,
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
    match args.verb.unwrap_or(Verb::Ls) {
        Verb::Ls => list(app, &client.tokens().await?)?,
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

fn list(app: &App, tokens: &[HttpToken]) -> Result<(), Failure> {
    if app.ui.is_json() {
        let rows = tokens.iter().map(|token| TokenForm::new(token, None)).collect();
        return app.ui.json(&Object { name: "tokens", rows, next_cursor: None });
    }
    if tokens.is_empty() {
        app.ui.remark(&Line::of("Nobody may come in by HTTP."));
        let hint =
            |command: &str, effect: &str| Line::toned(Tone::Accent, format!("  {command:<28}")).faint(effect);
        app.ui.remark(&hint("ostler open", "lets a browser in"));
        app.ui.remark(&hint("ostler api token add NAME", "makes a token for a program"));
        return Ok(());
    }
    let now = words::now();
    app.ui.data(
        &Line::new().faint(format!("{:<10}{:<24}{:<9}{:<14}{}", "ID", "NAME", "KIND", "MAY", "LAST USED")),
    )?;
    for token in tokens {
        let may = ostler_form::words::may(token);
        let used = token
            .last_used
            .map_or_else(|| "never".to_owned(), |at| format!("{} ago", words::age(now.since(at))));
        app.ui.data(&Line::of(format!(
            "{:<10}{:<24}{:<9}{may:<14}{used}",
            token.id,
            token.name,
            kind(token)
        )))?;
    }
    Ok(())
}
