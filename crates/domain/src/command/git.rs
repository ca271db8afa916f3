//! What callers of `ostler exec` may not tell git: which program to run, and where to work.

use super::CommandRefused;
use crate::text::one_line;

/// Options by which a caller would choose that, whatever the verb. Git knows options by their beginnings, so `--exec` is
/// one of them too.
const OPTIONS: &[&str] =
    &["--config-env", "--exec-path", "--git-dir", "--work-tree", "--upload-pack", "--receive-pack"];
/// The same in short, before the verb: behind it they mean something else.
const SHORT_OPTIONS: &[&str] = &["-c", "-C"];
/// Options before the verb whose value is a word of its own.
const WITH_A_WORD: &[&str] = &["--namespace", "--attr-source", "--super-prefix"];
/// The others that may stand there. Those that nobody is told of may take a word too, and would hide the verb.
const BEFORE_THE_VERB: &[&str] = &[
    "-v",
    "--version",
    "-h",
    "--help",
    "-p",
    "--paginate",
    "-P",
    "--no-pager",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-advice",
    "--bare",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--html-path",
    "--man-path",
    "--info-path",
    "--list-cmds",
];
/// Addresses that name a program instead of a place.
const PROGRAM_ADDRESS: &str = "ext::";
/// Verbs that are there to run programs that they are told of, or to serve others.
const VERBS: &[&str] = &[
    "citool",
    "cvsserver",
    "daemon",
    "filter-branch",
    "for-each-repo",
    "gui",
    "http-backend",
    "instaweb",
    "merge-index",
    "remote-ext",
    "remote-fd",
    "send-email",
    "shell",
    "web--browse",
];
/// The same of verbs that have verbs of their own.
const VERBS_BELOW: &[(&str, &str)] = &[("bisect", "run"), ("submodule", "foreach"), ("hook", "run")];

/// What a verb's own options say about programs.
struct Own {
    verb: &'static str,
    long: &'static [&'static str],
    short: &'static [char],
    /// Short options with a value, which ends a row of letters.
    with_value: &'static str,
}

const OWN: &[Own] = &[
    Own { verb: "clone", long: &["--config", "--template"], short: &['u', 'c'], with_value: "obj" },
    Own { verb: "init", long: &["--template"], short: &[], with_value: "" },
    Own { verb: "rebase", long: &[], short: &['x'], with_value: "sXCS" },
    Own { verb: "difftool", long: &["--extcmd"], short: &['x'], with_value: "tSGOUlMCBW" },
    Own { verb: "grep", long: &["--open-files-in-pager"], short: &['O'], with_value: "efABCm" },
];

/// The shortest beginning that git could take for an option.
const LEAST_BEGINNING: usize = "--x".len();

fn is_beginning(word: &str, options: &[&str]) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    name.starts_with("--")
        && name.len() >= LEAST_BEGINNING
        && options.iter().any(|option| option.starts_with(name))
}

/// Looks at the words behind `git`.
pub(crate) fn check(words: &[String]) -> Result<(), CommandRefused> {
    let option = |word: &String| CommandRefused::GitOption(one_line(word, 80));
    let verb_at = verb_place(words);
    let is_short =
        |word: &str| !word.starts_with("--") && SHORT_OPTIONS.iter().any(|own| word.starts_with(own));
    let is_wrong = |word: &str| is_beginning(word, OPTIONS) || word.contains(PROGRAM_ADDRESS);
    let is_known = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        !word.starts_with('-') || BEFORE_THE_VERB.contains(&name) || WITH_A_WORD.contains(&name)
    };
    let before = &words[..verb_at];
    if let Some(word) = before.iter().find(|word| is_short(word) || is_wrong(word) || !is_known(word)) {
        return Err(option(word));
    }
    let Some((verb, rest)) = words[verb_at..].split_first() else { return Ok(()) };
    let below = rest.iter().find(|word| !word.starts_with('-'));
    let runs = |(above, own): &&(&str, &str)| above == verb && below.is_some_and(|below| below == own);
    if VERBS.contains(&verb.as_str()) {
        return Err(CommandRefused::GitVerb(one_line(verb, 80)));
    }
    if let Some((above, own)) = VERBS_BELOW.iter().find(runs) {
        return Err(CommandRefused::GitVerb(format!("{above} {own}")));
    }
    let own = OWN.iter().find(|own| own.verb == verb);
    let is_own = |word: &str| own.is_some_and(|own| own.names_a_program(word));
    match rest.iter().find(|word| is_wrong(word) || is_own(word)) {
        Some(word) => Err(option(word)),
        None => Ok(()),
    }
}

/// Where git's own options end.
fn verb_place(words: &[String]) -> usize {
    let mut place = 0;
    while let Some(word) = words.get(place).filter(|word| word.starts_with('-')) {
        place += if WITH_A_WORD.contains(&word.as_str()) { 2 } else { 1 };
    }
    place.min(words.len())
}

impl Own {
    fn names_a_program(&self, word: &str) -> bool {
        if word.starts_with("--") {
            return is_beginning(word, self.long);
        }
        let Some(letters) = word.strip_prefix('-') else { return false };
        let mut letters = letters.chars().take_while(|letter| !self.with_value.contains(*letter));
        letters.any(|letter| self.short.contains(&letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<(), CommandRefused> {
        let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        super::check(&words)
    }

    #[test]
    fn nobody_tells_git_what_to_run() {
        for line in [
            "git -c alias.x=!sh x",
            "git -calias.x=!sh x",
            "git --config-env=a=B status",
            "git --exec-path=/tmp status",
            "git --git-dir=/etc status",
            "git --work-tree /etc status",
            "git -C /etc status",
            "git -C/etc status",
            "git --namespace x -c alias.y=!sh y",
            "git -p -c alias.y=!sh y",
            "git --shallow-file x -c alias.y=!sh y",
            "git push --e=./ev ./x HEAD",
            "git clone --u=./ev ./x y",
            "git init --t=tpl x",
            "git fetch --upload-pack=/tmp/x",
            "git fetch --upload-pa /tmp/x",
            "git push --receive-pack=x",
            "git push --exec=x",
            "git ls-remote --exec=x y",
            "git clone ext::sh",
            "git --exec-pa=/tmp status",
            "git clone -u /tmp/x y",
            "git clone -qu/tmp/x y",
            "git clone -c core.fsmonitor=x y",
            "git clone --config=core.fsmonitor=x y",
            "git clone --template=/tmp/x y",
            "git init --template=/tmp/x y",
            "git rebase -x sh main",
            "git rebase -ixsh main",
            "git rebase --exec sh main",
            "git difftool -x sh",
            "git difftool -yx sh",
            "git difftool --extcmd=sh",
            "git grep -Osh x",
            "git grep -lO x",
            "git grep --open-files-in-pager=sh x",
            "git bisect run sh",
            "git submodule foreach sh",
            "git submodule --quiet foreach sh",
            "git filter-branch --tree-filter sh",
            "git merge-index sh -a",
            "git send-email --smtp-server=/tmp/x",
            "git for-each-repo --config=x y",
        ] {
            assert!(check(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_names_no_program_is_git_s_own_business() {
        for line in [
            "git",
            "git status",
            "git --no-pager log -u",
            "git commit -C HEAD",
            "git commit -c HEAD",
            "git commit --template=x",
            "git grep -c x",
            "git grep -eOx",
            "git clone -b cu x y",
            "git clone -bcu x y",
            "git rebase -i main",
            "git rebase -Xours main",
            "git bisect good run",
            "git bisect start",
            "git submodule update --init",
            "git tag -u key v1",
            "git fetch -u origin",
            "git diff -x",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }
}
