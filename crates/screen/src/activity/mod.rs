//! What agents do, as it is read: one line a deed, a call and its result on the same one, floods folded.

mod told;

use std::{collections::VecDeque, time::Duration};

use ostler_client::Received;
use ostler_domain::{ApprovalId, Event, Time, event::ToolResult, text::one_line, text::visible};

pub use told::Told;
use told::VERB;

use super::{
    edit::{self, Changed},
    tell,
};
use crate::{Line, Tone, words};

/// Most calls that are remembered as open; agents have a handful.
const OPEN_CALLS: usize = 256;
/// Lines of foreign output that are shown before the rest of a flood is only counted.
const FLOOD_AFTER: u64 = 3;

#[derive(Debug)]
struct Call {
    tool_id: String,
    verb: String,
    summary: String,
    /// The call that started the sub-agent that made it.
    subagent: Option<String>,
    /// What it changes, where it says so.
    changed: Option<Changed>,
    since: Time,
}

impl Call {
    fn told(&self) -> Told {
        Told::new(self.verb.clone(), self.summary.clone()).by(self.subagent.as_ref())
    }
}

/// Turns events into deeds. Remembers calls until their results come.
#[derive(Debug, Default)]
pub struct Teller {
    everything: bool,
    /// What the agent prints on its standard error is not told, only kept.
    is_calm: bool,
    calls: VecDeque<Call>,
    /// Questions that nobody has answered yet: the last call waits for that.
    asked: Vec<ApprovalId>,
    flood: u64,
    errors: Errors,
}

/// The end of an agent's standard error: what there is to read when it fails.
#[derive(Debug, Default)]
struct Errors {
    last: VecDeque<Told>,
    count: u64,
}

impl Teller {
    /// Tells what the agent does, and what matters about its session.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same without what the agent prints on its standard error: some programs never stop talking there.
    pub fn calm() -> Self {
        Self { is_calm: true, ..Self::default() }
    }

    /// Tells every event, each on its own.
    pub fn of_everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Forgets what came before.
    pub fn reset(&mut self) {
        *self = Self { everything: self.everything, is_calm: self.is_calm, ..Self::default() };
    }

    /// What this event adds to the story.
    pub fn tell(&mut self, received: &Received) -> Vec<Told> {
        let recorded = match received {
            Received::Known(recorded) => recorded,
            Received::Unknown(unknown) => {
                let text = format!("{} (newer than this program)", unknown.kind.to_lowercase());
                return vec![Told::new("event", text).faint()];
            }
        };
        if self.everything {
            return vec![tell::tell(&recorded.event)];
        }
        let mut told = Vec::new();
        match &recorded.event {
            Event::AgentStderr(_) if self.is_calm => {
                self.errors.keep(tell::tell(&recorded.event));
                return told;
            }
            Event::AgentStderr(_) | Event::Opaque(_) | Event::Partial(_) => {
                self.flood += 1;
                if self.flood <= FLOOD_AFTER {
                    told.push(tell::tell(&recorded.event));
                }
                return told;
            }
            _ => told.extend(self.end_of_flood()),
        }
        match &recorded.event {
            Event::ApprovalRequested(asked) => self.asked.push(asked.id),
            Event::ApprovalAnswered(answered) => self.asked.retain(|id| *id != answered.id),
            _ => {}
        }
        match &recorded.event {
            Event::AgentToolCall(call) => {
                if self.calls.len() == OPEN_CALLS {
                    told.extend(self.calls.pop_front().map(|call| without_result(&call)));
                }
                self.calls.push_back(Call {
                    tool_id: call.tool_id.clone(),
                    verb: tell::tool(&call.tool),
                    summary: one_line(&call.summary, 400),
                    subagent: call.subagent.clone(),
                    changed: edit::changed(&call.input),
                    since: recorded.time,
                });
            }
            Event::AgentToolResult(result) => {
                let place = self.calls.iter().position(|call| call.tool_id == result.tool_id);
                told.push(match place.and_then(|place| self.calls.remove(place)) {
                    Some(call) => with_result(&call, result, recorded.time.since(call.since)),
                    None => tell::tell(&recorded.event),
                });
            }
            event if is_noise(event) => {}
            event => {
                // A sub-agent in the background works on when the turn that sent it has ended.
                let is_over = match event {
                    Event::TurnEnded(_) => |call: &Call| call.subagent.is_none(),
                    Event::SessionStopped(_) | Event::SessionFailed(_) => |_: &Call| true,
                    _ => |_: &Call| false,
                };
                let (over, open): (VecDeque<Call>, VecDeque<Call>) =
                    std::mem::take(&mut self.calls).into_iter().partition(is_over);
                self.calls = open;
                told.extend(over.iter().map(without_result));
                if !is_orderly_turn(event) {
                    told.push(tell::tell(event));
                }
            }
        }
        told
    }

