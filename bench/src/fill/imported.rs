//! Sessions that ran outside of Ostler and were read: they have an origin, and no process of ours.

use std::time::Duration;

use ostler_domain::{
    Event, SessionId, Time,
    event::{MessageAccepted, MessageMark, ProviderBound, Started, StopReason, Text, TurnEnded, TurnStarted},
    history::{Origin, Source},
    session::{Outcome, RestartPolicy},
};
use ostler_store::Bulk;

use super::{
    history::History,
    life::Life,
    words::{entropy, rank, text},
};

const TURNS: u64 = 4;

/// One session in so many was imported.
pub(super) fn is_due(made: u64) -> bool {
    const SESSIONS_PER_IMPORTED: u64 = 50;
    made % SESSIONS_PER_IMPORTED == SESSIONS_PER_IMPORTED / 2 + 1
}

impl History {
    pub(super) fn make_imported(&mut self, at: Time) {
        let place = rank(&mut self.seed, self.campaigns.len() as f64);
        let id = SessionId::new(at, entropy(&mut self.seed));
        let mut created = self.begun_as(id, place, at, Outcome::Done).created;
        let dialogue = format!("{:032x}", entropy(&mut self.seed));
        created.agent = None;
        created.config.provider = Source::Claude.provider().to_owned();
        created.config.restart = RestartPolicy::Never;
        created.imported = Some(Origin {
            source: Source::Claude,
            file: format!("/home/ann/.claude/projects/{}/{dialogue}.jsonl", self.campaigns[place].name),
            dialogue: dialogue.clone(),
            from: 0,
        });
        let conversation = created.conversation;
        let by = self.somebody();
        let mut life = Life::begin(created, None, &by, at, entropy(&mut self.seed));
        let started = Started { provider_id: Some(dialogue.clone()), model: None, deadline: None };
        life.record(Event::SessionStarted(started));
        life.record(Event::ProviderBound(ProviderBound { provider_id: dialogue, model: None }));
        for turn in 1..=1 + u32::try_from(self.seed.below(TURNS)).unwrap_or(0) {
            let message = self.message(life.now());
            let mark = MessageMark { id: message.id, turn: Some(turn) };
            life.record(Event::MessageAccepted(MessageAccepted::new(message, conversation, by.clone())));
            life.record(Event::TurnStarted(TurnStarted { turn }));
            life.record(Event::MessageSeen(mark.clone()));
            life.pass(Duration::from_secs(20 + self.seed.below(300)));
            life.record(Event::AgentCompletion(Text::from(text(&mut self.seed, 200))));
            life.record(Event::TurnEnded(TurnEnded::new(turn, StopReason::Completed)));
            life.record(Event::MessageAnswered(mark));
        }
        life.end_as(Outcome::Done, "It ran outside of Ostler.");
        self.count(&life);
        self.ready.push_back(Bulk::Session(life.events));
    }
}
