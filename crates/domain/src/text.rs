//! Foreign text made safe and short: what agents, files and names say never moves a terminal.

/// Shows control characters instead of obeying them; tabs and newlines stay. C0, C1, DEL and the controls that
/// reorder text are replaced, so neither an escape sequence nor a bidi trick survives.
pub fn visible(text: &str) -> String {
    text.chars().map(shown).collect()
}

fn shown(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\u{1b}' | '\u{9b}' => '␛',
        '\u{7f}' => '␡',
        c if c.is_control() => {
            char::from_u32(0x2400 + u32::from(c)).filter(|_| u32::from(c) < 0x20).unwrap_or('\u{fffd}')
        }
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => '\u{fffd}',
        c => c,
    }
}

/// Words as one argument of a shell, quoted where they must be.
pub fn shell_word(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_bare) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The text on one line, safe, cut to `most` characters with `…`.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most));
    let mut count = 0;
    let mut in_space = false;
    for c in text.trim().chars().map(shown) {
        if c.is_whitespace() {
            in_space = true;
            continue;
        }
        let needed = usize::from(in_space && !line.is_empty()) + 1;
        if count + needed > most {
            if count == most {
                line.pop();
            }
            line.push('…');
            return line;
        }
        if needed == 2 {
            line.push(' ');
        }
        in_space = false;
        line.push(c);
        count += needed;
    }
    line
}

/// What somebody said as a sentence, with one full stop, whether or not it came with one.
pub fn sentence(text: &str) -> String {
    let said = text.trim_end();
    if said.ends_with(['.', '!', '?', '…']) { said.to_owned() } else { format!("{said}.") }
}

/// The word that was probably meant by one that is none of these. None where nothing is near.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed: Vec<char> = typed.chars().take(NEAREST_CHARS).collect();
    let far = |word: &str| {
        let changes = changes(&typed, &word.chars().collect::<Vec<_>>());
        // Whoever leaves the end of a word away means that word.
        let is_begun = typed.len() >= 3 && word.chars().take(typed.len()).eq(typed.iter().copied());
        (is_begun || changes <= typed.len().div_ceil(3)).then_some((!is_begun, changes))
    };
    let near = known.into_iter().filter_map(|word| Some((far(word)?, word)));
    near.min_by_key(|(far, _)| *far).map(|(_, word)| word)
}

/// Longer words are nobody's slip of the finger.
const NEAREST_CHARS: usize = 64;

/// How many characters must be put in, taken out, replaced, or swapped with the next one to make one word another.
fn changes(one: &[char], other: &[char]) -> usize {
    let mut rows = [vec![0; other.len() + 1], (0..=other.len()).collect(), vec![0; other.len() + 1]];
    for (n, a) in one.iter().enumerate() {
        let [before, last, row] = &mut rows;
        row[0] = n + 1;
        for (m, b) in other.iter().enumerate() {
            let replaced = last[m] + usize::from(a != b);
            row[m + 1] = replaced.min(row[m] + 1).min(last[m + 1] + 1);
            if n > 0 && m > 0 && one[n - 1] == *b && other[m - 1] == *a {
                row[m + 1] = row[m + 1].min(before[m - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][other.len()]
}

/// A size in its largest unit, with a tenth: `1.2 GiB`.
pub fn bytes(n: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1_024 {
        return format!("{n} B");
    }
    // Tenths of the unit, in whole numbers: no size is rounded up to one that it does not have.
    let mut tenths = u128::from(n) * 10 / 1_024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// The longest beginning of `text` that has at most `most` bytes and ends between characters.
pub fn head(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A number of tokens: `940`, `1.2k`, `41k`, `1.9M`.
pub fn count(n: u64) -> String {
    let tenths = |unit: u64, sign| format!("{}.{}{sign}", n / unit, n % unit / (unit / 10));
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => tenths(1_000, 'k'),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..1_000_000_000 => tenths(1_000_000, 'M'),
        _ => tenths(1_000_000_000, 'G'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(visible("a\u{1b}[2Jb\u{7}\u{9b}1m\u{202e}"), "a␛[2Jb␇␛1m\u{fffd}");
        assert_eq!(visible("line\n\ttab"), "line\n\ttab");
    }

    #[test]
    fn what_is_near_is_found_and_nothing_else() {
        let known = ["silent", "start", "tool", "first_output"];
        let meant =
            ["silnet", "starts", "first", "tol", "memory", "s", ""].map(|typed| nearest(typed, known));
        assert_eq!(
            meant,
            [Some("silent"), Some("start"), Some("first_output"), Some("tool"), None, None, None]
        );
        assert_eq!(nearest("rnu", ["ls", "resume", "run", "rm"]), Some("run"), "two letters changed places");
    }

    #[test]
    fn arguments_survive_a_shell() {
        assert_eq!(["a-b", "it's", ""].map(shell_word), ["a-b", r"'it'\''s'", "''"]);
    }

    #[test]
    fn a_sentence_ends_once() {
        assert_eq!(
            [sentence("no key"), sentence("no key. "), sentence("why?")],
            ["no key.", "no key.", "why?"]
        );
    }

    #[test]
    fn one_line_is_one_line_and_short() {
        assert_eq!(one_line("  a\n b\t c ", 20), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abcd", 4), "abcd");
        assert_eq!(head("héllo", 2), "h");
    }
}
