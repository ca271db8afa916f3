//! A shell's command line taken apart, as far as that is beyond doubt.
//!
//! Rules are about programs and their words, so a line is only understood when every program that it starts is plain to
//! see. Anything else is [`Unclear`], with the reason: substitutions, subshells, loops, here-documents, variables that
//! are set. Nothing is guessed, and a line that is too long is unclear as a whole, never cut.

/// Longest line, and most programs in one, that are looked at.
const MOST_BYTES: usize = 16 * 1024;
const MOST_PARTS: usize = 50;

/// One program with its words, and the files that the shell opens for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) words: Vec<Word>,
    pub(super) reads: Vec<Word>,
    pub(super) writes: Vec<Word>,
}

/// A word as the program gets it, without quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The shell makes something else of it when it runs: a variable, a pattern, a home. Perhaps several words, or none.
    pub(super) is_open: bool,
}

/// Why a line cannot be judged by its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclear(pub(super) &'static str);

const SUBSTITUTION: Unclear = Unclear("a command runs inside another");
const QUOTES: Unclear = Unclear("a quote is not closed");
const EMPTY: Unclear = Unclear("there is no command");
const TARGET: Unclear = Unclear("a redirection goes nowhere");

/// Words that make a shell do more than start a program.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
];

/// All programs that a line starts, in their order.
pub(super) fn parts(line: &str) -> Result<Vec<Part>, Unclear> {
    if line.len() > MOST_BYTES {
        return Err(Unclear("the line is too long to be looked at"));
    }
    // What looks like a blank and is none to a shell would be read differently by people.
    if line.chars().any(|c| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t' | '\n')) {
        return Err(Unclear("there are characters in it that cannot be seen"));
    }
    let mut scan = Scan { chars: line.chars().collect(), ..Scan::default() };
    scan.run()?;
    match scan.parts.len() {
        0 => Err(EMPTY),
        1..=MOST_PARTS => Ok(scan.parts),
        _ => Err(Unclear("it has too many parts to be looked at")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redirect {
    Read,
    Write,
    /// `2>&1`: another descriptor, or a file for both.
    Same,
}

#[derive(Default)]
struct Scan {
    chars: Vec<char>,
    at: usize,
    parts: Vec<Part>,
    part: Part,
    word: Option<Word>,
    /// Whether something of the word was quoted: `"2">x` is not descriptor 2.
    is_quoted: bool,
    redirect: Option<Redirect>,
}

impl Scan {
    fn run(&mut self) -> Result<(), Unclear> {
        while let Some(c) = self.next() {
            match c {
                ' ' | '\t' => self.end_word()?,
                '\n' => self.end_part(true)?,
                ';' if self.peek() == Some(';') => return Err(Unclear("it is more than a row of commands")),
                ';' => self.end_part(false)?,
                '&' if self.peek() == Some('>') => {
                    self.at += 1;
                    self.end_word()?;
                    self.skip('>');
                    self.open_redirect(Redirect::Write)?;
                }
                '&' => {
                    self.skip('&');
                    self.end_part(false)?;
                }
                '|' => {
                    if !self.skip('|') {
                        self.skip('&');
                    }
                    self.end_part(false)?;
                }
                '<' | '>' => self.redirect(c)?,
                '(' | ')' => return Err(Unclear("it has a subshell, a function or a substitution")),
                '`' => return Err(SUBSTITUTION),
                '#' if self.word.is_none() => {
                    return Err(Unclear("it has a comment, which not every shell knows"));
                }
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(literal) => {
                        self.is_quoted = true;
                        self.word().text.push(literal);
                    }
                    None => return Err(QUOTES),
                },
                '$' => self.expansion()?,
                '*' | '?' | '[' | '{' | '}' | '~' => {
                    let word = self.word();
                    word.text.push(c);
                    word.is_open = true;
                }
                _ => self.word().text.push(c),
            }
        }
        self.end_part(true)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn single_quoted(&mut self) -> Result<(), Unclear> {
        self.is_quoted = true;
        self.word();
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.word().text.push(c),
                None => return Err(QUOTES),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), Unclear> {
        self.is_quoted = true;
        self.word();
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(SUBSTITUTION),
                Some('$') => self.expansion()?,
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.word().text.push(c),
                    Some(c) => self.word().text.extend(['\\', c]),
                    None => return Err(QUOTES),
                },
                Some(c) => self.word().text.push(c),
                None => return Err(QUOTES),
            }
        }
    }

    /// Behind a `$`: a variable by its name makes the word open, everything else could run something.
    fn expansion(&mut self) -> Result<(), Unclear> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut shown = "$".to_owned();
        match self.peek() {
            Some('(') => return Err(SUBSTITUTION),
            Some('{') => {
                let rest = &self.chars[self.at + 1..];
                let length = rest.iter().take_while(|c| is_name(**c)).count();
                if length == 0 || rest.get(length) != Some(&'}') {
                    return Err(SUBSTITUTION);
                }
                shown.extend(&self.chars[self.at..self.at + length + 2]);
                self.at += length + 2;
            }
            Some(c) if is_name(c) => {
                let length = self.chars[self.at..].iter().take_while(|c| is_name(**c)).count();
                shown.extend(&self.chars[self.at..self.at + length]);
                self.at += length;
            }
            Some(c @ ('?' | '$' | '@' | '*' | '#' | '!' | '-')) => {
                shown.push(c);
                self.at += 1;
            }
            Some('\'' | '"' | '[') => {
                return Err(Unclear("a word is written in a way that not every shell knows"));
            }
            _ => {
                self.word().text.push('$');
                return Ok(());
            }
        }
        let word = self.word();
        word.text.push_str(&shown);
        word.is_open = true;
        Ok(())
    }

    fn redirect(&mut self, c: char) -> Result<(), Unclear> {
        let is_descriptor = !self.is_quoted
            && self.word.as_ref().is_some_and(|word| word.text.chars().all(|c| c.is_ascii_digit()));
        if is_descriptor && self.redirect.is_none() {
            self.word = None;
        }
        self.end_word()?;
        let redirect = match (c, self.peek()) {
            ('<', Some('<')) => return Err(Unclear("it has a here-document")),
            ('<', Some('>')) | ('>', Some('>' | '|')) => {
                self.at += 1;
                Redirect::Write
            }
            (_, Some('&')) => {
                self.at += 1;
                Redirect::Same
            }
            ('<', _) => Redirect::Read,
            _ => Redirect::Write,
        };
        self.open_redirect(redirect)
    }

    fn open_redirect(&mut self, redirect: Redirect) -> Result<(), Unclear> {
        match self.redirect.replace(redirect) {
            None => Ok(()),
            Some(_) => Err(TARGET),
        }
    }

    fn end_word(&mut self) -> Result<(), Unclear> {
        let is_quoted = std::mem::take(&mut self.is_quoted);
        let Some(word) = self.word.take() else { return Ok(()) };
        match self.redirect.take() {
            None => self.part.words.push(word),
            Some(Redirect::Read) => self.part.reads.push(word),
            Some(Redirect::Write) => self.part.writes.push(word),
            Some(Redirect::Same) => {
                let target = word.text.strip_suffix('-').unwrap_or(&word.text);
                let is_descriptor = !is_quoted && !word.is_open && target.chars().all(|c| c.is_ascii_digit());
                if !is_descriptor {
                    self.part.writes.push(word);
                }
            }
        }
        Ok(())
    }

    /// Ends a command. An empty one is fine only where a line may end.
    fn end_part(&mut self, may_be_empty: bool) -> Result<(), Unclear> {
        self.end_word()?;
        if self.redirect.is_some() {
            return Err(TARGET);
        }
        let part = std::mem::take(&mut self.part);
        let Some(program) = part.words.first() else {
            let is_empty = part == Part::default();
            return if is_empty && may_be_empty { Ok(()) } else { Err(EMPTY) };
        };
        if program.text.contains('=') {
            return Err(Unclear("it sets variables for what it runs"));
        }
        if program.is_open || program.text.is_empty() {
            return Err(Unclear("which program it runs is known only when it does"));
        }
        if RESERVED.contains(&program.text.as_str()) {
            return Err(Unclear("it is more than a row of commands"));
        }
        self.parts.push(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words in brackets, open ones with a question mark, files behind arrows.
    fn shown(line: &str) -> String {
        let word = |word: &Word| format!("[{}{}]", word.text, if word.is_open { "?" } else { "" });
        let part = |part: &Part| {
            let words = part.words.iter().map(word);
            let reads = part.reads.iter().map(|file| format!("<{}", word(file)));
            let writes = part.writes.iter().map(|file| format!(">{}", word(file)));
            words.chain(reads).chain(writes).collect::<String>()
        };
        match parts(line) {
            Ok(parts) => parts.iter().map(part).collect::<Vec<_>>().join(" "),
            Err(Unclear(why)) => why.to_owned(),
        }
    }

    #[test]
    fn plain_lines_are_taken_apart() {
        for (line, expected) in [
            ("cargo test -p 'a b' \"c\"d", "[cargo][test][-p][a b][cd]"),
            ("a && b||c;d|e|&f&g\nh", "[a] [b] [c] [d] [e] [f] [g] [h]"),
            ("a >x 2>&1 <y >>z", "[a]<[y]>[x]>[z]"),
            ("a 2>/dev/null", "[a]>[/dev/null]"),
            ("a &>x", "[a]>[x]"),
            ("a &>>x", "[a]>[x]"),
            ("a >&x", "[a]>[x]"),
            ("a >|x", "[a]>[x]"),
            ("a <>x", "[a]>[x]"),
            ("a \"2\">x", "[a][2]>[x]"),
            ("a 12>x", "[a]>[x]"),
            ("a1>x", "[a1]>[x]"),
            ("a 2>&-", "[a]"),
            ("a $X ${Y}z *.rs ~/q \"$X\" '$X' \\$X", "[a][$X?][${Y}z?][*.rs?][~/q?][$X?][$X][$X]"),
            ("a ''", "[a][]"),
            ("a\\\nb c", "[ab][c]"),
            ("a x#y", "[a][x#y]"),
            ("a;", "[a]"),
            ("a &&\n b", "[a] [b]"),
            ("a \"x\\n\"", "[a][x\\n]"),
            ("a 5$", "[a][5$]"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_plain_is_unclear() {
        for line in [
            "",
            "  \n ",
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a \"`b`\"",
            "(a)",
            "a <(b)",
            "a >(b)",
            "a $((1))",
            "a <<X",
            "a <<<x",
            "X=1 a",
            "A[0]=1",
            "a; X=1",
            "$X a",
            "'' a",
            "*x",
            "~/bin/a",
            "if a; then b; fi",
            "! a",
            "{ a; }",
            "f() { a; }",
            "for x in y",
            "a 'b",
            "a \"b",
            "a \\",
            "a #b",
            "a ${X:-b}",
            "a ${!X}",
            "a $'b'",
            "a $\"b\"",
            "a > ",
            "a >",
            "a > > b",
            "a ;; b",
            "; a",
            "a || | b",
            "a\rb",
            "a\u{a0}b",
            "a\u{200b}\u{2028}b",
            "a\0b",
            "> x",
            "a >& ;",
            "time a",
            "[ -f x ]",
        ] {
            let unclear = parts(line).is_err();
            assert!(unclear, "{line:?} is {}", shown(line));
        }
    }

    #[test]
    fn a_long_line_is_unclear_and_never_cut() {
        assert_eq!(parts(&["a"; MOST_PARTS].join(";")).map(|parts| parts.len()), Ok(MOST_PARTS));
        assert!(parts(&["a"; MOST_PARTS + 1].join(";")).is_err());
        assert!(parts(&"a".repeat(MOST_BYTES + 1)).is_err());
    }

    proptest! {
        #[test]
        fn no_line_panics_and_every_part_has_a_program(line in "[a-z$'\"\\\\(){}<>|&;*?~# \n=0-9-]{0,60}") {
            if let Ok(parts) = parts(&line) {
                prop_assert!(!parts.is_empty());
                prop_assert!(parts.iter().all(|part| part.words.first().is_some_and(|word| !word.is_open)));
            }
        }

        #[test]
        fn what_is_quoted_is_one_word(text in "[^'\\p{Cc}\\p{Zs}\\p{Zl}\\p{Zp}]{1,30}") {
            let parts = parts(&format!("a '{text}'")).unwrap();
            prop_assert_eq!(&parts[0].words[1], &Word { text, is_open: false });
        }

        #[test]
        fn a_further_command_is_never_overlooked(
            before in "[a-z ./-]{0,20}", joint in prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", "|&"]),
        ) {
            if let Ok(parts) = parts(&format!("x {before}{joint} evil y")) {
                prop_assert!(parts.iter().any(|part| part.words[0].text == "evil"));
            }
        }
    }
}
