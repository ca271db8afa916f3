//! What must hold of reading a line of a transcript, whatever is in it. Used by the fuzz target and, on bytes of its own making,
//! by a test of `ostler-domain`.

use ostler_domain::transcript::Line;

pub(super) fn holds(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(read) = serde_json::from_slice::<Line>(line) else { continue };
        let written = read.to_json();
        assert_eq!(written.matches('\n').count(), 1, "a line is one line");
        let again: Line = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(again.to_json(), written, "and is the same");
    }
}
