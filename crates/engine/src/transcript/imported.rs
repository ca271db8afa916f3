//! Lines that a conversation was imported with, as they were: what is written of it elsewhere has them to the byte.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use ostler_domain::{Refusal, history::Source, transcript::Scribe};
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

/// Where files lie that came in with a conversation and are no lines of its transcript.
pub(crate) const FILES: &str = "imported";
/// What a transcript had behind its last whole line.
pub(crate) const TAIL_NAME: &str = "imported.tail";
/// How deep files lie.
const DEPTH: usize = 6;

/// A file that came in with a conversation.
pub struct ImportedFile {
    /// Below the directory that it lay in.
    pub name: String,
    /// It is the conversation's transcript.
    pub is_transcript: bool,
    /// What it is made of, from where it was read to on.
    parts: VecDeque<(PathBuf, u64)>,
}

impl ImportedFile {
    fn new(name: String, path: PathBuf) -> Self {
        Self { name, is_transcript: false, parts: VecDeque::from([(path, 0)]) }
    }

    /// Reads on, at most so much; nothing at the end.
    pub fn read(&mut self, most: usize, piece: &mut Vec<u8>) -> io::Result<()> {
        while let Some((path, at)) = self.parts.front_mut() {
            let mut file = match File::open(&*path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.parts.pop_front();
                    continue;
                }
                file => file?,
            };
            file.seek(SeekFrom::Start(*at))?;
            match file.take(most as u64).read_to_end(piece)? {
                0 => drop(self.parts.pop_front()),
                read => {
                    *at += read as u64;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Engine {
    /// The files that a conversation was imported with. Its transcript is among them as long as nothing was said here.
    pub async fn imported_files(&self, who: &str) -> Result<Vec<ImportedFile>, Refusal> {
        let conversation = self.conversation(who).await?;
        let dir = self.shared.options.state_dir.join("conversations").join(conversation.id.to_string());
        let mut transcript = None;
        for (n, session) in
            self.transcript_until(conversation.id, u64::MAX).await?.sessions.iter().enumerate()
        {
            let origin = self.shared.store.session(*session).await?.and_then(|view| view.imported);
            match origin {
                Some(origin) if n == 0 => transcript = Some(origin.file),
                Some(_) => {}
                None => transcript = None,
            }
            if transcript.is_none() {
                break;
            }
        }
        let name = transcript.filter(|_| conversation.closed.is_none());
        let name = name.and_then(|path| Some(Path::new(&path).file_name()?.to_string_lossy().into_owned()));
        let listed = tokio::task::spawn_blocking(move || {
            let mut files = Vec::new();
            if let Some(name) = name.filter(|_| dir.join(NAME).is_file()) {
                let parts = VecDeque::from([(dir.join(NAME), 0), (dir.join(TAIL_NAME), 0)]);
                files.push(ImportedFile { name, is_transcript: true, parts });
            }
            list(&dir.join(FILES), Path::new(""), 0, &mut files).map(|()| files)
        });
        let listed = listed.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut listed = listed.map_err(|error| {
            Refusal::internal("files that were imported cannot be listed").because(error.to_string())
        })?;
        // A transcript that had no lines yet when it was kept, or was found in a second place, goes out with its dialogue.
        let mut kept = Vec::with_capacity(listed.len());
        for file in listed.drain(..) {
            let dialogue =
                file.name.strip_suffix(".jsonl").filter(|stem| !file.is_transcript && !stem.contains('/'));
            let known = match dialogue {
                Some(stem) => self.shared.store.known_history(Source::OpenClaw, stem).await?,
                None => None,
            };
            if known.is_none() {
                kept.push(file);
            }
        }
        Ok(kept)
    }
}

fn list(dir: &Path, below: &Path, depth: usize, found: &mut Vec<ImportedFile>) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir.join(below)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.collect::<io::Result<Vec<_>>>()?,
    };
    for entry in entries {
        let (kind, name) = (entry.file_type()?, below.join(entry.file_name()));
        if kind.is_dir() && depth < DEPTH {
            list(dir, &name, depth + 1, found)?;
        } else if kind.is_file() {
            found.push(ImportedFile::new(name.to_string_lossy().into_owned(), entry.path()));
        }
    }
    Ok(())
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
