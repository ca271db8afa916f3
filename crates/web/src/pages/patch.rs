//! Differences, line by line. Agents choose what is in them.

use ostler_domain::text::visible;
use serde_json::Value;

/// Lines that are shown of one.
const MOST: usize = 4_000;

/// One line of a difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) class: &'static str,
    /// The file and the line in it, as it is afterwards; empty where there is none.
    pub(super) at: String,
}

impl Line {
    fn new(class: &'static str, text: &str) -> Line {
        Line { text: visible(text), class, at: String::new() }
    }
}

/// The lines of a patch as git writes it, each with its place, and whether there are more.
pub(super) fn of_patch(patch: &str) -> (Vec<Line>, bool) {
    let (mut lines, mut file, mut number) = (Vec::new(), String::new(), 0_u64);
    let mut all = patch.lines();
    for line in all.by_ref().take(MOST) {
        let class = match line.as_bytes() {
            [b'd', b'i', b'f', b'f', ..] => "file",
            [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "faint",
            [b'@', ..] => "hunk",
            [b'+', ..] => "add",
            [b'-', ..] => "del",
            _ => "",
        };
        match class {
            "file" => (file, number) = (String::new(), 0),
            "faint" => {
                if let Some(path) = line.strip_prefix("+++ ") {
                    visible(path.strip_prefix("b/").unwrap_or(path)).clone_into(&mut file);
                }
            }
            "hunk" => number = begin(line).unwrap_or(0),
            _ => {}
        }
        let is_code = matches!(class, "add" | "del" | "") && number > 0 && !file.is_empty();
        let at = if is_code { format!("{file}:{number}") } else { String::new() };
        if is_code && class != "del" {
            number += 1;
        }
        lines.push(Line { at, ..Line::new(class, line) });
    }
    (lines, all.next().is_some())
}

/// Where a hunk begins in the new file: `@@ -1,2 +3,4 @@`.
fn begin(hunk: &str) -> Option<u64> {
    let new = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}

/// What a call that edits a file would change, from its arguments as the common agent programs have them; none where it
/// is no edit.
pub(super) fn of_edit(input: &str) -> Vec<Line> {
    let Ok(Value::Object(said)) = serde_json::from_str(input) else { return Vec::new() };
    let text = |names: &[&str]| names.iter().find_map(|name| said.get(*name)?.as_str());
    if let Some(patch) = text(&["patch", "diff", "unified_diff"]) {
        return of_patch(patch).0;
    }
    let path = text(&["file_path", "path", "filePath"]).unwrap_or_default();
    let old = text(&["old_string", "oldString", "old_text"]);
    let new = text(&["new_string", "newString", "new_text", "content"]);
    let Some(new) = new else { return Vec::new() };
    let head = Line::new("file", path);
    let removed = old.unwrap_or_default().lines().map(|line| Line::new("del", &format!("-{line}")));
    let added = new.lines().map(|line| Line::new("add", &format!("+{line}")));
    std::iter::once(head).chain(removed).chain(added).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_patch_knows_its_place_in_the_new_file() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n same\n-old\n+new\n+more\n";
        let (lines, is_cut) = of_patch(patch);
        let places: Vec<_> = lines.iter().map(|line| (line.class, line.at.as_str())).collect();
        assert_eq!(
            places,
            [
                ("file", ""),
                ("faint", ""),
                ("faint", ""),
                ("hunk", ""),
                ("", "x:1"),
                ("del", "x:2"),
                ("add", "x:2"),
                ("add", "x:3")
            ]
        );
        assert!(!is_cut && of_patch(&"+\n".repeat(MOST + 1)).1);
    }

    #[test]
    fn an_edit_is_shown_as_what_it_removes_and_adds() {
        let input = r#"{"file_path":"a.rs","old_string":"let a = 1;","new_string":"let a = 2;\nlet b = 3;"}"#;
        let lines: Vec<_> = of_edit(input).into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["a.rs", "-let a = 1;", "+let a = 2;", "+let b = 3;"]);
        assert!(of_edit("git push origin main").is_empty() && of_edit(r#"{"command":"ls"}"#).is_empty());
    }
}
