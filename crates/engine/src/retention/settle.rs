//! Files follow what was decided, with a place of their own in the log. All of it may be done twice.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_domain::{ConversationId, Event, Kind, Refusal, SessionId, query::EventFilter, retention::Stage};
use ostler_store::Candidate;
use ostler_tape::{compress_segment, segment::list_segments};

use crate::{
    Engine, fault,
    transcript::{FILES, TAIL_NAME},
};

/// Whose place in the log this is.
const NAME: &str = "retention";
const KINDS: [Kind; 3] = [Kind::SessionArchived, Kind::SessionRestored, Kind::SessionDeleted];
/// Pause before it is tried again when it could not be done.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// Lines of another program's, as they came in: they are of no single session.
const IMPORTED: &str = "imported.jsonl";
/// What a directory is called that is being removed.
const GOING: &str = "going.";

impl Engine {
    pub(super) async fn settling(&self) -> Result<u64, Refusal> {
        let store = &self.shared.store;
        let sweep = self.shared.options.state_dir.clone();
        // What a daemon before us did not finish.
        tokio::task::spawn_blocking(move || {
            ["sessions", "homes", "conversations"].iter().for_each(|dir| sweep_going(&sweep.join(dir)));
            let missions = fs::read_dir(sweep.join("missions"));
            missions.into_iter().flatten().flatten().for_each(|mission| sweep_going(&mission.path()));
        });
        match store.cursor(NAME).await? {
            Some(place) => Ok(place),
            None => {
                let end = store.last_seq();
                store.set_cursor(NAME, end).await.map_err(Refusal::from)?;
                Ok(end)
            }
        }
    }

