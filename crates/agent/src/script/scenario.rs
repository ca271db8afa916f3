//! Scenarios: what the scripted agent does, as JSON, checked before the first step.

use std::fmt;

use ostler_domain::Usage;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

const FENCE: &str = "```";

/// A list of steps.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub steps: Vec<Step>,
}

/// One thing the agent does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Think(String),
    /// One completion.
    Say(String),
    /// A part of a text, shown live and not stored.
    Delta(String),
    /// A command, without a shell.
    Run(Vec<String>),
    Write {
        path: String,
        text: String,
    },
    Read(String),
    Usage(Usage),
    SleepMs(u64),
    Repeat {
        times: u64,
        every_ms: u64,
        steps: Vec<Step>,
    },
    /// What was done already is not done again: only where this file is not there.
    Unless {
        path: String,
        steps: Vec<Step>,
    },
    /// Waits for leave; goes on either way.
    Ask {
        tool: String,
        input: String,
    },
    /// Bytes as they are, no newline added.
    StdoutRaw(String),
    Stderr(String),
    /// This many bytes in lines of 1 KiB that are no protocol.
    FloodBytes(u64),
    /// Says and hears nothing any more.
    Hang,
    Exit(u8),
}

/// Why a scenario is not one.
#[derive(Debug, thiserror::Error)]
#[error("the scenario has a mistake in line {line}, column {column}: {message}")]
pub struct ScenarioError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl Scenario {
    /// The scenario that a prompt means to be, right or wrong: an object with `steps`, or the first block of text that is
    /// fenced as one, whatever stands around it.
    pub fn meant(prompt: &str) -> Option<&str> {
        let whole = prompt.trim_start();
        if whole.starts_with('{') && whole.contains("\"steps\"") {
            return Some(prompt);
        }
        let begin = format!("\n{FENCE}scenario\n");
        let (_, behind) = match prompt.strip_prefix(&begin[1..]) {
            Some(behind) => ("", behind),
            None => prompt.split_once(&begin)?,
        };
        Some(behind.split_once(&format!("\n{FENCE}")).map_or(behind, |(block, _)| block))
    }

    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let at = format!(" at line {} column {}", error.line(), error.column());
            ScenarioError { line: error.line(), column: error.column(), message: message.replace(&at, "") }
        })
    }

    /// The answer to a prompt that is no scenario.
    pub fn for_prompt(prompt: &str) -> Self {
        let heard = ostler_domain::text::one_line(prompt, 120);
        let usage = Usage { input: 12, output: 8, ..Usage::default() };
        Self {
            steps: vec![
                Step::Think("This is no scenario, so I give the short answer.".to_owned()),
                Step::Usage(usage),
                Step::Say(format!("I am the scripted agent. You said: {heard}")),
            ],
        }
    }
}

/// The JSON form: one of these keys, and those that belong to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    think: Option<String>,
    say: Option<String>,
    delta: Option<String>,
    run: Option<Vec<String>>,
    write: Option<WriteFields>,
    read: Option<String>,
    usage: Option<UsageFields>,
    sleep_ms: Option<u64>,
    repeat: Option<u64>,
    unless: Option<String>,
    every_ms: Option<u64>,
    steps: Option<Vec<Step>>,
    ask: Option<AskFields>,
    stdout_raw: Option<String>,
    stderr: Option<String>,
    flood_bytes: Option<u64>,
    hang: Option<bool>,
    exit: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFields {
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskFields {
    tool: String,
    input: String,
}

/// Unlike [`Usage`] itself, strict: a misspelt bucket would be a wrong sum.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct UsageFields {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

impl<'de> Deserialize<'de> for Step {
    /// By a visitor rather than `try_from`: a mistake found within the map keeps the line of the map.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = Step;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step, such as {\"say\":\"hello\"}")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Step, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                Step::try_from(fields).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_map(StepVisitor)
    }
}

