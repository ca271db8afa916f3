//! How long what was said is kept: plans, and how sessions stand.

use ostler_domain::{
    Event, Time,
    retention::{MissionStep, Planned, Stage, Standing, Step},
    text::one_line,
};

use super::activity::Told;
use crate::{Column, Line, Table, Tone, words};

/// What a rule says, and what came of it.
#[derive(Debug, Clone)]
pub enum Entry {
    Session(Planned),
    /// What a mission left behind.
    Mission(MissionStep),
}

impl Entry {
    pub fn id(&self) -> String {
        match self {
            Entry::Session(planned) => planned.standing.session.to_string(),
            Entry::Mission(step) => step.mission.to_string(),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Entry::Session(planned) => planned.standing.name.as_str(),
            Entry::Mission(step) => step.name.as_str(),
        }
    }

    pub fn spared(&self) -> Option<&str> {
        match self {
            Entry::Session(planned) => planned.spared.as_deref(),
            Entry::Mission(step) => step.spared.as_deref(),
        }
    }

    fn short(&self) -> String {
        match self {
            Entry::Session(planned) => planned.standing.session.short(),
            Entry::Mission(step) => step.mission.short(),
        }
    }

    fn step(&self) -> Step {
        match self {
            Entry::Session(planned) => planned.step,
            Entry::Mission(_) => Step::Archive,
        }
    }

    fn rule(&self) -> String {
        match self {
            Entry::Session(planned) => planned.rule.clone(),
            Entry::Mission(step) => {
                let trees = words::plural(u64::from(step.worktrees), "work tree", "work trees");
                format!("{} · shared directory, {trees}", step.rule)
            }
        }
    }

    fn of(&self) -> (&str, Option<Time>) {
        match self {
            Entry::Session(planned) => (&planned.standing.campaign_name, planned.standing.ended),
            Entry::Mission(step) => (&step.campaign_name, Some(step.ended)),
        }
    }
}

pub fn plan(entries: &[Entry], now: Time) -> Table {
    let columns = [
        Column::new("STEP"),
        Column::new("ID"),
        Column::new("NAME"),
        Column::new("CAMPAIGN").goes(1),
        Column::new("ENDED").right().goes(2),
        Column::new("WHY").gives_way_to(24),
    ];
    let mut table = Table::new(columns);
    for entry in entries {
        let why = match (entry.spared(), entry.step()) {
            (Some(why), _) => Line::new().faint(format!("spared: {why}")),
            (None, Step::Mark { due }) => Line::of(format!("{} · for good {}", entry.rule(), when(due, now))),
            (None, _) => Line::of(entry.rule()),
        };
        let (campaign, ended) = entry.of();
        table.row(vec![
            step(entry),
            Line::of(entry.short()),
            Line::new().strong(entry.name()),
            Line::of(campaign),
            ago(ended, now),
            why,
        ]);
    }
    table
}

fn step(entry: &Entry) -> Line {
    let word = entry.step().as_str();
    match entry.step() {
        _ if entry.spared().is_some() => Line::new().faint(word),
        Step::Delete => Line::toned(Tone::Bad, word),
        Step::Mark { .. } => Line::toned(Tone::Warn, word),
        Step::Archive | Step::Unmark => Line::of(word),
    }
}

/// `3 to archive · 1 to announce · 2 to delete for good · 4 spared`
pub fn sum(entries: &[Entry]) -> String {
    let count = |fits: fn(Step) -> bool| {
        entries.iter().filter(|entry| entry.spared().is_none() && fits(entry.step())).count() as u64
    };
    let parts = [
        (count(|step| step == Step::Archive), "to archive"),
        (count(|step| matches!(step, Step::Mark { .. })), "to announce as deleted"),
        (count(|step| step == Step::Unmark), "to keep after all"),
        (count(|step| step == Step::Delete), "to delete for good"),
        (entries.iter().filter(|entry| entry.spared().is_some()).count() as u64, "spared"),
    ];
    let said = parts.into_iter().filter(|(n, _)| *n > 0);
    said.map(|(n, what)| format!("{} {what}", words::number(n))).collect::<Vec<_>>().join(" · ")
}

