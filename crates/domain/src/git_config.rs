//! What of a repository's configuration names further files that make git run code. A reader, not git's: it finds what
//! git would find, and in doubt more.

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

    #[test]
    fn a_file_may_stand_for_a_repository() {
        assert_eq!(directory_named_by("gitdir: ../sep\n"), Some("../sep"));
        assert_eq!(directory_named_by("ref: x"), None);
    }
}
