//! The settings by name: what each takes, what holds where nobody sets it, and what was probably meant by a name that is none.

use crate::{
    Name,
    node::Node,
    policy::PRESETS,
    provider::{BUILT_IN, Profile, Settings, acp_name},
    text::{nearest, one_line},
};

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// What holds where nobody says otherwise, as people see it.
    pub default: &'static str,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// `90s`, `10m`, `2h`.
    Span,
    /// A number of bytes, also typed as `8GiB`.
    Bytes,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Switch,
    /// Texts.
    List,
    /// A text, or several.
    Names,
    /// Sections of which there may be several.
    Sections,
}

impl Kind {
    pub const fn expected(self) -> &'static str {
        match self {
            Kind::Text => "a text",
            Kind::Span => "a span of time such as 90s, 10m or 2h",
            Kind::Bytes => "a size such as 8GiB, or a number of bytes",
            Kind::Number => "a whole number",
            Kind::Switch => "true or false",
            Kind::List => "a list such as [\"a\", \"b\"]",
            Kind::Names => "a name, or a list such as [\"approval\", \"failed\"]",
            Kind::Sections => {
                "a list of sections such as [{on = \"approval\", run = [\"notify-send\", \"Ostler\"]}]"
            }
        }
    }
}

const fn key(name: &'static str, kind: Kind, default: &'static str) -> Key {
    Key { name, kind, default }
}

/// All settings that have a name of their own, in the order in which they are shown. Those of providers and of presets'
/// hosts come beside them.
pub const KEYS: &[Key] = &[
    key("provider", Kind::Text, "the only one that passes"),
    key("orphan_grace", Kind::Span, "for ever"),
    key("idle_stop", Kind::Text, "30m"),
    key("on_reboot", Kind::Text, "ask"),
    key("watchdog.start", Kind::Span, "60s"),
    key("watchdog.first_output", Kind::Span, "120s"),
    key("watchdog.silent", Kind::Span, "10m"),
    key("watchdog.tool", Kind::Span, "1h"),
    key("watchdog.retries", Kind::Span, "10m"),
    key("watchdog.rung", Kind::Span, "60s"),
    key("limits.tape", Kind::Bytes, "4294967296"),
    key("limits.sessions", Kind::Number, "none"),
    key("limits.free_memory", Kind::Bytes, "a sixteenth, at most 1GiB"),
    key("limits.free_disk", Kind::Bytes, "a fiftieth, at most 1GiB"),
    key("limits.resume_after_rate_limit", Kind::Switch, "true"),
    key("approvals.limit", Kind::Span, "12h"),
    key("sandbox.run_agents_unconfined_on_this_machine", Kind::Switch, "false"),
    key("hooks", Kind::Sections, "none"),
    key("webhook.url", Kind::Text, "none"),
    key("webhook.on", Kind::Names, "everything"),
    key("webhook.secret_file", Kind::Text, "none"),
    key("webhook.secret_env", Kind::Text, "none"),
    key("webhook.details", Kind::Switch, "false"),
    key("notify", Kind::Sections, "none"),
    key("log.level", Kind::Text, "info"),
    key("log.format", Kind::Text, "text"),
    key("log.size", Kind::Bytes, "16777216"),
    key("log.files", Kind::Number, "4"),
    key("otel.endpoint", Kind::Text, "none"),
    key("otel.content", Kind::Switch, "false"),
    key("otel.headers_file", Kind::Text, "none"),
    key("otel.headers_env", Kind::Text, "none"),
    key("retention.archive_after", Kind::Text, "never"),
    key("retention.delete_after", Kind::Text, "never"),
    key("retention.tombstone", Kind::Span, "14d"),
    key("retention.missions", Kind::Text, "never"),
    key("import.watch", Kind::Switch, "false"),
    key("http.listen", Kind::Text, "closed until `ostler open`"),
    key("http.allowed_hosts", Kind::List, "none"),
    key("hub.url", Kind::Text, "none"),
    key("hub.token_file", Kind::Text, "none"),
    key("hub.token_env", Kind::Text, "none"),
];

/// Settings beside those of providers that a running daemon asks for again when a session is created.
const READ_FOR_EACH: [&str; 1] = ["provider"];
/// Those that it asks for whenever it looks who may start, who comes by which name, who is to be told, and what is kept.
const READ_ALWAYS: [&str; 18] = [
    "http.allowed_hosts",
    "hub.url",
    "hub.token_file",
    "hub.token_env",
    "hooks",
    "webhook.url",
    "webhook.on",
    "webhook.secret_file",
    "webhook.secret_env",
    "webhook.details",
    "notify",
    "limits.sessions",
    "limits.free_memory",
    "limits.free_disk",
    "retention.archive_after",
    "retention.delete_after",
    "retention.tombstone",
    "retention.missions",
];

