//! Joining pieces into lines, and going on after a commit at any record.

use std::borrow::Cow;
use std::path::Path;

use ostler_tape::input::EncodedInput;
use ostler_tape::record::Flags;
use ostler_tape::{Assembler, InputMark, Line, LineBody, Reader, Record, Stream, Writer};
use proptest::prelude::*;

const LIMIT: usize = 40;

fn piece(stream: Stream, flags: Flags, payload: &[u8]) -> Record<'_> {
    Record { stream, flags, time_us: payload.len() as i64, payload }
}

const FIRST: Flags = Flags::MORE;
const MIDDLE: Flags = Flags::MORE.with(Flags::CONTINUES);
const LAST: Flags = Flags::CONTINUES;

fn write(dir: &Path, records: &[Record<'_>]) {
    Writer::open(dir, 200).unwrap().append(records).unwrap();
}

/// The lines of a tape; after every `commit_every` records the assembler is thrown away and restored.
fn assemble(dir: &Path, commit_every: usize) -> Vec<Line<'static>> {
    let mut reader = Reader::open(dir).unwrap();
    let mut assembler = Assembler::new(0).with_limit(LIMIT);
    let mut lines = Vec::new();
    let mut count = 0;
    let mut at = 0;
    loop {
        let batch = reader.read_from(at, 64).unwrap();
        for record in batch.records() {
            let mut new = Vec::new();
            assembler.push(record, &mut new);
            lines.extend(new.into_iter().map(owned));
            count += 1;
            if count % commit_every == 0 {
                let stored = serde_json::to_vec(&assembler.state()).unwrap();
                let state = serde_json::from_slice(&stored).unwrap();
                let offset = assembler.offset();
                let mut other = Reader::open(dir).unwrap();
                assembler = Assembler::restore_limited(state, &mut other, offset, LIMIT).unwrap();
            }
        }
        if batch.is_empty() {
            return lines;
        }
        at = batch.next;
    }
}

fn owned(line: Line<'_>) -> Line<'static> {
    let body = match line.body {
        LineBody::Whole(bytes) => LineBody::Whole(Cow::Owned(bytes.into_owned())),
        LineBody::Partial(bytes) => LineBody::Partial(Cow::Owned(bytes.into_owned())),
        LineBody::Oversize { len } => LineBody::Oversize { len },
    };
    Line {
        stream: line.stream,
        start: line.start,
        end: line.end,
        time_us: line.time_us,
        body,
        input: line.input,
    }
}

fn whole(text: &str) -> LineBody<'static> {
    LineBody::Whole(Cow::Owned(text.as_bytes().to_vec()))
}

fn partial(text: &str) -> LineBody<'static> {
    LineBody::Partial(Cow::Owned(text.as_bytes().to_vec()))
}

fn bodies(dir: &Path) -> Vec<(Stream, LineBody<'static>)> {
    assemble(dir, usize::MAX).into_iter().map(|line| (line.stream, line.body)).collect()
}

#[test]
fn pieces_of_two_streams_are_joined_each_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            piece(Stream::Out, FIRST, b"hel"),
            piece(Stream::Err, FIRST, b"oh "),
            piece(Stream::Out, MIDDLE, b"l"),
            piece(Stream::Err, LAST, b"no"),
            piece(Stream::Out, LAST, b"o"),
            piece(Stream::Out, Flags::NONE, b"again"),
            piece(Stream::Out, Flags::PARTIAL, b"unfinished"),
        ],
    );
    assert_eq!(
        bodies(dir.path()),
        [
            (Stream::Err, whole("oh no")),
            (Stream::Out, whole("hello")),
            (Stream::Out, whole("again")),
            (Stream::Out, partial("unfinished")),
        ]
    );
    let first = &assemble(dir.path(), 1)[1];
    assert_eq!((first.start, first.time_us), (0, 3));
}

#[test]
fn a_long_line_is_measured_and_not_held() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            piece(Stream::Out, FIRST, &[b'a'; 30]),
            piece(Stream::Out, MIDDLE, &[b'b'; 30]),
            piece(Stream::Out, LAST, &[b'c'; 30]),
            piece(Stream::Out, Flags::NONE, &[b'd'; LIMIT + 1]),
            piece(Stream::Out, Flags::NONE, b"short"),
        ],
    );
    let expected = [
        (Stream::Out, LineBody::Oversize { len: 90 }),
        (Stream::Out, LineBody::Oversize { len: LIMIT as u64 + 1 }),
        (Stream::Out, whole("short")),
    ];
    assert_eq!(bodies(dir.path()), expected);
}

#[test]
fn a_line_whose_writer_died_is_partial_and_half_an_input_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = EncodedInput::new(1, "tag", b"0123456789", 4, 0);
    write(dir.path(), &[piece(Stream::Out, FIRST, b"half a l")]);
    write(dir.path(), &input.records().take(1).collect::<Vec<_>>());
    write(dir.path(), &[piece(Stream::Out, Flags::NONE, b"fresh")]);
    write(dir.path(), &input.records().collect::<Vec<_>>());
    let lines = assemble(dir.path(), 1);
    let bodies: Vec<_> = lines.iter().map(|line| line.body.clone()).collect();
    assert_eq!(bodies, [partial("half a l"), whole("fresh"), whole("0123456789")]);
    assert_eq!(lines[2].input, Some(InputMark { input_no: 1, tag: "tag".into() }));
}

#[test]
fn damage_inside_a_line_shows() {
    let dir = tempfile::tempdir().unwrap();
    let records = [
        piece(Stream::Out, FIRST, b"aaa"),
        piece(Stream::Out, MIDDLE, b"bbb"),
        piece(Stream::Out, LAST, b"ccc"),
    ];
    write(dir.path(), &records);
    let path = crate::support::first_segment(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[28 + 23 + 21] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(bodies(dir.path()), [(Stream::Out, partial("aaaccc"))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Committing after any record and going on in another process gives the same lines.
    #[test]
    fn restoring_anywhere_changes_nothing(
        steps in prop::collection::vec((0usize..3, 0usize..30, any::<bool>(), any::<bool>()), 1..60),
        commit_every in 1usize..5,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut open = [false; 3];
        let filler = [b'.'; 30];
        let mut inputs = Vec::new();
        {
            let mut writer = Writer::open(dir.path(), 300).unwrap();
            for (stream, len, more, partial) in steps {
                let flags = Flags::MORE.when(more)
                    .with(Flags::CONTINUES.when(open[stream]))
                    .with(Flags::PARTIAL.when(partial && !more));
                open[stream] = more;
                let stream = [Stream::Out, Stream::Err, Stream::In][stream];
                if stream == Stream::In {
                    let piece = ostler_tape::InputPiece { input_no: 9, tag: "t", bytes: &filler[..len] };
                    inputs.push(piece.encode());
                    let payload = inputs.last().unwrap();
                    let flags = Flags::MORE.when(more).with(Flags::CONTINUES.when(flags.has(Flags::CONTINUES)));
                    writer.append(&[Record { stream, flags, time_us: len as i64, payload }]).unwrap();
                } else {
                    writer.append(&[piece(stream, flags, &filler[..len])]).unwrap();
                }
            }
        }
        prop_assert_eq!(assemble(dir.path(), commit_every), assemble(dir.path(), usize::MAX));
    }
}
