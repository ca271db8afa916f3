//! `ostler provider`: the agent programs on this machine.

mod add;
mod login;
mod models;
mod test;
pub(crate) mod trial;

use clap::{Args, Subcommand};
use ostler_client::Client;
use ostler_domain::{
    Reason, Refusal,
    provider::{ITS_LOGIN, Models, Status},
    query::no_such,
};
use serde::Serialize;

use models::KnownModels;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct ProviderArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List providers: what is installed, which version, where the key is
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Show one
    #[command(alias = "get")]
    Show {
        /// Its name
        name: String,
    },
    /// Start it in a campaign's sandbox, wait until it is ready, end it, and say what it can do
    ///
    /// No model is called, unless it is to be asked (--ask).
    Test(test::TestArgs),
    /// Have its program log in, once for all sessions; or take over a login that exists (--from)
    Login(login::LoginArgs),
    /// Configure an agent that speaks the Agent Client Protocol: acp:NAME --program P -- ARGS
    Add(add::AddArgs),
}

#[derive(Serialize)]
struct ShowForm {
    #[serde(flatten)]
    status: Status,
    #[serde(flatten)]
    models: KnownModels,
}

impl ProviderArgs {
    /// Whether only a daemon is asked, wherever that is.
    pub(crate) fn is_of_any_machine(&self) -> bool {
        matches!(self.verb, Verb::Ls(_) | Verb::Show { .. } | Verb::Test(_))
    }
}

pub(crate) async fn run(app: &App, args: ProviderArgs) -> Result<u8, Failure> {
    if let Verb::Add(args) = args.verb {
        return add::run(app, args).await;
    }
    let client = app.client().await?;
    match args.verb {
        Verb::Add(args) => add::run(app, args).await,
        Verb::Login(args) => login::run(app, &client, args).await,
        Verb::Ls(args) => {
            let list = Providers { client: &client, most: args.most(None) };
            listing::run(app, Some(&client), &args, &list).await
        }
        Verb::Show { name } => {
            let status = find(client.providers().await?, &name)?;
            let models = client.models(&name).await?;
            show(app, status, models)
        }
        Verb::Test(args) => {
            let status = find(client.providers().await?, args.name())?;
            test::run(app, &client, status, &args).await
        }
    }
}

fn find(all: Vec<Status>, name: &str) -> Result<Status, Refusal> {
    let known: Vec<String> = all.iter().map(|status| status.name.clone()).collect();
    all.into_iter().find(|status| status.name == name).ok_or_else(|| {
        let refusal = no_such("provider", name, known.iter().map(String::as_str));
        Refusal { reason: Reason::ProviderUnknown, ..refusal }.hint("ostler provider ls", "lists them")
    })
}

struct Providers<'a> {
    client: &'a Client,
    most: Option<u32>,
}

impl List for Providers<'_> {
    type Row = Status;
    const ROWS: &'static str = "providers";

    async fn find(&self) -> Result<Found<Status>, Failure> {
        Ok(Found::whole(self.client.providers().await?, self.most))
    }

    fn id(&self, status: &Status) -> String {
        status.name.clone()
    }

    fn form(&self, status: &Status) -> impl Serialize {
        status.clone()
    }

    async fn screen(&self, found: &Found<Status>) -> Result<Screen, Failure> {
        let home = crate::app::person_home();
        let (table, remarks) = listed(&found.rows, home.as_deref());
        Ok(Screen { table: Some(table), remarks, ..Screen::default() })
    }
}

/// With nothing in it yet.
pub(super) fn empty_table() -> Table {
    listed(&[], None).0
}

/// The programs, and what would let those work that cannot.
fn listed(rows: &[Status], home: Option<&str>) -> (Table, Vec<Line>) {
    let mut table = Table::new([
        Column::new("NAME"),
        Column::new("VERSION"),
        Column::new("KEY").goes(2),
        Column::new("MODEL").goes(1),
        Column::new("PROGRAM").gives_way_to(24).path(),
    ]);
    let mut remarks = Vec::new();
    let mut are_unsaid = false;
    for status in rows {
        let tone = if status.problem.is_some() { Tone::Faint } else { Tone::Plain };
        let (program, unsaid) = match (&status.problem, &status.program) {
            (Some(problem), _) => (unusable(status, problem).to_owned(), "-"),
            (None, Some(program)) => (words::path(program, home), "?"),
            (None, None) => ("built in".to_owned(), "-"),
        };
        let version = status.version.clone().unwrap_or_else(|| unsaid.to_owned());
        are_unsaid |= version == "?";
        let model = status.model.clone().unwrap_or_else(|| "-".to_owned());
        let cells = [&status.name, &version, &status.key, &model, &program];
        table.row(cells.map(|text| Line::toned(tone, text)).to_vec());
        if let (Some(lacks), Some(cure)) = (&status.lacks, &status.cure) {
            let line = Line::of("  ").with(Tone::Accent, cure);
            remarks.push(line.faint(format!("   {} lacks {lacks}", status.name)));
        }
        for account in &status.profiles {
            let cure = account.cure(&status.name).map(|cure| Line::of("  ").with(Tone::Accent, cure));
            let why = format!(
                "   the profile {} of {} lacks a login that has not ended",
                account.name, status.name
            );
            remarks.extend(cure.map(|cure| cure.faint(why)));
        }
    }
    if are_unsaid {
        remarks.push(Line::new().faint("  ? is still being asked of the program: look again in a moment"));
    }
    (table, remarks)
}

