//! How a new session of a conversation begins: with what its provider remembers of it, or, where that is gone, told what
//! had been said.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use ostler_domain::{
    ConversationId, Event, Kind, MessageId, Recorded, Refusal, SessionId,
    event::By,
    limits::PAGE_MOST,
    query::EventFilter,
    session::{Begin, State},
    text::head,
};
use ostler_providers::{Memory, Provider};

use crate::shared::Shared;

/// How much of what had been said an agent without its memory is told: some hundred sentences.
const SEED_BYTES: usize = 24 * 1024;
/// Of one text.
const SAID_BYTES: usize = 4 * 1024;
/// Sessions of a conversation that are looked through, the newest.
const SESSIONS: u32 = 8;
/// Events of one of them.
const EVENTS: u32 = 1_000;
/// Conversations that are gone back through, each one a copy of the next.
const COPIES: usize = 8;
/// Files and directories that are looked at for a provider's memory, and how deep.
const ENTRIES: usize = 20_000;
const DEPTH: usize = 6;

/// What tells what was said.
const TELLING: &[Kind] = &[
    Kind::MessageAccepted,
    Kind::MessageSeen,
    Kind::MessageDropped,
    Kind::MessageCancelled,
    Kind::MessageEdited,
    Kind::AgentCompletion,
];

/// The end of a turn, and its place in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) session: SessionId,
    pub(crate) turn: u32,
    seq: u64,
}

impl Shared {
    /// How the session after this one begins.
    pub(crate) async fn begin_after(&self, old: &State) -> Result<Begin, Refusal> {
        let created = old.created();
        let provider = self.provider(&created.config.provider)?;
        let interrupted = old.interruption();
        // A turn was run under it: the provider will say whether it has kept it.
        let claimed = old.claimed_id().filter(|_| old.was_cut_short());
        let own = old.bound_id().or(claimed);
        let Some(provider_id) = own.or(created.begin.provider_id()).map(str::to_owned) else {
            let Some(interrupted) = interrupted else { return Ok(created.begin.clone()) };
            let why = format!("{} was interrupted before it had kept anything", provider.name());
            return Ok(Begin::Reseed {
                why,
                seed: self.seed(created.conversation, Some(&interrupted)).await?,
            });
        };
        let why = if old.bound_id().is_none() && old.lost_context().is_some() {
            old.lost_context().map(str::to_owned)
        } else {
            self.gone(provider.as_ref(), created.conversation, &provider_id).await
        };
        match (why, own) {
            (Some(why), _) => {
                let seed = self.seed(created.conversation, interrupted.as_deref()).await?;
                Ok(Begin::Reseed { why, seed })
            }
            (None, Some(_)) => {
                // Where nobody can look for its record, only the provider can say that it is gone.
                let seed = match provider.memory(&provider_id) {
                    Some(_) => String::new(),
                    None => self.seed(created.conversation, interrupted.as_deref()).await?,
                };
                Ok(Begin::Resume { provider_id, interrupted, seed })
            }
            // No turn was run: what was to be gone on with, or branched off, still is.
            (None, None) => Ok(created.begin.clone()),
        }
    }

    /// The same, where another provider goes on: it is told what had been said.
    pub(crate) async fn begin_after_with(&self, old: &State, provider: &str) -> Result<Begin, Refusal> {
        let before = &old.created().config.provider;
        if before == provider {
            return self.begin_after(old).await;
        }
        let why = format!("{provider} goes on with what {before} began");
        let seed = self.seed(old.created().conversation, old.interruption().as_deref()).await?;
        Ok(Begin::Reseed { why, seed })
    }

    /// How a copy of a conversation begins, whose home has been copied.
    pub(crate) async fn begin_fork(&self, old: &State, copy: ConversationId) -> Result<Begin, Refusal> {
        let created = old.created();
        let provider = self.provider(&created.config.provider)?;
        let Some(provider_id) = old.bound_id().or(created.begin.provider_id()).map(str::to_owned) else {
            if old.view().turns == 0 {
                // Nothing was said yet.
                return Ok(created.begin.clone());
            }
            let why = format!("{} keeps nothing that could be branched off", provider.name());
            return Ok(Begin::Reseed { why, seed: self.seed(created.conversation, None).await? });
        };
        let seed = self.seed(created.conversation, None).await?;
        let why = match self.gone(provider.as_ref(), copy, &provider_id).await {
            None if provider.tries_fork() => return Ok(Begin::Fork { provider_id, seed }),
            None => format!("{} cannot branch off a conversation", provider.name()),
            Some(why) => why,
        };
        Ok(Begin::Reseed { why, seed })
    }

