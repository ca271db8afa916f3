//! How long what was said is kept: plans, and how sessions stand.

use ostler_domain::{
    Event, Time,
    retention::{Planned, Stage, Standing, Step},
    text::one_line,
};

use super::activity::Told;
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

pub(crate) fn plan(steps: &[Planned], now: Time) -> Table {
    let columns = [
        Column::new("STEP"),
        Column::new("ID"),
        Column::new("NAME"),
        Column::new("CAMPAIGN").goes(1),
        Column::new("ENDED").right().goes(2),
        Column::new("WHY").gives_way_to(24),
    ];
    let mut table = Table::new(columns);
    for planned in steps {
        let standing = &planned.standing;
        let why = match (&planned.spared, planned.step) {
            (Some(why), _) => Line::new().faint(format!("spared: {why}")),
            (None, Step::Mark { due }) => Line::of(format!("{} · for good {}", planned.rule, when(due, now))),
            (None, _) => Line::of(&planned.rule),
        };
        table.row(vec![
            step(planned),
            Line::of(standing.session.short()),
            Line::new().strong(standing.name.as_str()),
            Line::of(&standing.campaign_name),
            ago(standing.ended, now),
            why,
        ]);
    }
    table
}

fn step(planned: &Planned) -> Line {
    let word = planned.step.as_str();
    match planned.step {
        _ if planned.spared.is_some() => Line::new().faint(word),
        Step::Delete => Line::toned(Tone::Bad, word),
        Step::Mark { .. } => Line::toned(Tone::Warn, word),
        Step::Archive | Step::Unmark => Line::of(word),
    }
}

/// `3 to archive · 1 to announce · 2 to delete for good · 4 spared`
pub(crate) fn sum(steps: &[Planned]) -> String {
    let count = |fits: fn(Step) -> bool| {
        steps.iter().filter(|planned| planned.spared.is_none() && fits(planned.step)).count() as u64
    };
    let parts = [
        (count(|step| step == Step::Archive), "to archive"),
        (count(|step| matches!(step, Step::Mark { .. })), "to announce as deleted"),
        (count(|step| step == Step::Unmark), "to keep after all"),
        (count(|step| step == Step::Delete), "to delete for good"),
        (steps.iter().filter(|planned| planned.spared.is_some()).count() as u64, "spared"),
    ];
    let said = parts.into_iter().filter(|(n, _)| *n > 0);
    said.map(|(n, what)| format!("{} {what}", words::number(n))).collect::<Vec<_>>().join(" · ")
}

/// What was done with a session, in a line.
pub(crate) fn done(planned: &Planned, now: Time) -> Line {
    let what = match (&planned.spared, planned.step) {
        (Some(why), _) => return Line::of("  ").append(name(&planned.standing)).faint(format!("  {why}")),
        (None, Step::Archive) => "archived".to_owned(),
        (None, Step::Mark { due }) => format!("is deleted for good {}", when(due, now)),
        (None, Step::Unmark) => "is not deleted any more".to_owned(),
        (None, Step::Delete) => "deleted".to_owned(),
    };
    Line::toned(Tone::Good, "✓ ").append(name(&planned.standing)).plain(format!("  {what}"))
}

fn name(standing: &Standing) -> Line {
    Line::new().strong(standing.name.as_str()).faint(format!(" {}", standing.session.short()))
}

pub(crate) fn table(rows: &[Standing], now: Time) -> Table {
    let columns = [
        Column::new("ID"),
        Column::new("NAME"),
        Column::new("CAMPAIGN").goes(1),
        Column::new("RECORD"),
        Column::new("ENDED").right().goes(2),
        Column::new("WHY").gives_way_to(24),
    ];
    let mut table = Table::new(columns);
    for standing in rows {
        table.row(vec![
            Line::of(standing.session.short()),
            Line::new().strong(standing.name.as_str()),
            Line::of(&standing.campaign_name),
            record(standing, now),
            ago(standing.ended, now),
            Line::new().faint(why(standing)),
        ]);
    }
    table
}

/// How the record of a session stands: `archived 3d ago`.
pub(crate) fn record(standing: &Standing, now: Time) -> Line {
    let kept = &standing.kept;
    let since =
        |at: Option<Time>| at.map(|at| format!(" {} ago", words::age(now.since(at)))).unwrap_or_default();
    let line = match kept.stage() {
        Stage::Hot => Line::of("as it was"),
        Stage::Archived => Line::of(format!("archived{}", since(kept.archived))),
        Stage::Marked => {
            let due = kept.due.map(|due| when(due, now)).unwrap_or_default();
            Line::toned(Tone::Warn, format!("is deleted for good {due}"))
        }
        Stage::Deleted => Line::of(format!("what was said was deleted{}", since(kept.deleted))),
    };
    match &kept.held {
        Some(hold) => line.plain(format!(" · held by {}", hold.by.0)),
        None => line,
    }
}

