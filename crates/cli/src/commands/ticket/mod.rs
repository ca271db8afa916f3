//! `ostler ticket`: units of work, and what came of them.

mod import;
mod start;

use clap::{Args, Subcommand};
use ostler_client::{AddTicket, Client, LinkTicket, MakeCheckpoint, Ticket};
use ostler_domain::{
    Refusal, Time,
    call::StepMark,
    query::{Page, Scope, SessionFilter, TicketFilter},
    ticket::{OutputKind, Status, Verb as Move, Whole},
};
use serde::Serialize;

use super::agent::typed;
use ostler_form::ticket as form;

use crate::{
    app::{App, campaign_names},
    exit_code,
    failure::Failure,
    input,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Line, Tone},
    parse,
    screen::{self, sessions::CampaignNames},
    words,
};
pub(super) use form::WholeForm;

use form::TicketForm;

/// Tickets that are listed where nobody says how many.
const USUALLY: u32 = 50;

#[derive(Debug, Args)]
pub(crate) struct TicketArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write down what is to be done
    #[command(alias = "create")]
    Add(AddArgs),
    /// List tickets, the newest first
    #[command(alias = "list")]
    Ls(LsArgs),
    /// Show a ticket: what it waits for, its steps, attempts, outputs and checkpoints
    #[command(alias = "get")]
    Show {
        /// Id, part of an id, or what it is elsewhere: gh:shop#412. Inside a session: the one it works on
        #[arg(value_name = "TICKET")]
        who: Option<String>,
        /// Print the value of this output, and nothing else
        #[arg(long, value_name = "NAME")]
        value: Option<String>,
    },
    /// Change what it says: KEY VALUE or KEY=V of intent, type
    Set {
        #[command(flatten)]
        ticket: Who,
        /// intent=TEXT, type=WORD
        #[arg(value_name = "SETTING", required = true, allow_negative_numbers = true)]
        settings: Vec<String>,
    },
    /// Start a session that works on it; refused while it waits for others
    Start(start::StartArgs),
    /// Say that it is done
    Done(MoveArgs),
    /// Say that it came to nothing
    Fail(MoveArgs),
    /// Say that nobody wants it any more
    Cancel(MoveArgs),
    /// Have it worked on once more
    Reopen(MoveArgs),
    /// Take what is over out of the lists
    Archive(MoveArgs),
    /// Change what it belongs to and waits for
    Link(LinkArgs),
    /// Keep something that came of it
    Output {
        #[command(flatten)]
        ticket: Who,
        /// What it is called
        name: String,
        /// The value; - reads it from standard input
        value: String,
        /// What the value is: text, path, commit, url
        #[arg(long, value_parser = output_kind, default_value = "text", value_name = "WORD")]
        kind: OutputKind,
    },
    /// Name a point to return to: a turn, and the files as they are
    Checkpoint {
        #[command(flatten)]
        ticket: Who,
        /// What it is called
        name: String,
        /// The session [default: the last one that worked on it]
        #[arg(long, value_name = "WHO")]
        session: Option<String>,
        /// The turn of that session [default: its last one]
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        /// The files: the id of a snapshot, or a commit
        #[arg(long, value_name = "ID")]
        snapshot: Option<String>,
    },
    /// Say that a part of the work begins or ends
    Step {
        #[command(flatten)]
        ticket: Who,
        /// The step
        name: String,
        /// start, end or fail
        #[arg(value_parser = step_mark)]
        mark: StepMark,
        /// What there is to say about it
        #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        note: String,
    },
    /// Write down what another tracker has; again, to bring it up to date
    Import(import::ImportArgs),
}

#[derive(Debug, Args)]
struct Who {
    /// Id, part of an id, or what it is elsewhere: gh:shop#412
    #[arg(value_name = "TICKET")]
    who: String,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// What is to be done; - reads it from standard input. Its first line is its title
    intent: String,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
    /// What sort of work it is: bug, review [default: task]
    #[arg(long = "type", value_name = "WORD")]
    kind: Option<String>,
    /// What it is elsewhere, unique in its campaign: gh:shop#412, bead:gt-xyz
    #[arg(long = "ref", value_name = "REF")]
    external: Option<String>,
    /// A ticket that must be done before it
    #[arg(long, value_name = "TICKET")]
    depends_on: Vec<String>,
    /// An agent's conversation that it is worked on in [default: one of its own, for each attempt]
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// It is to be worked on next
    #[arg(long)]
    queue: bool,
}

