//! Reads a file on into events: as much as one commit takes at a time, away from the threads that everybody waits on.

use std::{io, path::PathBuf};

use ostler_domain::{
    Event, SessionId, Time, Usage,
    history::{Chronicle, HistoryRead, Source, Told, What, Writing},
};
use ostler_providers::history::{Reader, reader, take_in};
use serde::{Deserialize, Serialize};

use super::{
    Answer,
    lines::{Lines, prints},
    stores::stem,
};

/// What one commit takes: large enough that its cost does not show, small enough that nobody waits long behind it.
const BYTES_AT_ONCE: u64 = 4 * 1024 * 1024;
const EVENTS_AT_ONCE: usize = 4_000;

/// How a file was taken in.
pub(super) struct Taken {
    pub(super) session: SessionId,
    /// Of the last commit.
    pub(super) answer: Answer,
}

/// What must be remembered between two imports of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    reader: String,
    chronicle: Chronicle,
}

/// A file that is being read.
pub(super) struct Intake {
    source: Source,
    path: PathBuf,
    dialogue: String,
    reader: Box<dyn Reader>,
    pub(super) chronicle: Chronicle,
    pub(super) at: u64,
}

/// What was read in one go.
#[derive(Default)]
pub(super) struct Portion {
    pub(super) told: Vec<Told>,
    pub(super) lines: u64,
    pub(super) unreadable: u64,
    /// Model calls that count, and what they took.
    pub(super) calls: u64,
    pub(super) usage: Usage,
    pub(super) from: u64,
    /// Nothing whole is behind it.
    pub(super) is_last: bool,
}

impl Intake {
    /// Begins at the beginning, or goes on where somebody remembers to have been.
    pub(super) fn new(
        source: Source,
        path: PathBuf,
        dialogue: String,
        from: u64,
        memory: Option<&str>,
    ) -> Intake {
        let memory: Option<Memory> = memory.and_then(|memory| serde_json::from_str(memory).ok());
        let mut reader = reader(source, memory.as_ref().map(|memory| memory.reader.as_str()));
        reader.is_named(&stem(&path));
        let chronicle = memory.map(|memory| memory.chronicle).unwrap_or_default();
        Intake { source, path, dialogue, reader, chronicle, at: from }
    }

    /// Reads as much as one commit takes.
    pub(super) fn read(&mut self) -> io::Result<Portion> {
        let mut lines = Lines::from(&self.path, self.at)?;
        let mut portion = Portion { from: self.at, ..Portion::default() };
        while self.at - portion.from < BYTES_AT_ONCE && portion.told.len() < EVENTS_AT_ONCE {
            let Some(line) = lines.next()? else {
                self.reader.pause(&mut portion.told);
                portion.is_last = true;
                break;
            };
            let bytes = line.next - line.start - 1;
            let understood = take_in(self.reader.as_mut(), &line.bytes, line.start, bytes, &mut portion.told);
            portion.lines += 1;
            portion.unreadable += u64::from(!understood);
            self.at = line.next;
        }
        Ok(portion)
    }

    /// Writes down what was told, and how far the file was read. `follow`: more may come.
    pub(super) fn write(
        &mut self,
        portion: &mut Portion,
        writing: &Writing<'_>,
        follow: bool,
    ) -> io::Result<Vec<(Time, Event)>> {
        let mut events = Vec::with_capacity(portion.told.len() + 2);
        for told in std::mem::take(&mut portion.told) {
            if let What::Call(call) = &told.what {
                portion.calls += 1;
                portion.usage += call.usage;
            }
            self.chronicle.write(told, writing, &mut events);
        }
        match (portion.is_last, follow) {
            (true, true) => self.chronicle.rest(&mut events),
            (true, false) => self.chronicle.end(&mut events),
            (false, _) => {}
        }
        events.push((self.chronicle.at(), self.mark(portion)?));
        Ok(events)
    }

    fn mark(&self, portion: &Portion) -> io::Result<Event> {
        let memory = Memory { reader: self.reader.memory(), chronicle: self.chronicle.clone() };
        Ok(Event::HistoryRead(Box::new(HistoryRead {
            source: self.source,
            dialogue: self.dialogue.clone(),
            file: self.path.to_string_lossy().into_owned(),
            from: portion.from,
            to: self.at,
            lines: portion.lines,
            unreadable: portion.unreadable,
            prints: prints(&self.path, self.at)?,
            // Plain structs with string keys: serializing them cannot fail.
            memory: serde_json::to_string(&memory).unwrap_or_default(),
        })))
    }
}