impl TryFrom<Fields> for Step {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        if fields.repeat.is_none() && fields.every_ms.is_some() {
            return Err("`every_ms` belongs to `repeat`".to_owned());
        }
        let around = match (fields.repeat, fields.unless, fields.steps) {
            (None, None, None) => None,
            (None, None, Some(_)) => return Err("`steps` belong to `repeat` or `unless`".to_owned()),
            (Some(_), Some(_), _) => return Err("a step does one thing; this one names two".to_owned()),
            (Some(times), None, Some(steps)) => {
                Some(Step::Repeat { times, every_ms: fields.every_ms.unwrap_or(0), steps })
            }
            (None, Some(path), Some(steps)) => Some(Step::Unless { path, steps }),
            (Some(_), None, None) => return Err("`repeat` needs `steps`".to_owned()),
            (None, Some(_), None) => return Err("`unless` needs `steps`".to_owned()),
        };
        let run = match fields.run {
            Some(argv) if argv.is_empty() => return Err("`run` needs a program".to_owned()),
            run => run.map(Step::Run),
        };
        let hang = match fields.hang {
            Some(false) => return Err("`hang` is true or absent".to_owned()),
            hang => hang.map(|_| Step::Hang),
        };
        let usage = fields.usage.map(|usage| {
            let UsageFields { input, cache_read, cache_write, output, reasoning } = usage;
            Step::Usage(Usage { input, cache_read, cache_write, output, reasoning })
        });
        let candidates = [
            fields.think.map(Step::Think),
            fields.say.map(Step::Say),
            fields.delta.map(Step::Delta),
            run,
            fields.write.map(|WriteFields { path, text }| Step::Write { path, text }),
            fields.read.map(Step::Read),
            usage,
            fields.sleep_ms.map(Step::SleepMs),
            around,
            fields.ask.map(|AskFields { tool, input }| Step::Ask { tool, input }),
            fields.stdout_raw.map(Step::StdoutRaw),
            fields.stderr.map(Step::Stderr),
            fields.flood_bytes.map(Step::FloodBytes),
            hang,
            fields.exit.map(Step::Exit),
        ];
        let mut given = candidates.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(step), None) => Ok(step),
            (Some(_), Some(_)) => Err("a step does one thing; this one names two".to_owned()),
            (None, _) => Err("a step names one thing to do".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_scenario_parses() {
        let text = r#"{"steps":[{"think":"a"},{"say":"b"},{"run":["git","status"]},{"write":{"path":"a","text":"x"}},{"read":"a"},
            {"usage":{"input":500,"cache_read":0,"cache_write":0,"output":200,"reasoning":0}},{"sleep_ms":50},
            {"repeat":1000,"every_ms":5,"steps":[{"say":"tick {i}"}]},{"ask":{"tool":"run","input":"x"}},
            {"stdout_raw":"raw"},{"stderr":"e"},{"flood_bytes":100000000},{"hang":true},{"exit":3}]}"#;
        assert_eq!(Scenario::meant(text), Some(text));
        assert_eq!(Scenario::parse(text).unwrap().steps.len(), 14);
    }

    #[test]
    fn a_scenario_may_stand_among_other_words() {
        let fenced = "You are a builder.\n\n```scenario\n{\"steps\":[{\"say\":\"b\"}]}\n```\n# The end\n```scenario\nother\n```";
        assert_eq!(Scenario::meant(fenced), Some("{\"steps\":[{\"say\":\"b\"}]}"));
        assert_eq!(Scenario::meant("```scenario\n{}"), Some("{}"), "one that nobody closed goes to the end");
        assert_eq!(Scenario::meant("```json\n{\"steps\":[]}\n```"), None);
    }

    #[test]
    fn mistakes_name_their_line() {
        let mistake = |text: &str| {
            let error = Scenario::parse(text).unwrap_err();
            (error.line, error.message)
        };
        let (line, message) = mistake("{\"steps\":[\n {\"say\":\"a\"},\n {\"sya\":\"b\"}\n]}");
        assert_eq!(line, 3);
        assert!(message.contains("sya"), "{message}");
        let (line, message) = mistake("{\"steps\":[\n {\"say\":\"a\",\n  \"think\":\"b\"}\n]}");
        assert_eq!((line, message.as_str()), (3, "a step does one thing; this one names two"));
        assert_eq!(mistake("{\"steps\":[\n\n").0, 3);
        assert_eq!(mistake("{\"steps\":[{\"usage\":{\"inptu\":1}}]}").0, 1);
    }

    #[test]
    fn steps_belong_to_what_plays_them() {
        let parsed = |text: &str| Scenario::parse(&format!("{{\"steps\":[{text}]}}"));
        let unless = parsed(r#"{"unless":"done","steps":[{"say":"a"}]}"#).unwrap();
        let steps = vec![Step::Say("a".to_owned())];
        assert_eq!(unless.steps, [Step::Unless { path: "done".to_owned(), steps }]);
        for (text, why) in [
            (r#"{"unless":"done"}"#, "`unless` needs `steps`"),
            (r#"{"steps":[]}"#, "`steps` belong to `repeat` or `unless`"),
            (r#"{"unless":"done","every_ms":5,"steps":[]}"#, "`every_ms` belongs to `repeat`"),
            (r#"{"unless":"done","repeat":2,"steps":[]}"#, "a step does one thing; this one names two"),
        ] {
            assert_eq!(parsed(text).unwrap_err().message, why, "{text}");
        }
    }

    #[test]
    fn other_prompts_get_the_short_answer() {
        assert_eq!(Scenario::meant("fix the login test"), None);
        assert!(
            matches!(Scenario::for_prompt("hi").steps.last(), Some(Step::Say(text)) if text.ends_with("hi"))
        );
    }
}
