//! Writes transcripts as the log grows, with a place of its own in it.
//!
//! Lines are appended first, and then it is remembered, in one transaction, how far each file is. Whoever dies in between
//! has written too much: the next one cuts the file off where it was known to be whole and writes the same bytes again. A
//! file that is gone, or shorter than it was, is made anew from the log.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::PathBuf,
    time::Duration,
};

use ostler_domain::{
    ConversationId, Event, Recorded, Refusal, SessionId,
    limits::TRANSCRIPT_GATHER,
    query::EventFilter,
    transcript::{KINDS, Scribe, file_name},
};
use ostler_store::TranscriptMark;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, timeout_at},
};

use super::file;
use crate::{Engine, VERSION, Watch, fault};

/// Pause before the log is looked at again when it could not be.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Events that are written in one go.
const BATCH: usize = 512;
/// Transcripts that are kept in mind; others are taken up from what is remembered of them.
const IN_MIND: usize = 512;
/// Marks that are looked at in one go when the daemon starts.
const MARKS: u32 = 1_000;

/// What is being written. Whoever holds it is the only one who writes files of transcripts.
#[derive(Default)]
pub(crate) struct Transcripts {
    open: Mutex<Open>,
}

#[derive(Default)]
pub(super) struct Open {
    of: HashMap<ConversationId, Written>,
    conversations: HashMap<SessionId, ConversationId>,
}

impl Open {
    /// Its file is no longer what was known of it.
    pub(super) fn forget(&mut self, id: ConversationId) {
        self.of.remove(&id);
    }
}

/// One file, and what is not in it yet.
struct Written {
    path: PathBuf,
    seq: u64,
    bytes: u64,
    scribe: Scribe,
    text: String,
}

/// What is remembered between two daemons: of another version it is worth nothing.
#[derive(Serialize, Deserialize)]
struct Kept {
    form: String,
    scribe: Scribe,
}

