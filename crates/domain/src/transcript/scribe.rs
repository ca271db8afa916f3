//! Makes the lines of one conversation from the events of its sessions, in the order of the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Block, Header, Line, Message, Origin, Picture, Place, StopReason, TokenUse, VERSION,
    line::{iso, millis},
};
use crate::{
    ConversationId, Event, Kind, MessageId, Recorded, SessionId, Time, Usage,
    event::{
        DeliveryMirrored, ImageRecorded, MessageAccepted, MessageCancelled, MessageDropped, MessageMoved,
        MessageUnknown, MovedTo, ToolCall, ToolResult, TurnEnded, UsageRecorded,
    },
    price::Dollars,
    redact::{blot_out, redact},
    session::{Begin, Created},
};

/// The events that a transcript is made from. All others leave it as it is.
pub const KINDS: &[Kind] = &[
    Kind::SessionCreated,
    Kind::SessionStarted,
    Kind::ProviderBound,
    Kind::ModelChanged,
    Kind::MessageAccepted,
    Kind::MessageDelivered,
    Kind::MessageSeen,
    Kind::MessageUnknown,
    Kind::MessageDropped,
    Kind::MessageCancelled,
    Kind::MessageEdited,
    Kind::MessageMoved,
    Kind::TurnStarted,
    Kind::TurnEnded,
    Kind::AgentThinking,
    Kind::AgentCompletion,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::AgentStatus,
    Kind::AgentError,
    Kind::UsageRecorded,
    Kind::ContextCompacted,
    Kind::ContextReset,
    Kind::ProviderAuthFailed,
    Kind::ApprovalRequested,
    Kind::ApprovalAnswered,
    Kind::Denied,
    Kind::StepStarted,
    Kind::StepEnded,
    Kind::DoneReported,
    Kind::OutputAdded,
    Kind::Asked,
    Kind::AskSettled,
    Kind::HandoffRequested,
    Kind::HandoffPacked,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::ImageRecorded,
    Kind::DeliveryMirrored,
];

/// What is remembered between events.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scribe {
    /// The last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// The last line that somebody said to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_told: Option<String>,
    has_header: bool,
    provider: String,
    model: String,
    /// The provider and the model that the last line about them names.
    #[serde(default)]
    said_model: (String, String),
    /// The last turn, and whether it is open.
    turn: u32,
    in_turn: bool,
    /// What the agent is saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saying: Option<Saying>,
    /// Tokens that are on no line yet.
    usage: Usage,
    cost: Dollars,
    /// Messages that were not delivered yet.
    inbox: BTreeMap<MessageId, Waiting>,
    /// Tools that have not answered, in the order of their calls.
    calls: Vec<OpenCall>,
    /// Pictures of results that are still to come, with their calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<(String, Picture)>,
}

/// One message of the agent's, as far as it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Saying {
    seq: u64,
    at: Time,
    session: SessionId,
    turn: Option<u32>,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    text: String,
    by: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<Picture>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenCall {
    id: String,
    tool: String,
}

/// The event that is looked at.
#[derive(Clone, Copy)]
struct Here {
    seq: u64,
    at: Time,
    session: SessionId,
}

impl Scribe {
    /// One who goes on behind a line of somebody else's.
    pub fn behind(last: Option<String>) -> Scribe {
        Scribe { last, has_header: true, ..Scribe::default() }
    }