fn why(standing: &Standing) -> String {
    let held = standing.kept.held.as_ref().map(|hold| one_line(&hold.why, 120));
    held.filter(|why| !why.is_empty()).or_else(|| standing.kept.rule.clone()).unwrap_or_default()
}

fn ago(at: Option<Time>, now: Time) -> Line {
    at.map_or_else(|| Line::new().faint("–"), |at| Line::of(format!("{} ago", words::age(now.since(at)))))
}

/// `in 14d`, and `at once` for what is over.
fn when(due: Time, now: Time) -> String {
    if due <= now { "at once".to_owned() } else { format!("in {}", words::age(due.since(now))) }
}

pub(crate) fn nothing() -> Vec<Line> {
    vec![
        Line::of("No rule has anything to do. Without one nothing is ever archived or deleted."),
        Line::of("  ")
            .with(Tone::Accent, "ostler campaign set SHOP retention.archive_after=30d")
            .faint("   archives what ended 30 days ago"),
    ]
}

/// Events about records.
pub(super) fn tell(event: &Event) -> Told {
    match event {
        Event::SessionArchived(archived) => {
            let (from, to) = (words::bytes(archived.bytes), words::bytes(archived.archived_bytes));
            Told::new("archived", format!("{} · {from} → {to} · {}", archived.session.short(), archived.rule))
                .faint()
        }
        Event::SessionRestored(restored) => {
            let why = if restored.why.is_empty() { String::new() } else { format!(" ({})", restored.why) };
            Told::new("restored", format!("{} by {}{why}", restored.session.short(), restored.by.0))
        }
        Event::DeletionMarked(marked) => {
            let due = words::rfc3339(marked.due);
            let text =
                format!("{} is deleted for good after {due} · {}", marked.session.short(), marked.rule);
            Told::new("marked", text).tone(Tone::Warn)
        }
        Event::SessionDeleted(deleted) => {
            let text = format!("what was said in {} · {}", deleted.session.short(), deleted.rule);
            Told::new("deleted", text).tone(Tone::Warn)
        }
        Event::RetentionHeld(held) => {
            let word = if held.is_held { "no rule touches" } else { "rules are followed again for" };
            let why =
                if held.why.is_empty() { String::new() } else { format!(" ({})", one_line(&held.why, 160)) };
            Told::new("held", format!("{word} {} · {}{why}", held.session.short(), held.by.0))
        }
        _ => Told::new("record", "changed"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_domain::{
        CampaignId, SessionId,
        event::By,
        retention::{Hold, Kept},
    };

    use super::*;
    use crate::output::Look;

    fn day(n: u64) -> Time {
        Time::from_micros(1_763_000_000_000_000).plus(Duration::from_secs(n * 86_400))
    }

    fn standing(name: &str, kept: Kept) -> Standing {
        Standing {
            session: SessionId::new(day(0), 7),
            name: name.parse().unwrap(),
            campaign: CampaignId::new(day(0), 1),
            campaign_name: "shop".to_owned(),
            ended: Some(day(0)),
            kept,
        }
    }

    #[test]
    fn a_plan_says_what_is_done_to_whom_and_why() {
        let planned = |name, step, rule: &str, spared: Option<&str>| Planned {
            standing: standing(name, Kept::default()),
            step,
            rule: rule.to_owned(),
            spared: spared.map(str::to_owned),
        };
        let steps = [
            planned("api", Step::Archive, "retention.archive_after=30d", None),
            planned("docs", Step::Mark { due: day(54) }, "retention.delete_after=40d", None),
            planned("old", Step::Delete, "retention.delete_after=40d", None),
            planned("kept", Step::Delete, "", Some("somebody holds it")),
        ];
        let shown: Vec<String> = plan(&steps, day(40))
            .lines(&Look::plain(Some(100)))
            .iter()
            .map(|line| line.show(&Look::plain(Some(100))).trim_end().to_owned())
            .collect();
        insta::assert_snapshot!(shown.join("\n"));
        assert_eq!(sum(&steps), "1 to archive · 1 to announce as deleted · 1 to delete for good · 1 spared");
    }

    #[test]
    fn how_a_session_stands_is_one_line() {
        let shown = |kept| record(&standing("api", kept), day(40)).show(&Look::plain(None));
        let held = Some(Hold { by: By("ann".to_owned()), why: "audit".to_owned(), since: day(1) });
        assert_eq!(shown(Kept { archived: Some(day(30)), ..Kept::default() }), "archived 10d ago");
        assert_eq!(shown(Kept { due: Some(day(45)), ..Kept::default() }), "is deleted for good in 5d");
        let deleted = Kept { archived: Some(day(1)), deleted: Some(day(39)), ..Kept::default() };
        assert_eq!(shown(deleted), "what was said was deleted 1d ago");
        assert_eq!(shown(Kept { held, ..Kept::default() }), "as it was · held by ann");
    }
}
