//! Lines that a conversation was imported with, as they were: what is written of it elsewhere has them to the byte.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use ostler_domain::{Refusal, transcript::Scribe};
use serde_json::Value;

use super::Transcript;
use crate::Engine;

/// Their name beside the transcript.
const NAME: &str = "imported.jsonl";
/// So much of their end is looked at for the last of them.
const TAIL: u64 = 1024 * 1024;

impl Engine {
    /// The lines that a conversation was imported with, where there are such, and what was said here since; else its
    /// transcript.
    pub async fn transcript_as_it_came(&self, who: &str) -> Result<(Option<File>, Transcript), Refusal> {
        let id = self.conversation(who).await?.id;
        let mut transcript = self.transcript_until(id, u64::MAX).await?;
        let path = self.shared.options.state_dir.join("conversations").join(id.to_string()).join(NAME);
        let opened = tokio::task::spawn_blocking(move || open(&path)).await;
        let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
        let opened = opened.map_err(|error| {
            Refusal::internal("lines that were imported cannot be read").because(error.to_string())
        })?;
        let Some((file, last)) = opened else { return Ok((None, transcript)) };
        let mut here = std::collections::VecDeque::new();
        for session in std::mem::take(&mut transcript.sessions) {
            let view = self.shared.store.session(session).await?;
            here.extend(view.filter(|view| view.imported.is_none()).map(|view| view.id));
        }
        transcript.sessions = here;
        transcript.scribe = Scribe::behind(last);
        Ok((Some(file), transcript))
    }
}

/// The file from its beginning, and the id of its last line.
fn open(path: &Path) -> io::Result<Option<(File, Option<String>)>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(0))?;
    let last = tail.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let line: Value = serde_json::from_slice(line).ok()?;
        Some(line.get("id")?.as_str()?.to_owned())
    });
    Ok(Some((file, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_has_a_name_is_found_behind_whatever_is_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert!(open(&path).unwrap().is_none());
        let text = b"{\"id\":\"a\"}\n{\"id\":\"b\"}\n\xff\xfe\n{\"id\":";
        std::fs::write(&path, text).unwrap();
        let (mut file, last) = open(&path).unwrap().unwrap();
        assert_eq!(last.as_deref(), Some("b"));
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, text, "from its beginning");
    }
}
