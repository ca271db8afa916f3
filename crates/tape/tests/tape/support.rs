//! Small things that every test of the tape needs.

use std::path::{Path, PathBuf};

use ostler_tape::{Reader, Record, Stream, Writer};

pub(crate) const SEGMENT: u64 = 64 * 1024 * 1024;

pub(crate) fn out(payload: &[u8]) -> Record<'_> {
    Record::line(Stream::Out, 1_000, payload)
}

pub(crate) fn write_lines(dir: &Path, lines: &[&str]) -> Writer {
    let mut writer = Writer::open(dir, SEGMENT).unwrap();
    let records: Vec<_> = lines.iter().map(|line| out(line.as_bytes())).collect();
    writer.append(&records).unwrap();
    writer
}

/// Every payload from `offset` on, read in portions of `max_bytes`, as text.
pub(crate) fn read_lines(dir: &Path, offset: u64, max_bytes: usize) -> Vec<String> {
    let mut reader = Reader::open(dir).unwrap();
    let mut lines = Vec::new();
    let mut at = offset;
    loop {
        let batch = reader.read_from(at, max_bytes).unwrap();
        assert_eq!(batch.damage, []);
        if batch.is_empty() {
            return lines;
        }
        lines.extend(batch.records().map(|r| String::from_utf8_lossy(r.record.payload).into_owned()));
        at = batch.next;
    }
}

pub(crate) fn first_segment(dir: &Path) -> PathBuf {
    dir.join("tape.0000000000000000")
}