    pub(super) async fn settle_for_ever(&self, mut place: u64) {
        loop {
            if let Err(refusal) = self.settle_on(&mut place).await {
                tracing::warn!(%refusal, "files do not follow what became of sessions; trying again");
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    async fn settle_on(&self, place: &mut u64) -> Result<(), Refusal> {
        let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
        let mut watch = self.watch(filter, Some(*place));
        loop {
            for published in watch.next().await? {
                fault::point("retention-files");
                match &published.event {
                    Event::SessionArchived(archived) => self.settle_archived(archived.session).await?,
                    Event::SessionRestored(restored) => self.settle_restored(restored.session).await?,
                    Event::SessionDeleted(deleted) => {
                        self.settle_deleted(deleted.session).await?;
                        self.shared.retention.gone.send_replace(Some(deleted.session));
                    }
                    _ => {}
                }
                fault::point("retention-files");
                self.shared.store.set_cursor(NAME, published.seq).await.map_err(Refusal::from)?;
                *place = published.seq;
            }
        }
    }

    /// Writes the compressed forms of a session's files. What they took, and what they take.
    pub(super) async fn compress(&self, candidate: &Candidate) -> Result<(u64, u64), Refusal> {
        let id = candidate.standing.session;
        let (mut bytes, mut archived) = self.shared.store.compress_blobs(id).await?;
        let dir = self.shared.session_dir(&id);
        let (before, after) = blocking(move || compress_tape(&dir)).await?;
        bytes += before;
        archived += after;
        let (before, after) = self.compress_transcript(candidate.conversation, id).await?;
        Ok((bytes + before, archived + after))
    }

    async fn settle_archived(&self, id: SessionId) -> Result<(), Refusal> {
        let store = &self.shared.store;
        // Brought back since: the plain form is the one that is wanted.
        let Some(candidate) = store.retention_candidate(id).await? else { return Ok(()) };
        if candidate.standing.kept.archived.is_none() {
            return Ok(());
        }
        store.drop_plain_blobs(id).await?;
        if store.is_all_kept(candidate.conversation, Stage::Archived, None).await? {
            self.drop_plain_transcript(candidate.conversation).await
        } else {
            self.expand_transcript(candidate.conversation).await
        }
    }

    async fn settle_restored(&self, id: SessionId) -> Result<(), Refusal> {
        let store = &self.shared.store;
        let Some(candidate) = store.retention_candidate(id).await? else { return Ok(()) };
        if candidate.standing.kept.archived.is_some() || candidate.standing.kept.deleted.is_some() {
            return Ok(());
        }
        store.expand_blobs(id).await?;
        self.expand_transcript(candidate.conversation).await
    }

    async fn settle_deleted(&self, id: SessionId) -> Result<(), Refusal> {
        let store = &self.shared.store;
        let Some(candidate) = store.retention_candidate(id).await? else { return Ok(()) };
        let mut from = 1;
        while let Some(next) = store.erase(id, from, self.shared.clock.now().wall).await? {
            fault::point("retention-files");
            from = next;
        }
        let dir = self.shared.session_dir(&id);
        let going = blocking(move || put_aside(&dir)).await?;
        remove_going([going]).await?;
        if store.is_all_kept(candidate.conversation, Stage::Deleted, None).await? {
            self.remove_conversation_files(candidate.conversation).await?;
        } else {
            let state = &self.shared.options.state_dir;
            let own = state.join("conversations").join(candidate.conversation.to_string());
            blocking(move || {
                remove_file(&own.join(IMPORTED))?;
                remove_file(&own.join(TAIL_NAME))?;
                remove_tree(&own.join(FILES))
            })
            .await?;
            self.rewrite_transcript(candidate.conversation).await?;
        }
        store.drop_garbage().await.map_err(Refusal::from)
    }

    /// Everything of a conversation in which nothing that was said is left: its transcript, and its agents' home.
    async fn remove_conversation_files(&self, id: ConversationId) -> Result<(), Refusal> {
        self.forget_transcript(id).await?;
        let state = self.shared.options.state_dir.clone();
        let (home, own) =
            (state.join("homes").join(id.to_string()), state.join("conversations").join(id.to_string()));
        let moved = {
            // Nobody starts in it from here on; and whoever has started has sessions that are not deleted.
            let _naming = self.shared.naming.lock().await;
            if !self.shared.store.is_all_kept(id, Stage::Deleted, None).await? {
                return Ok(());
            }
            blocking(move || Ok([put_aside(&home)?, put_aside(&own)?])).await?
        };
        remove_going(moved).await
    }
}

/// Compresses what of a tape is not yet. The segments of a session that has ended change no more.
fn compress_tape(dir: &Path) -> io::Result<(u64, u64)> {
    let segments = match list_segments(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        segments => segments?,
    };
    let size = |path: PathBuf| fs::metadata(path).map_or(0, |found| found.len());
    let (mut before, mut after) = (0, 0);
    for mut segment in segments {
        before += size(segment.path(dir));
        if !segment.compressed {
            compress_segment(dir, segment.base)?;
            segment.compressed = true;
        }
        after += size(segment.path(dir));
    }
    Ok((before, after))
}

/// Removes what was put aside. What cannot be removed now is swept by the next daemon, and keeps nobody else waiting.
pub(super) async fn remove_going<const N: usize>(going: [Option<PathBuf>; N]) -> Result<(), Refusal> {
    blocking(move || {
        going.iter().flatten().for_each(|dir| remove_or_say(dir));
        Ok(())
    })
    .await
}

fn remove_or_say(dir: &Path) {
    if let Err(error) = remove_tree(dir) {
        tracing::warn!(dir = %dir.display(), %error, "what is deleted is still there");
    }
}

/// Gives a directory another name, under which nobody looks for it; nothing where there is none.
pub(super) fn put_aside(dir: &Path) -> io::Result<Option<PathBuf>> {
    let Some(name) = dir.file_name() else { return Ok(None) };
    let going = dir.with_file_name(format!("{GOING}{}", name.to_string_lossy()));
    // Of an earlier try.
    remove_tree(&going)?;
    match fs::rename(dir, &going) {
        Ok(()) => Ok(Some(going)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sweep_going(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(GOING) {
            remove_or_say(&entry.path());
        }
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| Refusal::internal("files of a session cannot be changed").because(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_under_another_name_and_is_swept_where_somebody_died() {
        let dir = tempfile::tempdir().unwrap();
        let (here, other) = (dir.path().join("ses_1"), dir.path().join("ses_2"));
        for dir in [&here, &other] {
            fs::create_dir_all(dir.join("deep")).unwrap();
            fs::write(dir.join("deep/file"), "x").unwrap();
        }
        let going = put_aside(&here).unwrap().unwrap();
        assert!(!here.exists() && going.exists());
        sweep_going(dir.path());
        assert!(!going.exists() && other.exists());
        assert_eq!(put_aside(&here).unwrap(), None);
    }
}
