//! Transcripts: read from the log for whoever asks, and written beside it as files for everybody else's programs.

mod archive;
mod file;
mod image;
mod imported;
mod mirrored;
mod verify;
mod writer;

use std::collections::VecDeque;

use ostler_domain::{
    ConversationId, Recorded, Refusal, SessionId,
    limits::PAGE_MOST,
    query::{EventFilter, Page, SessionFilter},
    transcript::{KINDS, Line, Scribe},
};

pub use imported::ImportedFile;
pub(crate) use imported::{FILES, TAIL_NAME};
pub use mirrored::Delivery;
pub(crate) use writer::Transcripts;

use crate::Engine;

/// Events read in one go.
const PAGE: u32 = 256;

/// A conversation's transcript, made from the log piece by piece however long it is.
pub struct Transcript {
    engine: Engine,
    /// Those that are not read yet, the oldest first. Each begins when the one before has ended.
    sessions: VecDeque<SessionId>,
    /// Everything up to here is read.
    after: u64,
    /// Nothing behind this place is looked at.
    until: u64,
    scribe: Scribe,
    /// What was delivered beside sessions, as far as it is read ahead, and from where on there may be more.
    mirrored: VecDeque<Recorded>,
    mirrored_after: Option<u64>,
    conversation: ConversationId,
}

impl Engine {
    /// The transcript of a conversation, or of the one that a session is in.
    pub async fn transcript(&self, who: &str) -> Result<Transcript, Refusal> {
        let id = self.conversation(who).await?.id;
        self.transcript_until(id, u64::MAX).await
    }

    /// The same, as it was when the log ended at a place.
    async fn transcript_until(&self, id: ConversationId, until: u64) -> Result<Transcript, Refusal> {
        let filter = SessionFilter { conversation: Some(id), ..SessionFilter::default() };
        let mut sessions = VecDeque::new();
        let mut cursor = None;
        loop {
            let page = self.shared.store.list_sessions(&filter, Page::of(PAGE_MOST, cursor)).await?;
            for view in page.rows {
                sessions.push_front(view.id);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(Transcript {
            engine: self.clone(),
            sessions,
            after: 0,
            until,
            scribe: Scribe::default(),
            mirrored: VecDeque::new(),
            mirrored_after: Some(0),
            conversation: id,
        })
    }
}

impl Transcript {
    /// The next lines, perhaps none; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Line>>, Refusal> {
        let Some(session) = self.sessions.front().copied() else {
            let mut lines = Vec::new();
            let has_more = self.mirrored_before(self.until.saturating_add(1), &mut lines).await?;
            return Ok(has_more.then_some(lines));
        };
        let filter = EventFilter { session: Some(session), kinds: KINDS.to_vec(), ..EventFilter::default() };
        let page = self.engine.shared.store.events_after(self.after, &filter, PAGE).await?;
        let mut lines = Vec::new();
        let until = self.until;
        for recorded in page.rows.iter().take_while(|recorded| recorded.seq <= until) {
            self.mirrored_before(recorded.seq, &mut lines).await?;
            lines.extend(self.scribe.apply(recorded));
        }
        match page.next_cursor {
            Some(next) if next < self.until => self.after = next,
            _ => {
                self.sessions.pop_front();
            }
        }
        Ok(Some(lines))
    }

    /// The lines of what was delivered before a place. Says whether there was anything.
    async fn mirrored_before(&mut self, seq: u64, lines: &mut Vec<Line>) -> Result<bool, Refusal> {
        let mut has_any = false;
        loop {
            if let (true, Some(after)) = (self.mirrored.is_empty(), self.mirrored_after) {
                let found = self.engine.shared.store.mirrored(self.conversation, after, PAGE).await?;
                self.mirrored_after = found.last().map(|last| last.seq);
                self.mirrored.extend(found);
            }
            match self.mirrored.pop_front_if(|next| next.seq < seq) {
                Some(next) => lines.extend(self.scribe.apply(&next)),
                None => return Ok(has_any),
            }
            has_any = true;
        }
    }

    /// What is remembered behind the last line.
    fn into_scribe(self) -> Scribe {
        self.scribe
    }
}
