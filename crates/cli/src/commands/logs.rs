//! `ostler logs`: what sessions did, readable.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, ListEvents, Place, Received, Session, Watched, query::EventFilter};
use ostler_domain::{Event, Kind, Reason, Refusal, SessionId, Time, limits::PAGE_MOST, text::shell_word};
use tokio::{sync::mpsc, time::Instant};

use super::{damage::Damage, many::Operands};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::EventForm,
    output::{Format, Line, Rows, Tone},
    parse,
    screen::activity::{Teller, Told},
    words,
};

/// Events that wait to be printed; the watches wait when nobody reads.
const WAITING: usize = 256;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    operands: Operands,
    /// Follow until the sessions end
    #[arg(short, long)]
    follow: bool,
    /// Only the last N deeds
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Only these kinds of events: completion, tool_call, AGENT_ERROR
    #[arg(long, value_delimiter = ',', value_parser = parse::kind)]
    kind: Vec<Kind>,
    /// Only what happened since: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// With -f: give up after this time (exit 8)
    #[arg(long, value_parser = parse::duration, value_name = "SPAN", requires = "follow")]
    timeout: Option<Duration>,
}

/// One session's part of the story.
struct Part<'a> {
    session: Session,
    /// Where its events go, with those of the others, if a program reads them.
    rows: &'a Rows<'a>,
    teller: Teller,
    prefix: Line,
    /// Everything up to here is printed.
    seen: u64,
    /// What is held back because it may be done again, since when, and how often it was. Who follows waits for nothing.
    held: Option<(Time, Told, u64)>,
    /// Whether what comes may be held back.
    folds: bool,
    ended: bool,
    damage: Damage,
}

pub(crate) async fn run(app: &App, args: LogsArgs) -> Result<u8, Failure> {
    let who = args.operands.who.iter().map(|who| shell_word(who)).collect::<Vec<_>>().join(" ");
    if app.ui.format() == Some(Format::Name) {
        return Err(Refusal::invalid("what was done has no names to print")
            .hint(format!("ostler logs {who} -o jsonl"), "prints it for programs")
            .hint(
                format!("ostler show {} -o name", who.split(' ').next().unwrap_or_default()),
                "prints the session's id",
            )
            .into());
    }
    if args.follow && app.ui.format() == Some(Format::Json) {
        return Err(Refusal::invalid("what is followed has no end, so it is no single object")
            .hint(format!("ostler logs -f {who} -o jsonl"), "prints an object a line")
            .into());
    }
    let client = app.client().await?;
    let rows = Rows::new(&app.ui, "events");
    let mut parts = Vec::new();
    for typed in &args.operands.who {
        let session = app.session(&client, typed).await?;
        let prefix = if args.operands.who.len() > 1 {
            Line::new().strong(session.name.as_str()).padded(12).plain(" ")
        } else {
            Line::new()
        };
        let teller = if args.kind.is_empty() { Teller::new() } else { Teller::of_everything() };
        // One that has ended has all its events in the log already.
        let ended = session.outcome.is_some();
        let damage = Damage::default();
        parts.push(Part {
            session,
            rows: &rows,
            teller,
            prefix,
            seen: 0,
            held: None,
            folds: true,
            ended,
            damage,
        });
    }
    if !args.follow {
        app.ui.page();
    }
    for part in &mut parts {
        match args.tail {
            Some(tail) => print_tail(app, &client, &args, part, tail).await?,
            None => print_all(app, &client, &args, part).await?,
        }
        print_held(app, part)?;
        part.folds = false;
    }
    app.ui.flush()?;
    if args.follow && parts.iter().any(|part| !part.ended) {
        follow(app, &client, &args, &mut parts).await?;
    }
    let damage: Vec<Damage> = parts.into_iter().map(|part| part.damage).collect();
    if app.ui.is_json() {
        rows.end()?;
    }
    damage.iter().try_for_each(Damage::verdict)?;
    Ok(exit_code::OK)
}

fn filter(args: &LogsArgs, session: SessionId) -> EventFilter {
    EventFilter {
        session: Some(session),
        kinds: args.kind.clone(),
        since: args.since,
        ..EventFilter::default()
    }
}

