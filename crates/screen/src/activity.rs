//! What agents do, as it is read: one line a deed, a call and its result on the same one, floods folded.

use std::{collections::VecDeque, time::Duration};

use ostler_client::Received;
use ostler_domain::{ApprovalId, Event, Time, event::ToolResult, text::one_line, text::visible};

use super::{
    edit::{self, Changed},
    tell,
};
use crate::{Line, Tone, words};

/// Columns of the verb.
const VERB: usize = 8;
/// Where the result of a call stands, when its text leaves room.
const TEXT: usize = 40;
/// Most calls that are remembered as open; agents have a handful.
const OPEN_CALLS: usize = 256;
/// Lines of foreign output that are shown before the rest of a flood is only counted.
const FLOOD_AFTER: u64 = 3;

/// One deed in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    verb: String,
    tone: Tone,
    text: String,
    right: Line,
    /// Further lines of a text that is shown whole.
    rest: Vec<String>,
    /// How a call ended: well or not, and with which code.
    ended: Option<(bool, Option<i32>)>,
}

impl Told {
    pub fn new(verb: impl Into<String>, text: impl Into<String>) -> Self {
        let (verb, text) = (verb.into(), text.into());
        Self { verb, tone: Tone::Plain, text, right: Line::new(), rest: Vec::new(), ended: None }
    }

    /// Where deeds are laid out in another way than as lines.
    pub fn parts(&self) -> (&str, Tone, String) {
        let text = [&self.text].into_iter().chain(&self.rest).map(String::as_str).collect::<Vec<_>>();
        (&self.verb, self.tone, text.join("\n"))
    }

    /// Whether this is the same deed once more, with the same end.
    pub fn repeats(&self, other: &Told) -> bool {
        let deed = |told: &Told| (told.verb.clone(), told.text.clone(), told.ended);
        deed(self) == deed(other) && self.rest == other.rest
    }

    /// The deed, done so often in a row.
    pub fn times(self, count: u64) -> Self {
        match count {
            0 | 1 => self,
            _ => {
                let times = Line::toned(Tone::Warn, format!("× {}", words::number(count)));
                let space = if self.right.is_empty() { "" } else { "  " };
                Self { right: times.plain(space).append(self.right), ..self }
            }
        }
    }

    /// A text with all its lines.
    pub fn whole(verb: &str, text: &str) -> Self {
        let text = visible(text.trim());
        let mut lines = text.lines().map(str::to_owned);
        let first = lines.next().unwrap_or_default();
        Self { rest: lines.collect(), ..Self::new(verb, first) }
    }

    /// A text of the agent's, as it stands among its deeds.
    pub fn said(text: &str) -> Self {
        Self::whole("say", text)
    }

    /// The same, marked where a sub-agent did it.
    #[must_use]
    pub fn by(self, subagent: Option<&String>) -> Self {
        match subagent {
            Some(_) => Self { text: format!("↳ {}", self.text), ..self },
            None => self,
        }
    }

    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    #[must_use]
    pub fn faint(self) -> Self {
        self.tone(Tone::Faint)
    }

    #[must_use]
    pub fn right(self, text: impl AsRef<str>) -> Self {
        Self { right: Line::new().faint(text), ..self }
    }

