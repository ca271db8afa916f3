//! One deed of an agent, from the events that it is made of.

use jiff::{Timestamp, tz::TimeZone};
use ostler_client::Received;
use ostler_domain::{
    Event, Recorded, Time,
    event::{StopReason, ToolCall, ToolResult},
    text::{self, one_line, visible},
};
use ostler_form::words;
use ostler_screen::{Tone, tell};

/// Bytes that are shown of one text; all of it is a page of its own.
pub(super) const MOST: usize = 4_000;

/// One deed.
pub(in super::super) struct Item {
    pub(super) seq: u64,
    pub(super) time: String,
    pub(in super::super) verb: String,
    pub(in super::super) text: String,
    pub(super) class: &'static str,
    pub(super) right: String,
    pub(super) tone: &'static str,
    pub(super) detail: String,
    pub(super) open: bool,
    /// Texts that are too long to be shown among others.
    pub(super) wholes: Vec<Whole>,
    /// A call that went well: nobody has to look at it.
    pub(super) is_fine: bool,
}

/// A link to all of a text.
pub(super) struct Whole {
    pub(super) href: String,
    pub(super) word: String,
}

pub(in super::super) fn items(events: &[Received]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    // Where the calls are that have no result yet, by their ids.
    let mut calls: Vec<(String, usize, Time)> = Vec::new();
    for received in events {
        let Received::Known(recorded) = received else { continue };
        match &recorded.event {
            Event::AgentToolCall(call) => {
                calls.push((call.tool_id.clone(), items.len(), recorded.time));
                items.push(of_call(recorded, call));
            }
            Event::AgentToolResult(result) => {
                match calls.iter().position(|(id, ..)| *id == result.tool_id).map(|place| calls.remove(place))
                {
                    Some((_, place, since)) => ended(&mut items[place], recorded, result, since),
                    None => {
                        let mut item = Item::new(recorded, "result", one_line(&result.output, 300));
                        item.detail = item.cut(recorded, "result", &result.output);
                        items.push(item);
                    }
                }
            }
            _ => items.extend(of(recorded)),
        }
    }
    items
}

impl Item {
    fn new(recorded: &Recorded, verb: &str, text: impl Into<String>) -> Item {
        Item {
            seq: recorded.seq,
            time: clock_of(recorded.time),
            verb: verb.to_owned(),
            text: text.into(),
            class: "",
            right: String::new(),
            tone: "",
            detail: String::new(),
            open: false,
            wholes: Vec::new(),
            is_fine: false,
        }
    }

    /// Somebody's own words.
    fn said(recorded: &Recorded, verb: &'static str, words: &str) -> Item {
        let mut item = Item::new(recorded, verb, "");
        item.text = item.cut(recorded, "text", words);
        item
    }

    /// As much of a text as there is room for, and a link to all of it.
    fn cut(&mut self, recorded: &Recorded, what: &str, whole: &str) -> String {
        let whole = whole.trim_end();
        let end = whole.floor_char_boundary(MOST);
        if end == whole.len() {
            return visible(whole);
        }
        if let Some(session) = recorded.session {
            let href = format!("/sessions/{session}/text?at={}", recorded.seq);
            let word = format!("the whole {what}, {}", text::bytes(whole.len() as u64));
            self.wholes.push(Whole { href, word });
        }
        format!("{}…", visible(&whole[..end]))
    }

    fn class(self, class: &'static str) -> Item {
        Item { class, ..self }
    }
}