#[derive(Debug, Args)]
struct LsArgs {
    /// In this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// How it stands: initialized, queued, running, done, failed, cancelled, archived, open
    #[arg(long, value_parser = status, value_delimiter = ',', value_name = "WORDS")]
    status: Vec<Statuses>,
    /// What sort of work it is
    #[arg(long = "type", value_name = "WORD")]
    kind: Option<String>,
    /// Worked on by this agent, or in one of its conversations
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Worked on in this conversation: name, CAMPAIGN/NAME, id or part of one
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// What it is elsewhere
    #[arg(long = "ref", value_name = "REF")]
    external: Option<String>,
    /// Archived ones too
    #[arg(short, long)]
    all: bool,
    /// Added from then on: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// Added before then
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    until: Option<Time>,
    #[command(flatten)]
    list: ListArgs,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long, help_heading = "List")]
    cursor: Option<u64>,
}

#[derive(Debug, Args)]
struct MoveArgs {
    #[command(flatten)]
    ticket: Who,
    /// Why, in words
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
}

#[derive(Debug, Args)]
struct LinkArgs {
    #[command(flatten)]
    ticket: Who,
    /// What it is elsewhere; "" takes that away
    #[arg(long = "ref", value_name = "REF")]
    external: Option<String>,
    /// A ticket that must be done before it
    #[arg(long, value_name = "TICKET")]
    depends_on: Vec<String>,
    /// A ticket that need not be done before it any more
    #[arg(long, value_name = "TICKET")]
    no_depends_on: Vec<String>,
    /// An agent's conversation that it is worked on in; "" takes that away
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
}

/// One status, or all that mean that there is still something to do.
#[derive(Debug, Clone)]
struct Statuses(Vec<Status>);

fn status(text: &str) -> Result<Statuses, String> {
    if text == "open" {
        return Ok(Statuses(Status::ALL.into_iter().filter(|status| status.is_open()).collect()));
    }
    let known = Status::ALL.map(Status::as_str).join(", ");
    Status::parse(text)
        .map(|status| Statuses(vec![status]))
        .ok_or_else(|| format!("\"{text}\" is none of {known}, open"))
}

fn output_kind(text: &str) -> Result<OutputKind, String> {
    OutputKind::parse(text).ok_or_else(|| format!("\"{text}\" is none of text, path, commit, url"))
}

fn step_mark(text: &str) -> Result<StepMark, String> {
    StepMark::parse(text).ok_or_else(|| "a step is marked with start, end or fail".to_owned())
}

