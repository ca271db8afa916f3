//! Missions in words: what happened to them, the list, and one of them.

pub mod list;
pub mod show;

use std::time::Duration;

use ostler_domain::{AssignmentId, Event, mission::AssignmentStatus, text::one_line};

use super::activity::Told;
use crate::{Tone, words};

/// How much of a reason is shown.
const SHORT: usize = 200;

/// Says what happened to a mission. Assignments are named by what lists show of their ids.
pub fn tell(event: &Event) -> Told {
    tell_with(event, |id| id.short())
}

/// The same, where the names of the assignments are known.
pub fn tell_with(event: &Event, name: impl Fn(AssignmentId) -> String) -> Told {
    let of = |id: ostler_domain::MissionId| format!("mission {}", id.short());
    let because = |text: String, why: &str| match why.trim() {
        "" => text,
        why => format!("{text}: {}", one_line(why, SHORT)),
    };
    let count = |n: usize| words::plural(n as u64, "assignment", "assignments");
    match event {
        Event::MissionCreated(created) => {
            let (strategy, agents) = (created.plan.strategy.as_str(), count(created.assignments.len()));
            let objective = one_line(&created.plan.objective, SHORT);
            Told::new("mission", format!("{} · {strategy}, {agents} · {objective}", created.name))
        }
        Event::MissionStarted(started) => {
            Told::new("started", format!("{} by {}", of(started.mission), started.by.0))
        }
        Event::MissionPaused(paused) => {
            let text = because(format!("{} by {}", of(paused.mission), paused.by.0), &paused.why);
            Told::new("paused", text).tone(Tone::Warn)
        }
        Event::MissionResumed(resumed) => {
            Told::new("resumed", format!("{} by {}", of(resumed.mission), resumed.by.0))
        }
        Event::MissionHeld(held) => Told::new("held", because(of(held.mission), &held.why)).tone(Tone::Warn),
        Event::MissionReleased(released) => {
            let hold = released.hold.as_str();
            Told::new("released", format!("{}, held for {hold}, by {}", of(released.mission), released.by.0))
        }
        Event::MissionBudgetWarned(warned) => {
            Told::new("budget", because(of(warned.mission), &warned.why)).tone(Tone::Warn)
        }
        Event::MissionBudgetChanged(changed) => {
            let budget = changed.budget.map_or_else(|| "none".to_owned(), |budget| budget.to_string());
            Told::new("budget", format!("{}: {budget} by {}", of(changed.mission), changed.by.0))
        }
        Event::MissionStopRequested(stop) => {
            let text = format!("{} ({}) by {}", of(stop.mission), stop.rule.as_str(), stop.by.0);
            Told::new("stop", because(text, &stop.why)).tone(Tone::Warn)
        }
        Event::MissionEnded(ended) => {
            let text = because(format!("{} {}", of(ended.mission), ended.status.as_str()), &ended.why);
            Told::new("ended", text).tone(Tone::Strong)
        }
        Event::AssignmentsReady(ready) => {
            Told::new("ready", format!("{} of {}", count(ready.assignments.len()), of(ready.mission))).faint()
        }
        Event::AssignmentStarted(started) => {
            let (id, session) = (name(started.assignment), started.session.short());
            Told::new("begins", format!("{id} attempt {} · session {session}", started.attempt))
        }
        Event::AssignmentMoved(moved) => {
            Told::new("moved", format!("{} to session {}", name(moved.assignment), moved.session.short()))
        }
        Event::AssignmentCheckStarted(check) => {
            let command = one_line(&check.command, SHORT);
            Told::new("check", format!("{}: {command}", name(check.assignment))).faint()
        }
        Event::AssignmentRetried(retried) if retried.awaits.is_some() => {
            Told::new("waits", because(name(retried.assignment), &retried.why)).tone(Tone::Warn)
        }
        Event::AssignmentRetried(retried) => {
            let text = format!("{} after attempt {}", name(retried.assignment), retried.attempt);
            Told::new("again", because(text, &retried.why)).tone(Tone::Warn)
        }
        Event::AssignmentEnded(ended) => {
            let text = format!("{} {}", name(ended.assignment), ended.status.as_str());
            let tone = match ended.status {
                AssignmentStatus::Failed => Tone::Bad,
                AssignmentStatus::Completed => Tone::Strong,
                _ => Tone::Warn,
            };
            let verb = match ended.status {
                AssignmentStatus::Failed => "failed",
                AssignmentStatus::Completed => "done",
                _ => "left",
            };
            Told::new(verb, because(text, &ended.why)).tone(tone)
        }
        Event::AssignmentsReopened(reopened) => {
            let (count, by) = (count(reopened.assignments.len()), &reopened.by.0);
            Told::new("reopened", format!("{count} of {} by {by}", of(reopened.mission)))
        }
        Event::AssignmentsAdded(added) => {
            let (count, by) = (count(added.assignments.len()), &added.by.0);
            Told::new("added", format!("{count} to {} by {by}", of(added.mission)))
        }
        Event::AssignmentsRemoved(removed) => {
            let (count, by) = (count(removed.assignments.len()), &removed.by.0);
            Told::new("removed", format!("{count} of {} by {by}", of(removed.mission)))
        }
        Event::AssignmentNudged(nudged) => {
            let text = because(name(nudged.assignment), &nudged.evidence);
            Told::new("nudged", text).tone(Tone::Warn)
        }
        Event::AssignmentBegan(began) => {
            let waited = words::took(Duration::from_micros(began.waited_us));
            Told::new("begins", format!("{} after {waited} in the line", name(began.assignment))).faint()
        }
        Event::AssignmentUnstuck(unstuck) => Told::new("gets on", name(unstuck.assignment)).faint(),
        Event::CollisionForecast(forecast) => {
            let (one, other) = (name(forecast.one), name(forecast.other));
            match forecast.paths.is_empty() {
                true => Told::new("forecast", format!("{one} and {other} merge again")),
                false => {
                    let paths = one_line(&forecast.paths.join(", "), SHORT);
                    Told::new("forecast", format!("{one} and {other} collide in {paths}")).tone(Tone::Warn)
                }
            }
        }
        Event::MergeStarted(started) => {
            let branches = words::plural(started.assignments.len() as u64, "branch", "branches");
            Told::new("merge", format!("{branches} of {} into {}", of(started.mission), started.into))
        }
        Event::MergeChecked(checked) => {
            Told::new("merge", format!("of {} passed its gate", of(checked.mission))).faint()
        }
        Event::MergeMoving(moving) => {
            Told::new("merge", format!("of {} moves the branch", of(moving.mission))).faint()
        }
        Event::MergeEnded(ended) if ended.ok => Told::new("merged", of(ended.mission)).tone(Tone::Strong),
        Event::MergeEnded(ended) => {
            let text = format!("of {} failed", of(ended.mission));
            Told::new("merge", because(text, &ended.output)).tone(Tone::Bad)
        }
        Event::MissionArchived(archived) => {
            let trees = words::plural(u64::from(archived.worktrees), "work tree", "work trees");
            let text =
                format!("what {} left behind, with {trees}, by {}", of(archived.mission), archived.by.0);
            Told::new("archived", because(text, &archived.rule)).faint()
        }
        // The caller knows which events are a mission's.
        _ => Told::new("mission", event.kind().name().to_owned()),
    }
}
