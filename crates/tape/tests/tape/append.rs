//! Writing, reading behind the writer, rotating, compressing, recovering.

use std::os::unix::fs::PermissionsExt;

use ostler_tape::input::EncodedInput;
use ostler_tape::recover::{Survey, survey};
use ostler_tape::segment::list_segments;
use ostler_tape::{Reader, Record, Stream, Writer, compress_segment};

use crate::support::{SEGMENT, first_segment, out, read_lines, write_lines};

#[test]
fn what_is_appended_is_read_at_once_from_any_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write_lines(dir.path(), &["one", "two"]);
    let middle = writer.end();
    writer.append(&[out(b"three")]).unwrap();
    assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one", "two", "three"]);
    assert_eq!(read_lines(dir.path(), 0, 1), ["one", "two", "three"], "a batch holds one record at least");
    assert_eq!(read_lines(dir.path(), middle, 1 << 20), ["three"]);
    assert_eq!(read_lines(dir.path(), writer.end(), 1 << 20), [""; 0]);
}

#[test]
fn a_follower_sees_what_is_written_after_it_reached_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.read_from(0, 1 << 20).unwrap().next, 0);
    let mut writer = Writer::open(dir.path(), 64).unwrap();
    let mut at = 0;
    for number in 0..20 {
        let line = format!("line {number}");
        writer.append(&[out(line.as_bytes())]).unwrap();
        let batch = reader.read_from(at, 1 << 20).unwrap();
        assert_eq!(batch.records().next().unwrap().record.payload, line.as_bytes());
        assert_eq!(batch.next, writer.end());
        at = batch.next;
    }
}

#[test]
fn offsets_run_on_across_segments_and_compression() {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..200).map(|number| format!("line number {number}")).collect();
    let mut writer = Writer::open(dir.path(), 500).unwrap();
    for line in &lines {
        writer.append(&[out(line.as_bytes())]).unwrap();
    }
    let segments = list_segments(dir.path()).unwrap();
    assert!(segments.len() > 5);
    assert_eq!(read_lines(dir.path(), 0, 100), lines);

    for segment in &segments[..segments.len() - 1] {
        compress_segment(dir.path(), segment.base).unwrap();
    }
    assert!(list_segments(dir.path()).unwrap()[0].compressed);
    for max_bytes in [1, 64, 1 << 20] {
        assert_eq!(read_lines(dir.path(), 0, max_bytes), lines);
    }
    // Backwards inside a compressed segment, and from the middle of one.
    let mut reader = Reader::open(dir.path()).unwrap();
    let third = reader.read_from(0, 1 << 20).unwrap().records().nth(2).unwrap().start;
    assert_eq!(
        reader.read_from(third, 1).unwrap().records().next().unwrap().record.payload,
        b"line number 2"
    );
    assert_eq!(reader.read_from(0, 1).unwrap().records().next().unwrap().record.payload, b"line number 0");
    assert_eq!(writer.end(), survey(dir.path()).unwrap().end);
}

#[test]
fn a_tape_that_is_fully_compressed_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let end = write_lines(dir.path(), &["one"]).end();
    compress_segment(dir.path(), 0).unwrap();
    let mut writer = Writer::open(dir.path(), SEGMENT).unwrap();
    assert_eq!(writer.end(), end);
    writer.append(&[out(b"two")]).unwrap();
    assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one", "two"]);
}

#[test]
fn many_records_and_the_longest_fit_in_one_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), SEGMENT).unwrap();
    let long = vec![b'x'; ostler_tape::record::PAYLOAD_BYTES];
    let mut records = vec![out(b"short"); 3_000];
    records.push(out(&long));
    writer.append(&records).unwrap();
    assert_eq!(read_lines(dir.path(), 0, 4096).len(), records.len());
    let longer = vec![b'x'; long.len() + 1];
    let error = writer.append(&[out(b"fits"), out(&longer)]).unwrap_err();
    assert_eq!(error.written, 0);
}

#[test]
fn a_torn_tail_is_cut_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let writer = write_lines(dir.path(), &["one", "two", "three"]);
    let path = first_segment(dir.path());
    let whole = std::fs::read(&path).unwrap();
    let last_record = 20 + "three".len();
    for missing in 1..last_record {
        std::fs::write(&path, &whole[..whole.len() - missing]).unwrap();
        assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one", "two"], "a reader waits for the rest");
        let mut reopened = Writer::open(dir.path(), SEGMENT).unwrap();
        let end = writer.end() - last_record as u64;
        assert_eq!(reopened.end(), end);
        let torn = std::fs::read(dir.path().join(format!("tape.torn.{end:016x}"))).unwrap();
        assert_eq!(torn, &whole[whole.len() - last_record..whole.len() - missing]);
        reopened.append(&[out(b"four")]).unwrap();
        assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one", "two", "four"]);
    }
}

#[test]
fn a_segment_that_died_at_birth_is_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    let end = write_lines(dir.path(), &["one"]).end();
    std::fs::write(dir.path().join(format!("tape.{end:016x}")), "OSTL").unwrap();
    assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one"]);
    let mut writer = Writer::open(dir.path(), SEGMENT).unwrap();
    assert_eq!(writer.end(), end);
    writer.append(&[out(b"two")]).unwrap();
    assert_eq!(read_lines(dir.path(), 0, 1 << 20), ["one", "two"]);
}

#[test]
fn only_complete_inputs_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), 100).unwrap();
    assert_eq!(writer.last_input_no(), 0);
    let first = EncodedInput::new(1, "tag", b"0123456789", 4, 0);
    writer.append(&first.records().collect::<Vec<_>>()).unwrap();
    for _ in 0..20 {
        writer.append(&[out(b"many other records follow")]).unwrap();
    }
    let second = EncodedInput::new(2, "tag", b"0123456789", 4, 0);
    writer.append(&second.records().take(2).collect::<Vec<_>>()).unwrap();
    let end = writer.end();
    assert_eq!(survey(dir.path()).unwrap(), Survey { end, last_input_no: 1 });
    assert_eq!(Writer::open(dir.path(), 100).unwrap().last_input_no(), 1);
}

#[test]
fn readers_and_batches_move_between_threads() {
    fn assert_send<T: Send + 'static>() {}
    assert_send::<Reader>();
    assert_send::<ostler_tape::Batch>();
    assert_send::<ostler_tape::Assembler>();
}

#[test]
fn tape_files_are_private() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(dir.path(), &["one"]).sync().unwrap();
    let mode = first_segment(dir.path()).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_full_disk_keeps_whole_records_and_says_how_many() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = SmallDisk::mount(dir.path()) else {
        eprintln!("skipped: a_full_disk_keeps_whole_records_and_says_how_many needs the right to mount");
        return;
    };
    let mut writer = Writer::open(dir.path(), SEGMENT).unwrap();
    let payload = vec![b'x'; 10_000];
    let records = vec![Record::line(Stream::Out, 1, &payload); 100];
    let error = writer.append(&records).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::StorageFull);
    assert!((1..100).contains(&error.written), "{} records", error.written);
    assert_eq!(read_lines(dir.path(), 0, 1 << 20).len(), error.written);
    let len = first_segment(dir.path()).metadata().unwrap().len();
    assert_eq!(len, 28 + writer.end(), "nothing is left of the record that did not fit");
}

/// A file system of 256 KiB at a directory.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(dir: &std::path::Path) -> Option<SmallDisk> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(dir).stderr(std::process::Stdio::null());
        mount.status().ok()?.success().then(|| SmallDisk(dir.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
