//! Words to the terminal itself, beside what it shows.

use ostler_domain::{limits::NOTICE_TEXT, text::one_line};

/// Has the terminal tell whoever does not look at it (OSC 9). A terminal that knows nothing of it shows nothing.
pub fn osc9(text: &str, within_tmux: bool) -> String {
    // Nothing of it ends the sequence: what is no letter is shown as one.
    let text = one_line(text, NOTICE_TEXT);
    match within_tmux {
        // tmux hands on what is said like this, where `allow-passthrough` is on.
        true => format!("\u{1b}Ptmux;\u{1b}\u{1b}]9;{text}\u{7}\u{1b}\\"),
        false => format!("\u{1b}]9;{text}\u{7}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_the_sequence() {
        assert_eq!(osc9("ann asks", false), "\u{1b}]9;ann asks\u{7}");
        assert_eq!(osc9("ann asks", true), "\u{1b}Ptmux;\u{1b}\u{1b}]9;ann asks\u{7}\u{1b}\\");
        let evil = osc9("a\u{7}\u{1b}]0;title\u{9c}\nb", false);
        let inner = &evil[4..evil.len() - 1];
        assert!(!inner.chars().any(char::is_control), "{evil:?}");
    }
}
