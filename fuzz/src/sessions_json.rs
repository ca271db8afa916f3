//! What must hold of reading OpenClaw's `sessions.json`, whatever is in it. Used by the fuzz target and, on bytes of its own
//! making, by a test of `ostler-domain`.

use ostler_domain::{
    conversation::Entry,
    exchange::openclaw_index::{Index, written},
};

pub(super) fn holds(bytes: &[u8]) {
    let again = written(Some(bytes), &[]);
    let Some(index) = Index::read(bytes) else {
        assert_eq!(again.text, bytes, "what nobody can read stays as it is");
        return;
    };
    for (_, row) in index.rows() {
        let entry = Entry::of_row(&row).normalised();
        assert_eq!(entry.clone().normalised(), entry, "where deliveries go is said once");
        let text = serde_json::to_string(&entry).expect("an entry is JSON");
        let row = serde_json::from_str(&text).expect("and one object");
        assert_eq!(Entry::of_row(&row), entry, "what was written is read as it was");
        let noted: Entry = serde_json::from_str(&text).expect("what is recorded can be read");
        assert_eq!(noted, entry, "and says the same");
    }
    assert!(Index::read(&again.text).is_some(), "an index that was read is one when it is written");
}
