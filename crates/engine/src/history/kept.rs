//! The lines themselves, where they must go out again as they came in: OpenClaw's. They lie beside the conversation's transcript,
//! byte for byte, as far as they were imported.

use std::{
    fs, io,
    io::{Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::ConversationId;

use super::lines;
use crate::shared::Shared;

/// Its name beside the transcript.
const NAME: &str = "imported.jsonl";

impl Shared {
    /// Copies a stretch of a file before it is recorded that it was read. Whoever is killed in between copies it again.
    pub(super) async fn keep_lines(
        &self,
        file: &Path,
        conversation: ConversationId,
        from: u64,
        to: u64,
    ) -> io::Result<()> {
        let dir = self.options.state_dir.join("conversations").join(conversation.to_string());
        let file = file.to_owned();
        let kept = tokio::task::spawn_blocking(move || keep(&file, dir, from, to)).await;
        kept.unwrap_or_else(|_| Err(io::Error::other("copying lines failed")))
    }
}

fn keep(file: &Path, dir: PathBuf, from: u64, to: u64) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let mut options = fs::OpenOptions::new();
    let mut kept = options.write(true).create(true).truncate(false).mode(0o600).open(dir.join(NAME))?;
    let mut lines = lines::open(file)?;
    lines.seek(SeekFrom::Start(from))?;
    kept.set_len(from)?;
    kept.seek(SeekFrom::Start(from))?;
    io::copy(&mut lines.take(to.saturating_sub(from)), &mut kept)?;
    kept.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_same_to_the_byte_however_often_it_is_tried() {
        let dir = tempfile::tempdir().unwrap();
        let (file, beside) = (dir.path().join("a.jsonl"), dir.path().join("conversations/c"));
        let text = b"one\n\xff\xfe two\nthree\ntorn";
        fs::write(&file, text).unwrap();
        keep(&file, beside.clone(), 0, 4).unwrap();
        keep(&file, beside.clone(), 4, 11).unwrap();
        // Killed before it was recorded, and tried again.
        keep(&file, beside.clone(), 4, 17).unwrap();
        assert_eq!(fs::read(beside.join(NAME)).unwrap(), text[..17]);
    }
}
