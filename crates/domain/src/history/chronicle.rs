//! From what a store says to a session's events: turns, messages and their answers, in the order of the file.

use serde::{Deserialize, Serialize};

use super::{Call, Told, What, bits};
use crate::{
    ConversationId, Event, Message, MessageId, Mode, Time,
    event::{
        By, ImageRecorded, MessageAccepted, MessageMark, ProviderBound, Raw, StopReason, Text, ToolCall,
        ToolResult, TurnEnded, TurnStarted, UsageRecorded, UsageSource,
    },
    image::Image,
    limits::MESSAGE_BYTES,
    price::PriceBook,
    redact::redacted,
    text::head,
};

/// What holds for everything that is written of one session.
pub struct Writing<'a> {
    pub conversation: ConversationId,
    /// The program's own name for the dialogue.
    pub dialogue: &'a str,
    /// Who brought it in.
    pub by: &'a By,
    pub prices: &'a PriceBook,
    /// Nothing has happened after this.
    pub now: Time,
}

/// What must be remembered between two lines.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Chronicle {
    /// When the last thing happened.
    at: Time,
    turns: u32,
    is_open: bool,
    /// How the open turn would end.
    rests: Option<StopReason>,
    /// What the open turn answers.
    asked: Vec<MessageId>,
    model: Option<String>,
}

impl Chronicle {
    /// A session that begins at a time.
    pub fn begun(at: Time) -> Self {
        Self { at, ..Self::default() }
    }

    /// The next session of the same dialogue: its turns are counted anew.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { at: self.at, model: self.model.clone(), ..Self::default() }
    }

    /// When the last thing happened.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Writes down what was told. Times never go back within a session, and never beyond now.
    pub fn write(&mut self, told: Told, writing: &Writing<'_>, events: &mut Vec<(Time, Event)>) {
        let now = writing.now.max(self.at);
        self.at = told.at.unwrap_or(self.at).clamp(self.at, now);
        match told.what {
            What::Prompt { text, place, images } => self.prompt((text, images), place, writing, events),
            What::Rests(how) => self.rests = Some(how),
            What::Model(model) => self.bind(model, writing, events),
            What::Call(call) => events.push((self.at, Event::UsageRecorded(self.priced(call, writing)))),
            What::Compacted(compacted) => events.push((self.at, Event::ContextCompacted(compacted))),
            What::Unreadable(raw) => events.push((self.at, Event::Opaque(without_secrets(raw)))),
            What::Oversize(raw) => events.push((self.at, Event::Oversize(without_secrets(raw)))),
            What::Status(text) => self.did(Event::AgentStatus(redacted(text).into()), events),
            What::Error(text) => self.did(Event::AgentError(redacted(text).into()), events),
            What::Thinking(text) => self.did(Event::AgentThinking(said(text)), events),
            What::Completion(text) => self.did(Event::AgentCompletion(said(text)), events),
            What::ToolCall(call) => {
                let (summary, input) = (redacted(call.summary), redacted(call.input));
                self.did(Event::AgentToolCall(ToolCall { summary, input, ..call }), events);
            }
            What::Image(shown) => self.did(Event::ImageRecorded(shown), events),
            What::ToolResult(result) => {
                let output = redacted(result.output);
                self.did(Event::AgentToolResult(ToolResult { output, ..result }), events);
            }
        }
    }

    /// Nothing more is there for now: a turn that had come to its end has ended.
    pub fn rest(&mut self, events: &mut Vec<(Time, Event)>) {
        if let Some(how) = self.rests {
            self.end_turn(how, events);
        }
    }

    /// Nothing more will come: a turn that is open ended with its process.
    pub fn end(&mut self, events: &mut Vec<(Time, Event)>) {
        self.end_turn(self.rests.unwrap_or(StopReason::ProcessEnded), events);
    }

    fn prompt(
        &mut self,
        (text, images): (String, Vec<Image>),
        place: u64,
        writing: &Writing<'_>,
        events: &mut Vec<(Time, Event)>,
    ) {
        // Whoever says something more lets the turn before be over, however that was.
        self.end_turn(self.rests.unwrap_or(StopReason::Completed), events);
        let entropy = bits(&[writing.dialogue.as_bytes(), &place.to_le_bytes()]);
        let id = MessageId::new(self.at, entropy);
        let text = head(&redacted(text), MESSAGE_BYTES).to_owned();
        let message = Message { id, text, mode: Mode::Followup };
        let accepted = MessageAccepted::new(message, writing.conversation, writing.by.clone());
        events.push((self.at, Event::MessageAccepted(accepted)));
        for image in images {
            let shown = ImageRecorded { image, tool_id: None, message: Some(id), subagent: None };
            events.push((self.at, Event::ImageRecorded(shown)));
        }
        self.begin_turn(events);
        events.push((self.at, Event::MessageSeen(MessageMark { id, turn: Some(self.turns) })));
        self.asked.push(id);
    }

    /// An agent that does something is in a turn.
    fn did(&mut self, event: Event, events: &mut Vec<(Time, Event)>) {
        if !self.is_open {
            self.begin_turn(events);
        }
        self.rests = None;
        events.push((self.at, event));
    }

    fn begin_turn(&mut self, events: &mut Vec<(Time, Event)>) {
        self.turns = self.turns.saturating_add(1);
        self.is_open = true;
        events.push((self.at, Event::TurnStarted(TurnStarted { turn: self.turns })));
    }

    fn end_turn(&mut self, how: StopReason, events: &mut Vec<(Time, Event)>) {
        self.rests = None;
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        events.push((self.at, Event::TurnEnded(TurnEnded::new(self.turns, how))));
        let turn = Some(self.turns);
        let answered = self.asked.drain(..).map(|id| Event::MessageAnswered(MessageMark { id, turn }));
        events.extend(answered.map(|event| (self.at, event)));
    }

    fn bind(&mut self, model: String, writing: &Writing<'_>, events: &mut Vec<(Time, Event)>) {
        if self.model.as_deref() == Some(model.as_str()) {
            return;
        }
        let bound = ProviderBound { provider_id: writing.dialogue.to_owned(), model: Some(model.clone()) };
        events.push((self.at, Event::ProviderBound(bound)));
        self.model = Some(model);
    }

    /// At the price that holds now. Nobody here knows who paid: it is on no bill that Ostler keeps.
    fn priced(&self, call: Call, writing: &Writing<'_>) -> UsageRecorded {
        let model = call.model.or_else(|| self.model.clone());
        let quote = model.as_deref().and_then(|model| writing.prices.quote(model));
        UsageRecorded {
            usage: call.usage,
            cost: quote.map(|quote| quote.price.of(&call.usage)),
            prices: quote.and_then(|quote| quote.table).map(str::to_owned),
            model,
            source: UsageSource::History,
            call: call.name,
            plan: true,
            ..UsageRecorded::default()
        }
    }
}

