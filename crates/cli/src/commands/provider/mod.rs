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
    provider::{Models, Status},
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
        Refusal::new(Reason::ProviderUnknown, format!("there is no provider \"{name}\""))
            .because(format!("there are: {}", known.join(", ")))
            .hint("ostler provider ls", "lists them")
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
        let heads = ["NAME", "VERSION", "KEY", "MODEL", "PROGRAM"].map(Column::new);
        let mut table = Table::new(heads.to_vec());
        let mut remarks = Vec::new();
        for status in &found.rows {
            let tone = if status.problem.is_some() { Tone::Faint } else { Tone::Plain };
            let (program, version) = match (&status.problem, &status.program) {
                (Some(problem), _) => (unusable(status, problem).to_owned(), "-".to_owned()),
                (None, Some(program)) => (
                    words::path(program, crate::app::person_home().as_deref()),
                    status.version.clone().unwrap_or_else(|| "?".to_owned()),
                ),
                (None, None) => ("built in".to_owned(), "-".to_owned()),
            };
            let model = status.model.clone().unwrap_or_else(|| "-".to_owned());
            let cells = [&status.name, &version, &status.key, &model, &program];
            table.row(cells.map(|text| Line::toned(tone, text)).to_vec());
            if let (Some(lacks), Some(cure)) = (&status.lacks, &status.cure) {
                let line = Line::of("  ").with(Tone::Accent, cure);
                remarks.push(line.faint(format!("   {} lacks {lacks}", status.name)));
            }
        }
        Ok(Screen { table: Some(table), remarks, ..Screen::default() })
    }
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
    if let (None, Some(lacks)) = (&status.problem, &status.lacks) {
        ui.data(&Line::of("  lacks     ").with(Tone::Warn, lacks))?;
    }
    if let Some(problem) = &status.problem {
        ui.data(&Line::of("  problem   ").with(Tone::Bad, problem))?;
    }
    if let Some(cure) = &status.cure {
        ui.remark(&Line::of("  ").with(Tone::Accent, cure));
    }
    Ok(exit_code::OK)
}
