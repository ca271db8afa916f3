//! Names that people give: campaigns, agents, conversations. Parsed at the border, rejected rather than cleaned.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{limits::NAME_BYTES, redact::redact};

/// A name: letters, digits, `-`, `_`, `.`; begins with a letter or digit. Safe in file names and tables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Name(String);

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name cannot be empty")]
    Empty,
    #[error("a name has at most {NAME_BYTES} characters")]
    TooLong,
    #[error("a name has letters, digits, '-', '_' and '.', and begins with a letter or digit; found {0:?}")]
    BadCharacter(char),
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name from free text, such as a prompt or a directory: `add rate limiting!` → `add-rate-limiting`.
    pub fn slug(text: &str) -> Option<Name> {
        const WORDS: usize = 4;
        const LONGEST: usize = 32;
        // Names are in lists, branches and notices, where nobody looks for a key.
        let text: String = redact(text).chars().map(plain_letter).collect();
        let words: Vec<String> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(WORDS)
            .map(str::to_ascii_lowercase)
            .collect();
        let mut slug = words.join("-");
        slug.truncate(LONGEST);
        slug.trim_end_matches('-').parse().ok()
    }

    /// The same name with `-2`, `-3` … at its end, for when it is taken.
    pub fn numbered(&self, n: u32) -> Name {
        let ending = format!("-{n}");
        let room = NAME_BYTES - ending.len();
        Name(format!("{}{ending}", &self.0[..self.0.len().min(room)]))
    }
}

/// A letter without its marks: what people write in most of Europe stays readable in a name.
fn plain_letter(c: char) -> char {
    const MARKED: [(&str, char); 14] = [
        ("àáâãäåāăąÀÁÂÃÄÅĀĂĄ", 'a'),
        ("çćčÇĆČ", 'c'),
        ("ďđĎĐ", 'd'),
        ("èéêëēęěÈÉÊËĒĘĚ", 'e'),
        ("ğģĞĢ", 'g'),
        ("ìíîïīįıÌÍÎÏĪĮİ", 'i'),
        ("łľļŁĽĻ", 'l'),
        ("ñńňÑŃŇ", 'n'),
        ("òóôõöøōőÒÓÔÕÖØŌŐ", 'o'),
        ("řŘ", 'r'),
        ("śšşßŚŠŞ", 's'),
        ("ťţŤŢ", 't'),
        ("ùúûüūůűÙÚÛÜŪŮŰ", 'u'),
        ("žźżŽŹŻ", 'z'),
    ];
    let plain = MARKED.iter().find(|(marked, _)| marked.contains(c));
    plain.filter(|_| !c.is_ascii()).map_or(c, |(_, plain)| *plain)
}

/// Looks for a number that nobody has among those that are given out from 1 on: in few questions, however many are taken.
/// Where there are gaps it need not be the first.
#[derive(Debug, Default)]
pub struct FreeNumber {
    /// The greatest that is known to be taken.
    taken: u32,
    /// The smallest that is known to be free.
    free: Option<u32>,
}

impl FreeNumber {
    /// The number to ask about next; none once it is found.
    pub fn question(&self) -> Option<u32> {
        match self.free {
            None if self.taken == u32::MAX => None,
            None => Some(self.taken.saturating_mul(2).max(1)),
            Some(free) if free - self.taken <= 1 => None,
            Some(free) => Some(self.taken + (free - self.taken) / 2),
        }
    }

    pub fn answer(&mut self, number: u32, is_taken: bool) {
        if is_taken {
            self.taken = number;
        } else {
            self.free = Some(number);
        }
    }

    /// What was found.
    pub fn found(&self) -> u32 {
        self.free.unwrap_or(1)
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let first = text.chars().next().ok_or(NameError::Empty)?;
        if text.len() > NAME_BYTES {
            return Err(NameError::TooLong);
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::BadCharacter(first));
        }
        match text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
            Some(bad) => Err(NameError::BadCharacter(bad)),
            None => Ok(Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_names() {
        assert_eq!(Name::slug("Fix the flaky login test, please").unwrap().as_str(), "fix-the-flaky-login");
        let keyed = "my key is ghp_0123456789abcdefghijABCDEFGHIJ012345, use it";
        assert_eq!(Name::slug(keyed).unwrap().as_str(), "my-key-is-ghp");
        assert_eq!(Name::slug("use AKIA0123456789ABCDEF").unwrap().as_str(), "use-akia-redacted");
        assert_eq!(Name::slug("{\"steps\":[]}").unwrap().as_str(), "steps");
        assert_eq!(Name::slug("Prüfe die Größe, s'il te plaît").unwrap().as_str(), "prufe-die-grose-s");
        assert_eq!(Name::slug("…"), None);
        assert_eq!("a".parse::<Name>().unwrap().numbered(2).as_str(), "a-2");
    }

    #[test]
    fn refuses_what_could_leave_a_directory_or_a_terminal() {
        for text in ["", "..", "a/b", "a b", "-x", "a\u{1b}[2J", &"x".repeat(65)] {
            assert!(text.parse::<Name>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_free_number_is_found_in_few_questions() {
        let search = |is_taken: &dyn Fn(u32) -> bool| {
            let (mut search, mut asked) = (FreeNumber::default(), 0);
            while let Some(number) = search.question() {
                search.answer(number, is_taken(number));
                asked += 1;
            }
            (search.found(), asked)
        };
        for taken in [0, 1, 2, 3, 4, 7, 8, 9, 100, 10_000] {
            let (found, asked) = search(&|number| number <= taken);
            assert_eq!(found, taken + 1);
            assert!(asked <= 30, "{asked} questions for {taken}");
        }
        let gaps = |number: u32| [1, 2, 4, 5, 9].contains(&number);
        assert!(!gaps(search(&gaps).0));
    }
}