    /// The lines that an event completes. What belongs to no session makes none.
    pub fn apply(&mut self, recorded: &Recorded) -> Vec<Line> {
        let session = match &recorded.event {
            Event::DeliveryMirrored(mirrored) => Some(mirrored.session),
            _ => recorded.session,
        };
        let Some(session) = session else { return Vec::new() };
        let here = Here { seq: recorded.seq, at: recorded.time, session };
        let mut lines = Vec::new();
        match &recorded.event {
            Event::SessionCreated(created) => self.session_created(here, created, &mut lines),
            Event::SessionStarted(started) => self.model(here, started.model.as_deref(), &mut lines),
            Event::ProviderBound(bound) => {
                self.model(here, bound.model.as_deref(), &mut lines);
                self.custom(here, &recorded.event, &mut lines);
            }
            Event::ModelChanged(changed) if !changed.at_next_session => {
                self.model(here, Some(&changed.model), &mut lines);
            }
            Event::MessageAccepted(accepted) => self.accepted(accepted),
            // What was imported was seen, and delivered by nobody here.
            Event::MessageDelivered(mark) | Event::MessageSeen(mark) => {
                self.delivered(here, mark.id, &mut lines);
            }
            Event::ImageRecorded(shown) if shown.subagent.is_none() => self.shown(here, shown),
            Event::ImageRecorded(_) => {}
            Event::DeliveryMirrored(mirrored) => self.mirrored(here, mirrored, &mut lines),
            Event::MessageEdited(edited) => {
                if let Some(waiting) = self.inbox.get_mut(&edited.id) {
                    waiting.text = redact(&edited.text).into_owned();
                }
            }
            Event::MessageUnknown(MessageUnknown { id, .. })
            | Event::MessageDropped(MessageDropped { id, .. })
            | Event::MessageCancelled(MessageCancelled { id, .. })
            | Event::MessageMoved(MessageMoved { id, to: MovedTo::Conversation { .. }, .. }) => {
                self.inbox.remove(id);
                self.custom(here, &recorded.event, &mut lines);
            }
            // The order in which they wait is seen in that of their deliveries.
            Event::MessageMoved(_) => {}
            Event::TurnStarted(started) => (self.turn, self.in_turn) = (started.turn, true),
            Event::TurnEnded(ended) => self.turn_ended(here, ended, &mut lines),
            Event::AgentThinking(said) if said.subagent.is_none() => {
                self.say(here, Block::Thinking { thinking: said.text.clone() });
            }
            Event::AgentCompletion(said) if said.subagent.is_none() => {
                self.say(here, Block::text(&said.text));
            }
            Event::AgentToolCall(call) if call.subagent.is_none() => self.called(here, call),
            Event::AgentToolResult(result) if result.subagent.is_none() => {
                self.answered(here, &recorded.event, result, &mut lines);
            }
            Event::UsageRecorded(used) => self.used(used),
            Event::ContextCompacted(compacted) => {
                self.flush(None, &mut lines);
                let place = self.place(here);
                lines.push(Line::Compaction {
                    first_kept_entry_id: self.last_told.clone().or_else(|| place.parent_id.clone()),
                    place,
                    summary: String::new(),
                    tokens_before: compacted.before.unwrap_or_default(),
                    details: Some(json!({"automatic": compacted.automatic, "tokensAfter": compacted.after})),
                    ostler: self.origin(here),
                });
            }
            Event::SessionStopped(_) | Event::SessionFailed(_) => {
                self.close(here, "the session ended before the tool did", &mut lines);
                self.in_turn = false;
                self.unsaid(here, &mut lines);
                self.custom(here, &recorded.event, &mut lines);
            }
            event if KINDS.contains(&event.kind()) => self.custom(here, event, &mut lines),
            _ => {}
        }
        lines
    }

    fn session_created(&mut self, here: Here, created: &Created, lines: &mut Vec<Line>) {
        self.header(here, created.conversation, &created.config.working_dir, lines);
        self.flush(None, lines);
        // A turn of an earlier session is none of this one's.
        (self.turn, self.in_turn) = (0, false);
        self.provider.clone_from(&created.config.provider);
        let mut data = Map::new();
        let mut put = |key: &str, value: Value| data.insert(key.to_owned(), value);
        put("name", json!(created.name));
        put("provider", json!(created.config.provider));
        if let Some(model) = &created.config.model {
            put("model", json!(model));
        }
        if let Some(agent) = &created.agent {
            put("agent", json!(agent));
        }
        if let Some(continues) = created.continues {
            put("continues", json!(continues));
        }
        put(
            "begins",
            json!(match &created.begin {
                Begin::Fresh => "fresh",
                Begin::Resume { .. } => "resumed",
                Begin::Fork { .. } => "forked",
                Begin::Reseed { .. } => "reseeded",
            }),
        );
        self.put_custom(here, "session", Value::Object(data), lines);
        self.model(here, created.config.model.as_deref(), lines);
    }

    fn header(&mut self, here: Here, id: ConversationId, cwd: &str, lines: &mut Vec<Line>) {
        if !std::mem::replace(&mut self.has_header, true) {
            let (id, timestamp) = (id.to_string(), iso(here.at));
            lines.push(Line::Session(Header { version: VERSION, id, timestamp, cwd: cwd.to_owned() }));
        }
    }

    /// The model that answers from here on.
    fn model(&mut self, here: Here, model: Option<&str>, lines: &mut Vec<Line>) {
        let Some(model) = model else { return };
        model.clone_into(&mut self.model);
        let now = (self.provider.clone(), self.model.clone());
        if self.said_model == now {
            return;
        }
        self.flush(None, lines);
        // Beside the line about the session, which has the event's number for its name.
        let place = self.place_named(format!("{:08x}-model", here.seq), here.at);
        let (provider, model_id) = now.clone();
        lines.push(Line::ModelChange { place, provider, model_id, ostler: self.origin(here) });
        self.said_model = now;
    }

    fn accepted(&mut self, accepted: &MessageAccepted) {
        let (text, by) = (redact(&accepted.message.text).into_owned(), accepted.by.0.clone());
        let waiting = Waiting { text, by, pictures: Vec::new() };
        self.inbox.insert(accepted.message.id, waiting);
    }

