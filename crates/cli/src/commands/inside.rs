//! `ostler step`, `note` and `done`, and whatever else is typed inside a session: there, this program speaks on the
//! session socket, for its own session and nobody else.

use clap::Args;
use ostler_client::{Said, Session, SessionSocket};
use ostler_domain::{
    Refusal,
    call::{Call, StepMark},
    handoff::{To, Wish},
    text::one_line,
};
use serde::Serialize;

use super::{Command, SessionCommand, SessionNoun};
use crate::{app::App, exit_code, failure::Failure, form::SessionForm, output::Line, screen, words};

#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    /// The step's name
    #[arg(value_name = "NAME")]
    name: String,
    /// start, end or fail
    #[arg(value_name = "MARK", value_parser = mark)]
    mark: StepMark,
    /// A word on it
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// How things stand
    #[arg(value_name = "TEXT")]
    text: String,
}

#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    /// What was achieved
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

fn mark(text: &str) -> Result<StepMark, String> {
    StepMark::parse(text).ok_or_else(|| "a step is marked with start, end or fail".to_owned())
}

#[derive(Serialize)]
struct SaidForm {
    /// Whether it is in the record, or on the tape and will be.
    recorded: bool,
}

/// A call that is not a session's to make, so that its denial is recorded.
#[derive(Serialize)]
struct OtherCall<'a> {
    call: &'a str,
}

/// Does on the session socket what was asked for. `verb` is what was typed first.
pub(super) fn run(app: &App, socket: &SessionSocket, command: Command, verb: &str) -> Result<u8, Failure> {
    let said = match call(command) {
        Some(show @ Call::Show { .. }) => return self::show(app, &socket.show(&show)?),
        Some(call) => socket.say(&call)?,
        None => socket.say(&OtherCall { call: &one_line(verb, 64) })?,
    };
    if app.ui.is_json() {
        app.ui.json(&SaidForm { recorded: said == Said::Done })?;
    } else if said == Said::Taped {
        app.ui.remark(&Line::of("on the tape; recorded as soon as the daemon is back"));
    }
    Ok(exit_code::OK)
}

/// What the command line means inside a session; none for what only people may do.
fn call(command: Command) -> Option<Call> {
    match command {
        Command::Step(StepArgs { name, mark, message }) => Some(Call::Step { name, mark, note: message }),
        Command::Note(NoteArgs { text }) => Some(Call::Note { text }),
        Command::Done(DoneArgs { message }) => Some(Call::Done { note: message }),
        Command::Session(SessionCommand::Handoff(args))
        | Command::SessionNoun(SessionNoun { verb: SessionCommand::Handoff(args) }) => {
            let (who, to, wish) = args.wish();
            // Of another one's work it has no say; the daemon reads whom it means.
            let to = To::parse(&to, |_| false).unwrap_or_default();
            who.is_none().then(|| Call::Handoff(Box::new(Wish { to, ..wish })))
        }
        Command::Session(SessionCommand::Show(args))
        | Command::SessionNoun(SessionNoun { verb: SessionCommand::Show(args) }) => {
            Some(Call::Show { who: args.who })
        }
        _ => None,
    }
}

fn show(app: &App, session: &Session) -> Result<u8, Failure> {
    // A session does not learn its campaign's name, nor how many others there are in its chain.
    let campaign = session.campaign.short();
    if app.ui.is_json() {
        app.ui.json(&SessionForm::new(session, &campaign))?;
    } else {
        let around = screen::session::Around {
            campaign: &campaign,
            place_in_chain: (1, 1),
            approvals: &[],
            cut_calls: 0,
            home: None,
            work: None,
        };
        app.ui.data_lines(&screen::session::facts(session, &around, words::now()))?;
    }
    Ok(exit_code::OK)
}

/// What is said to who is in no session.
pub(super) fn outside(verb: &str) -> Failure {
    Refusal::invalid(format!("{verb} is said by an agent, inside its session"))
        .because("OSTLER_SOCKET is not set, so this process belongs to none")
        .hint("ostler stop WHO", "ends a session in an orderly way")
        .hint("ostler send WHO TEXT", "says something to one")
        .into()
}
