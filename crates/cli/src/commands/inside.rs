//! `ostler step`, `note` and `done`, and whatever else is typed inside a session: there, this program speaks on the
//! session socket, for its own session and nobody else.

use clap::Args;
use ostler_client::{Said, Session, SessionSocket};
use ostler_domain::{
    Name, Refusal,
    ask::{OutputKind, Spawn},
    budget::Amount,
    call::{Call, Reply, StepMark},
    handoff::{To, Wish},
    text::one_line,
};
use serde::Serialize;

use super::{Command, NounVerb, SessionCommand, SessionNoun, send::SendArgs, ticket};
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
pub(crate) struct OutputArgs {
    /// What it is called
    name: String,
    /// The text, path, commit or URL
    value: String,
    /// text, path, commit or url
    #[arg(long, value_parser = kind, default_value = "text")]
    kind: OutputKind,
}

#[derive(Debug, Args)]
pub(crate) struct SpawnArgs {
    /// What the helper is called
    worker: Name,
    /// What it is to do
    task: String,
    /// Its agent program [default: this session's]
    #[arg(short, long)]
    provider: Option<String>,
    /// Its model
    #[arg(short, long)]
    model: Option<String>,
    /// What it may use of this session's budget [default: an equal part for each helper there may be]
    #[arg(long, value_parser = crate::parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
}

// Where there is a session, `main` serves it: nothing is left to be said of it here.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {}

fn kind(text: &str) -> Result<OutputKind, String> {
    OutputKind::parse(text).ok_or_else(|| "an output is text, path, commit or url".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// How things stand
    #[arg(value_name = "TEXT")]
    text: String,
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
    if let Command::Mcp(_) = command {
        return Err(Failure::usage("ostler mcp takes no options".to_owned()));
    }
    if matches!(&command, Command::Search(args) if !args.is_of_all()) {
        return Err(Refusal::invalid("inside a session a search takes words and no filter")
            .because("it looks through all that this session may read")
            .hint("ostler search \"…\"", "looks for words that must all be there")
            .into());
    }
    if sent(&command).is_some_and(|args| !args.is_plain()) {
        return Err(Refusal::invalid("inside a session send takes WHO and words, and no flag")
            .because(
                "when and how an agent hears its peers is decided by the conversation that they speak to",
            )
            .hint("ostler send WHO \"…\"", "says something to a helper, or to whoever this session helps")
            .into());
    }
    let call = match &command {
        Command::Mission(args) => args.call(app)?,
        _ => call(command),
    };
    let said = match call {
        Some(look @ (Call::Show { .. } | Call::Search { .. } | Call::Ticket { .. })) => {
            return answered(app, Some(socket.read(&look)?));
        }
        Some(ask @ (Call::Spawn(_) | Call::Send { .. } | Call::Assign { .. })) => {
            return answered(app, socket.ask(&ask)?);
        }
        Some(call) => socket.say(&call)?,
        None => socket.say(&OtherCall { call: &other(verb) })?,
    };
    if app.ui.is_json() {
        app.ui.json(&SaidForm { recorded: said == Said::Done })?;
    } else if said == Said::Taped {
        app.ui.remark(&Line::of("on the tape; recorded as soon as the daemon is back"));
    }
    Ok(exit_code::OK)
}

/// The name of what is not a session's to do, also where a part of it is: `ticket ls` is no `ticket`.
fn other(verb: &str) -> String {
    let verb = one_line(verb, 60);
    if Call::is_name(&verb) { format!("{verb} …") } else { verb }
}

fn sent(command: &Command) -> Option<&SendArgs> {
    match command {
        Command::Session(SessionCommand::Send(args))
        | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(SessionCommand::Send(args)) }) => {
            Some(args)
        }
        _ => None,
    }
}

