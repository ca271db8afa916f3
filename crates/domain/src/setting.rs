//! How people change settings, the same for every noun: `KEY=V`, `KEY+=V`, `KEY-=V`, and `KEY=` for the default.

use crate::text::one_line;

/// Longest value: settings are read by people.
pub const MOST_CHARS: usize = 4_096;

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Set,
    Add,
    Remove,
    Unset,
}

/// One change as it was typed. Whether there is such a key is for the noun to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub key: String,
    pub change: Change,
    pub value: String,
}

/// Why a setting is refused, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingFault(pub String);

impl Assignment {
    pub fn parse(text: &str) -> Result<Assignment, SettingFault> {
        let (left, value) = text.split_once('=').ok_or_else(|| {
            SettingFault(format!("\"{}\" is not KEY=VALUE, KEY+=VALUE or KEY-=VALUE", one_line(text, 80)))
        })?;
        let (key, change) = match (left.strip_suffix('+'), left.strip_suffix('-')) {
            (Some(key), _) => (key, Change::Add),
            (_, Some(key)) => (key, Change::Remove),
            _ if value.is_empty() => (left, Change::Unset),
            _ => (left, Change::Set),
        };
        Ok(Self::of(key, change, value))
    }

    /// `set KEY VALUE`.
    pub fn set(key: &str, value: &str) -> Assignment {
        Self::of(key, if value.is_empty() { Change::Unset } else { Change::Set }, value)
    }

    fn of(key: &str, change: Change, value: &str) -> Assignment {
        Assignment { key: key.trim().to_owned(), change, value: value.trim().to_owned() }
    }

    /// The setting as it is typed.
    pub fn text(&self) -> String {
        let sign = match self.change {
            Change::Set | Change::Unset => "=",
            Change::Add => "+=",
            Change::Remove => "-=",
        };
        format!("{}{sign}{}", self.key, self.value)
    }

    /// The value of a key that has one; none for its default.
    pub fn word<T>(
        &self,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, SettingFault> {
        match self.change {
            Change::Unset => Ok(None),
            Change::Set => parse(&self.value).map(Some).ok_or_else(|| {
                let value = one_line(&self.value, 40);
                SettingFault(format!("{} is \"{value}\"; expected: {expected}", self.key))
            }),
            Change::Add | Change::Remove => {
                Err(SettingFault(format!("{} is one value: {}=…", self.key, self.key)))
            }
        }
    }
}

/// There is no such key.
pub fn unknown_key(key: &str, known: &[&str]) -> SettingFault {
    SettingFault(format!("there is no key \"{}\"; there are: {}", one_line(key, 40), known.join(" ")))
}
