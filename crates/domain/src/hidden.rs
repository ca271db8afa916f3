//! Which names are hidden files: what an agent cannot read although it is in its campaign. Case does not matter: on some file systems it does not either.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const HIDDEN: [&str; 18] = [
    ".env",
    ".env~",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials.json",
];
/// Samples for people to copy, and halves of keys that are meant to be seen.
const SHOWN: [&str; 7] = [
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.*.example",
    ".env.*.sample",
    ".env.*.template",
    "*.pub",
];

/// The names that are hidden in one campaign.
#[derive(Debug, Clone)]
pub struct Patterns {
    built_in: bool,
    names: Vec<Vec<u8>>,
    paths: Vec<Vec<u8>>,
}

impl Patterns {
    /// The built-in names and a campaign's own. One with a slash is compared with the path below the root.
    pub fn new(own: &[String]) -> Patterns {
        let lower = |pattern: &String| pattern.trim_start_matches('/').to_ascii_lowercase().into_bytes();
        let (paths, names) = own.iter().map(lower).partition(|pattern| pattern.contains(&b'/'));
        Patterns { built_in: true, names, paths }
    }

    /// For whoever looks at everything.
    pub fn none() -> Patterns {
        Patterns { built_in: false, names: Vec::new(), paths: Vec::new() }
    }

    /// Whether the entry at `path`, below the root, is hidden.
    pub fn hide(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        let name = name.as_bytes().to_ascii_lowercase();
        let is = |pattern: &&str| matches(pattern.as_bytes(), &name);
        // What a campaign names is hidden even if it looks like a sample.
        self.names.iter().any(|pattern| matches(pattern, &name))
            || self.hide_place(path)
            || (self.built_in && HIDDEN.iter().any(is) && !SHOWN.iter().any(is))
    }

    /// Whether it is hidden for where it is: elsewhere it might not be.
    pub fn hide_place(&self, path: &Path) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let path = path.as_os_str().as_bytes().to_ascii_lowercase();
        self.paths.iter().any(|pattern| matches(pattern, &path))
    }
}

/// `*` stands for any bytes, `?` for one; everything else for itself.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star does not match: one byte later.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (p, n) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let patterns = Patterns::new(&[]);
        for name in [
            ".env",
            ".ENV",
            "a/b/.env",
            ".env.local",
            ".env.production",
            "server.pem",
            "TLS.KEY",
            ".key",
            "x.p12",
            "id_rsa",
            "id_ed25519",
            ".netrc",
            ".npmrc",
            ".git-credentials",
            "credentials.json",
            ".env.example.bak",
        ] {
            assert!(patterns.hide(Path::new(name)), "{name}");
        }
        for name in [
            "",
            ".env.example",
            ".env.Sample",
            ".env.template",
            "id_rsa.pub",
            "server.pem.txt",
            "environment",
            "env",
            "keyboard",
            "monkey",
            ".envrc",
            "key",
            "a.env",
            ".env.d/readme",
        ] {
            assert!(!patterns.hide(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_campaign_adds_names_and_paths() {
        let own = ["*.SECRET", "config/prod.*", ".env.example"].map(str::to_owned);
        let patterns = Patterns::new(&own);
        for name in ["a/x.secret", "config/prod.yml", ".env.example", ".env"] {
            assert!(patterns.hide(Path::new(name)), "{name}");
        }
        for name in ["prod.yml", "other/config/prod.yml", "secret"] {
            assert!(!patterns.hide(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn stars_try_again() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbXbXc", true),
            ("*ab", "aab", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*.*", "abc", false),
            ("**a", "a", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
