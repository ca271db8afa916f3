//! Tickets: the list, and one of them.

use ostler_client::Ticket;
use ostler_domain::{
    Time,
    price::Dollars,
    text::one_line,
    ticket::{Blocker, Iteration, OutputKind, Status, Step, Whole},
};

use super::{field, next_steps};
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

/// What it is elsewhere, or the end of its id.
pub(crate) fn name(ticket: &Ticket) -> String {
    ticket.links.external.as_ref().map_or_else(|| ticket.id.short(), ToString::to_string)
}

pub(crate) fn table(tickets: &[(Ticket, String)], now: Time) -> Table {
    let columns = [
        Column::new("ID"),
        Column::new("STATUS"),
        Column::new("TYPE").goes(2),
        Column::new("CAMPAIGN").goes(3),
        Column::new("REF").goes(4),
        Column::new("SINCE").right(),
        Column::new("INTENT").gives_way_to(20),
    ];
    let mut table = Table::new(columns);
    for (ticket, campaign) in tickets {
        let external = ticket.links.external.as_ref();
        table.row(vec![
            Line::of(ticket.id.short()),
            status(ticket.status),
            Line::of(&ticket.about.kind),
            Line::of(campaign),
            external.map_or_else(|| Line::new().faint("–"), |external| Line::of(external.as_str())),
            Line::of(format!("{} ago", words::age(now.since(ticket.moved)))),
            Line::of(one_line(ticket.about.title(), 120)),
        ]);
    }
    table
}

fn status(status: Status) -> Line {
    let tone = match status {
        Status::Running => Tone::Accent,
        Status::Done => Tone::Good,
        Status::Failed => Tone::Bad,
        Status::Initialized | Status::Queued => return Line::of(status.as_str()),
        Status::Cancelled | Status::Archived => return Line::new().faint(status.as_str()),
    };
    Line::toned(tone, status.as_str())
}

pub(crate) fn empty(is_filtered: bool) -> Vec<Line> {
    let step =
        |command: &str, effect: &str| Line::of("  ").with(Tone::Accent, command).plain("   ").faint(effect);
    if is_filtered {
        return vec![Line::of("No ticket fits."), step("ostler ticket ls -a", "lists all there are")];
    }
    vec![
        Line::of("No tickets. A ticket is work that outlives the sessions that try to do it."),
        step("ostler ticket add \"…\"", "writes one down"),
        step("ostler ticket import FILE", "brings a checklist, beads or GitHub issues"),
    ]
}

pub(crate) fn lines(whole: &Whole, campaign: &str, now: Time) -> Vec<Line> {
    let mut lines = facts(whole, campaign, now);
    lines.extend(next_steps(&steps(&whole.ticket)));
    lines
}

