//! What a stream can show: colour, letters, width. Found once, from what the environment says.

use std::io::IsTerminal;

/// What one stream can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub colour: bool,
    pub letters: Letters,
    /// A line may be replaced by another.
    pub in_place: bool,
    /// Columns; none when lines may be of any length.
    pub width: Option<usize>,
    /// Another machine that was asked: what is shown to be typed is meant for it.
    pub node: Option<String>,
    /// What SSH is told to get to Ostler there, `ssh://build1 ostler`, where that is known.
    pub program_there: Option<String>,
}

/// Which characters are shown as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    All,
    /// Our own signs have ASCII forms, the words of others stay.
    PlainSigns,
    /// A terminal that knows no UTF-8 may take part of a character for a control: only ASCII reaches it.
    Ascii,
}

impl Look {
    /// Neither colour nor anything special.
    pub const fn plain(width: Option<usize>) -> Self {
        Self { colour: false, letters: Letters::All, in_place: false, width, node: None, program_there: None }
    }

    pub const fn coloured(width: Option<usize>) -> Self {
        Self { colour: true, letters: Letters::All, in_place: true, width, node: None, program_there: None }
    }

    /// A command as it is to be typed here: of the machine that was asked, or over there where it looks at that one's files.
    pub fn command<'a>(&self, command: &'a str) -> std::borrow::Cow<'a, str> {
        let (Some(node), Some(rest)) = (&self.node, command.strip_prefix("ostler ")) else {
            return command.into();
        };
        if rest.contains("--node") {
            return command.into();
        }
        match Place::of(rest) {
            Place::Anywhere => command.into(),
            // No directory of this machine says which campaign of that one is meant.
            Place::Asked => match rest.strip_prefix("run ").filter(|said| !said.contains("-C ")) {
                Some(said) => format!("ostler --node {node} run -C CAMPAIGN {said}").into(),
                None => format!("ostler --node {node} {rest}").into(),
            },
            Place::There => {
                // SSH takes an address as it is.
                let unnamed =
                    || if node.contains("://") { format!("{node} ostler") } else { "HOST ostler".to_owned() };
                let program = self.program_there.clone().unwrap_or_else(unnamed);
                format!("ssh -t {program} {rest}").into()
            }
        }
    }

    /// The character as this stream may show it. One for one: widths stay.
    pub fn letter(&self, c: char) -> char {
        if self.letters == Letters::All || c.is_ascii() {
            return c;
        }
        match c {
            '●' => '*',
            '○' => 'o',
            '◌' => '.',
            '‖' => '=',
            '✓' => '+',
            '✗' | '×' => 'x',
            '·' => '|',
            '…' => '~',
            '–' | '—' | '−' | '─' => '-',
            '“' | '”' => '"',
            '┬' | '┴' | '┼' | '├' | '┤' | '┌' | '┐' | '└' | '┘' => '+',
            '│' => '|',
            '←' => '<',
            '→' | '›' => '>',
            '▌' | '█' => '#',
            '░' => '-',
            other if self.letters == Letters::PlainSigns => other,
            _ => '?',
        }
    }
}

/// The three standard streams and what they can show.
#[derive(Debug, Clone)]
pub struct Terminals {
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    pub out: Look,
    pub err: Look,
    /// Lines that the screen behind standard output has.
    pub rows: Option<usize>,
}

impl Terminals {
    /// The same, about what another machine said.
    #[must_use]
    pub fn about(mut self, node: Option<String>, program_there: Option<String>) -> Self {
        for look in [&mut self.out, &mut self.err] {
            look.node.clone_from(&node);
            look.program_there.clone_from(&program_there);
        }
        self
    }

    pub fn find() -> Self {
        let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let vars = |name: &str| std::env::var(name).ok();
        let out = look(stdout.is_terminal(), columns_of(&stdout), &vars);
        let err = look(stderr.is_terminal(), columns_of(&stderr), &vars);
        Self {
            stdin_is_terminal: stdin.is_terminal(),
            stdout_is_terminal: stdout.is_terminal(),
            stderr_is_terminal: stderr.is_terminal(),
            out,
            err,
            rows: size_of(&stdout).map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0),
        }
    }
}

fn size_of(stream: &impl rustix::fd::AsFd) -> Option<rustix::termios::Winsize> {
    rustix::termios::tcgetwinsize(stream).ok()
}

