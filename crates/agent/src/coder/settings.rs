//! What the agent is told when it is started: `key=value` arguments, checked before the first word.

use std::{collections::BTreeMap, ffi::OsString, time::Duration};

use serde_json::{Map, Value};

use super::{tools::Offer, wire::Wire};

/// How the agent works.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) base: Base,
    pub(super) wire: Wire,
    pub(super) model: String,
    /// The variable that holds what is sent as the bearer token; tools do not get to see it.
    pub(super) key_env: Option<String>,
    pub(super) leave: Leave,
    /// Tokens that the model can take in; unknown until somebody says.
    pub(super) context_window: Option<u64>,
    /// Model calls of one turn.
    pub(super) max_rounds: u32,
    /// Silence of the server after which a call counts as cut.
    pub(super) idle: Duration,
    pub(super) tools: Offer,
    /// Added to the system prompt.
    pub(super) instructions: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    /// Added to every request's body.
    pub(super) extra_body: Map<String, Value>,
}

/// When leave is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// Before files are written and commands run.
    Asks,
    /// Then, and whoever is asked is told of every other call too, and says whether it must be asked for.
    Announces,
    Never,
}

/// Where the model is: plain HTTP, because TLS is spoken outside of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) host: String,
    pub(super) port: u16,
    /// Everything up to, and not including, `/chat/completions`.
    pub(super) path: String,
}

/// Why the agent cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SettingError {
    #[error("{0:?} is no setting; settings are written key=value")]
    NoSetting(String),
    #[error("{0} is not a setting of this agent; it knows {known}", known = KNOWN.join(", "))]
    Unknown(String),
    #[error("{key} is missing; add {key}={example}")]
    Missing { key: &'static str, example: &'static str },
    #[error("{key} cannot be {value:?}: it is {wanted}")]
    Wrong { key: &'static str, value: String, wanted: &'static str },
}

const KNOWN: [&str; 12] = [
    "base_url",
    "wire",
    "model",
    "key_env",
    "approve",
    "context_window",
    "max_rounds",
    "idle_seconds",
    "tools",
    "instructions",
    "headers",
    "extra_body",
];

/// A loop without an end would spend without an end.
const ROUNDS: u32 = 50;
/// Local servers load a model before their first byte; that may take minutes.
const IDLE: Duration = Duration::from_secs(600);

impl Settings {
    pub(super) fn parse(args: &[OsString]) -> Result<Self, SettingError> {
        let mut given = BTreeMap::new();
        for arg in args {
            let text = arg.to_string_lossy();
            let Some((key, value)) = text.split_once('=') else {
                return Err(SettingError::NoSetting(text.into_owned()));
            };
            if !KNOWN.contains(&key) {
                return Err(SettingError::Unknown(key.to_owned()));
            }
            given.insert(key.to_owned(), value.to_owned());
        }
        let mut take = |key: &'static str| given.remove(key).filter(|value| !value.is_empty());
        let base = take("base_url")
            .ok_or(SettingError::Missing { key: "base_url", example: "http://127.0.0.1:11434/v1" })?;
        Ok(Self {
            base: Base::parse(&base)?,
            model: take("model").ok_or(SettingError::Missing { key: "model", example: "NAME" })?,
            wire: match take("wire").as_deref() {
                None | Some("chat") => Wire::Chat,
                Some("responses") => Wire::Responses,
                Some(value) => return Err(wrong("wire", value, "chat or responses")),
            },
            key_env: take("key_env"),
            leave: match take("approve").as_deref() {
                None | Some("ask") => Leave::Asks,
                Some("announce") => Leave::Announces,
                Some("all") => Leave::Never,
                Some(value) => return Err(wrong("approve", value, "ask, announce or all")),
            },
            context_window: number("context_window", take("context_window"))?,
            max_rounds: number("max_rounds", take("max_rounds"))?.unwrap_or(ROUNDS),
            idle: number("idle_seconds", take("idle_seconds"))?.map_or(IDLE, Duration::from_secs),
            tools: match take("tools").as_deref() {
                None => Offer::Own,
                Some("ostler") => Offer::WithOstlers,
                Some("none") => Offer::Nothing,
                Some(value) => return Err(wrong("tools", value, "ostler, none, or not said")),
            },
            instructions: take("instructions"),
            headers: object("headers", take("headers"), "an object of texts")?,
            extra_body: object("extra_body", take("extra_body"), "a JSON object")?,
        })
    }
}

impl Base {
    fn parse(url: &str) -> Result<Self, SettingError> {
        let wanted = "http://HOST:PORT/PATH, because TLS is spoken by the gateway outside of the sandbox";
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("base_url", url, wanted))?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("base_url", url, wanted))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() || url.contains(char::is_whitespace) {
            return Err(wrong("base_url", url, wanted));
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        Ok(Self { host: host.to_owned(), port, path: path.to_owned() })
    }

    /// The address for people: it never had a key in it.
    pub(super) fn shown(&self, path: &str) -> String {
        format!("http://{}:{}{}{path}", self.host, self.port, self.path)
    }
}

fn wrong(key: &'static str, value: &str, wanted: &'static str) -> SettingError {
    SettingError::Wrong { key, value: value.to_owned(), wanted }
}

fn number<T: std::str::FromStr>(key: &'static str, given: Option<String>) -> Result<Option<T>, SettingError> {
    given.map(|text| text.parse().map_err(|_| wrong(key, &text, "a number"))).transpose()
}

fn object<T: serde::de::DeserializeOwned + Default>(
    key: &'static str,
    given: Option<String>,
    wanted: &'static str,
) -> Result<T, SettingError> {
    given.map_or(Ok(T::default()), |text| serde_json::from_str(&text).map_err(|_| wrong(key, &text, wanted)))
}

#[cfg(test)]
pub(super) fn sample() -> Settings {
    let args = ["base_url=http://127.0.0.1:1/v1", "model=m"].map(OsString::from);
    Settings::parse(&args).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Settings, SettingError> {
        Settings::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_read() {
        let settings = parse(&[
            "base_url=http://127.0.0.1:8080/v1/",
            "model=qwen",
            "wire=responses",
            "approve=all",
            "context_window=32000",
            "extra_body={\"reasoning_effort\":\"low\"}",
            "headers={\"x-team\":\"a\"}",
        ])
        .unwrap();
        assert_eq!(settings.base, Base { host: "127.0.0.1".into(), port: 8080, path: "/v1".into() });
        assert_eq!(settings.base.shown("/models"), "http://127.0.0.1:8080/v1/models");
        assert_eq!((settings.wire, settings.leave), (Wire::Responses, Leave::Never));
        assert_eq!(settings.context_window, Some(32_000));
        assert_eq!(settings.extra_body["reasoning_effort"], "low");
        assert_eq!(settings.headers["x-team"], "a");
    }

    #[test]
    fn mistakes_say_what_is_wanted() {
        let mistake = |args: &[&str]| parse(args).unwrap_err().to_string();
        assert!(mistake(&["model=m"]).contains("base_url="));
        assert!(mistake(&["base_url=http://h/v1"]).contains("model="));
        assert!(mistake(&["base_url=https://h/v1", "model=m"]).contains("gateway"));
        assert!(mistake(&["base_url=http://h:x/v1", "model=m"]).contains("HOST"));
        assert!(mistake(&["temprature=1"]).contains("extra_body"));
        assert!(mistake(&["--help"]).contains("key=value"));
        assert!(mistake(&["base_url=http://h", "model=m", "max_rounds=many"]).contains("number"));
    }
}
