//! JSON that may be shown: the controls that JSON itself lets through are written as escapes.

use serde::Serialize;

/// One value on one line. Nothing in it moves a terminal: C0 is escaped by JSON, C1, DEL and the controls that
/// reorder text are escaped here. They can only stand within strings, so the value stays the same.
pub fn to_json(value: &impl Serialize) -> String {
    // Our forms have string keys and no maps of foreign types: serializing them cannot fail.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    if json.chars().any(moves_terminals) { json.chars().map(escape).collect() } else { json }
}

fn escape(c: char) -> String {
    if moves_terminals(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
}

fn moves_terminals(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_the_same_without_controls() {
        let foreign = "a\u{1b}[2J\u{9b}1m\u{202e}é\u{7f}";
        let json = to_json(&foreign);
        assert_eq!(json, r#""a\u001b[2J\u009b1m\u202eé\u007f""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), foreign);
    }
}
