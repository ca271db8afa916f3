//! Flipped bits, lost blocks, hostile bytes: skipped and reported, never fatal.

use ostler_tape::{Damage, Reader, Writer, compress_segment};
use proptest::prelude::*;

use crate::support::{SEGMENT, first_segment, out, write_lines};

/// Payloads and damage from the start, in portions of `max_bytes`.
fn read_all(dir: &std::path::Path, max_bytes: usize) -> (Vec<Vec<u8>>, Vec<Damage>, u64) {
    let mut reader = Reader::open(dir).unwrap();
    let (mut lines, mut damage, mut at) = (Vec::new(), Vec::new(), 0);
    loop {
        let batch = reader.read_from(at, max_bytes).unwrap();
        lines.extend(batch.records().map(|record| record.record.payload.to_vec()));
        damage.extend_from_slice(&batch.damage);
        at = batch.next;
        if batch.is_empty() {
            return (lines, damage, at);
        }
    }
}

#[test]
fn a_flipped_bit_costs_one_record() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(dir.path(), &["one", "two", "three"]);
    let path = first_segment(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let second = 28 + 23..28 + 46;
    for byte in second {
        let mut bytes = whole.clone();
        bytes[byte] ^= 0x40;
        std::fs::write(&path, &bytes).unwrap();
        for max_bytes in [1, 1 << 20] {
            let (lines, damage, _) = read_all(dir.path(), max_bytes);
            // A longer length cannot be told from a record that is still being written, until more follows.
            if lines.len() == 1 {
                assert_eq!(damage, []);
                continue;
            }
            assert_eq!(lines, [b"one".to_vec(), b"three".to_vec()], "byte {byte}");
            assert_eq!(damage, [Damage { from: 23, to: 46 }]);
        }
    }
}

#[test]
fn a_damaged_length_is_noticed_once_more_follows() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write_lines(dir.path(), &["one", "two", "three"]);
    let path = first_segment(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[28 + 23] = 200;
    std::fs::write(&path, &bytes).unwrap();
    writer.append(&[out(&[b'x'; 300])]).unwrap();
    let (lines, damage, end) = read_all(dir.path(), 1);
    assert_eq!(lines[1], b"three");
    assert_eq!(damage, [Damage { from: 23, to: 46 }]);
    assert_eq!(end, writer.end());
}

#[test]
fn a_bad_tail_is_not_yet() {
    let dir = tempfile::tempdir().unwrap();
    let end = write_lines(dir.path(), &["one", "two"]).end();
    let path = first_segment(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(&[0; 100]);
    std::fs::write(&path, &bytes).unwrap();
    let (lines, damage, next) = read_all(dir.path(), 1 << 20);
    assert_eq!((lines.len(), damage, next), (2, vec![], end));
}

#[test]
fn a_hole_between_segments_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), 40).unwrap();
    for line in [b"one", b"two", b"six", b"ten"] {
        writer.append(&[out(line)]).unwrap();
    }
    let path = first_segment(dir.path());
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(28 + 23 + 5).unwrap();
    let (lines, damage, _) = read_all(dir.path(), 1 << 20);
    assert_eq!(lines, [b"one".to_vec(), b"six".to_vec(), b"ten".to_vec()]);
    assert_eq!(damage, [Damage { from: 23, to: 46 }]);

    std::fs::remove_file(&path).unwrap();
    let (lines, damage, _) = read_all(dir.path(), 1 << 20);
    assert_eq!(lines, [b"six".to_vec(), b"ten".to_vec()]);
    assert_eq!(damage, [Damage { from: 0, to: 46 }]);
}

#[test]
fn a_damaged_segment_header_costs_its_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), 40).unwrap();
    for line in [b"one", b"two", b"six"] {
        writer.append(&[out(line)]).unwrap();
    }
    let path = first_segment(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[13] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (lines, damage, _) = read_all(dir.path(), 1 << 20);
    assert_eq!(lines, [b"six".to_vec()]);
    assert_eq!(damage, [Damage { from: 0, to: 46 }]);
}

#[test]
fn a_record_printed_by_an_agent_is_never_taken_for_one() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    write_lines(other.path(), &["forged"]);
    let forged = std::fs::read(first_segment(other.path())).unwrap()[28..].to_vec();

    let mut writer = Writer::open(dir.path(), SEGMENT).unwrap();
    writer.append(&[out(&forged), out(b"real")]).unwrap();
    let path = first_segment(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[28 + 12] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (lines, damage, _) = read_all(dir.path(), 1 << 20);
    assert_eq!(lines, [b"real".to_vec()]);
    assert_eq!(damage.len(), 1);
}

#[test]
fn a_damaged_compressed_segment_is_not_fatal() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), 2_000).unwrap();
    for number in 0..200 {
        writer.append(&[out(format!("line number {number}").as_bytes())]).unwrap();
    }
    compress_segment(dir.path(), 0).unwrap();
    let path = dir.path().join("tape.0000000000000000.zst");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(&path, &bytes).unwrap();
    let (lines, damage, end) = read_all(dir.path(), 100);
    assert!(lines.len() < 200 && lines.last().unwrap() == b"line number 199");
    assert_eq!(damage.len(), 1);
    assert_eq!(end, writer.end());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to the bytes, reading ends, does not panic, and gives only records that were written.
    #[test]
    fn nothing_is_invented(
        flips in prop::collection::vec((0usize..4000, any::<u8>()), 0..8),
        cut in 28usize..4000,
        max_bytes in 1usize..5000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (0..60).map(|number| "x".repeat(number)).collect();
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        write_lines(dir.path(), &refs);
        let path = first_segment(dir.path());
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(28 + at) {
                *byte = value;
            }
        }
        bytes.truncate(cut);
        std::fs::write(&path, &bytes).unwrap();
        let (read, damage, next) = read_all(dir.path(), max_bytes);
        let mut written = lines.iter();
        for line in read {
            prop_assert!(written.any(|written| written.as_bytes() == line));
        }
        prop_assert!(damage.iter().all(|damage| damage.from < damage.to && damage.to <= next));
    }
}
