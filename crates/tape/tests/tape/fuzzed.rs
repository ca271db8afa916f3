//! What the fuzz target of the tape's reader looks for, on bytes of our own making.

#[path = "../../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../../fuzz/src/tape.rs"]
mod tape;

use crate::support::{first_segment, write_lines};

#[test]
fn any_file_is_read_to_its_end_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let long = "y".repeat(3_000);
    drop(write_lines(dir.path(), &["one", "", "two words", &long]));
    let good = std::fs::read(first_segment(dir.path())).unwrap();
    let tried = tempfile::tempdir().unwrap();
    assert_eq!(first_segment(tried.path()).file_name().unwrap(), tape::SEGMENT);
    changed::changed(&[&good, &good[..good.len() / 2], b""], 0x0511_2026, 3_000, |bytes| {
        tape::holds(tried.path(), bytes);
    });
}
