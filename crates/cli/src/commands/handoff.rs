//! `ostler handoff`: ends a session and has another one go on with its work.

use clap::Args;
use ostler_domain::handoff::Wish;

use super::many;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
    /// Session or conversation: name, id, part of an id, or - for the last one of this terminal. Inside a session: itself
    #[arg(value_name = "WHO")]
    who: Option<String>,
    /// Who goes on: PROVIDER, PROVIDER/MODEL, or a registered agent [default: a fresh session like this one]
    #[arg(long, value_name = "WHOM", default_value = "")]
    to: String,
    /// What whoever goes on is to know
    #[arg(short = 'm', long = "message", value_name = "NOTE", default_value = "")]
    note: String,
    /// What is done, beside what the record knows; may be said several times
    #[arg(long, value_name = "TEXT")]
    done: Vec<String>,
    /// What was decided; may be said several times
    #[arg(long, value_name = "TEXT")]
    decided: Vec<String>,
    /// What is open, beside what the record knows; may be said several times
    #[arg(long, value_name = "TEXT")]
    open: Vec<String>,
}

impl HandoffArgs {
    /// What is said with it, and to whom.
    pub(super) fn wish(self) -> (Option<String>, String, Wish) {
        let Self { who, to, note, done, decided, open } = self;
        (who, to, Wish { note, done, decided, open, ..Wish::default() })
    }
}

pub(crate) async fn run(app: &App, args: HandoffArgs) -> Result<u8, Failure> {
    let (who, to, wish) = args.wish();
    let who = who.ok_or_else(|| Failure::usage("whose work? ostler handoff WHO"))?;
    let client = app.client().await?;
    let before = app.session(&client, &who).await?;
    let session = client.hand_off(&before.id.to_string(), &to, wish).await?;
    app.touched(&session.id);
    let told = format!("goes on with the work of {} ({})", before.name, before.id.short());
    many::say(app, &client, &told, &session).await?;
    if !app.ui.is_quiet() {
        let chain = format!("ostler chain show {}", session.id.short());
        app.ui.remark(
            &Line::of("  ").with(Tone::Accent, chain).faint("   who had it before, and what it cost"),
        );
    }
    Ok(exit_code::OK)
}