    /// As if the agent had said it, for nothing.
    fn mirrored(&mut self, here: Here, mirrored: &DeliveryMirrored, lines: &mut Vec<Line>) {
        self.flush(None, lines);
        let media = (!mirrored.media_urls.is_empty()).then(|| mirrored.media_urls.join("\n"));
        let texts = [Some(mirrored.text.clone()).filter(|text| !text.is_empty()), media];
        let message = Message::Assistant {
            content: texts.into_iter().flatten().map(Block::text).collect(),
            api: MIRROR.to_owned(),
            provider: "ostler".to_owned(),
            model: MIRROR.to_owned(),
            usage: TokenUse::new(Usage::default(), Dollars::default()),
            stop_reason: StopReason::Stop,
            error_message: None,
            timestamp: millis(here.at),
        };
        let place = self.place(here);
        let (by, to) = (Some(mirrored.by.0.clone()), mirrored.to.clone());
        let ostler = Origin { by, to, ..self.origin(here) };
        lines.push(Line::Message { place, message, ostler });
    }

    fn shown(&mut self, here: Here, shown: &ImageRecorded) {
        let picture = Picture::from(&shown.image);
        match (&shown.message, &shown.tool_id) {
            (Some(id), _) => {
                if let Some(waiting) = self.inbox.get_mut(id) {
                    waiting.pictures.push(picture);
                }
            }
            (None, Some(tool)) => self.pictures.push((tool.clone(), picture)),
            (None, None) => self.say(here, Block::Image(picture)),
        }
    }

    fn delivered(&mut self, here: Here, id: MessageId, lines: &mut Vec<Line>) {
        let Some(Waiting { text, by, pictures }) = self.inbox.remove(&id) else { return };
        self.flush(None, lines);
        let place = self.place(here);
        self.last_told = Some(place.id.clone());
        // What is said between turns begins the next one.
        let turn = if self.in_turn { self.turn } else { self.turn + 1 };
        let ostler = Origin { turn: Some(turn), message: Some(id), by: Some(by), ..self.origin(here) };
        let content = [Block::text(text)].into_iter().chain(pictures.into_iter().map(Block::Image)).collect();
        let message = Message::User { content, timestamp: millis(here.at) };
        lines.push(Line::Message { place, message, ostler });
    }

    fn say(&mut self, here: Here, block: Block) {
        let turn = self.in_turn.then_some(self.turn);
        let Here { seq, at, session } = here;
        let saying = self.saying.get_or_insert_with(|| Saying { seq, at, session, turn, blocks: Vec::new() });
        saying.blocks.push(block);
    }

    fn called(&mut self, here: Here, call: &ToolCall) {
        self.calls.push(OpenCall { id: call.tool_id.clone(), tool: call.tool.clone() });
        let arguments = serde_json::from_str::<Map<String, Value>>(&call.input);
        let arguments = arguments.map_or_else(|_| json!({"input": call.input}), Value::Object);
        self.say(here, Block::ToolCall { id: call.tool_id.clone(), name: call.tool.clone(), arguments });
    }

    fn answered(&mut self, here: Here, event: &Event, result: &ToolResult, lines: &mut Vec<Line>) {
        let is_its = |(tool, _): &mut (String, Picture)| *tool == result.tool_id;
        let pictures: Vec<Block> =
            self.pictures.extract_if(.., is_its).map(|(_, picture)| Block::Image(picture)).collect();
        let Some(open) = self.calls.iter().position(|call| call.id == result.tool_id) else {
            // Its call was closed with its turn, or was never seen.
            return self.custom(here, event, lines);
        };
        let OpenCall { id, tool } = self.calls.remove(open);
        self.flush(None, lines);
        let details = result.exit.map(|exit| json!({"exitCode": exit}));
        let place = self.place(here);
        let mut content = Vec::new();
        if !result.output.is_empty() || pictures.is_empty() {
            content.push(Block::text(&result.output));
        }
        content.extend(pictures);
        self.result(here, place, (id, tool), (content, details, !result.success), lines);
    }

    fn result(
        &self,
        here: Here,
        place: Place,
        (tool_call_id, tool_name): (String, String),
        (content, details, is_error): (Vec<Block>, Option<Value>, bool),
        lines: &mut Vec<Line>,
    ) {
        let timestamp = millis(here.at);
        let message = Message::ToolResult { tool_call_id, tool_name, content, details, is_error, timestamp };
        lines.push(Line::Message { place, message, ostler: self.origin(here) });
    }

    fn used(&mut self, used: &UsageRecorded) {
        self.usage += used.usage;
        self.cost = Dollars(self.cost.0.saturating_add(used.cost.unwrap_or_default().0));
    }

