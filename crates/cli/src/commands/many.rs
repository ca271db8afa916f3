//! Doing one thing to many sessions: each gets its line, failures of some do not keep the others.

use clap::Args;
use ostler_client::{Client, Session};
use ostler_domain::{Refusal, Time};

use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_many},
    form::SessionForm,
    output::{Format, Line, Rows, Tone},
};

// No doc comment: it would be the about of every command that this is a part of.
// Sessions to do something to.
#[derive(Debug, Clone, Args)]
pub(crate) struct Operands {
    /// Sessions: name, id, part of an id, or - for the last one of this terminal
    #[arg(value_name = "WHO", required = true)]
    pub(crate) who: Vec<String>,
    /// They were found, not named: a program is given a list also where it has one row.
    #[arg(skip)]
    pub(crate) are_found: bool,
}

/// Does something to each and says what became of it, in the words that `act` returns.
pub(crate) async fn each(
    app: &App,
    client: &Client,
    operands: &Operands,
    act: impl AsyncFn(&Client, &str) -> Result<(String, Session), Failure>,
) -> Result<u8, Failure> {
    let mut ends = Ends::default();
    let rows = rows(app, operands.are_found || operands.who.len() > 1, "sessions");
    for typed in &operands.who {
        let done = match app.who(client, typed).await {
            Ok(who) => act(client, &who).await,
            Err(failure) => Err(failure),
        };
        match done {
            Ok((done, session)) => {
                app.touched(&session.id);
                match &rows {
                    Some(rows) => rows.row(&form(app, client, &session).await)?,
                    None => say(app, client, &done, &session).await?,
                }
                ends.done();
            }
            // Alone, a failure is the command's own.
            Err(failure) if operands.who.len() == 1 => return Err(failure),
            Err(failure) => ends.failed(failure)?,
        }
    }
    rows.map_or(Ok(()), Rows::end)?;
    Ok(ends.say(app))
}

/// Where those that were changed go, if they are several and a program reads them; one alone is its own document.
pub(crate) fn rows<'a>(app: &'a App, are_many: bool, name: &'static str) -> Option<Rows<'a>> {
    (are_many && app.ui.is_json()).then(|| Rows::new(&app.ui, name))
}

pub(crate) async fn form(app: &App, client: &Client, session: &Session) -> SessionForm {
    SessionForm::new(session, &app.campaign_name(client, &session.campaign).await)
}

/// What became of many so far.
#[derive(Default)]
pub(crate) struct Ends {
    codes: Vec<u8>,
    refusals: Vec<Refusal>,
}

impl Ends {
    pub(crate) fn done(&mut self) {
        self.codes.push(exit_code::OK);
    }

    pub(crate) fn failed(&mut self, failure: Failure) -> Result<(), Failure> {
        self.codes.push(failure.exit_code());
        match failure {
            Failure::Refused(refusal) => self.refusals.push(*refusal),
            Failure::OutputClosed => return Err(failure),
        }
        Ok(())
    }

    /// Says what was not done, and returns the exit code of it all, which is known only now.
    pub(crate) fn say(self, app: &App) -> u8 {
        let code = of_many(&self.codes);
        self.refusals.iter().for_each(|refusal| app.ui.say_refusal_of(refusal, code));
        code
    }
}

/// Whether a session has ended by now, but had before this command.
pub(crate) fn had_ended(session: &Session, asked_at: Time) -> bool {
    session.ended_at.is_some_and(|ended| ended < asked_at)
}

/// Says in one line what became of a session.
pub(crate) async fn say(app: &App, client: &Client, verb: &str, session: &Session) -> Result<(), Failure> {
    let ui = &app.ui;
    match ui.format() {
        Some(Format::Json | Format::Jsonl) => ui.json(&form(app, client, session).await),
        Some(Format::Name) => ui.data(&Line::of(session.id.to_string())),
        _ if ui.is_quiet() => ui.data(&Line::of(session.id.to_string())),
        _ => {
            let why =
                session.obituary.as_ref().map(|obituary| obituary.sentence.as_str()).unwrap_or_default();
            let line = Line::toned(Tone::Accent, session.id.short()).plain(" ").strong(session.name.as_str());
            let line = line.plain(format!("  {verb}"));
            ui.data(&if why.is_empty() { line } else { line.faint(format!("   {why}")) })
        }
    }
}