fn clock_of(time: Time) -> String {
    let time = Timestamp::from_microsecond(time.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

fn of_call(recorded: &Recorded, call: &ToolCall) -> Item {
    let summary =
        if call.summary.is_empty() { one_line(&call.input, 300) } else { one_line(&call.summary, 400) };
    let mut item = Item::new(recorded, &one_line(&call.tool, 24).to_lowercase(), summary);
    item.right = "…".to_owned();
    item.detail = item.cut(recorded, "request", &call.input);
    // What runs stays open, and so does what fails.
    item.class = "running";
    item.open = true;
    item
}

fn ended(item: &mut Item, recorded: &Recorded, result: &ToolResult, since: Time) {
    let exit = result.exit.filter(|code| *code != 0).map(|code| format!(" {code}")).unwrap_or_default();
    let (sign, tone) = if result.success { ("✓", "good") } else { ("✗", "bad") };
    item.right = format!("{sign}{exit} {}", words::took(recorded.time.since(since)));
    item.tone = tone;
    item.class = if result.success { "" } else { "failed" };
    item.open = !result.success;
    item.is_fine = result.success;
    let output = item.cut(recorded, "result", &result.output);
    item.detail = [std::mem::take(&mut item.detail), output]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
}

/// The text of an event that may be long, as it is shown.
pub(in super::super) fn text_of(event: &Event) -> std::borrow::Cow<'_, str> {
    match event {
        Event::AgentCompletion(said)
        | Event::AgentThinking(said)
        | Event::AgentStatus(said)
        | Event::AgentError(said) => said.text.as_str().into(),
        Event::MessageAccepted(accepted) => accepted.message.text.as_str().into(),
        Event::AgentToolCall(call) => call.input.as_str().into(),
        Event::AgentToolResult(result) => result.output.as_str().into(),
        Event::RateLimited(limit) => limit.what.as_str().into(),
        event => event.body().into(),
    }
}

/// What an event is by itself; none where a reader of the story can do without.
fn of(recorded: &Recorded) -> Option<Item> {
    let item = |verb: &str, text: String| Item::new(recorded, verb, text);
    let item = match &recorded.event {
        Event::AgentCompletion(said) => Item::said(recorded, "say", &said.text).class("say"),
        Event::AgentThinking(thought) => Item::said(recorded, "think", &thought.text).class("think"),
        Event::AgentStatus(said) => Item::said(recorded, "status", &said.text),
        Event::AgentError(said) => Item::said(recorded, "error", &said.text).class("bad"),
        Event::MessageAccepted(accepted) => {
            let mut said = Item::said(recorded, "told", &accepted.message.text).class("you");
            said.right = format!("by {}", one_line(&accepted.by.0, 60));
            said
        }
        Event::TurnStarted(turn) => item("turn", format!("{}", turn.turn)).class("turn"),
        Event::TurnEnded(turn) if turn.stop_reason == StopReason::Completed => return None,
        Event::TurnEnded(turn) => {
            let why = turn.failure.as_deref().map(|why| format!(": {}", visible(why))).unwrap_or_default();
            item("turn", format!("{} ended, {}{why}", turn.turn, word(&turn.stop_reason))).class("bad")
        }
        Event::ApprovalRequested(asked) => {
            item("asks", format!("{} {}", asked.tool, one_line(&asked.input, 400))).class("warn")
        }
        Event::ApprovalAnswered(answered) => item(
            "answer",
            format!("{} by {} {}", word(&answered.answer), answered.by.0, one_line(&answered.message, 200)),
        ),
        Event::Denied(denied) => {
            let grant = denied.grant.as_deref().map(|grant| format!(" · {grant}")).unwrap_or_default();
            item(
                "denied",
                format!(
                    "{} {} (rule: {}){grant}",
                    denied.kind.as_str(),
                    visible(&denied.target),
                    denied.rule
                ),
            )
            .class("warn")
        }
        Event::RateLimited(limit) => Item::said(recorded, "limited", &limit.what).class("warn"),
        Event::SessionStopped(end) => {
            item("end", format!("{}: {}", end.outcome.as_str(), visible(&end.obituary.sentence)))
                .class("turn")
        }
        Event::SessionFailed(end) => {
            item("end", format!("{}: {}", end.outcome.as_str(), visible(&end.obituary.sentence))).class("bad")
        }
        Event::SessionPaused(paused) => item("paused", format!("by {}", paused.by.0)),
        Event::SessionResumed(resumed) => item("resumed", format!("by {}", resumed.by.0)),
        Event::SessionStopRequested(stop) => item("stop", format!("asked by {}", stop.by.0)),
        Event::AgentStderr(raw) => item("stderr", one_line(&raw.text, 300)).class("think"),
        Event::SnapshotTaken(taken) if taken.changed.files == 0 => return None,
        Event::SnapshotTaken(taken) => {
            let changed = &taken.changed;
            item("files", format!("{} changed, +{} −{}", changed.files, changed.added, changed.removed))
        }
        Event::StepStarted(_)
        | Event::StepEnded(_)
        | Event::DoneReported(_)
        | Event::OutputAdded(_)
        | Event::Asked(_)
        | Event::ContextCompacted(_)
        | Event::ContextReset(_)
        | Event::AgentRetrying(_)
        | Event::SessionHeld(_)
        | Event::SessionReleased(_)
        | Event::SessionStalled(_)
        | Event::SessionRecovered(_)
        | Event::WatchdogFired(_)
        | Event::BudgetWarned(_)
        | Event::BudgetExceeded(_)
        | Event::BudgetChanged(_)
        | Event::Tamper(_)
        | Event::CommitsSeen(_)
        | Event::HandoffRequested(_)
        | Event::ProviderAuthFailed(_)
        | Event::MessageUnknown(_)
        | Event::MessageReturned(_)
        | Event::MessageDropped(_) => {
            let told = tell(&recorded.event);
            let (verb, tone, text) = told.parts();
            let mut item = item(verb, visible(&text)).class(class_of(tone));
            // The body is there for who wants to know.
            item.detail = item.cut(recorded, "event", &recorded.event.body());
            item
        }
        _ => return None,
    };
    Some(item)
}

fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Plain | Tone::Strong | Tone::Faint | Tone::Good | Tone::Accent => "",
    }
}

/// A word as the record has it.
pub(in super::super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => one_line(&other.to_string(), 80),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::Kind;

    use super::*;

    fn told(kind: Kind, body: &str) -> Item {
        let recorded = Recorded {
            seq: 1,
            time: Time::from_micros(1_800_000_000_000_000),
            session: None,
            session_seq: None,
            event: Event::decode(kind, body).unwrap(),
        };
        of(&recorded).unwrap()
    }

    #[test]
    fn a_message_says_who_sent_it() {
        let message = r#"{"id":"msg_00000000000000000000000001","text":"go on"}"#;
        let body = format!(
            r#"{{"message":{message},"conversation":"cnv_00000000000000000000000001","by":"mission site"}}"#
        );
        let told = told(Kind::MessageAccepted, &body);
        assert_eq!((&*told.verb, &*told.text, &*told.right), ("told", "go on", "by mission site"));
    }

    #[test]
    fn what_holds_a_session_is_told_in_words_and_so_is_its_end() {
        let held = told(
            Kind::SessionHeld,
            r#"{"hold":"campaign_budget","reason":"campaign shop: $3.00 of $1.00 used today (UTC)"}"#,
        );
        assert_eq!(held.verb, "held");
        assert_eq!((&*held.text, held.class), ("campaign shop: $3.00 of $1.00 used today (UTC)", "warn"));
        let over = told(Kind::SessionReleased, r#"{"hold":"campaign_budget"}"#);
        assert_eq!(over.text, "the hold for the campaign's budget is over");
        assert!(over.detail.contains("campaign_budget"), "the body is there too");
    }
}