pub(crate) async fn run(app: &App, args: TicketArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Verb::Add(args) => add(app, &client, args).await?,
        Verb::Ls(args) => {
            let campaign = match &args.campaign {
                Some(who) => Some(client.campaign(&app.campaign_operand(who)?).await?.id),
                None => None,
            };
            let conversation = match &args.conversation {
                Some(who) => Some(client.conversation(&app.addressee(&client, who).await?).await?.id),
                None => None,
            };
            let filter = TicketFilter {
                campaign,
                statuses: args.status.into_iter().flat_map(|Statuses(statuses)| statuses).collect(),
                kind: args.kind,
                agent: args.agent,
                external: args.external,
                conversation,
                archived_too: args.all,
                since: args.since,
                until: args.until,
            };
            let most = args.list.most(Some(USUALLY));
            let tickets = Tickets { client: &client, filter, most, cursor: args.cursor };
            return listing::run(app, Some(&client), &args.list, &tickets).await;
        }
        Verb::Show { who, value } => {
            let who = who.ok_or_else(|| {
                Refusal::invalid("ticket show needs to know which").hint("ostler ticket ls", "lists them")
            })?;
            let whole = client.ticket(&who).await?;
            match value {
                Some(name) => return show_output(app, &whole, &name),
                None => show(app, &client, &whole).await?,
            }
        }
        Verb::Set { ticket, settings } => {
            let (intent, kind) = settings_of(typed(settings))?;
            let changed = client.change_ticket(&ticket.who, intent, kind).await?;
            told(app, &client, &changed, "changed").await?;
        }
        Verb::Start(args) => return start::run(app, &client, args).await,
        Verb::Done(args) => move_on(app, &client, Move::Done, args).await?,
        Verb::Fail(args) => move_on(app, &client, Move::Fail, args).await?,
        Verb::Cancel(args) => move_on(app, &client, Move::Cancel, args).await?,
        Verb::Reopen(args) => move_on(app, &client, Move::Reopen, args).await?,
        Verb::Archive(args) => move_on(app, &client, Move::Archive, args).await?,
        Verb::Link(args) => {
            let wanted = LinkTicket {
                who: args.ticket.who,
                external: args.external,
                conversation: args.conversation,
                depends_on: args.depends_on,
                no_depends_on: args.no_depends_on,
            };
            let linked = client.link_ticket(wanted).await?;
            told(app, &client, &linked, "linked").await?;
        }
        Verb::Output { ticket, name, value, kind } => {
            let value = if value == "-" { input::whole(&app.ui)? } else { value };
            let ticket = client.add_ticket_output(&ticket.who, &name, kind, value).await?;
            told(app, &client, &ticket, "kept").await?;
        }
        Verb::Checkpoint { ticket, name, session, turn, snapshot } => {
            let wanted = MakeCheckpoint { who: ticket.who, name, session, turn, snapshot };
            let ticket = client.make_ticket_checkpoint(wanted).await?;
            told(app, &client, &ticket, "checkpoint made").await?;
        }
        Verb::Step { ticket, name, mark, note } => {
            let ticket = client.mark_ticket_step(&ticket.who, &name, mark, &note).await?;
            told(app, &client, &ticket, "noted").await?;
        }
        Verb::Import(args) => return import::run(app, &client, args).await,
    }
    Ok(exit_code::OK)
}

async fn add(app: &App, client: &Client, args: AddArgs) -> Result<(), Failure> {
    let intent = if args.intent == "-" { input::whole(&app.ui)? } else { args.intent };
    let wanted = AddTicket {
        campaign: app.campaign_operand(args.campaign.as_deref().unwrap_or("."))?,
        intent,
        kind: args.kind,
        external: args.external,
        conversation: args.conversation,
        depends_on: args.depends_on,
        queued: args.queue,
    };
    let (ticket, is_new) = client.add_ticket(wanted).await?;
    if app.ui.is_json() {
        let name = app.campaign_name(client, &ticket.campaign).await;
        return app.ui.json(&TicketForm::new(&ticket, &name));
    }
    app.ui.data(&Line::of(ticket.id.to_string()))?;
    if !is_new {
        app.ui.remark(&Line::new().faint("it was there already, just so"));
    }
    let start = format!("ostler ticket start {}", ticket.id.short());
    app.ui.remark(&Line::of("  ").with(Tone::Accent, start).faint("   has an agent work on it"));
    Ok(())
}

async fn move_on(app: &App, client: &Client, verb: Move, args: MoveArgs) -> Result<(), Failure> {
    let ticket = client.move_ticket(&args.ticket.who, verb, &args.message).await?;
    told(app, client, &ticket, ticket.status.as_str()).await?;
    let is_over = matches!(ticket.status, Status::Done | Status::Failed | Status::Cancelled);
    if !is_over || app.ui.is_json() {
        return Ok(());
    }
    let filter = SessionFilter {
        scope: Scope::NotEnded,
        tickets: vec![ticket.id.to_string()],
        ..SessionFilter::default()
    };
    for session in client.sessions(&filter, Page::of(5, None)).await?.rows {
        let stop = format!("ostler stop {}", session.id.short());
        let line = Line::of(format!("note: session {} still works on it: ", session.id.short()));
        app.ui.remark(&line.with(Tone::Accent, stop).faint("   ends it"));
    }
    Ok(())
}

/// One line about what a ticket is now.
async fn told(app: &App, client: &Client, ticket: &Ticket, word: &str) -> Result<(), Failure> {
    if app.ui.is_json() {
        let name = app.campaign_name(client, &ticket.campaign).await;
        return app.ui.json(&TicketForm::new(ticket, &name));
    }
    if app.ui.is_quiet() {
        return app.ui.data(&Line::of(ticket.id.to_string()));
    }
    let name = screen::ticket::name(ticket);
    app.ui
        .data(&Line::of(format!("{word}: ticket ")).strong(name).plain(format!("  {}", ticket.about.title())))
}

