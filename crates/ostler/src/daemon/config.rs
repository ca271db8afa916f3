//! `config.toml`: what this machine's daemon is told. Never read from inside a campaign.

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use ostler_domain::{Refusal, policy, provider::Settings, session::WatchdogLimits};
use serde::{Deserialize, Deserializer, de::Error};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    watchdog: Watchdogs,
    limits: Limits,
    sandbox: SandboxSettings,
    network: NetworkSettings,
    providers: BTreeMap<String, Settings>,
    /// How long an agent may live without a daemon; absent, for ever.
    orphan_grace: Option<Span>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Watchdogs {
    start: Option<Span>,
    first_output: Option<Span>,
    silent: Option<Span>,
    tool: Option<Span>,
    rung: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// Bytes a session's tape may have.
    tape: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SandboxSettings {
    /// Agents have all the rights of the user who runs the daemon. Said in every listing.
    run_agents_unconfined_on_this_machine: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetworkSettings {
    /// The hosts that a preset of `net.allow` stands for.
    presets: BTreeMap<PresetName, Vec<Host>>,
}

/// `rust` for `@rust`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PresetName(String);

impl<'de> Deserialize<'de> for PresetName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match policy::preset(&format!("@{name}")) {
            Some(_) => Ok(PresetName(name)),
            None => Err(D::Error::custom(format!("there is no preset \"@{name}\""))),
        }
    }
}

#[derive(Debug, Clone)]
struct Host(String);

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let host = String::deserialize(deserializer)?;
        match policy::host_fault(&host) {
            None => Ok(Host(host)),
            Some(fault) => Err(D::Error::custom(format!("\"{host}\": {fault}"))),
        }
    }
}

/// A span of time written as `90s`, `10m`, `2h` or `500ms`.
#[derive(Debug, Clone, Copy)]
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_span(&text)
            .map(Span)
            .ok_or_else(|| D::Error::custom(format!("\"{text}\" is no span of time, such as 90s, 10m or 2h")))
    }
}

fn parse_span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3_600)?)),
        _ => None,
    }
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self, Refusal> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(
                    Refusal::invalid(format!("{} cannot be read", path.display())).because(error.to_string())
                );
            }
        };
        // The parser's message names line and column.
        let mistake =
            |why: String| Refusal::invalid(format!("{} has a mistake", path.display())).because(why);
        let config: Self = toml::from_str(&text).map_err(|error| mistake(error.to_string()))?;
        match config.fault() {
            Some(fault) => Err(mistake(fault)),
            None => Ok(config),
        }
    }

    fn fault(&self) -> Option<String> {
        let mut faults = self.providers.iter().filter_map(|(name, settings)| Some((name, settings.fault()?)));
        faults.next().map(|(name, fault)| format!("providers.{name}: {fault}"))
    }

    pub(super) fn providers(self) -> BTreeMap<String, Settings> {
        self.providers
    }

    pub(super) fn watchdogs(&self) -> WatchdogLimits {
        let usual = WatchdogLimits::default();
        let micros = |span: Option<Span>, usual| {
            span.map_or(usual, |Span(span)| u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
        };
        let Watchdogs { start, first_output, silent, tool, rung } = self.watchdog;
        WatchdogLimits {
            start_us: micros(start, usual.start_us),
            first_output_us: micros(first_output, usual.first_output_us),
            silent_us: micros(silent, usual.silent_us),
            tool_us: micros(tool, usual.tool_us),
            rung_us: micros(rung, usual.rung_us),
        }
    }

    pub(super) fn orphan_grace(&self) -> Option<Duration> {
        self.orphan_grace.map(|Span(span)| span)
    }

    pub(super) fn unconfined(&self) -> bool {
        self.sandbox.run_agents_unconfined_on_this_machine
    }

    pub(super) fn network_presets(&self) -> BTreeMap<String, Vec<String>> {
        let presets = self.network.presets.iter();
        presets
            .map(|(name, hosts)| (name.0.clone(), hosts.iter().map(|host| host.0.clone()).collect()))
            .collect()
    }

    pub(super) fn tape_bytes(&self) -> Option<u64> {
        self.limits.tape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        let text = |text: &str| toml::from_str::<Config>(text).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(text("orphan_grace = \"2h\"\n[watchdog]\nsilent = \"10m\"\n"), Ok(()));
        assert!(text("[watchdog]\nsilnet = \"10m\"\n").unwrap_err().contains("line 2"));
        assert_eq!(text("[network.presets]\nrust = [\"a.example\", \"*.b.example\"]\n"), Ok(()));
        assert!(text("[network.presets]\ncobol = []\n").unwrap_err().contains("no preset"));
        assert!(
            text("[network.presets]\ngo = [\"a.example:443\"]\n").unwrap_err().contains("without a port")
        );
        let providers = "[providers.\"acp:opencode\"]\nprogram = \"opencode\"\nargs = [\"acp\"]\n";
        assert_eq!(text(providers), Ok(()));
        assert!(text("[providers.codex]\napi_key = \"sk-1\"\n").unwrap_err().contains("unknown field"));
        assert!(text("orphan_grace = \"soon\"\n").unwrap_err().contains("no span of time"));
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(parse_span("90s"), Some(Duration::from_secs(90)));
        assert_eq!((parse_span("90"), parse_span("m"), parse_span("1d")), (None, None, None));
    }
}