/// What it is, without what to do about it.
pub(crate) fn facts(whole: &Whole, campaign: &str, now: Time) -> Vec<Line> {
    let ticket = &whole.ticket;
    let ago = |at: Time| format!("{} ago", words::age(now.since(at)));
    let head = [
        Line::of(ticket.id.to_string()),
        status(ticket.status),
        Line::of(&ticket.about.kind),
        Line::of(campaign),
    ];
    let mut lines = vec![Line::new().strong(name(ticket)).plain("   ").append(Line::joined(head))];
    for (n, line) in ticket.about.intent.lines().enumerate() {
        lines.push(field(if n == 0 { "intent" } else { "" }, Line::of(line)));
    }
    lines.push(field("added", Line::of(format!("{} by {}", ago(ticket.added), ticket.by.0))));
    if ticket.moved != ticket.added {
        let why = ticket.why.as_ref().map(|why| format!(": {}", one_line(why, 200))).unwrap_or_default();
        lines.push(field(ticket.status.as_str(), Line::of(format!("{}{why}", ago(ticket.moved)))));
    }
    if let Some(id) = ticket.links.conversation {
        lines.push(field("worked on", Line::of(format!("in conversation {}", id.short()))));
    }
    all(&mut lines, "waits for", &whole.depends_on, dependency);
    all(&mut lines, "steps", &whole.steps, |step| one_step(step, now));
    all(&mut lines, "attempts", &whole.iterations, |one| attempt(one, now));
    if whole.iterations.len() > 1 {
        let paid: Option<u64> = whole.iterations.iter().map(|one| one.cost.map(|cost| cost.0)).sum();
        let tokens: u64 = whole.iterations.iter().map(|one| one.usage.input + one.usage.output).sum();
        lines.push(field(
            "in all",
            Line::of(format!("{} tokens · {}", words::count(tokens), cost(paid.map(Dollars)))),
        ));
    }
    all(&mut lines, "outputs", &whole.outputs, |output| {
        let value = match output.what.kind {
            OutputKind::Text => one_line(&output.what.value, 100),
            _ => output.what.value.clone(),
        };
        Line::new()
            .strong(&output.what.name)
            .plain(format!("  {value}"))
            .faint(format!("  {}", ago(output.time)))
    });
    all(&mut lines, "points", &whole.checkpoints, |point| {
        let at = point.what.at.map(|at| format!("turn {} of session {}", at.turn, at.session.short()));
        let files = point.what.snapshot.as_ref().map(|id| format!("files {}", one_line(id, 40)));
        let what: Vec<String> = at.into_iter().chain(files).collect();
        Line::new()
            .strong(&point.what.name)
            .plain(format!("  {}", what.join(" · ")))
            .faint(format!("  {}", ago(point.time)))
    });
    lines
}

fn all<T>(lines: &mut Vec<Line>, word: &str, rows: &[T], show: impl Fn(&T) -> Line) {
    for (n, row) in rows.iter().enumerate() {
        lines.push(field(if n == 0 { word } else { "" }, show(row)));
    }
}

fn dependency(blocker: &Blocker) -> Line {
    let name = blocker.external.as_ref().map_or_else(|| blocker.id.short(), ToString::to_string);
    Line::of(format!("{name} "))
        .append(status(blocker.status))
        .faint(format!("  {}", one_line(&blocker.title, 80)))
}

fn one_step(step: &Step, now: Time) -> Line {
    let word = match (step.ended, step.success) {
        (None, _) => Line::toned(Tone::Accent, "goes on"),
        (Some(_), Some(false)) => Line::toned(Tone::Bad, "failed"),
        (Some(_), _) => Line::toned(Tone::Good, "done"),
    };
    let took = step.started.map(|started| words::span(step.ended.unwrap_or(now).since(started)));
    let who = step.session.map_or_else(|| "by hand".to_owned(), |id| format!("session {}", id.short()));
    let note = one_line(&step.note, 80);
    let rest = [Some(who), took, Some(note).filter(|note| !note.is_empty())];
    let rest: Vec<String> = rest.into_iter().flatten().collect();
    Line::of(format!("{} ", one_line(&step.name, 60))).append(word).faint(format!("  {}", rest.join(" · ")))
}

fn attempt(iteration: &Iteration, now: Time) -> Line {
    let result = iteration.result.map_or("goes on", |outcome| outcome.as_str());
    let took = words::span(iteration.ended.unwrap_or(now).since(iteration.started));
    let tokens = words::count(iteration.usage.input + iteration.usage.output);
    Line::of(format!("{} {result}", iteration.session.short())).faint(format!(
        "  {} · {} · {took} · {tokens} tokens · {}",
        iteration.name,
        iteration.provider,
        cost(iteration.cost)
    ))
}

/// Never nothing where it is not known.
fn cost(cost: Option<Dollars>) -> String {
    cost.map_or_else(|| "cost unknown".to_owned(), |cost| cost.to_string())
}