fn columns_of(stream: &impl rustix::fd::AsFd) -> Option<usize> {
    size_of(stream).map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn look(is_terminal: bool, columns: Option<usize>, vars: &dyn Fn(&str) -> Option<String>) -> Look {
    let set = |name: &str| vars(name).filter(|value| !value.is_empty());
    let dumb = set("TERM").as_deref() == Some("dumb");
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    // No locale at all is a container or a service, whose reader is UTF-8 like everyone's; `C` is a wish.
    let utf8 = locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    Look {
        colour: set("NO_COLOR").is_none() && (forced || (is_terminal && !dumb)),
        letters: match (utf8, is_terminal) {
            (true, _) if !dumb => Letters::All,
            (false, true) => Letters::Ascii,
            _ => Letters::PlainSigns,
        },
        in_place: is_terminal && !dumb,
        width: columns
            .or_else(|| set("COLUMNS").and_then(|columns| columns.parse().ok()))
            .filter(|width| *width > 0),
        node: None,
        program_there: None,
    }
}

/// Where a command works that is about another machine.
enum Place {
    /// It is the same wherever it is typed.
    Anywhere,
    /// Here, and asks that machine's daemon.
    Asked,
    /// Over there only.
    There,
}

impl Place {
    /// Of what is typed behind `ostler`. A test of the command line holds it against the commands.
    fn of(rest: &str) -> Self {
        let mut words = rest.split(' ');
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            ("node", "drain") => Place::Asked,
            ("node" | "completion" | "man" | "version" | "help", _) => Place::Anywhere,
            ("provider", "login" | "add") => Place::There,
            (
                "demo" | "init" | "doctor" | "config" | "sandbox" | "price" | "exec" | "blame" | "daemon"
                | "service" | "db" | "import" | "du" | "open" | "notify" | "hub" | "share" | "api" | "step"
                | "note" | "output" | "spawn" | "mcp",
                _,
            ) => Place::There,
            _ => Place::Asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_with(is_terminal: bool, vars: &[(&str, &str)]) -> Look {
        look(is_terminal, None, &|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let coloured = |is_terminal, vars: &[_]| look_with(is_terminal, vars).colour;
        assert!(coloured(true, &[("TERM", "xterm")]));
        assert!(!coloured(false, &[("TERM", "xterm")]));
        assert!(!coloured(true, &[("TERM", "dumb")]));
        assert!(!coloured(true, &[("NO_COLOR", "1")]));
        assert!(coloured(true, &[("NO_COLOR", "")]));
        assert!(coloured(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!coloured(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    }

    #[test]
    fn commands_are_meant_for_the_machine_that_was_asked() {
        let there = Look { node: Some("build1".to_owned()), ..Look::plain(None) };
        let shown = |look: &Look, command: &str| look.command(command).into_owned();
        assert_eq!(shown(&there, "ostler logs f1100"), "ostler --node build1 logs f1100");
        assert_eq!(shown(&there, "ostler run \"…\""), "ostler --node build1 run -C CAMPAIGN \"…\"");
        assert_eq!(shown(&there, "ostler run -C shop \"…\""), "ostler --node build1 run -C shop \"…\"");
        for other in ["ostler node ls", "ostler ls --node all", "ostler help", "export KEY=…", "f1100"] {
            assert_eq!(shown(&there, other), other);
        }
        assert_eq!(shown(&there, "ostler node drain --end"), "ostler --node build1 node drain --end");
        assert_eq!(shown(&there, "ostler provider ls"), "ostler --node build1 provider ls");
        // What is of a machine's own files and programs is done over there.
        assert_eq!(shown(&there, "ostler provider login codex"), "ssh -t HOST ostler provider login codex");
        let program = "ssh://build1.example /opt/ostler".to_owned();
        let known = Look { program_there: Some(program), ..there.clone() };
        let login = "ssh -t ssh://build1.example /opt/ostler provider login codex";
        assert_eq!(shown(&known, "ostler provider login codex"), login);
        let far = Look { node: Some("ssh://ann@far:2222".to_owned()), ..Look::plain(None) };
        assert_eq!(shown(&far, "ostler config edit"), "ssh -t ssh://ann@far:2222 ostler config edit");
        assert_eq!(shown(&Look::plain(None), "ostler logs f1100"), "ostler logs f1100");
        let line = crate::Line::of("see ").with(crate::Tone::Accent, "ostler show f1100");
        assert_eq!(line.show(&there), "see ostler --node build1 show f1100");
    }

    #[test]
    fn letters_follow_the_locale_and_the_terminal() {
        let letters = |is_terminal, vars: &[_]| look_with(is_terminal, vars).letters;
        assert_eq!(letters(true, &[("LANG", "en_US.UTF-8")]), Letters::All);
        assert_eq!(letters(true, &[]), Letters::All);
        assert_eq!(letters(true, &[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]), Letters::Ascii);
        assert_eq!(letters(false, &[("LC_ALL", "C")]), Letters::PlainSigns);
        assert_eq!(letters(true, &[("LANG", "C.UTF-8"), ("TERM", "dumb")]), Letters::PlainSigns);
    }

    #[test]
    fn signs_have_ascii_forms() {
        let look = Look { letters: Letters::Ascii, ..Look::plain(None) };
        let text: String = "! ● ○ ◌ ‖ ✓ ✗ · … é".chars().map(|c| look.letter(c)).collect();
        assert_eq!(text, "! * o . = + x | ~ ?");
    }

    #[test]
    fn width_is_the_terminal_s_or_said() {
        assert_eq!(look_with(false, &[("COLUMNS", "100")]).width, Some(100));
        assert_eq!(look_with(false, &[("COLUMNS", "x")]).width, None);
        assert_eq!(look(true, Some(80), &|_| Some("100".to_owned())).width, Some(80));
    }
}
