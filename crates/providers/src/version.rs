//! Versions of agent programs, as far as they are compared.

use std::fmt;

/// `2.1.325`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first version in a text such as `codex-cli 0.166.0` or `2.1.325 (Claude Code)`.
    pub fn find(text: &str) -> Option<Version> {
        text.split(|c: char| c.is_whitespace() || c == 'v').find_map(|word| {
            let mut parts = word.splitn(3, '.');
            let major = parts.next()?.parse().ok()?;
            let minor = parts.next()?.parse().ok()?;
            let patch = parts.next()?;
            let digits = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
            Some(Version(major, minor, patch[..digits].parse().ok()?))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_words() {
        for (text, version) in [
            ("2.1.325 (Claude Code)", Some(Version(2, 1, 325))),
            ("codex-cli 0.166.0", Some(Version(0, 166, 0))),
            ("v1.18.33-beta.2", Some(Version(1, 18, 33))),
            ("no version 12", None),
        ] {
            assert_eq!(Version::find(text), version, "{text}");
        }
        assert!(Version(2, 1, 9) < Version(2, 1, 325));
    }
}