fn steps(ticket: &Ticket) -> Vec<(String, &'static str)> {
    let name = name(ticket);
    match ticket.status {
        Status::Initialized | Status::Queued | Status::Failed => vec![
            (format!("ostler ticket start {name}"), "has an agent work on it"),
            (format!("ostler ticket done {name}"), "says that it is done"),
        ],
        Status::Running => vec![
            (format!("ostler ls --ticket {name}"), "the sessions that work on it"),
            (format!("ostler ticket checkpoint {name} NAME"), "names a point to return to"),
        ],
        Status::Done | Status::Cancelled => vec![
            (format!("ostler ticket reopen {name}"), "has it worked on once more"),
            (format!("ostler ticket archive {name}"), "takes it out of the lists"),
        ],
        Status::Archived => vec![(format!("ostler ticket reopen {name}"), "has it worked on once more")],
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{
        TicketId, Usage,
        conversation::TurnRef,
        event::By,
        session::Outcome,
        ticket::{About, Checkpoint, Dated, Links, Output},
    };

    use super::*;
    use crate::testing::{self, NOW, ago};

    fn ticket(n: u128, intent: &str, status: Status) -> Ticket {
        Ticket {
            id: TicketId::new(ago(7_200), n),
            campaign: testing::campaign().id,
            about: About { intent: intent.to_owned(), kind: "bug".to_owned() },
            links: Links::default(),
            status,
            added: ago(7_200),
            by: By("ann".to_owned()),
            moved: ago(600),
            why: None,
        }
    }

    fn whole() -> Whole {
        let mut ticket = ticket(1, "Limit login attempts\nFive a minute for each address.", Status::Running);
        ticket.links.external = Some("gh:shop#412".parse().unwrap());
        let session = testing::session(4, "login-limit").id;
        let usage = Usage { input: 41_000, output: 2_200, ..Usage::default() };
        let attempt = |ended, result, cost| Iteration {
            session,
            name: "login-limit".to_owned(),
            provider: "claude-code".to_owned(),
            started: ago(3_000),
            ended,
            result,
            usage,
            cost,
            calls: 7,
        };
        let dated = |seconds| (ago(seconds), By("ann".to_owned()));
        let ((out_at, out_by), (point_at, point_by)) = (dated(300), dated(200));
        let output =
            Output { name: "report".to_owned(), kind: OutputKind::Path, value: "docs/report.md".to_owned() };
        let point = Checkpoint {
            name: "green".to_owned(),
            at: Some(TurnRef { session, turn: 3 }),
            snapshot: Some("deadbeef".to_owned()),
        };
        let step = |name: &str, ended, success| Step {
            name: name.to_owned(),
            session: Some(session),
            started: Some(ago(900)),
            ended,
            success,
            note: String::new(),
        };
        Whole {
            ticket,
            depends_on: vec![Blocker {
                id: TicketId::new(ago(7_200), 2),
                status: Status::Done,
                external: None,
                title: "Count requests".to_owned(),
            }],
            outputs: vec![Dated { what: output, time: out_at, by: out_by, session: Some(session) }],
            checkpoints: vec![Dated { what: point, time: point_at, by: point_by, session: None }],
            steps: vec![step("build", Some(ago(700)), Some(true)), step("test", None, None)],
            iterations: vec![
                attempt(Some(ago(2_000)), Some(Outcome::Oom), Some(Dollars(610_000))),
                attempt(None, None, None),
            ],
        }
    }

    #[test]
    fn in_all_looks() {
        let statuses = [Status::Running, Status::Queued, Status::Done, Status::Failed, Status::Archived];
        let intents =
            ["Limit login attempts, with tests that show that it is so", "Move the checkout", "b", "c", "d"];
        let rows = statuses.into_iter().zip(intents).enumerate();
        let rows: Vec<(Ticket, String)> = rows
            .map(|(n, (status, intent))| (ticket(n as u128, intent, status), "shop".to_owned()))
            .collect();
        assert_snapshot!(testing::in_all_looks(|look| table(&rows, NOW).lines(look)));
        assert_snapshot!(testing::in_all_looks(|look| {
            let one = lines(&whole(), "shop", NOW);
            testing::folded(&[one, empty(false), empty(true)].concat(), look)
        }));
    }
}