    /// The lines, each after the prefix, the first within the width.
    pub fn lines(&self, prefix: &Line, width: Option<usize>) -> Vec<Line> {
        let verb = Line::toned(self.tone, &self.verb).padded(VERB - 1);
        let text_tone = if self.tone == Tone::Faint { Tone::Faint } else { Tone::Plain };
        let head = prefix.clone().append(verb).plain(" ");
        let indent = " ".repeat(head.width());
        let text = Line::toned(text_tone, &self.text);
        let first = if self.right.is_empty() {
            head.append(text)
        } else {
            // Results stand in a column of their own; what a narrow screen has left is shared.
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(head.width()));
            let column = TEXT.min(room / 5 * 3);
            let most = room.saturating_sub(self.right.width() + 2).max(column);
            head.append(text.cut(most).padded(column)).plain("  ").append(self.right.clone())
        };
        let whole = !self.rest.is_empty() || self.verb == "say" || self.verb == "error";
        let first = match width {
            Some(width) if !whole => first.cut(width),
            _ => first,
        };
        let rest = self.rest.iter().map(|text| Line::of(&indent).with(text_tone, text));
        [first].into_iter().chain(rest).collect()
    }
}

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
    let ended = Some((result.success, result.exit));
    Told { right, ended, ..call.told() }
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
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{
        Kind, Recorded,
        event::{RateLimited, Raw, StopReason, Text, ToolCall, TurnEnded, TurnStarted},
    };

    use super::*;
    use crate::{
        Look,
        testing::{self, ago},
    };

    fn recorded(seconds_ago: i64, event: Event) -> Received {
        let session_seq = Some(1);
        Received::Known(Box::new(Recorded {
            seq: 1,
            session: None,
            session_seq,
            time: ago(seconds_ago),
            event,
        }))
    }

    fn call(id: &str, tool: &str, summary: &str) -> Event {
        let (tool, tool_id, summary) = (tool.to_owned(), id.to_owned(), summary.to_owned());
        Event::AgentToolCall(ToolCall { tool, tool_id, summary, input: String::new(), subagent: None })
    }

    fn result(id: &str, exit: Option<i32>, output: &str) -> Event {
        let success = exit.is_none_or(|code| code == 0);
        Event::AgentToolResult(ToolResult {
            tool_id: id.to_owned(),
            success,
            exit,
            output: output.to_owned(),
            subagent: None,
        })
    }

    #[test]
    fn what_a_sub_agent_does_is_marked_and_so_is_what_came_of_it() {
        let of_helper = |event: Event| match event {
            Event::AgentToolCall(call) => {
                Event::AgentToolCall(ToolCall { subagent: Some("call_1".to_owned()), ..call })
            }
            Event::AgentToolResult(result) => {
                Event::AgentToolResult(ToolResult { subagent: Some("call_1".to_owned()), ..result })
            }
            other => other,
        };
        let said = Text { text: "There are two.".to_owned(), subagent: Some("call_1".to_owned()) };
        let told = story(
            100,
            vec![
                (0, call("call_1", "Agent", "count them")),
                (1, of_helper(call("call_2", "Bash", "ls | wc -l"))),
                (2, of_helper(result("call_2", Some(0), "2"))),
                (3, Event::AgentCompletion(said)),
                (4, result("call_1", None, "There are two.")),
                (5, Event::AgentCompletion(text("Two, says the helper."))),
            ],
        );
        let marked: Vec<bool> = told.lines().map(|line| line.contains('↳')).collect();
        assert_eq!(marked, [true, true, false, false], "{told}");
    }

    #[test]
    fn what_a_sub_agent_does_behind_its_turn_has_its_result() {
        let of_helper = |event: Event| match event {
            Event::AgentToolCall(call) => {
                Event::AgentToolCall(ToolCall { subagent: Some("call_1".to_owned()), ..call })
            }
            other => other,
        };
        let ended = TurnEnded::new(1, StopReason::Completed);
        let told = story(
            100,
            vec![
                (0, of_helper(call("call_2", "Bash", "ls | wc -l"))),
                (1, Event::TurnEnded(ended)),
                (2, result("call_2", Some(0), "2")),
            ],
        );
        assert!(told.contains('✓') && !told.contains("no result"), "{told}");
    }

    fn text(text: &str) -> Text {
        Text::from(text.to_owned())
    }

    fn story(width: usize, events: Vec<(i64, Event)>) -> String {
        let look = Look::plain(Some(width));
        lines_of(events, &look).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_call_that_waits_for_approval_is_said_to_wait() {
        let read = |kind, body: &str| Event::decode(kind, body).unwrap();
        let id = r#""id":"apr_00000000000000000000000001""#;
        let asked =
            || (2, read(Kind::ApprovalRequested, &format!(r#"{{{id},"ask":"1","tool":"run","input":"x"}}"#)));
        let answered =
            (3, read(Kind::ApprovalAnswered, &format!(r#"{{{id},"answer":"allowed","by":"ann"}}"#)));
        let push = || (1, call("a", "run", "git push"));
        let waits = story(100, vec![push(), asked()]);
        assert!(waits.contains("waits for approval") && !waits.contains("no result"), "{waits}");
        assert!(!story(100, vec![push(), asked(), answered]).contains("waits for approval"));
    }

    #[test]
    fn of_a_context_that_was_made_smaller_only_what_is_known_is_said() {
        let told = |before, after| {
            let compacted = ostler_domain::event::ContextCompacted { automatic: true, before, after };
            story(100, vec![(1, Event::ContextCompacted(compacted))])
        };
        assert_eq!(told(None, None).trim(), "compact context, by itself");
        assert!(told(Some(90_000), Some(8_000)).contains(" → "));
        assert!(!(told(Some(90_000), None) + &told(None, Some(8_000))).contains('?'));
    }

    #[test]
    fn a_call_of_a_session_that_lives_is_running() {
        let mut teller = Teller::new();
        assert!(teller.tell(&recorded(12, call("a", "run", "cargo build"))).is_empty());
        let look = Look::plain(Some(100));
        let told = teller.rest(Some(testing::NOW)).remove(0).lines(&Line::new(), look.width)[0].show(&look);
        assert!(told.ends_with("running 12s"), "{told}");
    }

    fn lines_of(events: Vec<(i64, Event)>, look: &Look) -> Vec<Line> {
        let mut teller = Teller::new();
        let mut told: Vec<Told> =
            events.into_iter().flat_map(|(at, event)| teller.tell(&recorded(at, event))).collect();
        told.extend(teller.rest(None));
        told.iter().flat_map(|told| told.lines(&Line::of("  "), look.width)).collect()
    }

    #[test]
    fn a_turn_reads_as_a_story() {
        let events = || {
            vec![
                (100, Event::TurnStarted(TurnStarted { turn: 1 })),
                (99, Event::AgentThinking(text("the login route\nhas no middleware yet"))),
                (98, call("a", "read", "src/routes/login.rs")),
                (98, result("a", None, "fn login() {}\n")),
                (97, call("b", "run", "cargo test -p api login")),
                (89, result("b", Some(101), "running 38 tests\n1 failed, 37 passed\n")),
                (80, Event::AgentCompletion(text("Login attempts are limited.\n\nTwo tests added."))),
                (70, call("c", "run", "cargo build --workspace -j 8")),
                (60, Event::TurnEnded(TurnEnded::new(1, StopReason::ProcessEnded))),
            ]
        };
        assert_snapshot!("turn_at_100", story(100, events()));
        assert_snapshot!("turn_at_60", story(60, events()));
        assert_snapshot!("turn_in_all_looks", crate::testing::in_all_looks(|look| lines_of(events(), look)));
    }

    #[test]
    fn the_end_of_a_limit_is_told_as_people_read_it() {
        let until = Some(crate::words::now().plus(std::time::Duration::from_secs(600)));
        let limited = RateLimited { what: "429: slow down".to_owned(), until };
        let told = story(100, vec![(1, Event::RateLimited(limited))]);
        let moment = told.rsplit_once("until ").map(|(_, moment)| moment.trim()).unwrap_or_default();
        assert!(moment.len() == 5 && moment.as_bytes()[2] == b':', "{told}");
    }

    #[test]
    fn results_find_their_calls() {
        assert_snapshot!(story(100, vec![
            (9, call("a", "run", "one")),
            (8, call("b", "run", "two")),
            (7, result("b", Some(0), "")),
            (6, result("a", Some(0), "")),
            (5, result("x", None, "of a call that nobody saw")),
        ]), @r"
          run     two                                       ✓ 0     1.0 s
          run     one                                       ✓ 0     3.0 s
          result  of a call that nobody saw
        ");
    }

    #[test]
    fn floods_are_counted() {
        let raw = |n: u64| (9, Event::Opaque(Raw { text: format!("line {n}"), bytes: 6, at: n }));
        let mut events: Vec<_> = (0..1_500).map(raw).collect();
        events.push((8, Event::AgentStatus(text("on we go"))));
        assert_snapshot!(story(80, events), @r"
          raw     line 0
          raw     line 1
          raw     line 2
          raw     … and 1,497 more lines
          status  on we go
        ");
    }

    #[test]
    fn a_deed_that_is_done_again_is_counted() {
        let told = |exit, output: &str| {
            let mut teller = Teller::new();
            teller.tell(&recorded(9, call("a", "run", "cargo test")));
            teller.tell(&recorded(8, result("a", Some(exit), output))).remove(0)
        };
        let failed = told(101, "1 failed");
        assert!(failed.repeats(&told(101, "2 failed")) && !failed.repeats(&told(0, "1 failed")));
        let look = Look::plain(Some(100));
        let shown = |told: Told| told.lines(&Line::new(), look.width)[0].show(&look);
        assert_snapshot!(
            shown(failed.times(12)),
            @"run     cargo test                                × 12  ✗ 101   1.0 s  1 failed"
        );
        assert_snapshot!(shown(Told::new("status", "on we go").times(2)), @"status  on we go                                  × 2");
    }

    #[test]
    fn standard_error_is_kept_for_who_asks_why() {
        let mut teller = Teller::calm();
        let mut tell = |n: u64| {
            let event = Event::AgentStderr(Raw { text: format!("line {n}"), bytes: 6, at: n });
            let (seq, time) = (n, testing::NOW);
            teller.tell(&Received::Known(Box::new(Recorded {
                seq,
                session: None,
                session_seq: None,
                time,
                event,
            })))
        };
        assert!((0..20).all(|n| tell(n).is_empty()));
        let shown: Vec<String> = teller.last_errors().iter().map(|told| told.text.clone()).collect();
        assert_eq!(shown, ["… 17 lines before these", "line 17", "line 18", "line 19"]);
        assert!(teller.last_errors().is_empty());
    }

    #[test]
    fn nothing_moves_the_terminal() {
        let nasty = "\u{1b}[2J\u{9b}1m\u{7}";
        let told = story(
            80,
            vec![
                (9, call(nasty, nasty, nasty)),
                (8, result(nasty, Some(1), nasty)),
                (7, Event::AgentCompletion(text(nasty))),
                (6, Event::AgentThinking(text(nasty))),
            ],
        );
        assert!(!told.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{told:?}");
    }
}
