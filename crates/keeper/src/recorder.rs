//! The tape as the keeper uses it: appends come first, and a disk that is full is waited for.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Instant;

use ostler_domain::limits::DISK_RETRY;
use ostler_tape::input::EncodedInput;
use ostler_tape::writer::OpenError;
use ostler_tape::{KeeperNote, Record, Stream, Writer};

use crate::clock::wall_us;
use crate::log::log;

/// Notes that may wait for a full disk; the oldest go first. What they tell is in the log too.
const WAITING_NOTES: usize = 64;

#[derive(Debug)]
pub(crate) struct Recorder {
    writer: Writer,
    piece_bytes: usize,
    last_input_no: u64,
    notes: VecDeque<Vec<u8>>,
    trouble: Option<Trouble>,
    /// The exit record says where the tape ends; nothing may come behind that.
    sealed: bool,
}

/// The disk does not take what is appended.
#[derive(Debug)]
struct Trouble {
    since: Instant,
    retry_at: Instant,
    error: String,
}

impl Recorder {
    pub(crate) fn open(dir: &Path, segment_bytes: u64, piece_bytes: usize) -> Result<Recorder, OpenError> {
        let writer = Writer::open(dir, segment_bytes)?;
        let last_input_no = writer.last_input_no();
        let notes = VecDeque::new();
        Ok(Recorder { writer, piece_bytes, last_input_no, notes, trouble: None, sealed: false })
    }

    pub(crate) fn end(&self) -> u64 {
        self.writer.end()
    }

    pub(crate) fn last_input_no(&self) -> u64 {
        self.last_input_no
    }

    pub(crate) fn is_in_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.trouble.as_ref().map(|trouble| trouble.retry_at)
    }

    /// Appends what it can and returns how many records that were. While the disk is in trouble: none.
    pub(crate) fn append(&mut self, records: &[Record<'_>]) -> usize {
        if self.trouble.is_some() || self.sealed || records.is_empty() {
            return 0;
        }
        match self.writer.append(records) {
            Ok(_) => records.len(),
            Err(error) => {
                log!("the tape does not take more: {}", error.source);
                let now = Instant::now();
                let error_text = error.source.to_string();
                self.trouble = Some(Trouble { since: now, retry_at: now + DISK_RETRY, error: error_text });
                error.written
            }
        }
    }

    /// Appends a whole input or, as far as readers are concerned, nothing of it.
    pub(crate) fn append_input(&mut self, input_no: u64, tag: &str, bytes: &[u8]) -> bool {
        let input = EncodedInput::new(input_no, tag, bytes, self.piece_bytes, wall_us());
        let records: Vec<_> = input.records().collect();
        let whole = self.append(&records) == records.len();
        if whole {
            self.last_input_no = input_no;
        }
        whole
    }

    pub(crate) fn note(&mut self, note: &KeeperNote) {
        if self.sealed {
            return;
        }
        match note.encode() {
            Ok(json) => self.notes.push_back(json),
            Err(error) => log!("a note could not be written: {error}"),
        }
        if self.notes.len() > WAITING_NOTES {
            self.notes.pop_front();
        }
        self.flush_notes();
    }

    fn flush_notes(&mut self) {
        while let Some(json) = self.notes.pop_front() {
            if self.append(&[Record::line(Stream::Keeper, wall_us(), &json)]) == 0 {
                self.notes.push_front(json);
                return;
            }
        }
    }

    /// Tries the disk again with whatever `flush` appends, if it is time to.
    pub(crate) fn retry(&mut self, now: Instant, flush: impl FnOnce(&mut Recorder)) {
        let Some(trouble) = self.trouble.take_if(|trouble| now >= trouble.retry_at) else { return };
        flush(self);
        self.flush_notes();
        if self.trouble.is_none() {
            let after_ms = now.saturating_duration_since(trouble.since).as_millis() as u64;
            self.note(&KeeperNote::DiskBack { after_ms, error: trouble.error });
        }
        if let Some(again) = &mut self.trouble {
            again.since = trouble.since;
        }
    }

    /// Ends the tape and makes it durable.
    pub(crate) fn seal(&mut self) -> io::Result<()> {
        self.sealed = true;
        self.trouble = None;
        self.notes.clear();
        self.writer.sync()
    }
}