    /// What is not told yet: calls without a result, which run while their session lives, and the size of a flood. `lives`:
    /// what time it is there.
    pub fn rest(&mut self, lives: Option<Time>) -> Vec<Told> {
        let flood = self.end_of_flood();
        let waiting = if self.asked.is_empty() { None } else { self.calls.pop_back() };
        let waiting = waiting.map(|call| call.told().right("waits for approval").tone(Tone::Warn));
        let calls = self.calls.drain(..).map(|call| match lives {
            Some(now) => call.told().right(format!("running {}", words::span(now.since(call.since)))),
            None => without_result(&call),
        });
        flood.into_iter().chain(calls).chain(waiting).collect()
    }

    /// The last lines of standard error that were kept to ourselves, for who wants to know why it failed.
    pub fn last_errors(&mut self) -> Vec<Told> {
        let Errors { last, count } = std::mem::take(&mut self.errors);
        let earlier = count.saturating_sub(last.len() as u64);
        let before = (earlier > 0).then(|| {
            Told::new("stderr", format!("… {} before these", words::plural(earlier, "line", "lines"))).faint()
        });
        before.into_iter().chain(last).collect()
    }

    /// The call that runs now, and how long.
    pub fn running(&self, now: Time) -> Option<Line> {
        let call = self.calls.back()?;
        let head =
            Line::of("  ").append(Line::of(&call.verb).padded(VERB - 1)).plain(" ").plain(&call.summary);
        Some(head.faint(format!("  {}", words::span(now.since(call.since)))))
    }

    fn end_of_flood(&mut self) -> Option<Told> {
        let flood = std::mem::take(&mut self.flood);
        (flood > FLOOD_AFTER).then(|| {
            Told::new("raw", format!("… and {} more lines", words::number(flood - FLOOD_AFTER))).faint()
        })
    }
}

impl Errors {
    fn keep(&mut self, told: Told) {
        self.count += 1;
        self.last.push_back(told);
        if self.last.len() as u64 > FLOOD_AFTER {
            self.last.pop_front();
        }
    }
}

fn with_result(call: &Call, result: &ToolResult, took: Duration) -> Told {
    let exit = result.exit.map(|code| code.to_string()).unwrap_or_default();
    let (tone, sign) = if result.success { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
    // The last line says how it ended: test runners and compilers put their verdict there.
    let verdict = visible(&result.output);
    let verdict = verdict.trim_end().lines().next_back().unwrap_or_default();
    // Of an edit it is what it changed.
    let changed = call.changed.filter(|_| result.success).map(Changed::words);
    let verdict = changed.as_deref().unwrap_or(verdict);
    let right = Line::toned(tone, sign)
        .with(tone, format!(" {exit:<3}"))
        .faint(format!(" {:>7}", words::took(took)))
        .faint(format!("  {}", one_line(verdict, 60)));
    call.told().came_to(right, result.success, result.exit)
}

fn without_result(call: &Call) -> Told {
    call.told().right("no result")
}

/// Facts that a reader of the story can do without.
fn is_noise(event: &Event) -> bool {
    matches!(
        event,
        Event::UsageRecorded(_)
            | Event::ContextMeasured(_)
            | Event::MessageSent(_)
            | Event::MessageDelivered(_)
            | Event::MessageSeen(_)
            | Event::MessageAnswered(_)
            | Event::ConversationOpened(_)
            | Event::SessionStarting(_)
            | Event::SessionSpawned(_)
            | Event::LoginLent(_)
    )
}

fn is_orderly_turn(event: &Event) -> bool {
    match event {
        Event::TurnStarted(_) => true,
        Event::TurnEnded(turn) => turn.stop_reason == ostler_domain::event::StopReason::Completed,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