    fn turn_ended(&mut self, here: Here, ended: &TurnEnded, lines: &mut Vec<Line>) {
        use crate::event::StopReason as Ended;
        let (reason, why) = match ended.stop_reason {
            Ended::Completed => (StopReason::Stop, None),
            Ended::Interrupted => (StopReason::Aborted, None),
            Ended::ProcessEnded => (StopReason::Aborted, Some("the process ended within the turn")),
            Ended::Error => (StopReason::Error, ended.failure()),
        };
        let why = ended.failure.as_deref().or(why).map(str::to_owned);
        let came_to_nothing = reason != StopReason::Stop || why.is_some();
        if self.saying.is_none() {
            self.close(here, "the turn ended before the tool did", lines);
        }
        if self.saying.is_none() && came_to_nothing {
            // Nothing was said, and that is to be seen.
            let Here { seq, at, session } = here;
            let turn = Some(ended.turn);
            self.saying = Some(Saying { seq, at, session, turn, blocks: Vec::new() });
        }
        self.flush(Some((reason, why)), lines);
        self.close(here, "the turn ended before the tool did", lines);
        self.in_turn = false;
        self.unsaid(here, lines);
    }

    /// Writes what the agent was saying.
    fn flush(&mut self, end: Option<(StopReason, Option<String>)>, lines: &mut Vec<Line>) {
        let Some(Saying { seq, at, session, turn, blocks }) = self.saying.take() else { return };
        let has_call = blocks.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        let usual = if has_call { StopReason::ToolUse } else { StopReason::Stop };
        let (stop_reason, error_message) = end.unwrap_or((usual, None));
        let message = Message::Assistant {
            content: blocks,
            api: api(&self.provider).to_owned(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            usage: self.take_usage(),
            stop_reason,
            error_message,
            timestamp: millis(at),
        };
        let place = self.place_named(format!("{seq:08x}"), at);
        let ostler = Origin { session, seq, turn, message: None, by: None, to: None };
        lines.push(Line::Message { place, message, ostler });
    }

    /// Answers calls that nobody answers any more: a reader may count on an answer to each.
    fn close(&mut self, here: Here, why: &str, lines: &mut Vec<Line>) {
        self.flush(None, lines);
        self.pictures.clear();
        for (n, OpenCall { id, tool }) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let place = self.place_named(format!("{:08x}-open{n}", here.seq), here.at);
            self.result(here, place, (id, tool), (vec![Block::text(why)], None, true), lines);
        }
    }

    /// Tokens that no message has.
    fn unsaid(&mut self, here: Here, lines: &mut Vec<Line>) {
        if !self.usage.is_zero() || self.cost != Dollars::default() {
            let place = self.place_named(format!("{:08x}-usage", here.seq), here.at);
            let data = json!({"usage": self.take_usage()});
            let custom_type = "ostler.usage".to_owned();
            lines.push(Line::Custom { place, custom_type, data, ostler: self.origin(here) });
        }
    }

    fn take_usage(&mut self) -> TokenUse {
        TokenUse::new(std::mem::take(&mut self.usage), std::mem::take(&mut self.cost))
    }

    /// An event as it is in the log.
    fn custom(&mut self, here: Here, event: &Event, lines: &mut Vec<Line>) {
        let mut data = serde_json::from_str(&event.body()).unwrap_or_default();
        // People's words are in it too: what an answer said, what was handed on.
        blot_out(&mut data);
        self.put_custom(here, &event.kind().name().to_ascii_lowercase(), data, lines);
    }

    fn put_custom(&mut self, here: Here, what: &str, data: Value, lines: &mut Vec<Line>) {
        self.flush(None, lines);
        let place = self.place(here);
        let custom_type = format!("ostler.{what}");
        lines.push(Line::Custom { place, custom_type, data, ostler: self.origin(here) });
    }

    fn origin(&self, here: Here) -> Origin {
        let turn = self.in_turn.then_some(self.turn);
        Origin { session: here.session, seq: here.seq, turn, message: None, by: None, to: None }
    }

    fn place(&mut self, here: Here) -> Place {
        self.place_named(format!("{:08x}", here.seq), here.at)
    }

    fn place_named(&mut self, id: String, at: Time) -> Place {
        let parent_id = self.last.replace(id.clone());
        Place { id, parent_id, timestamp: iso(at) }
    }
}

/// In the place of a model: nobody was asked for these words.
const MIRROR: &str = "delivery-mirror";

/// The protocol in which a provider's program speaks to its model, in the words of that form.
fn api(provider: &str) -> &str {
    match provider {
        "claude-code" => "anthropic-messages",
        "codex" => "openai-responses",
        "openai-api" => "openai-completions",
        other => other,
    }
}