async fn print_all(app: &App, client: &Client, args: &LogsArgs, part: &mut Part<'_>) -> Result<(), Failure> {
    let filter = filter(args, part.session.id);
    let mut from = 0;
    loop {
        let request = ListEvents { filter: filter.clone(), from: Place::After(from), limit: PAGE_MOST };
        let page = client.events(&request).await?;
        for received in &page.events {
            print(app, part, received)?;
        }
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    if !args.follow {
        let now = words::now();
        let rest = part.teller.rest((!part.ended).then_some(now));
        print_told(app, part, now, &rest)?;
    }
    Ok(())
}

async fn print_tail(
    app: &App,
    client: &Client,
    args: &LogsArgs,
    part: &mut Part<'_>,
    tail: usize,
) -> Result<(), Failure> {
    let filter = filter(args, part.session.id);
    let mut from = Place::End;
    let mut events: Vec<Received> = Vec::new();
    // Backwards until there are enough deeds: how many events make one is known only when they are told.
    let told = loop {
        let page = client.events(&ListEvents { filter: filter.clone(), from, limit: PAGE_MOST }).await?;
        let older: Vec<Received> = page.events.into_iter().rev().collect();
        events.splice(0..0, older);
        let told = tell_all(app, part, &events, args.follow);
        match page.next {
            Some(next) if told.len() < tail => from = Place::Before(next),
            _ => break told,
        }
    };
    for event in &events {
        part.damage.look_at(event);
        part.seen = part.seen.max(event.seq());
        part.ended |= is_end(event);
    }
    for (time, event, told) in &told[told.len().saturating_sub(tail)..] {
        if app.ui.is_json() {
            part.rows.row(&EventForm::new(&events[*event]))?;
        } else {
            print_told(app, part, *time, told)?;
        }
    }
    Ok(())
}

/// Everything that events make, each with its time and the event that completed it.
fn tell_all(
    app: &App,
    part: &mut Part<'_>,
    events: &[Received],
    follow: bool,
) -> Vec<(Time, usize, Vec<Told>)> {
    part.teller.reset();
    let mut told = Vec::new();
    for (place, event) in events.iter().enumerate() {
        let deeds = part.teller.tell(event);
        if app.ui.is_json() {
            told.push((event.time(), place, Vec::new()));
        } else {
            told.extend(deeds.into_iter().map(|deed| (event.time(), place, vec![deed])));
        }
    }
    if !follow && !app.ui.is_json() {
        let last = events.last().map_or_else(words::now, Received::time);
        let rest = part.teller.rest((!part.ended).then(words::now));
        told.extend(rest.into_iter().map(|deed| (last, events.len().saturating_sub(1), vec![deed])));
    }
    told
}

fn print(app: &App, part: &mut Part<'_>, received: &Received) -> Result<(), Failure> {
    part.damage.look_at(received);
    part.seen = part.seen.max(received.seq());
    part.ended |= is_end(received);
    if app.ui.is_json() {
        return part.rows.row(&EventForm::new(received));
    }
    let told = part.teller.tell(received);
    print_told(app, part, received.time(), &told)
}

/// Prints deeds; one that is done again and again, once.
fn print_told(app: &App, part: &mut Part<'_>, time: Time, told: &[Told]) -> Result<(), Failure> {
    for deed in told {
        match &mut part.held {
            Some((_, held, count)) if deed.repeats(held) => {
                // The last time says how it is now.
                held.clone_from(deed);
                *count += 1;
            }
            _ => {
                print_held(app, part)?;
                part.held = Some((time, deed.clone(), 1));
            }
        }
        if !part.folds {
            print_held(app, part)?;
        }
    }
    Ok(())
}

fn print_held(app: &App, part: &mut Part<'_>) -> Result<(), Failure> {
    let Some((time, deed, count)) = part.held.take() else { return Ok(()) };
    let clock = words::clock(time, &app.zone());
    let prefix = Line::new().faint(clock).plain("  ").append(part.prefix.clone());
    app.ui.data_lines(&deed.times(count).lines(&prefix, app.ui.out_look().width))
}

fn is_end(received: &Received) -> bool {
    matches!(received, Received::Known(event) if matches!(event.event, Event::SessionStopped(_) | Event::SessionFailed(_)))
}

async fn follow(app: &App, client: &Client, args: &LogsArgs, parts: &mut [Part<'_>]) -> Result<(), Failure> {
    let deadline = args.timeout.map(|limit| Instant::now() + limit);
    let (sender, mut news) = mpsc::channel(WAITING);
    for (place, part) in parts.iter_mut().enumerate() {
        if part.ended {
            continue;
        }
        // The end is news even where it is not among the kinds asked for.
        let mut wanted = filter(args, part.session.id);
        if !wanted.kinds.is_empty() {
            wanted.kinds.extend([Kind::SessionStopped, Kind::SessionFailed]);
        }
        let mut watch = client.watch(wanted, Some(part.seen)).await?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(item) = watch.next().await {
                if sender.send((place, item)).await.is_err() {
                    return;
                }
            }
        });
    }
    while parts.iter().any(|part| !part.ended) {
        let next = async {
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, news.recv()).await.ok().flatten(),
                None => news.recv().await,
            }
        };
        let Some((place, item)) = next.await else { return Err(gave_up(args)) };
        let received = match item? {
            Watched::Event(event) => Received::Known(event),
            Watched::Unknown(event) => Received::Unknown(event),
            Watched::Reconnected => {
                app.ui
                    .remark(&Line::toned(Tone::Faint, "the daemon was away and is back; nothing was missed"));
                continue;
            }
        };
        let part = &mut parts[place];
        let wanted = args.kind.is_empty()
            || matches!(&received, Received::Known(event) if args.kind.contains(&event.event.kind()));
        if wanted {
            print(app, part, &received)?;
        } else {
            part.ended |= is_end(&received);
        }
        app.ui.flush()?;
    }
    Ok(())
}

fn gave_up(args: &LogsArgs) -> Failure {
    let span = words::span(args.timeout.unwrap_or_default());
    Refusal::new(Reason::TimedOut, format!("not ended within {span}"))
        .hint("ostler ls", "shows what they are doing")
        .into()
}