/// What the command line means inside a session; none for what only people may do.
fn call(command: Command) -> Option<Call> {
    match command {
        Command::Step(StepArgs { name, mark, message }) => Some(Call::Step { name, mark, note: message }),
        Command::Note(NoteArgs { text }) => Some(Call::Note { text }),
        Command::Output(OutputArgs { name, value, kind }) => Some(Call::Output { name, kind, value }),
        Command::Spawn(SpawnArgs { worker, task, provider, model, budget }) => {
            Some(Call::Spawn(Box::new(Spawn { worker, task, provider, model, budget })))
        }
        Command::Search(args) => Some(Call::Search { text: args.words() }),
        Command::Ticket(args) => args.shown().map(|who| Call::Ticket { who }),
        Command::Session(SessionCommand::Send(args))
        | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(SessionCommand::Send(args)) }) => {
            let (to, text) = args.words();
            Some(Call::Send { to, text })
        }
        Command::Session(SessionCommand::Done(args))
        | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(SessionCommand::Done(args)) }) => {
            // Of another one's work it has no say.
            args.of_itself().map(|note| Call::Done { note })
        }
        Command::Session(SessionCommand::Handoff(args))
        | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(SessionCommand::Handoff(args)) }) => {
            let (who, to, wish) = args.wish();
            // Of another one's work it has no say; the daemon reads whom it means.
            let to = To::parse(&to, |_| false).unwrap_or_default();
            who.is_none().then(|| Call::Handoff(Box::new(Wish { to, ..wish })))
        }
        Command::Session(SessionCommand::Show(args))
        | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(SessionCommand::Show(args)) }) => {
            Some(Call::Show { who: args.who })
        }
        _ => None,
    }
}

/// What came of something that is done elsewhere.
fn answered(app: &App, reply: Option<Reply>) -> Result<u8, Failure> {
    let ui = &app.ui;
    match reply {
        None => ui.remark(&Line::of("on the tape; done as soon as the daemon is back")),
        Some(Reply::Refused(refusal)) => return Err(refusal.into()),
        Some(Reply::Session(session)) => return show(app, &session),
        Some(Reply::Ticket(whole)) => return ticket::tell(app, &whole),
        Some(reply) if ui.is_json() => ui.json(&reply)?,
        Some(Reply::Spawned { session, name, budget }) => {
            let within = budget.map(|budget| format!("  {budget}")).unwrap_or_default();
            ui.data(&Line::of(name.as_str()).faint(format!("  {}{within}", session.short())))?;
        }
        Some(Reply::Assigned { names }) => {
            for name in names {
                ui.data(&Line::of(name.as_str()))?;
            }
        }
        Some(Reply::Sent { message }) => ui.data(&Line::of(message.to_string()))?,
        Some(Reply::Found(found)) if found.is_empty() => ui.remark(&Line::of("Nothing found.")),
        Some(Reply::Found(found)) => {
            for hit in found {
                let head = format!("{} {} {}", hit.time, hit.session, hit.kind);
                ui.data(&Line::new().faint(head).plain("  ").plain(one_line(&hit.text, 400)))?;
            }
        }
        Some(_) => {}
    }
    Ok(exit_code::OK)
}

fn show(app: &App, session: &Session) -> Result<u8, Failure> {
    // A session does not learn its campaign's name, nor how many others there are in its chain.
    let campaign = session.campaign.short();
    if app.ui.is_json() {
        app.ui.json(&SessionForm::new(session, &campaign))?;
    } else {
        let around = screen::session::Around::of(&campaign);
        app.ui.data_lines(&screen::session::facts(session, &around, words::now()))?;
    }
    Ok(exit_code::OK)
}

/// What is said to who is in no session.
pub(super) fn outside(verb: &str) -> Failure {
    Refusal::invalid(format!("{verb} is said by an agent, inside its session"))
        .because("OSTLER_SOCKET is not set, so this process belongs to none")
        .hint("ostler done WHO", "ends a session whose work is done")
        .hint("ostler stop WHO", "ends one in an orderly way")
        .hint("ostler send WHO TEXT", "says something to one")
        .into()
}