/// `known from the wire and its report`
fn token_words(status: &Status) -> String {
    let source = |word: &String| match word.as_str() {
        "wire" => "the wire".to_owned(),
        "report" => "its report".to_owned(),
        other => other.to_owned(),
    };
    let sources: Vec<String> = status.usage_sources.iter().map(source).collect();
    if sources.is_empty() {
        "nobody tells".to_owned()
    } else {
        format!("known from {}", sources.join(" and "))
    }
}

/// In the place of a program that cannot be started. One that is there says what is wrong with it in a few words.
fn unusable<'a>(status: &Status, problem: &'a str) -> &'a str {
    if status.program.is_some() { problem } else { "not found" }
}

fn show(app: &App, status: Status, models: Models) -> Result<u8, Failure> {
    let ui = &app.ui;
    let models = KnownModels::of(app, &status.name, models)?;
    if ui.is_json() {
        ui.json(&ShowForm { status, models })?;
        return Ok(exit_code::OK);
    }
    let said = |text: &Option<String>, otherwise: &str| text.clone().unwrap_or_else(|| otherwise.to_owned());
    let facts = [
        (
            "program",
            match &status.problem {
                Some(problem) => unusable(&status, problem).to_owned(),
                None => said(&status.program, "built in"),
            },
        ),
        ("version", said(&status.version, "-")),
        ("model", said(&status.model, "its own default")),
        ("base url", said(&status.base_url, "its own default")),
        ("key", status.key.clone()),
        ("can", status.capabilities.join(", ")),
        ("tokens", token_words(&status)),
        ("models", models.words()),
    ];
    ui.data(&Line::new().strong(&status.name))?;
    for (name, fact) in facts {
        ui.data(&Line::of(format!("  {name:<10}")).plain(fact))?;
    }
    for account in &status.profiles {
        let is_said = !account.is_logged_in || account.key.starts_with(ITS_LOGIN);
        let key = if is_said { account.key.as_str() } else { ITS_LOGIN };
        let at = account.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
        ui.data(
            &Line::of(format!("  {:<10}", "profile")).plain(&account.name).faint(format!("  {key}{at}")),
        )?;
    }
    if let (None, Some(lacks)) = (&status.problem, &status.lacks) {
        ui.data(&Line::of("  lacks     ").with(Tone::Warn, lacks))?;
    }
    if let Some(problem) = &status.problem {
        ui.data(&Line::of("  problem   ").with(Tone::Bad, problem))?;
    }
    let of_accounts = status.profiles.iter().filter_map(|account| account.cure(&status.name));
    for cure in status.cure.clone().into_iter().chain(of_accounts) {
        ui.remark(&Line::of("  ").with(Tone::Accent, cure));
    }
    Ok(exit_code::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn in_all_looks() {
        let status = |name: &str, program: Option<&str>| Status {
            name: name.to_owned(),
            program: program.map(str::to_owned),
            version: program.map(|_| "2.1.203".to_owned()),
            key: "its login".to_owned(),
            ..Status::default()
        };
        let rows = [
            Status {
                model: Some("sonnet".to_owned()),
                ..status("claude-code", Some("/home/ann/.local/bin/claude"))
            },
            Status {
                lacks: Some("a login or a key".to_owned()),
                cure: Some("ostler provider login codex".to_owned()),
                key: "not logged in".to_owned(),
                ..status("codex", Some("/usr/bin/codex"))
            },
            Status { problem: Some("not found".to_owned()), ..status("openclaw", None) },
            Status {
                problem: Some("too old: 2.1.203, needs 3.0.0".to_owned()),
                ..status("acp:old", Some("/usr/bin/old"))
            },
            Status { version: None, ..status("acp:slow", Some("/usr/bin/slow")) },
            Status {
                key: "ANY_VARIABLE_FOR_KEYS".to_owned(),
                ..status(
                    "acp:deep",
                    Some("/opt/node/versions/v22.11.0/lib/node_modules/deep/vendor/bin/deep"),
                )
            },
            status("script", None),
        ];
        insta::assert_snapshot!(testing::in_all_looks(|look| {
            let (table, remarks) = listed(&rows, Some("/home/ann"));
            table.lines(look).into_iter().chain(remarks).collect()
        }));
    }
}
