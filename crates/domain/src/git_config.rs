//! What of a repository's configuration names further files that make git run code, and who somebody is to git. A reader, not
//! git's: of what runs code it finds what git would find, and in doubt more.

use std::path::{Component, Path, PathBuf};

/// Files and directories that a configuration brings in, as it names them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Relative ones lie below the work tree.
    pub hooks: Vec<String>,
    /// Relative ones lie beside the configuration.
    pub includes: Vec<String>,
    /// `config.worktree` is read as well, once it is there.
    pub has_worktree_config: bool,
}

pub fn named(config: &str) -> Named {
    let config = config.trim_start_matches('\u{feff}');
    let mut found = Named::default();
    // A value goes on behind a backslash at the end of its line, a comment does not: both are tried.
    for text in [&config.replace("\\\n", "").replace("\\\r\n", ""), config] {
        let Named { hooks, includes, has_worktree_config } = named_in(text);
        found.hooks.extend(hooks);
        found.includes.extend(includes);
        found.has_worktree_config |= has_worktree_config;
    }
    found.hooks.sort_unstable();
    found.hooks.dedup();
    found.includes.sort_unstable();
    found.includes.dedup();
    found
}

fn named_in(config: &str) -> Named {
    let mut named = Named::default();
    let mut section = String::new();
    for line in config.lines() {
        let mut line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let Some((head, rest)) = head.split_once(']') else { continue };
            section = head.split(|c: char| c.is_whitespace() || c == '"').next().unwrap_or("").to_lowercase();
            line = rest.trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = unquoted(value);
        match (section.as_str(), key.trim().to_lowercase().as_str()) {
            ("core", "hookspath") => named.hooks.push(value),
            ("include" | "includeif", "path") => named.includes.push(value),
            ("extensions", "worktreeconfig") => {
                named.has_worktree_config =
                    !["false", "no", "off", "0", ""].contains(&value.to_lowercase().as_str());
            }
            _ => {}
        }
    }
    named
}

/// A value without quotes, escapes and the comment behind it.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut in_quotes = false;
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '\\' => plain.extend(letters.next().map(|letter| match letter {
                't' => '\t',
                'n' => '\n',
                'b' => '\u{8}',
                letter => letter,
            })),
            '#' | ';' if !in_quotes => break,
            letter => plain.push(letter),
        }
    }
    plain.trim().to_owned()
}

/// Who commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub name: Option<String>,
    pub email: Option<String>,
}

impl Identity {
    /// Without both of these git makes no commit.
    pub fn is_whole(&self) -> bool {
        self.name.is_some() && self.email.is_some()
    }

    /// As git reads it.
    pub fn text(&self) -> String {
        let quoted = |value: &str| {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            escaped.replace('\n', "\\n").replace('\t', "\\t")
        };
        let line = |key: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("\t{key} = \"{}\"\n", quoted(value))).unwrap_or_default()
        };
        format!("[user]\n{}{}", line("name", &self.name), line("email", &self.email))
    }
}

/// Files that include others that include others are followed so far, as git does.
const INCLUDES_DEEP: usize = 10;
/// And so many in all.
const INCLUDES_MOST: usize = 100;

/// Who a person is, by the files of their own that git reads: those of `XDG_CONFIG_HOME` first, then `~/.gitconfig`, with what
/// they include below their home. What is included on a condition holds in some places only, and is left out. `read` gives a
/// file's text.
pub fn identity(home: &Path, xdg: Option<&Path>, read: impl Fn(&Path) -> Option<String>) -> Identity {
    let xdg = xdg.filter(|dir| dir.is_absolute()).map_or_else(|| home.join(".config"), Path::to_owned);
    let mut found = Identity::default();
    let mut left = INCLUDES_MOST;
    for file in [xdg.join("git/config"), home.join(".gitconfig")] {
        take_in(&file, home, &read, INCLUDES_DEEP, &mut left, &mut found);
    }
    found
}

fn take_in(
    file: &Path,
    home: &Path,
    read: &impl Fn(&Path) -> Option<String>,
    deep: usize,
    left: &mut usize,
    found: &mut Identity,
) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Some(text) = read(file) else { return };
    for (section, key, value) in settings(&text.replace("\\\r\n", "").replace("\\\n", "")) {
        match (section.as_str(), key.as_str()) {
            ("user", "name") => found.name = Some(value).filter(|name| !name.is_empty()),
            ("user", "email") => found.email = Some(value).filter(|email| !email.is_empty()),
            ("include", "path") if deep > 0 => {
                let path = match value.strip_prefix("~/") {
                    Some(below) => home.join(below),
                    None => file.parent().unwrap_or(home).join(value),
                };
                if let Some(path) = plain(&path).filter(|path| path.starts_with(home)) {
                    take_in(&path, home, read, deep - 1, left, found);
                }
            }
            _ => {}
        }
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop().then_some(())?;
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// Sections without a subsection, their keys and values, in their order.
fn settings(config: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in config.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[') {
            let Some((head, rest)) = head.split_once(']') else { continue };
            section = head.trim().to_lowercase();
            line = rest.trim();
        }
        if let Some((key, value)) = line.split_once('=') {
            found.push((section.clone(), key.trim().to_lowercase(), unquoted(value)));
        }
    }
    found
}

