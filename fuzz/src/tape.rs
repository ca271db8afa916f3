//! What must hold of reading a tape, whatever is in its file. Used by the fuzz target and, on bytes of its own making,
//! by a test of `ostler-tape`.

use std::path::Path;

use ostler_tape::{Assembler, Reader};

/// The first segment's file.
pub(super) const SEGMENT: &str = "tape.0000000000000000";
/// Portions in which it is read: one that splits records, and one that holds many.
const PORTIONS: [usize; 2] = [64, 1 << 20];

/// The bytes are a tape's only segment in `dir`, which is empty.
pub(super) fn holds(dir: &Path, bytes: &[u8]) {
    std::fs::write(dir.join(SEGMENT), bytes).expect("a file can be written");
    let mut readings = PORTIONS.iter().map(|portion| read(dir, *portion));
    let first = readings.next();
    assert!(readings.all(|other| Some(other) == first), "the portions make no difference to what is read");
}

/// Where each record begins and ends, in the order in which they are read.
fn read(dir: &Path, portion: usize) -> Vec<(u64, u64)> {
    let Ok(mut reader) = Reader::open(dir) else { return Vec::new() };
    let mut assembler = Assembler::new(0);
    let mut places = Vec::new();
    let mut at = 0;
    loop {
        let Ok(batch) = reader.read_from(at, portion) else { return places };
        for record in batch.records() {
            assert!(record.start < record.end, "{record:?}");
            assert!(places.last().is_none_or(|(_, end)| *end <= record.start), "in order, and none twice");
            places.push((record.start, record.end));
            let mut lines = Vec::new();
            assembler.push(record, &mut lines);
        }
        assert!(batch.damage.iter().all(|damage| damage.from < damage.to), "{:?}", batch.damage);
        assert!(batch.next >= at, "it never goes back");
        if batch.next == at {
            return places;
        }
        at = batch.next;
    }
}
