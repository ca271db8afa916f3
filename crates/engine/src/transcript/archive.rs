//! Transcripts of conversations whose sessions are all archived, or deleted.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use ostler_domain::{ConversationId, Refusal, SessionId, retention::Stage};

use super::{file, writer::cannot_write};
use crate::Engine;

const COMPRESSION_LEVEL: i32 = 9;

impl Engine {
    /// Writes the compressed form beside a transcript, if this session was the last of its conversation that is not
    /// archived. What it takes, and what it will.
    pub(crate) async fn compress_transcript(
        &self,
        id: ConversationId,
        last: SessionId,
    ) -> Result<(u64, u64), Refusal> {
        let _writing = self.transcripts().await;
        if !self.shared.store.is_all_kept(id, Stage::Archived, Some(last)).await? {
            return Ok((0, 0));
        }
        let path = self.transcript_file(id).await?;
        let sizes = compress(&path).map_err(|error| cannot_write(&path, &error))?;
        Ok(sizes.unwrap_or_default())
    }

    pub(crate) async fn drop_plain_transcript(&self, id: ConversationId) -> Result<(), Refusal> {
        let mut open = self.transcripts().await;
        let path = self.transcript_file(id).await?;
        if file::compressed(&path).exists() {
            open.forget(id);
            remove(&path)?;
        }
        Ok(())
    }

    pub(crate) async fn expand_transcript(&self, id: ConversationId) -> Result<(), Refusal> {
        let _writing = self.transcripts().await;
        let path = self.transcript_file(id).await?;
        expand(&path).map_err(|error| cannot_write(&path, &error))
    }

    /// Makes a transcript anew from what the log still says, in the form that it has.
    pub(crate) async fn rewrite_transcript(&self, id: ConversationId) -> Result<(), Refusal> {
        let mut open = self.transcripts().await;
        let Some(mark) = self.shared.store.transcript_mark(id).await? else { return Ok(()) };
        let path = self.transcript_file(id).await?;
        let was_compressed = file::compressed(&path).exists();
        self.rebuild(&mut open, id, mark.seq).await?;
        if was_compressed {
            compress(&path).map_err(|error| cannot_write(&path, &error))?;
            open.forget(id);
            remove(&path)?;
        }
        Ok(())
    }

    /// Nothing is left to be written in it; a conversation that goes on begins it anew.
    pub(crate) async fn forget_transcript(&self, id: ConversationId) -> Result<(), Refusal> {
        let mut open = self.transcripts().await;
        open.forget(id);
        self.shared.store.forget_transcript(id).await.map_err(Refusal::from)
    }
}

/// What it takes and what it takes compressed; nothing where there is none.
fn compress(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let mut plain = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        plain => plain?,
    };
    let compressed = file::compressed(path);
    let temporary = compressed.with_extension("zst-new");
    let to = file::create(&temporary)?;
    let mut encoder = zstd::stream::write::Encoder::new(to, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    let bytes = io::copy(&mut plain, &mut encoder)?;
    let to = encoder.finish()?;
    to.sync_all()?;
    fs::rename(&temporary, &compressed)?;
    file::sync_dir(path)?;
    Ok(Some((bytes, to.metadata()?.len())))
}

fn expand(path: &Path) -> io::Result<()> {
    let compressed = file::compressed(path);
    if !path.exists() {
        let mut packed = match File::open(&compressed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            packed => zstd::Decoder::new(packed?)?,
        };
        let temporary = path.with_extension("jsonl.new");
        let mut to = file::create(&temporary)?;
        io::copy(&mut packed, &mut to)?;
        to.sync_all()?;
        fs::rename(&temporary, path)?;
        file::sync_dir(path)?;
    }
    match fs::remove_file(&compressed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> Result<(), Refusal> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(path, &error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_form_has_the_same_lines_and_one_is_always_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("transcript.jsonl");
        assert_eq!(compress(&path).unwrap(), None);
        let lines = "{\"type\":\"message\"}\n".repeat(2_000);
        fs::write(&path, &lines).unwrap();
        let (plain, compressed) = compress(&path).unwrap().unwrap();
        assert!(plain == lines.len() as u64 && compressed < plain / 20);
        assert!(path.exists() && file::compressed(&path).exists());
        fs::remove_file(&path).unwrap();
        assert!(file::is_whole_in_any_form(&path, plain));
        expand(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), lines);
        assert!(!file::compressed(&path).exists());
        // Whoever died between the two is helped on.
        compress(&path).unwrap();
        expand(&path).unwrap();
        assert!(path.exists() && !file::compressed(&path).exists());
    }
}
