//! Programs that run what they are told. No rule covers what such a program is told by a star: only words that a person
//! has written out.

use super::command_line::Word;

/// Programs whose words are another command, or change what the shell does with the next one.
const WRAPPERS: &[&str] = &[
    ".", "alias", "bind", "builtin", "busybox", "chroot", "chrt", "command", "complete", "coproc", "declare",
    "doas", "enable", "env", "eval", "exec", "export", "flock", "gdb", "hash", "ionice", "let", "local",
    "ltrace", "mapfile", "nice", "nohup", "nsenter", "parallel", "readonly", "script", "set", "setsid",
    "shopt", "source", "ssh", "stdbuf", "strace", "su", "sudo", "taskset", "timeout", "toybox", "trap",
    "typeset", "unset", "unshare", "watch", "xargs",
];
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
            "-I",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--rsh-command",
            "--rmt-command",
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
    if program == "git" {
        let texts: Vec<String> = words[1..].iter().map(|word| word.text.clone()).collect();
        return crate::command::check_git(&texts).is_ok();
    }
    let dangerous =
        OPTIONS.iter().find(|(known, _)| *known == program).map_or(&[][..], |(_, options)| options);
    let is_dangerous = |word: &Word| dangerous.iter().any(|option| word.text.starts_with(option));
    !words.iter().skip(written).any(is_dangerous)
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