/// What was done with a session, or with what a mission left behind, in a line.
pub fn done(entry: &Entry, now: Time) -> Line {
    let name = Line::new().strong(entry.name()).faint(format!(" {}", entry.short()));
    let what = match (entry, entry.step()) {
        _ if entry.spared().is_some() => {
            let why = entry.spared().unwrap_or_default();
            return Line::of("  ").append(name).faint(format!("  {why}"));
        }
        (Entry::Mission(step), _) => cleared(step),
        (_, Step::Archive) => "archived".to_owned(),
        (_, Step::Mark { due }) => format!("is deleted for good {}", when(due, now)),
        (_, Step::Unmark) => "is not deleted any more".to_owned(),
        (_, Step::Delete) => "deleted".to_owned(),
    };
    Line::toned(Tone::Good, "✓ ").append(name).plain(format!("  {what}"))
}

/// `archived: shared directory 12 KiB → 3 KiB, 3 work trees removed`.
pub fn cleared(step: &MissionStep) -> String {
    if (step.bytes, step.archived_bytes, step.worktrees) == (0, 0, 0) {
        return "nothing was left to archive or to remove".to_owned();
    }
    let (from, to) = (words::bytes(step.bytes), words::bytes(step.archived_bytes));
    let trees = words::plural(u64::from(step.worktrees), "work tree", "work trees");
    format!("archived: shared directory {from} → {to}, {trees} removed")
}

