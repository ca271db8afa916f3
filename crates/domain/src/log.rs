//! The daemon's own log: how much it says, in which form, how large it may grow; and reading its lines back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    config::Size,
    limits::{LOG_BYTES, LOG_FILES, LOG_LEAST_BYTES, LOG_MOST_FILES},
};

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl Level {
    pub const ALL: &'static [Level] = &[Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    pub fn parse(text: &str) -> Option<Level> {
        Level::ALL.iter().copied().find(|level| level.as_str().eq_ignore_ascii_case(text))
    }
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Time, level, sentence, and facts as `name=value`.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// The section `log` of the settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    level: Option<Level>,
    format: Option<Form>,
    /// Bytes at which a file is put aside.
    size: Option<Size>,
    /// Files put aside that are kept.
    files: Option<u32>,
}

/// What holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    pub level: Level,
    pub form: Form,
    pub bytes: u64,
    pub files: u32,
}

impl LogSettings {
    pub fn fault(&self) -> Option<String> {
        let Log { bytes, files, .. } = self.log();
        if bytes < LOG_LEAST_BYTES {
            Some(format!("log.size: {bytes} bytes are too few; {LOG_LEAST_BYTES} are the least"))
        } else if files > LOG_MOST_FILES {
            Some(format!("log.files: {LOG_MOST_FILES} are the most"))
        } else {
            None
        }
    }

    pub fn log(&self) -> Log {
        Log {
            level: self.level.unwrap_or_default(),
            form: self.format.unwrap_or_default(),
            bytes: self.size.map_or(LOG_BYTES, |Size(bytes)| bytes),
            files: self.files.unwrap_or(LOG_FILES),
        }
    }
}

/// A line of the log, whichever form it was written in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    pub time: Option<String>,
    pub level: Option<Level>,
    /// The sentence; of a line of text also the facts behind it.
    pub message: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, serde_json::Value>,
}

impl Line {
    /// Understands a line; one that no log of ours has is all message.
    pub fn read(text: &str) -> Line {
        Line::of_json(text).or_else(|| Line::of_text(text)).unwrap_or_else(|| Line {
            time: None,
            // The last words of a daemon that could not start.
            level: text.starts_with("refused {").then_some(Level::Error),
            message: text.to_owned(),
            facts: BTreeMap::new(),
        })
    }

    fn of_json(text: &str) -> Option<Line> {
        let mut facts: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        let mut word = |name: &str| match facts.remove(name)? {
            serde_json::Value::String(text) => Some(text),
            _ => None,
        };
        let level = Level::parse(&word("level")?)?;
        Some(Line {
            time: word("timestamp"),
            level: Some(level),
            message: word("message").unwrap_or_default(),
            facts,
        })
    }

    fn of_text(text: &str) -> Option<Line> {
        let (time, rest) = text.split_once(' ')?;
        let (level, message) = rest.trim_start().split_once(' ')?;
        let level = Level::parse(level)?;
        let message = message.to_owned();
        Some(Line { time: Some(time.to_owned()), level: Some(level), message, facts: BTreeMap::new() })
    }

    /// The sentence and its facts in one.
    pub fn sentence(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!(" {name}={value}"));
        format!("{}{}", self.message, facts.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let text = Line::read("2026-11-16T11:57:29.1Z  WARN the socket was gone pid=12 why=\"a b\"");
        assert_eq!((text.level, text.time.as_deref()), (Some(Level::Warn), Some("2026-11-16T11:57:29.1Z")));
        assert_eq!(text.sentence(), "the socket was gone pid=12 why=\"a b\"");
        let json = Line::read(
            r#"{"timestamp":"2026-11-16T11:57:29.1Z","level":"WARN","message":"the socket was gone","pid":12,"why":"a b"}"#,
        );
        assert_eq!((json.level, &json.time), (text.level, &text.time));
        assert_eq!(json.sentence(), text.sentence());
        let words = Line::read("refused {\"reason\":\"STORE_NEWER\"}");
        assert_eq!((words.level, words.time), (Some(Level::Error), None));
        let other = Line::read("  a line of something else");
        assert_eq!((other.level, other.message.as_str()), (None, "  a line of something else"));
    }

    #[test]
    fn settings_make_sense_or_are_refused() {
        let read = |text: &str| toml::from_str::<LogSettings>(text);
        let settings = read("level = \"debug\"\nformat = \"json\"\nsize = \"1MiB\"\nfiles = 2").unwrap();
        assert_eq!(settings.fault(), None);
        let said = Log { level: Level::Debug, form: Form::Json, bytes: 1 << 20, files: 2 };
        assert_eq!(settings.log(), said);
        assert!(read("level = \"loud\"").is_err() && read("format = \"xml\"").is_err());
        assert!(read("size = 10").unwrap().fault().unwrap().contains("log.size"));
        assert!(read("files = 100000").unwrap().fault().unwrap().contains("log.files"));
    }
}
