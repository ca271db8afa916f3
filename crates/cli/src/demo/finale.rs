//! After the work: one agent killed on purpose, the list, its obituary, the tokens, and what to try next.

use ostler_client::{
    Campaign, Client, CreateSession, GetUsage, Session, Watched,
    query::{EventFilter, Page, SessionFilter},
    reply::UsageBy,
};
use ostler_domain::{Event, Kind, Reason, Refusal};
use serde::Serialize;

use super::{account::Account, agents, escape::Stopped, stage::Stage};
use crate::{
    app::App,
    commands::ended,
    exit_code,
    failure::Failure,
    output::{Column, Line, Table, Tone, Ui},
    screen::{
        row,
        session::{self, Around},
        sessions,
    },
    words,
};

#[derive(Serialize)]
struct DemoForm {
    schema: &'static str,
    ok: bool,
    lines_expected: u64,
    lines_present: u64,
    lines_lost: u64,
    lines_doubled: u64,
    lines_out_of_order: u64,
    tokens: u64,
    /// Absent where this machine cannot confine agents.
    escapes_tried: Option<usize>,
    escapes_stopped: Option<usize>,
    duration_ms: u64,
}

/// Plays the rest and returns the exit code: 0 only when every line was accounted for.
pub(super) async fn play(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    stage: &Stage<'_>,
    account: &Account,
    stopped: Option<Stopped>,
) -> Result<u8, Failure> {
    let dead = kill_one(client, campaign, stage).await?;
    let mut rows = client.sessions(&SessionFilter::default(), Page::of(0, None)).await?.rows;
    rows.sort_by(row::in_order);
    let look = app.ui.out_look();
    let now = words::now();

    command(stage, "ostler ls -a")?;
    let listed: Vec<_> =
        rows.iter().map(|session| sessions::Shown::here(session, campaign.name.as_str())).collect();
    sessions::table(&listed, now).lines(look).iter().try_for_each(|line| stage.line(line))?;

    command(stage, &format!("ostler show {}", dead.id.short()))?;
    let around = Around {
        campaign: campaign.name.as_str(),
        place_in_chain: (1, 1),
        approvals: &[],
        counted: None,
        conversation: None,
        home: None,
        work: None,
        record: None,
    };
    session::lines(&dead, &around, now).iter().try_for_each(|line| stage.line(line))?;

    let tokens = say_tokens(client, stage, &rows, look).await?;
    let died_as_meant = dead.outcome == Some(ostler_domain::session::Outcome::Killed);
    let was_held = stopped.as_ref().is_none_or(Stopped::is_right);
    let ok = account.is_right() && died_as_meant && was_held;
    let took = stage.took();
    if app.ui.is_json() {
        app.ui.json(&DemoForm {
            schema: "ostler.demo/1",
            ok,
            lines_expected: account.expected,
            lines_present: account.present,
            lines_lost: account.lost,
            lines_doubled: account.doubled,
            lines_out_of_order: account.out_of_order,
            tokens,
            escapes_tried: stopped.as_ref().map(|stopped| stopped.of),
            escapes_stopped: stopped.as_ref().map(|stopped| stopped.stopped),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        })?;
    } else {
        stage.line(&Line::new())?;
        let (tone, words) = match &stopped {
            Some(stopped) if ok => (
                Tone::Good,
                format!(
                    "✓ the daemon was killed, and nothing was lost · {} attempts to leave the sandbox stopped",
                    stopped.stopped
                ),
            ),
            None if ok => (Tone::Good, "✓ the daemon was killed, and nothing was lost".to_owned()),
            _ => (Tone::Bad, "✗ something is wrong: please report it".to_owned()),
        };
        stage.line(&Line::toned(tone, words).faint(format!(" · {}", words::took(took))))?;
    }
    Ok(if ok { exit_code::OK } else { exit_code::FAILURE })
}

/// Starts an agent that would work for ever, and kills it once it does.
async fn kill_one(client: &Client, campaign: &Campaign, stage: &Stage<'_>) -> Result<Session, Failure> {
    let request = CreateSession {
        name: "endless".parse().ok(),
        initial_message: Some(agents::endless()),
        ..CreateSession::new(campaign.id.to_string(), "script")
    };
    let session = client.create_session(request).await?;
    let kinds = vec![Kind::AgentToolCall, Kind::SessionFailed, Kind::SessionStopped];
    let filter = EventFilter { session: Some(session.id), kinds, ..EventFilter::default() };
    let mut watch = client.watch(filter, Some(0)).await?;
    loop {
        match watch.next().await {
            Some(Ok(Watched::Event(event))) if matches!(event.event, Event::AgentToolCall(_)) => break,
            Some(Ok(Watched::Event(_))) => return Ok(client.session(&session.id.to_string()).await?),
            Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
        }
    }
    stage
        .loud(Line::of(format!("a fourth agent, endless ({}), is killed on purpose", session.id.short())))?;
    client.stop_session(&session.id.to_string(), true).await?;
    ended::wait(client, session.id).await
}

fn command(stage: &Stage<'_>, words: &str) -> Result<(), Failure> {
    stage.line(&Line::new())?;
    stage.line(&Line::new().faint("$ ").with(Tone::Accent, words))
}

async fn say_tokens(
    client: &Client,
    stage: &Stage<'_>,
    rows: &[Session],
    look: &crate::output::Look,
) -> Result<u64, Failure> {
    let sums = client.usage(&GetUsage { by: Some(UsageBy::Session), ..GetUsage::default() }).await?;
    stage.line(&Line::new())?;
    stage.line(&Line::new().strong("What it cost").faint("   tokens; scripted agents have no price"))?;
    let heads = ["AGENT", "CALLS", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "REASONING"];
    let column = |(n, head)| if n == 0 { Column::new(head) } else { Column::new(head).right() };
    let mut table = Table::new(heads.into_iter().enumerate().map(column).collect::<Vec<_>>());
    let name = |key: &str| {
        rows.iter()
            .find(|row| row.id.to_string() == key)
            .map_or_else(|| key.to_owned(), |row| row.name.to_string())
    };
    let total = [("TOTAL".to_owned(), &sums.total)];
    for (name, sum) in sums.rows.iter().map(|row| (name(&row.key), row)).chain(total) {
        let usage = &sum.usage;
        let numbers =
            [sum.calls, usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning];
        let cells = numbers.map(|n| Line::of(words::count(n)));
        table.row([Line::of(name)].into_iter().chain(cells).collect());
    }
    table.lines(look).iter().try_for_each(|line| stage.line(line))?;
    Ok(sums.total.usage.total())
}

/// What to try next.
pub(super) fn say_next(ui: &Ui) -> Result<(), Failure> {
    ui.data(&Line::new())?;
    let steps = [
        ("cd your-project", ""),
        ("ostler init", "finds your agents, tries the sandbox, makes this directory a campaign"),
        ("ostler run \"…\"", "starts one of them; -p names which"),
        ("ostler ls", "who runs, who needs you"),
    ];
    for (n, (command, effect)) in steps.into_iter().enumerate() {
        let label = if n == 0 { "Yours next:  " } else { "             " };
        let command = Line::toned(Tone::Accent, command).padded(22);
        ui.data(&Line::of(label).append(command).plain("  ").faint(effect))?;
    }
    Ok(())
}