pub(crate) async fn show(app: &App, client: &Client, whole: &Whole) -> Result<(), Failure> {
    let campaign = app.campaign_name(client, &whole.ticket.campaign).await;
    if app.ui.is_json() {
        return app.ui.json(&WholeForm::new(whole, &campaign));
    }
    app.ui.fields(&screen::ticket::lines(whole, &campaign, words::now()))
}

/// The same inside a session, which does not learn its campaign's name.
pub(super) fn tell(app: &App, whole: &Whole) -> Result<u8, Failure> {
    let campaign = whole.ticket.campaign.short();
    if app.ui.is_json() {
        app.ui.json(&WholeForm::new(whole, &campaign))?;
    } else {
        app.ui.data_lines(&screen::ticket::facts(whole, &campaign, words::now()))?;
    }
    Ok(exit_code::OK)
}

impl TicketArgs {
    /// The ticket that is to be shown, if that is all that is wanted.
    pub(super) fn shown(self) -> Option<Option<String>> {
        match self.verb {
            Verb::Show { who, value: None } => Some(who),
            _ => None,
        }
    }
}

/// The last output of a name: one that is added again replaces what it was.
fn show_output(app: &App, whole: &Whole, name: &str) -> Result<u8, Failure> {
    let found = whole.outputs.iter().rev().find(|output| output.what.name == name);
    let Some(output) = found else {
        let there: Vec<&str> = whole.outputs.iter().map(|output| output.what.name.as_str()).collect();
        let why = if there.is_empty() {
            "it has none".to_owned()
        } else {
            format!("there are: {}", there.join(", "))
        };
        return Err(Failure::usage(format!(
            "ticket {} has no output \"{name}\": {why}",
            screen::ticket::name(&whole.ticket)
        )));
    };
    if app.ui.is_json() {
        app.ui.json(&form::OutputForm::new(output))?;
    } else {
        output.what.value.lines().try_for_each(|line| app.ui.data(&Line::of(line)))?;
    }
    Ok(exit_code::OK)
}

/// `intent=TEXT` and `type=WORD`.
fn settings_of(settings: Vec<String>) -> Result<(Option<String>, Option<String>), Failure> {
    let (mut intent, mut kind) = (None, None);
    for setting in settings {
        match setting.split_once('=') {
            Some(("intent", value)) => intent = Some(value.to_owned()),
            Some(("type", value)) => kind = Some(value.to_owned()),
            _ => return Err(Failure::usage(format!("\"{setting}\" is neither intent=TEXT nor type=WORD"))),
        }
    }
    Ok((intent, kind))
}

struct Tickets<'a> {
    client: &'a Client,
    filter: TicketFilter,
    most: Option<u32>,
    cursor: Option<u64>,
}

impl List for Tickets<'_> {
    type Row = (Ticket, String);
    const ROWS: &'static str = "tickets";

    async fn find(&self) -> Result<Found<(Ticket, String)>, Failure> {
        let names: CampaignNames = campaign_names(self.client).await?;
        let ask = async |page| self.client.tickets(&self.filter, page).await;
        let found = Found::paged(self.most, self.cursor, ask).await?;
        let named = |ticket: Ticket| {
            let name = names.of(&ticket.campaign);
            (ticket, name)
        };
        Ok(Found { rows: found.rows.into_iter().map(named).collect(), next_cursor: found.next_cursor })
    }

    fn id(&self, (ticket, _): &(Ticket, String)) -> String {
        ticket.id.to_string()
    }

    fn name(&self, (ticket, _): &(Ticket, String)) -> String {
        screen::ticket::name(ticket)
    }

    fn form(&self, (ticket, campaign): &(Ticket, String)) -> impl Serialize {
        TicketForm::new(ticket, campaign)
    }

    async fn screen(&self, found: &Found<(Ticket, String)>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            let is_filtered = self.filter != TicketFilter::default();
            return Ok(Screen { remarks: screen::ticket::empty(is_filtered), ..Screen::default() });
        }
        let older = |next| Line::new().faint(format!("older: the same with --cursor {next}"));
        Ok(Screen {
            table: Some(screen::ticket::table(&found.rows, words::now())),
            remarks: found.next_cursor.map(older).into_iter().collect(),
            ..Screen::default()
        })
    }
}