    /// How a copy begins that is to know what was said up to the end of a turn, and nothing of what came after.
    pub(crate) async fn begin_fork_at(&self, old: &State, cut: Cut) -> Result<Begin, Refusal> {
        let why = format!("it was branched off after turn {} of {}", cut.turn, cut.session.short());
        let seed = self.told_until(old.created().conversation, cut).await?;
        Ok(Begin::Reseed { why, seed })
    }

    /// Where in the log a turn ended; none while it has not.
    pub(crate) async fn end_of_turn(&self, session: SessionId, turn: u32) -> Result<Option<Cut>, Refusal> {
        let kinds = vec![Kind::TurnEnded];
        let filter = EventFilter { session: Some(session), kinds, ..EventFilter::default() };
        let mut before = None;
        loop {
            let page = self.store.events_before(before, &filter, PAGE_MOST).await?;
            for recorded in &page.rows {
                if matches!(&recorded.event, Event::TurnEnded(ended) if ended.turn == turn) {
                    return Ok(Some(Cut { session, turn, seq: recorded.seq }));
                }
            }
            match page.next_cursor {
                Some(next) if !page.rows.is_empty() => before = Some(next),
                _ => return Ok(None),
            }
        }
    }

    /// Why what the provider remembered is gone; none while it is there, or cannot be looked for.
    pub(crate) async fn gone(
        &self,
        provider: &dyn Provider,
        conversation: ConversationId,
        id: &str,
    ) -> Option<String> {
        let memory = provider.memory(id)?;
        let home = self.options.state_dir.join("homes").join(conversation.to_string());
        let name = provider.name().to_owned();
        let found = tokio::task::spawn_blocking(move || has(&home, &memory)).await.unwrap_or(true);
        (!found).then(|| format!("{name} has no record of {id} any more"))
    }

    /// What had been said, the newest of it, and that the agent was interrupted.
    async fn seed(&self, conversation: ConversationId, interrupted: Option<&str>) -> Result<String, Refusal> {
        Ok(told(self.said(conversation, Upto::Now).await?, interrupted))
    }

    async fn told_until(&self, conversation: ConversationId, cut: Cut) -> Result<String, Refusal> {
        Ok(told(self.said(conversation, Upto::Turn(cut)).await?, None))
    }

    /// What was said in a conversation, and before that in the one that it is a copy of, and so on; the newest first.
    async fn said(&self, conversation: ConversationId, upto: Upto) -> Result<Vec<String>, Refusal> {
        let mut said = Told::default();
        let (mut at, mut upto) = (conversation, upto);
        for _ in 0..COPIES {
            self.say_of(&mut said, at, upto).await?;
            let Some(copy) = self.store.conversation(at).await?.filter(|_| !said.is_full) else { break };
            let Some(origin) = copy.forked_from else { break };
            let cut = match copy.forked_at {
                Some(turn) => self.end_of_turn(turn.session, turn.turn).await?,
                None => None,
            };
            upto = match (cut, self.store.conversation_opened_at(at).await?) {
                (Some(cut), _) => Upto::Turn(cut),
                (None, Some(seq)) => Upto::Copy { copy: at, seq },
                (None, None) => break,
            };
            at = origin;
        }
        Ok(said.words)
    }

