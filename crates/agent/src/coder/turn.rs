//! One turn, decided: what happened goes in, the next thing to do comes out, and notes of what to record and to tell
//! on the way. Nothing here waits, so any order of events can be played in a test.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use ostler_domain::Usage;
use serde_json::Value;

use super::{
    conversation::{Call, Conversation, Entry, Finish, Item, ToolAnswer},
    fault::{Fault, Remedy, TRIES},
    settings::{Leave, Settings},
    tools::{self, Kind, Outcome, Work},
    wire::{Ask, Begun, Replied},
};

/// Bytes of a token, roughly, in text and code alike.
const BYTES_PER_TOKEN: usize = 4;
/// Share of the context window at which room is made, and to which.
const FULL_PERCENT: u64 = 80;
const ROOMY_PERCENT: u64 = 50;
/// How often one turn may make room before the conversation counts as not fitting.
const SHRINKS: u32 = 3;
/// The same call failing this often in a row ends the turn: the model is lost.
const SAME_FAILURES: u32 = 3;

const SUMMARISE: &str = "Summarise this conversation for yourself: the task, what was decided and why, what was done \
    (files, commands, results), what is left. It will replace everything above. Answer with the summary only.";
const SUMMARY_IS: &str = "This is a summary of the conversation so far, which was too long to keep:";
const CANCELLED: &str = "cancelled by the user";

/// What a turn works on, and what outlives it.
#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) conversation: Conversation,
    /// Fields that this server refuses.
    pub(super) without: BTreeSet<&'static str>,
    /// The last request that was measured: its bytes and its tokens.
    pub(super) measured: Option<(usize, u64)>,
}

/// Something a person said while the turn was open.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Words {
    /// What is answered when the model is sure to read them.
    pub(super) id: Value,
    pub(super) text: String,
}

/// What happened since the turn was last asked.
#[derive(Debug)]
pub(super) enum Happened {
    Begun(String),
    Replied(Replied),
    /// `chance` is in 0..1.
    Failed {
        fault: Fault,
        begun: Begun,
        chance: f64,
    },
    Waited,
    Answered {
        allow: bool,
        message: String,
    },
    /// Whether what was announced must be asked for.
    Announced {
        must_ask: bool,
    },
    Ran(Outcome),
    Cancelled {
        begun: Begun,
    },
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Act {
    /// Send this to the model. Shown or not: a summary is nobody's answer.
    Call {
        body: Value,
        shown: bool,
    },
    Wait(Duration),
    /// Ask for leave to do this.
    Ask(Asked),
    /// Ask whether leave must be asked for to do this.
    Announce(Asked),
    Run(Box<dyn Work>),
    End(End),
}

/// A call that needs leave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) kind: Kind,
    pub(super) input: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    Done,
    /// The model's reply was longer than its limit.
    Truncated,
    Refused,
    TooManyRounds,
    Cancelled,
    Failed {
        message: String,
        login: bool,
    },
}

