//! Programs that run what they are told. No rule covers what such a program is told by a star: only words that a person
//! has written out.

use super::command_line::Word;

/// Programs whose words are another command, or change what the shell does with the next one.
const WRAPPERS: &[&str] = &[
    ".",
    "alias",
    "at",
    "batch",
    "bind",
    "builtin",
    "busybox",
    "bwrap",
    "chroot",
    "chrt",
    "command",
    "complete",
    "coproc",
    "declare",
    "direnv",
    "doas",
    "enable",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "export",
    "fakeroot",
    "flock",
    "gdb",
    "hash",
    "ionice",
    "let",
    "local",
    "ltrace",
    "mapfile",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "perf",
    "pkexec",
    "proot",
    "readonly",
    "runuser",
    "screen",
    "script",
    "set",
    "setsid",
    "shopt",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "typeset",
    "unbuffer",
    "unset",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
];
/// Programs that fetch or find another one by its name, which has to be written out.
const LAUNCHERS: &[&str] = &["bunx", "npx", "pipx", "pnpx", "uvx"];
/// Programs that run a file of code, or code itself.
const INTERPRETERS: &[&str] = &[
    "ash",
    "bash",
    "bun",
    "csh",
    "dash",
    "deno",
    "elixir",
    "fish",
    "groovy",
    "guile",
    "irb",
    "java",
    "jshell",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "python",
    "r",
    "rscript",
    "ruby",
    "scala",
    "sh",
    "tclsh",
    "ts-node",
    "tsx",
    "zsh",
];
/// Programs whose first word is code.
const CODE_FIRST: &[&str] = &["awk", "ed", "emacs", "ex", "gawk", "mawk", "nawk", "nvim", "sed", "vi", "vim"];
/// Options by which other programs are told to run something, or to write beside what they are for.
const OPTIONS: &[(&str, &[&str])] = &[
    ("find", &["-delete", "-exec", "-fls", "-fprint", "-ok"]),
    ("fd", &["-x", "-X", "--exec"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["-o", "--output", "--compress-program"]),
    (
        "tar",
        &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
];

/// Whether a star may cover what a person has not written out: the words behind the first `written`.
pub(super) fn may_be_covered(words: &[Word], written: usize) -> bool {
    let Some(program) = words.first().map(name) else { return false };
    let is = |list: &[&str]| list.contains(&program.as_str());
    if is(WRAPPERS) || is(CODE_FIRST) {
        return false;
    }
    if is(INTERPRETERS) {
        return names_a_script(words, written);
    }
    if is(LAUNCHERS) {
        return written >= 2 && !words[1].text.starts_with('-');
    }
    let further = || words.iter().skip(written);
    if program == "git" {
        let texts: Vec<String> = words[1..].iter().map(|word| word.text.clone()).collect();
        return crate::command::check_git(&texts).is_ok() && !further().any(may_become_an_option);
    }
    let Some((_, dangerous)) = OPTIONS.iter().find(|(known, _)| *known == program) else { return true };
    // `tar xIf …` has its options without a dash.
    let bundle = words.get(1).filter(|_| program == "tar" && written < 2);
    let is_bundled = bundle.is_some_and(|word| word.text.contains(['F', 'I']));
    let is_dangerous = |word: &Word| is_option(&word.text, dangerous) || may_become_an_option(word);
    !is_bundled && !further().any(is_dangerous)
}

/// Whether a word is one of these options, also in one word with others, with its value, or cut short as programs allow.
pub(super) fn is_option(word: &str, options: &[&str]) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    options.iter().any(|option| match option.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => {
            word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
        }
        _ => word.starts_with(option) || (name.len() > "--e".len() && option.starts_with(name)),
    })
}

/// A variable may become several words, a pattern the name of a file that an agent has made.
fn may_become_an_option(word: &Word) -> bool {
    word.is_open && (word.text.contains('$') || word.text.starts_with(['*', '?', '[', '{', '-']))
}

/// An interpreter is told a script by its name, or a module that was written out; never code, nor to read it.
fn names_a_script(words: &[Word], written: usize) -> bool {
    let Some(first) = words.get(1) else { return false };
    match first.text.as_str() {
        "-m" => written >= 3,
        "eval" | "repl" => false,
        text => {
            !first.is_open
                && !text.is_empty()
                && !text.starts_with('-')
                && !["/dev/", "/proc/"].iter().any(|place| text.starts_with(place))
        }
    }
}

/// What a program is called, wherever it lies and whatever its version: `/usr/bin/python3.12` is `python`.
pub(super) fn name(word: &Word) -> String {
    let base = word.text.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if plain.is_empty() { base } else { plain.to_owned() }
}
