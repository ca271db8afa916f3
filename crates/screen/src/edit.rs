//! How many lines an edit adds and takes away, where the call itself says what it replaces.

use serde_json::Value;

/// Larger edits are not compared line by line: it would take longer than anybody looks.
const MOST_LINES: usize = 2_000;
/// A call that says more edits at once is not an edit that anybody reads.
const MOST_EDITS: usize = 200;

/// What agents call what is replaced, and what it is replaced with.
const REPLACED: [(&str, &str); 3] =
    [("old_string", "new_string"), ("old_text", "new_text"), ("oldText", "newText")];

/// Lines that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Changed {
    pub added: usize,
    pub removed: usize,
}

impl Changed {
    /// `+41 −3`
    pub(crate) fn words(self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }

    fn plus(self, other: Changed) -> Changed {
        Changed { added: self.added + other.added, removed: self.removed + other.removed }
    }
}

/// What a call with this input changes; none where it does not say.
pub(crate) fn changed(input: &str) -> Option<Changed> {
    if !input.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let input: Value = serde_json::from_str(input).ok()?;
    let edits = input["edits"].as_array().or_else(|| input.as_array());
    match edits {
        Some(edits) if edits.is_empty() || edits.len() > MOST_EDITS => None,
        Some(edits) => edits.iter().map(one).try_fold(Changed::default(), |sum, edit| Some(sum.plus(edit?))),
        None => one(&input),
    }
}

fn one(edit: &Value) -> Option<Changed> {
    // How often the text is there, only the file knows.
    if ["replace_all", "replaceAll"].iter().any(|key| edit[*key] == true) {
        return None;
    }
    let replaced = REPLACED.iter().find_map(|(old, new)| Some((edit[*old].as_str()?, edit[*new].as_str()?)));
    if let Some((old, new)) = replaced {
        return compared(old, new);
    }
    // Codex: a whole file that comes or goes, or a patch.
    let text = edit["diff"].as_str()?;
    match edit["kind"]["type"].as_str() {
        Some("add") => Some(Changed { added: text.lines().count(), removed: 0 }),
        Some("delete") => Some(Changed { added: 0, removed: text.lines().count() }),
        _ => Some(of_patch(text)),
    }
}

fn of_patch(patch: &str) -> Changed {
    let count = |sign: char, head: &str| {
        patch.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    Changed { added: count('+', "+++ "), removed: count('-', "--- ") }
}

/// By the longest row of lines that both have.
fn compared(old: &str, new: &str) -> Option<Changed> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MOST_LINES || new.len() > MOST_LINES {
        return None;
    }
    let mut lengths = vec![0usize; new.len() + 1];
    for line in &old {
        let mut before = 0;
        for (place, other) in new.iter().enumerate() {
            let above = lengths[place + 1];
            lengths[place + 1] = if line == other { before + 1 } else { above.max(lengths[place]) };
            before = above;
        }
    }
    let common = lengths[new.len()];
    Some(Changed { added: new.len() - common, removed: old.len() - common })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(input: &Value) -> Option<String> {
        changed(&input.to_string()).map(Changed::words)
    }

    #[test]
    fn what_is_replaced_is_compared_line_by_line() {
        let edit = json!({"file_path": "a.rs", "old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"});
        assert_eq!(of(&edit).as_deref(), Some("+2 −1"));
        let same = json!({"path": "a", "old_text": "a\nb", "new_text": "a\nb"});
        assert_eq!(of(&same).as_deref(), Some("+0 −0"));
        let several = json!({"path": "a", "edits": [
            {"oldText": "a", "newText": "b"}, {"oldText": "c\nd", "newText": ""}]});
        assert_eq!(of(&several).as_deref(), Some("+1 −3"));
    }

    #[test]
    fn patches_and_whole_files_are_counted() {
        let changes = json!([
            {"path": "a.rs", "kind": {"type": "update"}, "diff": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n+d\n"},
            {"path": "b.rs", "kind": {"type": "add"}, "diff": "x\ny\n"},
            {"path": "c.rs", "kind": {"type": "delete"}, "diff": "z\n"},
        ]);
        assert_eq!(of(&changes).as_deref(), Some("+4 −2"));
    }

    #[test]
    fn what_nobody_said_is_not_guessed() {
        for unknown in [
            json!({"file_path": "a", "content": "x\ny"}),
            json!({"file_path": "a", "old_string": "a", "new_string": "b", "replace_all": true}),
            json!({"command": "sed -i s/a/b/ x"}),
            json!([]),
            json!([{"path": "a"}]),
        ] {
            assert_eq!(of(&unknown), None, "{unknown}");
        }
        assert_eq!(changed("cargo test"), None);
        assert_eq!(changed("{not json"), None);
        let long = json!({"old_string": "x\n".repeat(3_000), "new_string": ""});
        assert_eq!(of(&long), None);
    }
}