/// From when on a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    AtOnce,
    NextSession,
    /// The daemon's next one.
    NextStart,
}

impl Holds {
    fn of(name: &str) -> Self {
        match name {
            name if READ_ALWAYS.contains(&name) => Holds::AtOnce,
            name if READ_FOR_EACH.contains(&name) => Holds::NextSession,
            _ => Holds::NextStart,
        }
    }
}

const PROVIDERS: &str = "providers";
const NODES: &str = "nodes";
const PRESETS_AT: [&str; 2] = ["network", "presets"];

/// Where a setting stands in the file, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: Vec<String>,
    pub kind: Kind,
    pub holds: Holds,
}

/// There is no such setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    pub why: String,
    /// What was probably meant.
    pub nearest: Option<String>,
}

/// The setting of this name, given in its words.
pub fn find(words: &[String]) -> Result<Place, UnknownKey> {
    let parts: Vec<&str> = words.iter().map(String::as_str).collect();
    let place = |kind, holds| Place { path: words.to_vec(), kind, holds };
    match parts.as_slice() {
        [NODES, name, field] => match Node::name_fault(name) {
            Some(why) => Err(UnknownKey { why, nearest: None }),
            None if Node::KEYS.contains(field) => Ok(place(Kind::Text, Holds::AtOnce)),
            None => Err(UnknownKey {
                why: format!("the settings of a machine are {}", Node::KEYS.join(", ")),
                nearest: nearest(field, Node::KEYS).map(|field| format!("{NODES}.{name}.{field}")),
            }),
        },
        [PROVIDERS, name, rest @ ..] => {
            // How many may run is asked for whenever it is looked who may start.
            let holds = if rest.last() == Some(&"sessions") { Holds::AtOnce } else { Holds::NextSession };
            of_provider(name, rest).map(|kind| place(kind, holds))
        }
        [section, presets, name] if [*section, *presets] == PRESETS_AT => {
            let names = || PRESETS.iter().filter_map(|preset| preset.name.strip_prefix('@'));
            if names().any(|known| known == *name) {
                return Ok(place(Kind::List, Holds::NextStart));
            }
            Err(UnknownKey {
                why: format!("the presets are {}", names().collect::<Vec<_>>().join(", ")),
                nearest: nearest(name, names()).map(|name| format!("network.presets.{name}")),
            })
        }
        _ => {
            let typed = words.join(".");
            let known = KEYS.iter().find(|key| key.name == typed);
            known.map(|key| place(key.kind, Holds::of(key.name))).ok_or_else(|| unknown(&typed))
        }
    }
}

/// Whether settings may be below it.
pub fn is_section(words: &[String]) -> bool {
    let parts: Vec<&str> = words.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [PROVIDERS | NODES] | [NODES, _] => true,
        [PROVIDERS, name] | [PROVIDERS, name, "env" | "profiles"] | [PROVIDERS, name, "profiles", _] => {
            check_provider(name).is_ok()
        }
        several => {
            let typed = several.join(".");
            let presets = PRESETS_AT.join(".");
            typed == presets
                || in_section(&presets, &typed)
                || KEYS.iter().any(|key| in_section(key.name, &typed))
        }
    }
}

fn unknown(typed: &str) -> UnknownKey {
    let below =
        |section: &str| KEYS.iter().map(|key| key.name).filter(|name| in_section(name, section)).collect();
    let of_section: Vec<&str> = below(typed);
    let why = match of_section.as_slice() {
        [] if typed == PROVIDERS
            || typed == NODES
            || typed == PRESETS_AT.join(".")
            || typed == PRESETS_AT[0] =>
        {
            "it is a section: name a setting in it".to_owned()
        }
        [] => "ostler config show lists the settings".to_owned(),
        several => format!("it is a section: {}", several.join(", ")),
    };
    UnknownKey { why, nearest: nearest(typed, KEYS.iter().map(|key| key.name)).map(str::to_owned) }
}

