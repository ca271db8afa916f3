//! `ostler events`: the log itself.

use clap::Args;
use ostler_client::{Client, ListEvents, Place, Received, Watched, query::EventFilter};
use ostler_domain::{Kind, Reason, Refusal, limits::PAGE_MOST};

use super::damage::Damage;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    filters::Filters,
    form::EventForm,
    output::{Format, Line, Tone},
    parse,
    screen::activity::Teller,
    words,
};

/// What a terminal is shown when it is not said where to begin: nobody reads a million lines.
const ON_A_TERMINAL: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    follow: bool,
    /// Only events after this place in the log
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Only of this session: name, id, part of an id
    #[arg(long, value_name = "WHO")]
    session: Option<String>,
    /// Only these kinds: AGENT_COMPLETION, session_stopped
    #[arg(long, value_delimiter = ',', value_parser = parse::kind)]
    kind: Vec<Kind>,
    #[command(flatten)]
    filters: Filters,
    /// At most this many; 0 means all [default: all, or the last 100 on a terminal]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl EventsArgs {
    pub(super) fn following(self) -> Self {
        Self { follow: true, ..self }
    }
}

pub(crate) async fn run(app: &App, args: EventsArgs) -> Result<u8, Failure> {
    if app.ui.format() == Some(Format::Json) {
        return Err(Failure::usage("the log has no end, so it is no single object: use -o jsonl"));
    }
    let client = app.client().await?;
    let filter = args.filters.resolve_events(app, &client, args.session.as_deref(), &args.kind).await?;
    let mut printer = Printer::new(app);
    if !args.follow {
        app.ui.page();
    }
    if args.follow {
        follow(app, &client, filter, &args, &mut printer).await?;
    } else if let (None, None, false) = (args.after, args.limit, printer.is_json) {
        last(&client, filter, &mut printer).await?;
    } else {
        list(&client, filter, &args, &mut printer).await?;
    }
    printer.damage.verdict()?;
    Ok(exit_code::OK)
}

struct Printer<'a> {
    app: &'a App,
    is_json: bool,
    teller: Teller,
    damage: Damage,
}

impl<'a> Printer<'a> {
    fn new(app: &'a App) -> Self {
        let for_program = app.ui.format().is_none() && !app.ui.terminals().stdout_is_terminal;
        Self {
            app,
            is_json: app.ui.is_json() || for_program,
            teller: Teller::of_everything(),
            damage: Damage::default(),
        }
    }

    fn print(&mut self, received: &Received) -> Result<(), Failure> {
        self.damage.look_at(received);
        let ui = &self.app.ui;
        if self.is_json {
            return ui.json(&EventForm::new(received));
        }
        let (seq, time) = (received.seq(), received.time());
        let who = received.session().map_or_else(|| "–".to_owned(), |id| id.short());
        let prefix = Line::new()
            .faint(format!("{seq:>7} {} ", words::clock(time, &self.app.zone())))
            .append(Line::toned(Tone::Accent, who).padded(6));
        for told in self.teller.tell(received) {
            ui.data_lines(&told.lines(&prefix, ui.out_look().width))?;
        }
        Ok(())
    }
}

async fn list(
    client: &Client,
    filter: EventFilter,
    args: &EventsArgs,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut left = args.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let mut from = args.after.unwrap_or(0);
    loop {
        let limit = u32::try_from(left).unwrap_or(PAGE_MOST).min(PAGE_MOST);
        let page =
            client.events(&ListEvents { filter: filter.clone(), from: Place::After(from), limit }).await?;
        page.events.iter().try_for_each(|event| printer.print(event))?;
        left = left.saturating_sub(page.events.len());
        match page.next {
            Some(next) if left > 0 => from = next,
            _ => return Ok(()),
        }
    }
}

/// The end of the log, for a terminal.
async fn last(client: &Client, filter: EventFilter, printer: &mut Printer<'_>) -> Result<(), Failure> {
    let mut events = Vec::new();
    let mut from = Place::End;
    let more = loop {
        let limit = u32::try_from(ON_A_TERMINAL - events.len()).unwrap_or(PAGE_MOST);
        let page = client.events(&ListEvents { filter: filter.clone(), from, limit }).await?;
        events.extend(page.events);
        match page.next {
            Some(next) if events.len() < ON_A_TERMINAL => from = Place::Before(next),
            next => break next.is_some(),
        }
    };
    events.iter().rev().try_for_each(|event| printer.print(event))?;
    if more {
        let line = Line::new().faint("older: ").with(Tone::Accent, "ostler events --limit 0");
        printer.app.ui.remark(&line);
    }
    Ok(())
}

async fn follow(
    app: &App,
    client: &Client,
    filter: EventFilter,
    args: &EventsArgs,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let mut left = args.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let mut watch = client.watch(filter, args.after).await?;
    while left > 0 {
        let received = match watch.next().await {
            Some(Ok(Watched::Event(event))) => Received::Known(event),
            Some(Ok(Watched::Unknown(event))) => Received::Unknown(event),
            Some(Ok(Watched::Reconnected)) => {
                let place = watch.cursor().unwrap_or(0);
                app.ui.remark(&Line::new().faint(format!(
                    "the daemon was away and is back; going on after {place}, nothing was missed"
                )));
                continue;
            }
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
        };
        printer.print(&received)?;
        left -= 1;
        app.ui.flush()?;
    }
    Ok(())
}