/// Where a `.git` that is a file says that the repository is.
pub fn directory_named_by(file: &str) -> Option<&str> {
    file.strip_prefix("gitdir:").map(str::trim).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brings_in_code_is_found_however_it_is_written() {
        let config = "[core]\n\tbare = false\n\thooksPath = .githooks ; ours\n[Include] path=\"../more config\"\n\
            [includeIf \"gitdir:~/x/\"]\n  PATH = a\\\nb\n[extensions]\nworktreeConfig\n[remote \"origin\"]\npath = no\n";
        let found = named(config);
        assert_eq!(found.hooks, [".githooks"]);
        assert_eq!(found.includes, ["../more config", "a", "ab"], "in doubt more");
        for odd in ["; x \\\n[core]\nhooksPath=h", "\u{feff}[core]\nhooksPath=h", "[core]\n# \\\nhooksPath=h"]
        {
            assert_eq!(named(odd).hooks, ["h"], "{odd:?}");
        }
        assert_eq!(named("[core]\nhooksPath = \"h\\tk\"").hooks, ["h\tk"]);
        assert!(found.has_worktree_config);
        assert_eq!(named("[core]\nhooks = x\n[extensions]\nworktreeConfig = false"), Named::default());
        assert_eq!(named("[core"), Named::default());
    }

    fn who(files: &[(&str, &str)], xdg: Option<&str>) -> Identity {
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        identity(Path::new("/home/ann"), xdg.map(Path::new), read)
    }

    fn is(name: &str, email: &str) -> Identity {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Identity { name: some(name), email: some(email) }
    }

    #[test]
    fn only_who_somebody_is_is_taken_over() {
        let config = "[core]\n\teditor = vi\n[user]\n  Name = Ann O'Hara # me\n\temail=\"ann@example\" ; work\n\t\
            signingkey = K\n[alias]\n\tname = !sh\n[user \"other\"]\nname = Bob\n#[user]\n#name = Eve\n";
        assert_eq!(who(&[("/home/ann/.gitconfig", config)], None), is("Ann O'Hara", "ann@example"));
        assert_eq!(who(&[("/home/ann/.gitconfig", "garbage")], None), Identity::default());
        assert_eq!(who(&[], None), Identity::default());
    }

    #[test]
    fn the_older_place_has_the_last_word_and_the_newer_one_is_read_too() {
        let newer = ("/home/ann/.config/git/config", "[user]\nname = Ann\nemail = ann@new\n");
        assert_eq!(who(&[newer], None), is("Ann", "ann@new"));
        let older = ("/home/ann/.gitconfig", "[user]\nemail = ann@old\n");
        assert_eq!(who(&[newer, older], None), is("Ann", "ann@old"));
        let moved = ("/home/ann/x/git/config", "[user]\nname = Ann\nemail = ann@moved\n");
        assert_eq!(who(&[moved, newer], Some("/home/ann/x")), is("Ann", "ann@moved"));
        assert_eq!(who(&[newer], Some("relative")), is("Ann", "ann@new"));
    }

    #[test]
    fn what_is_included_below_the_home_counts_and_nothing_else() {
        let files = [
            (
                "/home/ann/.gitconfig",
                "[include]\n\tpath = ~/dot/git\n[includeIf \"gitdir:~/w/\"]\npath = work\n",
            ),
            ("/home/ann/dot/git", "[include] path = ../dot/./more\n[include]\npath = /etc/gitid\n"),
            ("/home/ann/dot/more", "[user]\nname = Ann\n[include]\npath = more\n"),
            ("/etc/gitid", "[user]\nemail = root@etc\n"),
            ("/home/ann/work", "[user]\nemail = ann@work\n"),
        ];
        assert_eq!(who(&files, None), is("Ann", ""), "also where a file includes itself");
        let out = [
            ("/home/ann/.gitconfig", "[include]\npath = ../../etc/gitid\n"),
            ("/etc/gitid", "[user]\nname = x\n"),
        ];
        assert_eq!(who(&out, None), Identity::default());
    }

    #[test]
    fn an_identity_is_read_as_it_was_written() {
        let odd = is("Ann \"the\" O'Hara; #1 \\", "ann@example");
        let text = odd.text();
        assert_eq!(who(&[("/home/ann/.gitconfig", &text)], None), odd, "{text}");
        assert!(odd.is_whole() && !is("Ann", "").is_whole());
        assert_eq!(is("Ann", "").text(), "[user]\n\tname = \"Ann\"\n");
    }

    #[test]
    fn a_file_may_stand_for_a_repository() {
        assert_eq!(directory_named_by("gitdir: ../sep\n"), Some("../sep"));
        assert_eq!(directory_named_by("ref: x"), None);
    }
}