pub fn table(rows: &[Standing], now: Time) -> Table {
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
pub fn record(standing: &Standing, now: Time) -> Line {
    let kept = &standing.kept;
    let since =
        |at: Option<Time>| at.map(|at| format!(" {} ago", words::age(now.since(at)))).unwrap_or_default();
    let due = || kept.due.map(|due| when(due, now)).unwrap_or_default();
    let line = match (kept.stage(), &kept.held) {
        (Stage::Hot, _) => Line::of("as it was"),
        (Stage::Archived, _) => Line::of(format!("archived{}", since(kept.archived))),
        (Stage::Marked, None) => Line::toned(Tone::Warn, format!("is deleted for good {}", due())),
        (Stage::Marked, Some(hold)) => {
            return Line::of(format!("to be deleted {}, and not while {} holds it", due(), hold.by.0));
        }
        (Stage::Deleted, _) => Line::of(format!("what was said was deleted{}", since(kept.deleted))),
    };
    match &kept.held {
        Some(hold) => line.plain(format!(" · held by {}", hold.by.0)),
        None => line,
    }
}

/// What is marked and waits for its time, in a line each: who goes when, and who stays because somebody holds it.
pub fn marked(waiting: &[Standing], now: Time) -> Vec<Line> {
    let (held, going): (Vec<_>, Vec<_>) = waiting.iter().partition(|standing| standing.kept.held.is_some());
    let dues = || going.iter().filter_map(|standing| standing.kept.due);
    let mut lines = Vec::new();
    if let (Some(first), Some(last)) = (dues().min(), dues().max()) {
        let (first, last) = (when(first, now), when(last, now));
        let span = if first == last { first } else { format!("{first} to {last}") };
        let count = words::plural(going.len() as u64, "session", "sessions");
        let text = format!("{count} marked: what was said there is deleted for good {span}.");
        lines.push(Line::toned(Tone::Warn, text).faint("   ostler retention ls lists them"));
    }
    if !held.is_empty() {
        let count = words::plural(held.len() as u64, "marked session", "marked sessions");
        lines.push(Line::of(format!("{count} held: not deleted while somebody holds them.")));
    }
    lines
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

/// What is said where there is no step to take.
pub fn nothing(waiting: &[Standing], now: Time) -> Vec<Line> {
    if !waiting.is_empty() {
        let mut lines = vec![Line::of("No rule has anything to do now.")];
        lines.extend(marked(waiting, now));
        return lines;
    }
    vec![
        Line::of("No rule has anything to do now. What none is about is never archived or deleted."),
        Line::of("  ")
            .with(Tone::Accent, "ostler campaign set SHOP retention.archive_after=30d")
            .faint("   archives what ended 30 days ago"),
    ]
}

/// Events about records.
pub fn tell(event: &Event) -> Told {
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
    use crate::Look;

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
        let planned = |name, step, rule: &str, spared: Option<&str>| {
            let (rule, spared) = (rule.to_owned(), spared.map(str::to_owned));
            Entry::Session(Planned { standing: standing(name, Kept::default()), step, rule, spared })
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
    fn what_a_mission_left_behind_stands_among_them() {
        let mut step = MissionStep {
            mission: ostler_domain::MissionId::new(day(0), 3),
            name: "cart".parse().unwrap(),
            campaign: CampaignId::new(day(0), 1),
            campaign_name: "shop".to_owned(),
            status: ostler_domain::mission::Status::Completed,
            ended: day(30),
            rule: "retention.missions=completed:7d".to_owned(),
            worktrees: 3,
            bytes: 4096,
            archived_bytes: 1024,
            spared: None,
        };
        let look = Look::plain(None);
        let row =
            |step: &MissionStep| plan(&[Entry::Mission(step.clone())], day(40)).lines(&look)[1].show(&look);
        let shown = row(&step);
        assert!(
            shown.contains("retention.missions=completed:7d · shared directory, 3 work trees"),
            "{shown}"
        );
        let shown = done(&Entry::Mission(step.clone()), day(40)).show(&look);
        assert!(shown.contains("4.0 KiB → 1.0 KiB, 3 work trees removed"), "{shown}");
        step.spared = Some("its work tree db is kept: 1 file uncommitted".to_owned());
        assert!(row(&step).contains("spared: its work tree db is kept"), "{}", row(&step));
        assert_eq!(sum(&[Entry::Mission(step)]), "1 spared");
    }

    #[test]
    fn how_a_session_stands_is_one_line() {
        let shown = |kept| record(&standing("api", kept), day(40)).show(&Look::plain(None));
        let held = Some(Hold { by: By("ann".to_owned()), why: "audit".to_owned(), since: day(1) });
        assert_eq!(shown(Kept { archived: Some(day(30)), ..Kept::default() }), "archived 10d ago");
        assert_eq!(shown(Kept { due: Some(day(45)), ..Kept::default() }), "is deleted for good in 5d");
        let deleted = Kept { archived: Some(day(1)), deleted: Some(day(39)), ..Kept::default() };
        assert_eq!(shown(deleted), "what was said was deleted 1d ago");
        assert_eq!(shown(Kept { held: held.clone(), ..Kept::default() }), "as it was · held by ann");
        let spared = Kept { due: Some(day(45)), held, ..Kept::default() };
        assert_eq!(shown(spared), "to be deleted in 5d, and not while ann holds it");
    }

    #[test]
    fn what_is_marked_is_named_with_its_time_though_no_rule_has_anything_to_do() {
        let hold = Hold { by: By("ann".to_owned()), why: String::new(), since: day(1) };
        let waiting = [(41, None), (45, None), (45, Some(hold))]
            .map(|(due, held)| standing("api", Kept { due: Some(day(due)), held, ..Kept::default() }));
        let shown = |waiting: &[Standing]| {
            let lines = nothing(waiting, day(40));
            lines.iter().map(|line| line.show(&Look::plain(None))).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&waiting),
            [
                "No rule has anything to do now.",
                "2 sessions marked: what was said there is deleted for good in 1d to in 5d.   ostler retention ls lists them",
                "1 marked session held: not deleted while somebody holds them.",
            ]
        );
        assert!(shown(&[])[0].ends_with("What none is about is never archived or deleted."));
    }
}
