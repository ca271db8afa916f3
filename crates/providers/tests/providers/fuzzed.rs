//! What the fuzz target of the readers of stores looks for, on bytes of our own making.

#[path = "../../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../../fuzz/src/history.rs"]
mod history;

use std::{fs, path::Path};

#[test]
fn any_file_of_a_store_is_read_to_its_end() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/history");
    let names = [
        "claude/session.jsonl",
        "codex/rollout.jsonl",
        "openclaw/file-store.jsonl",
        "openclaw/handwritten.jsonl",
    ];
    let files: Vec<Vec<u8>> = names.iter().map(|name| fs::read(dir.join(name)).unwrap()).collect();
    // A few lines at a time: what stands beside what changes too.
    let pieces: Vec<Vec<u8>> = files
        .iter()
        .flat_map(|file| {
            let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
            lines.chunks(4).map(|lines| lines.concat()).collect::<Vec<_>>()
        })
        .collect();
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    changed::changed(&pieces, 0x0511_2026, 3_000, history::holds);
}