fn said(text: Text) -> Text {
    Text { text: redacted(text.text), ..text }
}

fn without_secrets(raw: Raw) -> Raw {
    Raw { text: redacted(raw.text), ..raw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Usage};

    const NOW: Time = Time::from_micros(1_000_000);

    fn written(told: Vec<Told>) -> Vec<(Time, Event)> {
        let (by, prices) = (By("me".to_owned()), PriceBook::default());
        let writing = Writing {
            conversation: ConversationId::new(NOW, 1),
            dialogue: "d",
            by: &by,
            prices: &prices,
            now: NOW,
        };
        let mut chronicle = Chronicle::begun(Time::from_micros(10));
        let mut events = Vec::new();
        for told in told {
            chronicle.write(told, &writing, &mut events);
        }
        chronicle.end(&mut events);
        events
    }

    fn kinds(events: &[(Time, Event)]) -> Vec<Kind> {
        events.iter().map(|(_, event)| event.kind()).collect()
    }

    fn at(micros: i64, what: What) -> Told {
        Told { at: Some(Time::from_micros(micros)), what }
    }

    fn prompt(micros: i64, text: &str) -> Told {
        at(micros, What::Prompt { text: text.to_owned(), place: micros.cast_unsigned(), images: Vec::new() })
    }

    #[test]
    fn a_prompt_is_answered_by_the_turn_that_it_begins() {
        let events = written(vec![
            prompt(20, "hello"),
            at(30, What::Completion("hi".into())),
            at(31, What::Rests(StopReason::Completed)),
            prompt(40, "more"),
            at(50, What::Thinking("hm".into())),
        ]);
        use Kind::{AgentCompletion, AgentThinking, MessageAccepted, MessageAnswered, MessageSeen};
        use Kind::{TurnEnded, TurnStarted};
        let first = [MessageAccepted, TurnStarted, MessageSeen, AgentCompletion, TurnEnded, MessageAnswered];
        let second = [MessageAccepted, TurnStarted, MessageSeen, AgentThinking, TurnEnded, MessageAnswered];
        assert_eq!(kinds(&events), [first, second].concat());
        let ends: Vec<StopReason> = events
            .iter()
            .filter_map(
                |(_, event)| if let Event::TurnEnded(ended) = event { Some(ended.stop_reason) } else { None },
            )
            .collect();
        assert_eq!(ends, [StopReason::Completed, StopReason::ProcessEnded]);
    }

    #[test]
    fn times_neither_go_back_nor_lie_in_the_future() {
        let events = written(vec![
            at(30, What::Completion("a".into())),
            at(5, What::Completion("b".into())),
            Told { at: None, what: What::Completion("c".into()) },
            at(i64::MAX, What::Completion("d".into())),
        ]);
        let times: Vec<i64> = events.iter().map(|(at, _)| at.micros()).collect();
        assert_eq!(times, [30, 30, 30, 30, NOW.micros(), NOW.micros()]);
    }

    #[test]
    fn secrets_are_blotted_out_and_nobody_is_billed() {
        let key = format!("sk-{}", "a1".repeat(20));
        let call = Call { usage: Usage { input: 5, ..Usage::default() }, ..Call::default() };
        let events = written(vec![
            prompt(20, &key),
            at(30, What::Completion(key.clone().into())),
            at(30, What::Call(call)),
        ]);
        assert!(events.iter().all(|(_, event)| !event.body().contains(&key)));
        assert!(events.iter().any(|(_, event)| matches!(event, Event::UsageRecorded(used) if used.plan)));
    }

    #[test]
    fn the_same_line_is_the_same_message() {
        assert_eq!(written(vec![prompt(20, "a")]), written(vec![prompt(20, "a")]));
        let id = |told| match &written(vec![told])[0].1 {
            Event::MessageAccepted(accepted) => accepted.message.id,
            other => panic!("{other:?}"),
        };
        assert_ne!(id(prompt(20, "a")), id(prompt(21, "a")));
    }
}