impl Engine {
    /// Begins to write transcripts. Who begins writes what is to come, and of conversations that went before when they go
    /// on.
    pub async fn begin_transcripts(&self) -> Result<(), Refusal> {
        let store = &self.shared.store;
        let place = match store.transcripts_place().await? {
            Some(place) => place,
            None => {
                let end = *store.published().borrow();
                store.set_transcripts(Some(end), Vec::new()).await.map_err(Refusal::from)?;
                end
            }
        };
        let engine = self.clone();
        self.shared.tasks.spawn(async move {
            let shutdown = engine.shared.shutdown.clone();
            tokio::select! {
                () = engine.write_transcripts(place) => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(())
    }

    async fn write_transcripts(&self, mut place: u64) {
        if let Err(refusal) = self.mend_transcripts().await {
            tracing::warn!(%refusal, "transcripts cannot be looked at");
        }
        loop {
            if let Err(refusal) = self.write_on(&mut place).await {
                tracing::warn!(%refusal, "transcripts cannot be written; trying again");
                // What was begun is not known to be in the file.
                *self.shared.transcripts.open.lock().await = Open::default();
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    /// Makes those anew that are not as they were left: somebody removed them, or the machine's end took a part.
    async fn mend_transcripts(&self) -> Result<(), Refusal> {
        let mut after = None;
        loop {
            let marks = self.shared.store.transcript_marks(after, MARKS).await?;
            let Some(last) = marks.last() else { return Ok(()) };
            after = Some(last.conversation);
            for mark in marks {
                let path = self.transcript_file(mark.conversation).await?;
                if !file::is_whole_in_any_form(&path, mark.bytes) {
                    let mut open = self.transcripts().await;
                    self.rebuild(&mut open, mark.conversation, mark.seq).await?;
                    tracing::warn!(file = %path.display(), "a transcript was not whole and was made anew");
                }
            }
        }
    }

    async fn write_on(&self, place: &mut u64) -> Result<(), Refusal> {
        let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
        let mut watch = self.watch(filter, Some(*place));
        loop {
            *place = self.write_some(&mut watch).await?;
        }
    }

    /// Waits for events, and a moment longer for more of them; writes what they say. The place behind them.
    async fn write_some(&self, watch: &mut Watch) -> Result<u64, Refusal> {
        let mut events = watch.next().await?;
        let until = Instant::now() + TRANSCRIPT_GATHER;
        while events.len() < BATCH {
            // A watch that is given up in between finds its place again by its cursor.
            match timeout_at(until, watch.next()).await {
                Ok(more) => events.extend(more?),
                Err(_) => break,
            }
        }
        let up_to = events.last().map_or(0, |last| last.seq);
        let mut open = self.transcripts().await;
        let mut touched = BTreeSet::new();
        for recorded in &events {
            touched.extend(self.take_down(&mut open, recorded).await?);
        }
        self.put_into_files(&mut open, touched, Some(up_to)).await?;
        if open.of.len() > IN_MIND {
            *open = Open::default();
        }
        Ok(up_to)
    }

    pub(super) async fn transcripts(&self) -> MutexGuard<'_, Open> {
        self.shared.transcripts.open.lock().await
    }

    /// Adds what an event says to what is to be written of its conversation.
    async fn take_down(
        &self,
        open: &mut Open,
        recorded: &Recorded,
    ) -> Result<Option<ConversationId>, Refusal> {
        let id = match (&recorded.event, recorded.session) {
            (Event::DeliveryMirrored(mirrored), _) => Some(mirrored.conversation),
            (event, Some(session)) => self.whose_transcript(open, session, event).await?,
            (_, None) => None,
        };
        let Some(id) = id else { return Ok(None) };
        if !open.of.contains_key(&id) {
            self.take_up(open, id, recorded).await?;
        }
        let Some(written) = open.of.get_mut(&id).filter(|written| written.seq < recorded.seq) else {
            return Ok(None);
        };
        for line in written.scribe.apply(recorded) {
            written.text.push_str(&line.to_json());
        }
        written.seq = recorded.seq;
        Ok(Some(id))
    }

    async fn whose_transcript(
        &self,
        open: &mut Open,
        session: SessionId,
        event: &Event,
    ) -> Result<Option<ConversationId>, Refusal> {
        if let Some(id) = open.conversations.get(&session) {
            return Ok(Some(*id));
        }
        let found = match event {
            Event::SessionCreated(created) => Some(created.conversation),
            _ => self.shared.store.session(session).await?.map(|view| view.conversation),
        };
        if let Some(id) = found {
            open.conversations.insert(session, id);
        }
        Ok(found)
    }

    /// Goes on with a transcript where it was left, before an event.
    async fn take_up(&self, open: &mut Open, id: ConversationId, next: &Recorded) -> Result<(), Refusal> {
        let path = self.transcript_file(id).await?;
        let is_first = matches!(&next.event, Event::SessionCreated(created) if created.continues.is_none());
        let mark = self.shared.store.transcript_mark(id).await?;
        let written = match mark.as_ref().map(|mark| (mark, kept(mark))) {
            Some((mark, Some(scribe))) if file::is_whole(&path, mark.bytes) => {
                Written { path, seq: mark.seq, bytes: mark.bytes, scribe, text: String::new() }
            }
            None if is_first => {
                Written { path, seq: 0, bytes: 0, scribe: Scribe::default(), text: String::new() }
            }
            _ => return self.rebuild(open, id, next.seq.saturating_sub(1)).await,
        };
        open.of.insert(id, written);
        Ok(())
    }

    /// Makes a transcript anew from the log up to a place, and remembers that.
    pub(super) async fn rebuild(
        &self,
        open: &mut Open,
        id: ConversationId,
        until: u64,
    ) -> Result<(), Refusal> {
        let path = self.transcript_file(id).await?;
        let mut transcript = self.transcript_until(id, until).await?;
        let cannot = |error: io::Error| cannot_write(&path, &error);
        let mut fresh = file::Fresh::begin(&path).map_err(cannot)?;
        while let Some(lines) = transcript.next().await? {
            for line in lines {
                fresh.write(&line.to_json()).map_err(cannot)?;
            }
        }
        fault::point("transcript");
        let bytes = fresh.finish().map_err(cannot)?;
        // Of a conversation that was archived and goes on.
        let _ = std::fs::remove_file(file::compressed(&path));
        fault::point("transcript");
        let scribe = transcript.into_scribe();
        open.of.insert(id, Written { path, seq: until, bytes, scribe, text: String::new() });
        self.put_into_files(open, BTreeSet::from([id]), None).await
    }

    /// Appends what is to be written, and remembers how far that is.
    async fn put_into_files(
        &self,
        open: &mut Open,
        touched: BTreeSet<ConversationId>,
        place: Option<u64>,
    ) -> Result<(), Refusal> {
        let mut marks = Vec::new();
        for id in touched {
            let Some(written) = open.of.get_mut(&id) else { continue };
            if !written.text.is_empty() {
                fault::point("transcript");
                let text = std::mem::take(&mut written.text);
                file::append(&written.path, written.bytes, &text)
                    .map_err(|error| cannot_write(&written.path, &error))?;
                written.bytes += text.len() as u64;
                fault::point("transcript");
            }
            let kept = Kept { form: VERSION.to_owned(), scribe: written.scribe.clone() };
            marks.push(TranscriptMark {
                conversation: id,
                seq: written.seq,
                bytes: written.bytes,
                // Plain structs with string keys: serializing them cannot fail.
                scribe: serde_json::to_string(&kept).unwrap_or_default(),
            });
        }
        self.shared.store.set_transcripts(place, marks).await.map_err(Refusal::from)?;
        fault::point("transcript");
        Ok(())
    }

    pub(super) async fn transcript_file(&self, id: ConversationId) -> Result<PathBuf, Refusal> {
        let conversation = self.stored_conversation(id).await?;
        let dir = self.shared.options.state_dir.join("conversations").join(id.to_string());
        Ok(dir.join(file_name(&conversation.key)))
    }
}

/// What was remembered, if this version can go on with it.
fn kept(mark: &TranscriptMark) -> Option<Scribe> {
    let kept: Kept = serde_json::from_str(&mark.scribe).ok()?;
    (kept.form == VERSION).then_some(kept.scribe)
}

pub(super) fn cannot_write(path: &std::path::Path, error: &io::Error) -> Refusal {
    Refusal::internal("a transcript cannot be written").because(format!("{}: {error}", path.display()))
}
