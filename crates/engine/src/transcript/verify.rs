//! Whether the files of transcripts say what the log says.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use ostler_domain::{
    ConversationId, Refusal,
    limits::PAGE_MOST,
    text::one_line,
    transcript::{Difference, Line, Verified},
};

use super::file;
use crate::Engine;

/// How much of a line is shown where it differs.
const SHOWN: usize = 200;

impl Engine {
    /// The conversations whose transcripts are written, behind one of them.
    pub async fn written_transcripts(
        &self,
        after: Option<ConversationId>,
    ) -> Result<Vec<ConversationId>, Refusal> {
        let marks = self.shared.store.transcript_marks(after, PAGE_MOST).await?;
        Ok(marks.into_iter().map(|mark| mark.conversation).collect())
    }

    /// Compares a conversation's file with the log, as far as it is written; makes it anew if that is wanted and it
    /// differs.
    pub async fn verify_transcript(&self, id: ConversationId, rebuild: bool) -> Result<Verified, Refusal> {
        // Nobody writes meanwhile.
        let mut open = self.transcripts().await;
        let path = self.transcript_file(id).await?;
        let name = self.stored_conversation(id).await?.name;
        let file = path.display().to_string();
        let Some(mark) = self.shared.store.transcript_mark(id).await? else {
            let mut verified = Verified {
                conversation: id,
                name,
                file,
                lines: 0,
                difference: Some(Difference::NotWritten),
                rebuilt: false,
            };
            if rebuild {
                let end = self.shared.store.last_seq();
                self.rebuild(&mut open, id, end).await?;
                verified.rebuilt = true;
            }
            return Ok(verified);
        };
        let mut found = Lines::open(&path, mark.bytes)?;
        let mut transcript = self.transcript_until(id, mark.seq).await?;
        let (mut lines, mut difference) = (0, found.is_none().then_some(Difference::Missing));
        'all: while let Some(expected) = transcript.next().await? {
            for line in expected {
                let Some(found) = &mut found else { break 'all };
                difference = found.differs(lines + 1, Some(&line))?;
                if difference.is_some() {
                    break 'all;
                }
                lines += 1;
            }
        }
        if let (None, Some(found)) = (&difference, &mut found) {
            difference = found.differs(lines + 1, None)?;
        }
        // An empty transcript needs no file.
        if mark.bytes == 0 && difference == Some(Difference::Missing) {
            difference = None;
        }
        let rebuilt = rebuild && difference.is_some();
        if rebuilt {
            self.rebuild(&mut open, id, mark.seq).await?;
        }
        Ok(Verified { conversation: id, name, file, lines, difference, rebuilt })
    }
}

/// The lines of a file up to where it should end.
struct Lines {
    file: BufReader<io::Take<Box<dyn Read + Send>>>,
    path: PathBuf,
}

impl Lines {
    /// Nothing, where there is no file.
    fn open(path: &Path, bytes: u64) -> Result<Option<Lines>, Refusal> {
        let lines = |text: Box<dyn Read + Send>| {
            Some(Lines { file: BufReader::new(text.take(bytes)), path: path.to_owned() })
        };
        let compressed = || zstd::Decoder::new(File::open(file::compressed(path))?);
        let opened = match File::open(path) {
            Ok(plain) => Ok(lines(Box::new(plain))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                compressed().map(|text| lines(Box::new(text)))
            }
            Err(error) => Err(error),
        };
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map_err(|error| cannot_read(path, &error)),
        }
    }

    fn differs(&mut self, number: u64, expected: Option<&Line>) -> Result<Option<Difference>, Refusal> {
        let mut found = Vec::new();
        self.file.read_until(b'\n', &mut found).map_err(|error| cannot_read(&self.path, &error))?;
        let expected = expected.map(Line::to_json).unwrap_or_default();
        if found == expected.as_bytes() {
            return Ok(None);
        }
        let found = String::from_utf8_lossy(&found);
        // From where they part, else a long line would show that both begin alike.
        let alike = expected.chars().zip(found.chars()).take_while(|(one, other)| one == other).count();
        let shown = |text: &str| {
            let from = alike.saturating_sub(SHOWN / 4);
            let lead = if from > 0 { "…" } else { "" };
            one_line(&format!("{lead}{}", text.chars().skip(from).collect::<String>()), SHOWN)
        };
        Ok(Some(Difference::Line { number, expected: shown(&expected), found: shown(&found) }))
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Refusal {
    Refusal::internal("a transcript cannot be read").because(format!("{}: {error}", path.display()))
}