    async fn say_of(&self, said: &mut Told, conversation: ConversationId, upto: Upto) -> Result<(), Refusal> {
        let store = &self.store;
        let sessions = match upto {
            Upto::Now => store.sessions_of_conversation(conversation, SESSIONS).await?,
            Upto::Turn(cut) => store.sessions_up_to(conversation, cut.session, SESSIONS).await?,
            Upto::Copy { copy, .. } => store.sessions_before_copy(conversation, copy, SESSIONS).await?,
        };
        let mut changed = Changed::default();
        for view in sessions {
            let cut = upto.of(view.id);
            // What waited when the turn ended was told after it. Imported messages have no receipts.
            changed.only_seen = cut.is_some() && view.imported.is_none();
            let filter =
                EventFilter { session: Some(view.id), kinds: TELLING.to_vec(), ..EventFilter::default() };
            for recorded in self.store.events_before(cut, &filter, EVENTS).await?.rows {
                let Some(text) = changed.words(&recorded) else { continue };
                if !said.add(text) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Up to where what was said in a conversation counts.
#[derive(Debug, Clone, Copy)]
enum Upto {
    Now,
    /// The end of a turn.
    Turn(Cut),
    /// The moment at which a copy of it was made.
    Copy {
        copy: ConversationId,
        seq: u64,
    },
}

impl Upto {
    /// The place in the log before which a session's words count; none: all of them.
    fn of(self, session: SessionId) -> Option<u64> {
        match self {
            Upto::Now => None,
            Upto::Turn(cut) => (cut.session == session).then_some(cut.seq),
            Upto::Copy { seq, .. } => Some(seq),
        }
    }
}

/// What is to be told, the newest first, as much as there is room for.
#[derive(Default)]
struct Told {
    words: Vec<String>,
    bytes: usize,
    is_full: bool,
}

impl Told {
    /// False: there was no room for it.
    fn add(&mut self, text: String) -> bool {
        self.bytes += text.len();
        self.is_full = self.bytes > SEED_BYTES;
        if !self.is_full {
            self.words.push(text);
        }
        !self.is_full
    }
}

/// The newest came first.
fn told(mut said: Vec<String>, interrupted: Option<&str>) -> String {
    let interrupted = interrupted.map(|words| format!("{words}\n\n")).unwrap_or_default();
    if said.is_empty() {
        return interrupted.trim_end().to_owned();
    }
    said.reverse();
    format!(
        "You have worked on this before, but your record of it is lost. This is what was said, the newest last:\n\n\
         {}\n\n{interrupted}This is what is asked of you now:",
        said.join("\n\n")
    )
}

/// What became of messages after they were accepted, as it is met on the way back.
#[derive(Default)]
struct Changed {
    never_told: HashSet<MessageId>,
    seen: HashSet<MessageId>,
    /// Only what the agent's own stream showed counts as told.
    only_seen: bool,
    edited: HashMap<MessageId, String>,
}

impl Changed {
    fn words(&mut self, recorded: &Recorded) -> Option<String> {
        match &recorded.event {
            Event::MessageDropped(dropped) => {
                self.never_told.insert(dropped.id);
                None
            }
            Event::MessageCancelled(cancelled) => {
                self.never_told.insert(cancelled.id);
                None
            }
            Event::MessageSeen(mark) => {
                self.seen.insert(mark.id);
                None
            }
            Event::MessageEdited(edited) => {
                self.edited.entry(edited.id).or_insert_with(|| edited.text.clone());
                None
            }
            Event::MessageAccepted(accepted) if self.never_told.contains(&accepted.message.id) => None,
            Event::MessageAccepted(accepted)
                if self.only_seen && !self.seen.contains(&accepted.message.id) =>
            {
                None
            }
            // A message that was handed on is told by the session that got it first.
            Event::MessageAccepted(accepted)
                if accepted.moved_from.is_none() && accepted.by != By::ostler() =>
            {
                let text = self.edited.get(&accepted.message.id).unwrap_or(&accepted.message.text);
                Some(format!("You were told: {}", head(text, SAID_BYTES)))
            }
            _ => words(recorded),
        }
    }
}

fn words(recorded: &Recorded) -> Option<String> {
    match &recorded.event {
        Event::AgentCompletion(text) if text.subagent.is_none() => {
            Some(format!("You said: {}", head(&text.text, SAID_BYTES)))
        }
        _ => None,
    }
}

/// Whether the file is there. The home is the agent's: links in it are not followed.
fn has(home: &Path, memory: &Memory) -> bool {
    let mut left = ENTRIES;
    let mut open = vec![(home.join(&memory.below), 0)];
    while let Some((dir, depth)) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            left = match left.checked_sub(1) {
                Some(left) => left,
                // Too much to look through: the provider itself will say.
                None => return true,
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH => open.push((entry.path(), depth + 1)),
                Ok(kind)
                    if kind.is_file() && entry.file_name().to_string_lossy().ends_with(&memory.name_ends) =>
                {
                    return true;
                }
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_at_any_depth_and_through_no_link() {
        let home = tempfile::tempdir().unwrap();
        let memory = Memory { below: ".agent/projects".into(), name_ends: "id-1.jsonl".to_owned() };
        assert!(!has(home.path(), &memory));
        let dir = home.path().join(".agent/projects/-srv-shop");
        fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("id-1.jsonl")).unwrap();
        assert!(!has(home.path(), &memory));
        fs::write(dir.join("rollout-id-1.jsonl"), "{}").unwrap();
        assert!(has(home.path(), &memory));
    }

    #[test]
    fn what_was_said_is_told_in_its_order() {
        let said = || vec!["You said: two".to_owned(), "You were told: one".to_owned()];
        let told = super::told(said(), None);
        assert!(told.contains("You were told: one\n\nYou said: two\n\nThis is"), "{told}");
        let told = super::told(said(), Some("You were interrupted."));
        assert!(told.contains("You said: two\n\nYou were interrupted.\n\nThis is"), "{told}");
        assert_eq!(super::told(Vec::new(), None), "");
    }
}
