//! After the work: what came of it, why one of them ended, and what to try next.

use ostler_client::{Client, Session};
use ostler_domain::{
    mission::{Merging, Status},
    price::Cost,
    session::Outcome,
};
use serde::Serialize;

use super::{play::Played, stage::Stage};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone, Ui},
    screen::money,
    words,
};

#[derive(Serialize)]
struct DemoForm<'a> {
    schema: &'static str,
    ok: bool,
    /// How the mission ended.
    mission: &'a str,
    merged: bool,
    sessions: usize,
    /// At work when the daemon was killed, and taken up by the next one.
    agents_before: u64,
    agents_readopted: u64,
    lines_expected: u64,
    lines_present: u64,
    lines_lost: u64,
    lines_doubled: u64,
    lines_out_of_order: u64,
    tokens: u64,
    cost_usd: f64,
    /// Absent where this machine cannot confine agents.
    escapes_tried: Option<usize>,
    escapes_stopped: Option<usize>,
    duration_ms: u64,
}

/// Tells the rest and returns the exit code: 0 only when everything was as it was promised.
pub(super) async fn play(
    app: &App,
    client: &Client,
    stage: &Stage<'_>,
    played: &Played,
    is_confined: bool,
) -> Result<u8, Failure> {
    let dead = match played.killed {
        Some(id) => Some(client.session(&id.to_string()).await?),
        None => None,
    };
    let ok = is_right(played, dead.as_ref(), is_confined);
    if app.ui.is_json() {
        app.ui.json(&form(played, stage, ok, is_confined))?;
        return Ok(if ok { exit_code::OK } else { exit_code::FAILURE });
    }
    if is_confined {
        stage.at(merge(played))?;
    }
    stage.at(sums(played, is_confined))?;
    if let Some(dead) = &dead {
        why(stage, played, dead)?;
    }
    stage.line(&Line::new())?;
    let (tone, words) = match ok {
        true => (Tone::Good, "✓ the daemon was killed, and nothing was lost"),
        false => (Tone::Bad, "✗ something is wrong: please report it"),
    };
    stage.line(&Line::toned(tone, words).faint(format!(" · {}", words::took(stage.took()))))?;
    Ok(if ok { exit_code::OK } else { exit_code::FAILURE })
}

fn is_right(played: &Played, dead: Option<&Session>, is_confined: bool) -> bool {
    let was_held = !is_confined || played.escapes.is_right();
    let was_adopted = played.adopted.as_ref().is_some_and(|adopted| adopted.before > 0);
    let died_as_meant = dead.is_some_and(|dead| dead.outcome == Some(Outcome::Crashed));
    let is_done = played.state.status() == Status::Completed && is_merged(played) == is_confined;
    played.account.is_right() && was_held && was_adopted && died_as_meant && is_done
}

fn is_merged(played: &Played) -> bool {
    matches!(played.state.merging(), Merging::Merged { .. })
}

fn merge(played: &Played) -> Line {
    match played.state.merging() {
        Merging::Merged { .. } => {
            Line::toned(Tone::Good, "✓").plain(" merged 3 work trees into main, the check passed")
        }
        Merging::Failed { output, .. } => {
            Line::toned(Tone::Bad, "✗").plain(format!(" the merge failed: {output}"))
        }
        Merging::NotBegun | Merging::Running { .. } | Merging::Checked { .. } | Merging::Moving { .. } => {
            let why = played.state.ended().map(|over| over.why.as_str()).unwrap_or_default();
            Line::toned(Tone::Bad, "✗").plain(format!(" nothing was merged: {why}"))
        }
    }
}

/// `5 sessions done, 1 killed on purpose · 4 attempts to leave the sandbox stopped · $0.31, 212k tokens`.
fn sums(played: &Played, is_confined: bool) -> Line {
    let done = played.sessions.iter().filter(|session| session.outcome == Some(Outcome::Done)).count();
    let done = words::plural(done as u64, "session done", "sessions done");
    let killed = if played.killed.is_some() { ", 1 killed on purpose" } else { "" };
    let mut parts = vec![Line::of(format!("{done}{killed}"))];
    if is_confined {
        let (tried, stopped) = (played.escapes.tried, played.escapes.stopped);
        let of = if tried == stopped { String::new() } else { format!(" of {tried}") };
        parts.push(Line::of(format!("{stopped}{of} attempts to leave the sandbox stopped")));
    }
    let (cost, tokens) = (cost(played), tokens(played));
    parts.push(
        Line::of(format!("{}, {} tokens", money::short(&cost), words::count(tokens)))
            .faint(" at a usual model's price; scripted agents are free"),
    );
    let is_right = !is_confined || played.escapes.is_right();
    let (tone, sign) = if is_right { (Tone::Good, "✓ ") } else { (Tone::Bad, "✗ ") };
    Line::toned(tone, sign).append(Line::joined(parts))
}

fn cost(played: &Played) -> Cost {
    let mut cost = Cost::default();
    played.sessions.iter().for_each(|session| cost += &session.cost);
    cost
}

fn tokens(played: &Played) -> u64 {
    played.sessions.iter().map(|session| session.usage.total()).sum()
}

/// Why the one that was killed ended, as its record has it, and who went on.
fn why(stage: &Stage<'_>, played: &Played, dead: &Session) -> Result<(), Failure> {
    let name = &dead.name;
    let sentence = dead.obituary.as_ref().map(|obituary| obituary.sentence.as_str()).unwrap_or_default();
    let next = played.sessions.iter().find(|session| session.continues == Some(dead.id));
    let next = next.map_or_else(
        || "nobody went on".to_owned(),
        |next| format!("{} went on with what was there", next.id.short()),
    );
    stage.line(&Line::new())?;
    let question = format!("Why did {name} ({}) end?  ", dead.id.short());
    stage.line(&Line::new().strong(question).plain(format!("{sentence} {next}.")))
}

fn form(played: &Played, stage: &Stage<'_>, ok: bool, is_confined: bool) -> DemoForm<'static> {
    let account = &played.account;
    let adopted = played.adopted.as_ref();
    DemoForm {
        schema: "ostler.demo/1",
        ok,
        mission: played.state.status().as_str(),
        merged: is_merged(played),
        sessions: played.sessions.len(),
        agents_before: adopted.map_or(0, |adopted| adopted.before),
        agents_readopted: adopted.map_or(0, |adopted| adopted.after),
        lines_expected: account.expected,
        lines_present: account.present,
        lines_lost: account.lost,
        lines_doubled: account.doubled,
        lines_out_of_order: account.out_of_order,
        tokens: tokens(played),
        cost_usd: cost(played).paid.0 as f64 / 1e6,
        escapes_tried: is_confined.then_some(played.escapes.tried),
        escapes_stopped: is_confined.then_some(played.escapes.stopped),
        duration_ms: u64::try_from(stage.took().as_millis()).unwrap_or(u64::MAX),
    }
}

/// What to try next.
pub(super) fn say_next(ui: &Ui) -> Result<(), Failure> {
    let steps = [
        ("cd your-project && ostler init", "finds your agents, makes this a campaign"),
        ("ostler run \"…\"", "starts one of them; ostler ls says who runs and who needs you"),
        ("ostler mission template ls", "teams to start from"),
    ];
    for (n, (command, effect)) in steps.into_iter().enumerate() {
        let label = if n == 0 { "Yours next:  " } else { "             " };
        let command = Line::toned(Tone::Accent, command).padded(30);
        ui.data(&Line::of(label).append(command).plain("  ").faint(effect))?;
    }
    Ok(())
}