fn in_section(name: &str, section: &str) -> bool {
    name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// What of a provider's section is one itself.
const SECTIONS: [&str; 2] = ["env", "profiles"];

fn of_provider(name: &str, rest: &[&str]) -> Result<Kind, UnknownKey> {
    check_provider(name)?;
    match rest {
        ["args"] => Ok(Kind::List),
        ["sessions"] => Ok(Kind::Number),
        ["tools"] => Ok(Kind::Switch),
        ["env", variable] if !variable.is_empty() => Ok(Kind::Text),
        ["profiles", profile, "login"] if profile.parse::<Name>().is_ok() => Ok(Kind::Switch),
        ["profiles", profile, "sessions"] if profile.parse::<Name>().is_ok() => Ok(Kind::Number),
        ["profiles", profile, field] if profile.parse::<Name>().is_ok() && Profile::KEYS.contains(field) => {
            Ok(Kind::Text)
        }
        ["profiles", profile, field] => Err(UnknownKey {
            why: format!("the settings of a profile are {}", Profile::KEYS.join(", ")),
            nearest: nearest(field, Profile::KEYS)
                .map(|meant| format!("{PROVIDERS}.{name}.profiles.{profile}.{meant}")),
        }),
        [field] if !SECTIONS.contains(field) && Settings::KEYS.contains(field) => Ok(Kind::Text),
        _ => {
            let field = rest.first().copied().unwrap_or_default();
            let meant = nearest(field, Settings::KEYS).filter(|meant| *meant != field);
            Err(UnknownKey {
                why: format!(
                    "the settings of a provider are {}, env.VARIABLE and profiles.PROFILE.KEY",
                    Settings::KEYS
                        .into_iter()
                        .filter(|key| !SECTIONS.contains(key))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                nearest: meant.map(|meant| format!("{PROVIDERS}.{name}.{meant}")),
            })
        }
    }
}

impl UnknownKey {
    /// `there is no …; providers.codex may be meant`
    pub fn words(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("{}; {nearest} may be meant", self.why),
            None => self.why.clone(),
        }
    }
}

/// What the parser says, and the setting that was probably meant where it knows none of that name.
pub fn with_meant(said: &str) -> String {
    match meant(said) {
        Some(meant) => format!("{said}{meant} may be meant"),
        None => said.to_owned(),
    }
}

fn meant(said: &str) -> Option<&str> {
    let (_, said) = said.split_once("unknown field ")?;
    let mut named = said.split('`').skip(1).step_by(2);
    nearest(named.next()?, named)
}

/// Whether there is such a provider: one that is built in, or one that speaks ACP.
pub fn check_provider(name: &str) -> Result<(), UnknownKey> {
    if acp_name(name).is_some() || BUILT_IN.contains(&name) {
        return Ok(());
    }
    Err(UnknownKey {
        why: format!(
            "there is no provider \"{}\"; there are {}, and acp:NAME for agents that speak ACP",
            one_line(name, 40),
            BUILT_IN.join(", ")
        ),
        nearest: nearest(name, BUILT_IN).map(|name| format!("{PROVIDERS}.{name}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn found(key: &str) -> Result<Kind, UnknownKey> {
        let words: Vec<String> = key.split('.').map(str::to_owned).collect();
        find(&words).map(|place| place.kind)
    }

    /// What the parser says it would know in a section.
    fn fields(section: &str) -> Vec<String> {
        let text = if section.is_empty() { "zz = 1\n".to_owned() } else { format!("[{section}]\nzz = 1\n") };
        let said = toml::from_str::<Config>(&text).unwrap_err().to_string();
        let (_, named) = said.split_once("expected").unwrap_or_else(|| panic!("{said}"));
        named.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_setting_of_the_file_has_a_name() {
        let sections = [
            "watchdog",
            "limits",
            "approvals",
            "sandbox",
            "webhook",
            "log",
            "otel",
            "retention",
            "import",
            "http",
            "hub",
        ];
        for section in sections {
            for field in fields(section) {
                assert!(found(&format!("{section}.{field}")).is_ok(), "{section}.{field} is not in KEYS");
            }
        }
        let elsewhere = ["providers", "network", "nodes"];
        let top = fields("");
        for field in top.iter().filter(|field| !sections.contains(&field.as_str())) {
            assert!(found(field).is_ok() || elsewhere.contains(&field.as_str()), "{field} is not in KEYS");
        }
        for field in fields("nodes.build2") {
            assert_eq!(found(&format!("nodes.build2.{field}")), Ok(Kind::Text), "{field}");
        }
        for field in fields("providers.codex") {
            let key = match field.as_str() {
                "env" => "env.A".to_owned(),
                "profiles" => "profiles.work.login".to_owned(),
                _ => field,
            };
            assert!(found(&format!("providers.codex.{key}")).is_ok(), "{key}");
        }
        for field in fields("providers.codex.profiles.work") {
            assert!(found(&format!("providers.codex.profiles.work.{field}")).is_ok(), "{field}");
            assert!(Profile::KEYS.contains(&field.as_str()), "{field}");
        }
        assert!(Node::KEYS.iter().all(|key| found(&format!("nodes.far.{key}")).is_ok()));
    }

    #[test]
    fn what_is_read_anew_holds_at_once() {
        let holds = |key: &str| find(&key.split('.').map(str::to_owned).collect::<Vec<_>>()).unwrap().holds;
        assert_eq!([holds("http.allowed_hosts"), holds("hub.url")], [Holds::AtOnce; 2]);
        assert_eq!(holds("http.listen"), Holds::NextStart, "it stays where it is");
        for key in ["providers.script.sessions", "providers.codex.profiles.work.sessions"] {
            assert_eq!(holds(key), Holds::AtOnce, "whoever waits for a slot has it");
        }
        assert_eq!(holds("providers.codex.model"), Holds::NextSession);
        assert!(READ_ALWAYS.iter().all(|name| KEYS.iter().any(|key| key.name == *name)));
    }

    #[test]
    fn every_name_is_a_setting_of_the_file() {
        for key in KEYS {
            let (section, field) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            assert!(fields(section).iter().any(|known| known == field), "{}", key.name);
        }
    }

    #[test]
    fn defaults_are_those_that_hold() {
        let usual = Config::default();
        let default = |name: &str| KEYS.iter().find(|key| key.name == name).unwrap().default;
        let micros = |text: &str| u64::try_from(crate::time::span(text).unwrap().as_micros()).unwrap();
        let limits = usual.watchdogs();
        for (name, holds) in [
            ("watchdog.start", limits.start_us),
            ("watchdog.first_output", limits.first_output_us),
            ("watchdog.silent", limits.silent_us),
            ("watchdog.tool", limits.tool_us),
            ("watchdog.retries", limits.retries_us),
            ("watchdog.rung", limits.rung_us),
            ("approvals.limit", u64::try_from(usual.approval_limit().as_micros()).unwrap()),
        ] {
            assert_eq!(micros(default(name)), holds, "{name}");
        }
        assert_eq!(default("limits.resume_after_rate_limit"), usual.resumes_after_limit().to_string());
        assert_eq!(default("sandbox.run_agents_unconfined_on_this_machine"), usual.unconfined().to_string());
        assert_eq!(default("on_reboot"), usual.on_reboot().as_str());
        assert_eq!(default("limits.tape"), crate::limits::TAPE_BYTES.to_string());
        let log = usual.log();
        assert_eq!(default("log.level"), log.level.as_str());
        assert_eq!(default("log.size"), log.bytes.to_string());
        assert_eq!(default("log.files"), log.files.to_string());
    }

    #[test]
    fn a_field_that_the_parser_does_not_know_is_one_that_is_near() {
        let meant = |text: &str| {
            let said = with_meant(&toml::from_str::<Config>(text).unwrap_err().to_string());
            Some(said.lines().last()?.strip_suffix(" may be meant")?.to_owned())
        };
        assert_eq!(meant("[providers.codex]\nmodle = \"m\"\n").as_deref(), Some("model"));
        assert_eq!(meant("[limits]\nsesions = 3\n").as_deref(), Some("sessions"));
        assert_eq!(meant("[provider.codex]\nmodel = \"m\"\n"), None);
        assert_eq!(meant("[watchdg]\n").as_deref(), Some("watchdog"));
        assert_eq!(meant("[limits]\nquux = 3\n"), None);
        assert_eq!(meant("[limits]\nsessions = \"x\"\n"), None);
    }

    #[test]
    fn what_was_probably_meant_is_said() {
        let meant = |key: &str| found(key).unwrap_err().nearest;
        assert_eq!(meant("watchdog.silnet").as_deref(), Some("watchdog.silent"));
        assert_eq!(meant("providers.claude.model").as_deref(), Some("providers.claude-code"));
        assert_eq!(meant("providers.codex.modle").as_deref(), Some("providers.codex.model"));
        assert_eq!(meant("network.presets.nod").as_deref(), Some("network.presets.node"));
        assert_eq!(meant("entirely.else"), None);
        assert!(found("providers.nope.x").unwrap_err().why.contains("claude-code"));
        assert!(found("webhook").unwrap_err().why.contains("webhook.url"));
        assert_eq!(found("providers.acp:mine.args"), Ok(Kind::List));
        assert_eq!(found("network.presets.rust"), Ok(Kind::List));
    }
}