/// What is to be recorded and told, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Save(Entry),
    /// Words are in the conversation.
    Heard {
        id: Value,
    },
    /// The turn ended before the model could read these words: they are not in it.
    Unread {
        id: Value,
    },
    Usage {
        usage: Usage,
        estimated: bool,
        input_tokens: u64,
        call: Option<String>,
    },
    ToolStarted {
        number: u64,
        name: String,
        title: String,
        kind: Kind,
        input: Value,
    },
    ToolRuns {
        number: u64,
    },
    ToolEnded {
        number: u64,
        outcome: Outcome,
    },
    /// What streamed of this reply does not count.
    Withdraw,
    Waiting {
        why: String,
        rate_limit: bool,
        after: Duration,
        /// The try that follows; the first was 1.
        attempt: u32,
    },
    Compacted {
        how: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Calling {
    Answer,
    Summary,
}

#[derive(Debug)]
enum Stage {
    Idle,
    Calling(Calling),
    Pausing(Calling),
    Announcing(Asked, Box<dyn Work>),
    Asking(Box<dyn Work>),
    Running,
}

/// A call under way.
#[derive(Debug, Clone)]
struct Current {
    number: u64,
    call: Call,
}

pub(super) struct Turn<'a> {
    settings: &'a Settings,
    system: &'a str,
    talk: &'a mut Talk,
    stage: Stage,
    current: Option<Current>,
    waiting: VecDeque<Current>,
    rounds: u32,
    tries: u32,
    shrinks: u32,
    failures: (Option<Call>, u32),
    /// What was said since the model was last called.
    words: Vec<Words>,
    /// Bytes of the request that was sent last, all that is said around the conversation too.
    sent: usize,
    notes: Vec<Note>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(settings: &'a Settings, system: &'a str, talk: &'a mut Talk) -> Self {
        Self {
            settings,
            system,
            talk,
            stage: Stage::Idle,
            current: None,
            waiting: VecDeque::new(),
            rounds: 0,
            tries: 0,
            shrinks: 0,
            failures: (None, 0),
            words: Vec::new(),
            sent: 0,
            notes: Vec::new(),
        }
    }

    pub(super) fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// The model reads this with its next request, in this turn while there is one.
    pub(super) fn hear(&mut self, words: impl IntoIterator<Item = Words>) {
        self.words.extend(words);
    }

    /// Takes in what happened and says what to do next.
    pub(super) fn on(&mut self, happened: Happened) -> Act {
        let act = self.decide(happened);
        if matches!(act, Act::End(_)) {
            let unread = std::mem::take(&mut self.words);
            self.notes.extend(unread.into_iter().map(|Words { id, .. }| Note::Unread { id }));
        }
        act
    }

    /// Every call has its answer before them.
    fn take_in_words(&mut self) {
        for Words { id, text } in std::mem::take(&mut self.words) {
            self.save(Entry::Said(Item::User { text }));
            self.notes.push(Note::Heard { id });
        }
    }

    fn decide(&mut self, happened: Happened) -> Act {
        match (std::mem::replace(&mut self.stage, Stage::Idle), happened) {
            (stage, Happened::Cancelled { begun }) => self.cancelled(&stage, begun),
            (_, Happened::Begun(text)) => {
                self.save(Entry::Said(Item::User { text }));
                self.ask_model()
            }
            (Stage::Calling(calling), Happened::Replied(replied)) => self.replied(calling, replied),
            (Stage::Calling(calling), Happened::Failed { fault, begun, chance }) => {
                self.failed(calling, &fault, begun, chance)
            }
            (Stage::Pausing(calling), Happened::Waited) => self.call(calling),
            (Stage::Announcing(asked, work), Happened::Announced { must_ask: true }) => {
                self.stage = Stage::Asking(work);
                Act::Ask(asked)
            }
            (Stage::Announcing(_, work), Happened::Announced { must_ask: false }) => self.run(work),
            (Stage::Asking(work), Happened::Answered { allow: true, .. }) => self.run(work),
            (Stage::Asking(_), Happened::Answered { message, .. }) => {
                let output = match message.trim() {
                    "" => "denied: a person did not allow this".to_owned(),
                    message => format!("denied: {message}"),
                };
                self.ended(Outcome { ok: false, exit: None, output })
            }
            (Stage::Running, Happened::Ran(outcome)) => self.ended(outcome),
            // The late end of something that was given up.
            (stage, _) => {
                self.stage = stage;
                Act::Wait(Duration::ZERO)
            }
        }
    }

    fn ask_model(&mut self) -> Act {
        self.take_in_words();
        if self.rounds >= self.settings.max_rounds {
            return Act::End(End::TooManyRounds);
        }
        if let Some(window) = self.settings.context_window {
            let (tokens, full) = (self.tokens(), window * FULL_PERCENT / 100);
            if tokens > full && self.shrinks < SHRINKS {
                let above = |limit: u64| {
                    usize::try_from(tokens.saturating_sub(limit))
                        .unwrap_or(usize::MAX)
                        .saturating_mul(BYTES_PER_TOKEN)
                };
                return self.make_room(above(window * ROOMY_PERCENT / 100), above(full));
            }
        }
        self.call(Calling::Answer)
    }

    /// Shortens the conversation, by as many bytes as would be good or at least by as many as must be: old outputs
    /// first, a summary if they are not enough.
    fn make_room(&mut self, good: usize, must: usize) -> Act {
        self.shrinks += 1;
        let conversation = &self.talk.conversation;
        let dropping = |bytes| conversation.dropping(conversation.bytes().saturating_sub(bytes));
        if let Some(entry) = dropping(good).or_else(|| dropping(must)) {
            self.save(entry);
            self.notes.push(Note::Compacted { how: "outputs of old tool calls were dropped" });
            return self.call(Calling::Answer);
        }
        // A summary must itself fit: the model can do without outputs that it has already used.
        self.save(Entry::Dropped { before: self.talk.conversation.items.len() });
        self.call(Calling::Summary)
    }

    fn call(&mut self, calling: Calling) -> Act {
        self.stage = Stage::Calling(calling);
        let talk = &self.talk;
        let mut ask = Ask {
            model: talk.conversation.model.as_deref().unwrap_or(&self.settings.model),
            system: self.system,
            items: &talk.conversation.items,
            tools: tools::offered(self.settings.tools),
            without: &talk.without,
            extra: &self.settings.extra_body,
        };
        let mut items;
        if calling == Calling::Summary {
            let seen = talk.conversation.items.len() - talk.conversation.unseen();
            items = talk.conversation.items[..seen].to_vec();
            items.push(Item::User { text: SUMMARISE.to_owned() });
            ask.items = &items;
            ask.tools = &[];
        }
        let body = self.settings.wire.body(&ask);
        self.sent = body.to_string().len();
        Act::Call { body, shown: calling == Calling::Answer }
    }

    fn replied(&mut self, calling: Calling, replied: Replied) -> Act {
        self.tries = 0;
        let Replied { reply, usage, call } = replied;
        self.count(usage, call, reply.text.len() + reply.thinking.len());
        if calling == Calling::Summary {
            let text = format!("{SUMMARY_IS}\n\n{}", reply.text.trim());
            self.save(Entry::Summarised { text, kept: self.talk.conversation.unseen() });
            self.notes.push(Note::Compacted { how: "the conversation was replaced by a summary" });
            self.talk.measured = None;
            return self.ask_model();
        }
        self.rounds += 1;
        let finish = reply.finish;
        let first = self.talk.conversation.calls + 1;
        self.waiting =
            (first..).zip(reply.calls.clone()).map(|(number, call)| Current { number, call }).collect();
        self.save(Entry::Said(Item::Model(reply)));
        match finish {
            Finish::Filtered => self.finish(End::Refused, "not run: the reply was filtered"),
            Finish::Truncated if self.waiting.is_empty() => Act::End(End::Truncated),
            // What was said while it answered is not left for another turn.
            Finish::Done if self.waiting.is_empty() && !self.words.is_empty() => self.ask_model(),
            Finish::Done if self.waiting.is_empty() => Act::End(End::Done),
            Finish::Done | Finish::Truncated => self.next_call(),
        }
    }

    fn failed(&mut self, calling: Calling, fault: &Fault, begun: Begun, chance: f64) -> Act {
        if !begun.is_nothing() {
            self.notes.push(Note::Withdraw);
            self.count_cut(begun);
        }
        match fault.remedy() {
            Remedy::Again if self.tries + 1 < TRIES => {
                self.tries += 1;
                let after = fault.pause(self.tries, chance);
                self.notes.push(Note::Waiting {
                    why: fault.to_string(),
                    rate_limit: fault.is_rate_limit(),
                    after,
                    attempt: self.tries + 1,
                });
                self.stage = Stage::Pausing(calling);
                Act::Wait(after)
            }
            Remedy::Shrink
                if calling == Calling::Answer
                    && self.shrinks < SHRINKS
                    && self.talk.conversation.items.len() > self.talk.conversation.unseen() =>
            {
                let bytes = self.talk.conversation.bytes();
                self.make_room(bytes / 2, bytes / 4)
            }
            Remedy::Without(field) if self.talk.without.insert(field) => self.call(calling),
            _ => Act::End(End::Failed { message: fault.to_string(), login: fault.is_login() }),
        }
    }

    fn next_call(&mut self) -> Act {
        let Some(current) = self.waiting.pop_front() else { return self.ask_model() };
        let Current { number, call } = current.clone();
        self.current = Some(current);
        let input: Value =
            serde_json::from_str(&call.arguments).unwrap_or(Value::String(call.arguments.clone()));
        let offered = tools::offered(self.settings.tools);
        let prepared = tools::prepare(offered, &call.name, &call.arguments);
        let (title, kind) = match &prepared {
            Ok((tool, work)) => (work.title(), tool.kind),
            Err(_) => (call.name.clone(), Kind::Other),
        };
        self.notes.push(Note::ToolStarted {
            number,
            name: call.name,
            title: title.clone(),
            kind,
            input: input.clone(),
        });
        match prepared {
            Err(error) => self.ended(Outcome { ok: false, exit: None, output: format!("error: {error}") }),
            Ok((tool, work)) => {
                let asked = Asked { number, title, kind, input };
                match (self.settings.leave, tool.needs_leave) {
                    (Leave::Never, _) | (Leave::Asks, false) => self.run(work),
                    (Leave::Asks | Leave::Announces, true) => {
                        self.stage = Stage::Asking(work);
                        Act::Ask(asked)
                    }
                    (Leave::Announces, false) => {
                        self.stage = Stage::Announcing(asked.clone(), work);
                        Act::Announce(asked)
                    }
                }
            }
        }
    }

    fn run(&mut self, work: Box<dyn Work>) -> Act {
        if let Some(current) = &self.current {
            self.notes.push(Note::ToolRuns { number: current.number });
        }
        self.stage = Stage::Running;
        Act::Run(work)
    }

    fn ended(&mut self, outcome: Outcome) -> Act {
        let Some(Current { number, call }) = self.current.take() else { return self.next_call() };
        let same = !outcome.ok
            && self
                .failures
                .0
                .as_ref()
                .is_some_and(|last| last.name == call.name && last.arguments == call.arguments);
        self.failures = match outcome.ok {
            true => (None, 0),
            false => (Some(call.clone()), if same { self.failures.1 + 1 } else { 1 }),
        };
        self.save(Entry::Said(Item::Tool(ToolAnswer {
            id: call.id,
            ok: outcome.ok,
            output: outcome.output.clone(),
        })));
        self.notes.push(Note::ToolEnded { number, outcome });
        if self.failures.1 >= SAME_FAILURES {
            let message =
                format!("the model made the same failing call {SAME_FAILURES} times: {}", call.name);
            return self.finish(End::Failed { message, login: false }, "not run: the turn was ended");
        }
        self.next_call()
    }

    fn cancelled(&mut self, stage: &Stage, begun: Begun) -> Act {
        if matches!(stage, Stage::Calling(_)) && !begun.is_nothing() {
            self.count_cut(begun);
        }
        if let Some(current) = self.current.take() {
            let outcome = Outcome { ok: false, exit: None, output: CANCELLED.to_owned() };
            self.notes.push(Note::ToolEnded { number: current.number, outcome });
        }
        self.finish(End::Cancelled, CANCELLED)
    }

    /// Ends the turn with an answer for every call: the next request is refused otherwise.
    fn finish(&mut self, end: End, why: &str) -> Act {
        self.waiting.clear();
        for entry in self.talk.conversation.fill_in(why) {
            self.save(entry);
        }
        Act::End(end)
    }

    fn save(&mut self, entry: Entry) {
        self.talk.conversation.apply(entry.clone());
        self.notes.push(Note::Save(entry));
    }

    /// Books a whole reply. A server that does not say what it cost is estimated, never free.
    fn count(&mut self, usage: Option<Usage>, call: Option<String>, reply_bytes: usize) {
        let bytes = self.talk.conversation.bytes();
        let (usage, estimated) = match usage {
            Some(usage) => (usage, false),
            None => (
                Usage { input: self.sent_tokens(), output: estimate(reply_bytes).max(1), ..Usage::default() },
                true,
            ),
        };
        let input_tokens = usage.input + usage.cache_read + usage.cache_write;
        if !estimated {
            self.talk.measured = Some((bytes, input_tokens));
        }
        self.notes.push(Note::Usage { usage, estimated, input_tokens, call });
    }

    /// Books what had come of a reply that was cut: the server had read the question and made it.
    fn count_cut(&mut self, begun: Begun) {
        let input_tokens = self.sent_tokens();
        let usage = Usage { input: input_tokens, output: estimate(begun.bytes).max(1), ..Usage::default() };
        self.notes.push(Note::Usage { usage, estimated: true, input_tokens, call: begun.call });
    }

    /// About how many tokens the request had that was sent last.
    fn sent_tokens(&self) -> u64 {
        if self.talk.measured.is_some() { self.tokens() } else { estimate(self.sent) }
    }

    /// About how many tokens the next request has.
    fn tokens(&self) -> u64 {
        let bytes = self.talk.conversation.bytes();
        match self.talk.measured {
            Some((then, tokens)) if bytes >= then => tokens + estimate(bytes - then),
            Some((then, tokens)) => tokens * bytes as u64 / (then as u64).max(1),
            None => estimate(bytes + self.system.len()),
        }
    }
}

fn estimate(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
