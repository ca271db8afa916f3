//! `config.toml`: what this machine's daemon is told. Never read from inside a campaign. Here is what may be said in it; who
//! reads the file is another's affair.

mod key;
mod notices;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    admission::MachineLimits,
    http::{self, HttpSettings},
    hub::Hub,
    limits::{APPROVAL_WAITS, IDLE_STOP},
    log::{Log, LogSettings},
    node::Node,
    notice::Channel,
    policy::{self, IdleStop},
    provider::Settings,
    reboot::OnReboot,
    retention::{After, MissionRules, Rules, tombstone},
    session::WatchdogLimits,
    telemetry::{Export, OtelSettings},
    time::span,
};

use notices::{ChannelSettings, HookSettings, WebhookSettings};

pub use key::{Holds, KEYS, Key, Kind, Place, UnknownKey, check_provider, find, is_section, with_meant};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    watchdog: Watchdogs,
    limits: Limits,
    approvals: Approvals,
    sandbox: SandboxSettings,
    network: NetworkSettings,
    providers: BTreeMap<String, Settings>,
    /// Other machines, by the names that they have here.
    nodes: BTreeMap<String, Node>,
    /// The provider of sessions that name none, in campaigns that name none.
    provider: Option<String>,
    /// How long an agent may live without a daemon; absent, for ever.
    orphan_grace: Option<Span>,
    /// How long an idle session keeps its process.
    idle_stop: Option<Idle>,
    /// What becomes of sessions that a restart of the machine ended.
    on_reboot: OnReboot,
    hooks: Vec<HookSettings>,
    webhook: Option<WebhookSettings>,
    /// Who is told of what happens, each by a name.
    notify: Vec<ChannelSettings>,
    /// The daemon's own log.
    log: LogSettings,
    /// Where a collector of OpenTelemetry is.
    otel: OtelSettings,
    /// How long what was said is kept, in campaigns that do not say.
    retention: RetentionSettings,
    /// Agents that run outside.
    import: ImportSettings,
    /// The door for browsers.
    http: HttpSection,
    /// Where this machine's sessions are seen beside others'.
    hub: HubSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HubSection {
    url: Option<String>,
    token_file: Option<String>,
    token_env: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    listen: Option<String>,
    allowed_hosts: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ImportSettings {
    /// The stores of agent programs are followed for as long as the daemon runs.
    watch: bool,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Watchdogs {
    start: Option<Span>,
    first_output: Option<Span>,
    silent: Option<Span>,
    tool: Option<Span>,
    retries: Option<Span>,
    rung: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// Bytes a session's tape may have.
    tape: Option<u64>,
    /// Sessions that run at once; further ones wait.
    sessions: Option<NonZeroU32>,
    /// Memory and disk that stay free: with less, nothing new starts.
    free_memory: Option<Size>,
    free_disk: Option<Size>,
    /// Whether a turn that failed of the model's rate limit goes on when that ends.
    resume_after_rate_limit: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetentionSettings {
    archive_after: Option<KeptFor>,
    delete_after: Option<KeptFor>,
    tombstone: Option<Announced>,
    missions: Option<MissionsKept>,
}

#[derive(Debug, Clone, Copy)]
struct MissionsKept(MissionRules);

impl<'de> Deserialize<'de> for MissionsKept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("\"{text}\" is neither 30d nor completed:7d,failed:30d"));
        MissionRules::parse(&text).map(MissionsKept).ok_or_else(wrong)
    }
}

#[derive(Debug, Clone, Copy)]
struct KeptFor(After);

impl<'de> Deserialize<'de> for KeptFor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("\"{text}\" is neither a span such as 30d nor never"));
        After::parse(&text).map(KeptFor).ok_or_else(wrong)
    }
}

/// Seconds.
#[derive(Debug, Clone, Copy)]
struct Announced(u64);

impl<'de> Deserialize<'de> for Announced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("\"{text}\" is no span such as 14d, of at least 1h"));
        tombstone(&text).map(Announced).ok_or_else(wrong)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Approvals {
    /// How long an agent's question waits for a person.
    limit: Option<Span>,
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
        span(&text)
            .filter(|span| !span.is_zero())
            .map(Span)
            .ok_or_else(|| D::Error::custom(format!("\"{text}\" is no span of time, such as 90s, 10m or 2h")))
    }
}

/// `30m`, or `never`.
#[derive(Debug, Clone, Copy)]
struct Idle(IdleStop);

impl<'de> Deserialize<'de> for Idle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("\"{text}\" is neither a span such as 30m or 2h, nor never"));
        IdleStop::parse(&text).map(Idle).ok_or_else(wrong)
    }
}

/// Bytes, as a number or as `2GiB`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Size(bytes)),
            Written::Text(text) => policy::size(&text)
                .map(Size)
                .ok_or_else(|| D::Error::custom(format!("\"{text}\" is no size, such as 512MiB or 2GiB"))),
        }
    }
}

impl Config {
    /// What makes it unusable, in words.
    pub fn fault(&self) -> Option<String> {
        let mut faults = self.providers.iter().filter_map(|(name, settings)| Some((name, settings.fault()?)));
        let provider = faults.next().map(|(name, fault)| format!("providers.{name}: {fault}"));
        let mut names = self.nodes.keys().filter_map(|name| Some((name, Node::name_fault(name)?)));
        let node = names.next().map(|(name, fault)| format!("nodes.{name}: {fault}"));
        provider
            .or(node)
            .or_else(|| self.channels().err())
            .or_else(|| self.log.fault())
            .or_else(|| self.otel.export().err().map(|fault| format!("otel: {fault}")))
            .or_else(|| self.http().err().map(|fault| format!("http: {fault}")))
            .or_else(|| self.hub().err().map(|fault| format!("hub: {fault}")))
    }

    /// Providers that are named and are none: what is said of them counts for nobody. That keeps no daemon from starting:
    /// another version may know them.
    pub fn unknown_providers(&self) -> Vec<UnknownKey> {
        let named = self.providers.keys().map(String::as_str).chain(self.provider.as_deref());
        named.filter_map(|name| check_provider(name).err()).collect()
    }

    /// Who is told of what happens.
    pub fn channels(&self) -> Result<Vec<Channel>, String> {
        notices::channels(&self.hooks, self.webhook.as_ref(), &self.notify)
    }

    /// What is said of the HTTP door.
    pub fn http(&self) -> Result<HttpSettings, String> {
        let HttpSection { listen, allowed_hosts } = &self.http;
        if let Some(fault) = allowed_hosts.iter().find_map(|host| http::host_fault(host)) {
            return Err(fault);
        }
        let listen = listen.as_deref().map(http::listen).transpose()?;
        Ok(HttpSettings { listen, allowed_hosts: allowed_hosts.clone() })
    }

    /// The hub that this machine connects to.
    pub fn hub(&self) -> Result<Option<Hub>, String> {
        let HubSection { url, token_file, token_env } = &self.hub;
        let token = notices::place(token_file.as_ref(), token_env.as_ref(), "token")?;
        match (url, token) {
            (None, _) => Ok(None),
            (Some(_), None) => Err("token_file or token_env is missing".to_owned()),
            (Some(url), Some(token)) => match crate::gateway::Upstream::parse(url) {
                Ok(_) => Ok(Some(Hub { url: url.clone(), token })),
                Err(why) => Err(format!("url: {why}")),
            },
        }
    }

    /// Whether the daemon itself follows the stores of agent programs.
    pub fn watches_stores(&self) -> bool {
        self.import.watch
    }

    pub fn log(&self) -> Log {
        self.log.log()
    }

    pub fn export(&self) -> Option<Export> {
        self.otel.export().ok().flatten()
    }

    pub fn nodes(&self) -> &BTreeMap<String, Node> {
        &self.nodes
    }

    /// What is said of each provider, by its name.
    pub fn providers(self) -> BTreeMap<String, Settings> {
        self.providers
    }

    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    pub fn watchdogs(&self) -> WatchdogLimits {
        let usual = WatchdogLimits::default();
        let micros = |span: Option<Span>, usual| {
            span.map_or(usual, |Span(span)| u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
        };
        let Watchdogs { start, first_output, silent, tool, retries, rung } = self.watchdog;
        WatchdogLimits {
            start_us: micros(start, usual.start_us),
            first_output_us: micros(first_output, usual.first_output_us),
            silent_us: micros(silent, usual.silent_us),
            tool_us: micros(tool, usual.tool_us),
            retries_us: micros(retries, usual.retries_us),
            rung_us: micros(rung, usual.rung_us),
        }
    }

    pub fn approval_limit(&self) -> Duration {
        self.approvals.limit.map_or(APPROVAL_WAITS, |Span(span)| span)
    }

    pub fn orphan_grace(&self) -> Option<Duration> {
        self.orphan_grace.map(|Span(span)| span)
    }

    pub fn unconfined(&self) -> bool {
        self.sandbox.run_agents_unconfined_on_this_machine
    }

    pub fn network_presets(&self) -> BTreeMap<String, Vec<String>> {
        let presets = self.network.presets.iter();
        presets
            .map(|(name, hosts)| (name.0.clone(), hosts.iter().map(|host| host.0.clone()).collect()))
            .collect()
    }

    pub fn resumes_after_limit(&self) -> bool {
        self.limits.resume_after_rate_limit.unwrap_or(true)
    }

    pub fn idle_stop(&self) -> IdleStop {
        self.idle_stop.map_or(IdleStop::after(IDLE_STOP), |Idle(limit)| limit)
    }

    /// How long what was said is kept, where a campaign does not say.
    pub fn retention(&self) -> Rules {
        let RetentionSettings { archive_after, delete_after, tombstone, missions } = &self.retention;
        Rules {
            archive_after: archive_after.map(|KeptFor(after)| after),
            delete_after: delete_after.map(|KeptFor(after)| after),
            tombstone: tombstone.map(|Announced(seconds)| seconds),
            missions: missions.map(|MissionsKept(rules)| rules).unwrap_or_default(),
        }
    }

    pub fn on_reboot(&self) -> OnReboot {
        self.on_reboot
    }

    pub fn admission(&self) -> MachineLimits {
        MachineLimits {
            sessions: self.limits.sessions.map(NonZeroU32::get),
            free_memory: self.limits.free_memory.map(|Size(bytes)| bytes),
            free_disk: self.limits.free_disk.map(|Size(bytes)| bytes),
        }
    }

    pub fn tape_bytes(&self) -> Option<u64> {
        self.limits.tape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::To;

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
    fn providers_that_are_none_are_told_of_and_refuse_nothing() {
        let text = "provider = \"claude\"\n[providers.codexx]\nmodel = \"m\"\n[providers.\"acp:mine\"]\n\
            program = \"mine\"\n[providers.codex]\nmodel = \"m\"\n[providers.\"acp:a b\"]\nmodel = \"m\"\n";
        let config: Config = toml::from_str(text).unwrap();
        assert_eq!(config.fault(), None);
        let said: Vec<_> = config.unknown_providers().iter().map(UnknownKey::words).collect();
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(said[0].starts_with("there is no provider \"acp:a b\""), "{said:#?}");
        assert!(said[1].starts_with("there is no provider \"codexx\""), "{said:#?}");
        assert!(said[1].ends_with("; providers.codex may be meant"), "{said:#?}");
        assert!(said[2].ends_with("; providers.claude-code may be meant"), "{said:#?}");
    }

    #[test]
    fn whoever_is_told_is_named_plainly() {
        let fault = |text: &str| match toml::from_str::<Config>(text) {
            Ok(config) => config.fault(),
            Err(error) => Some(error.to_string()),
        };
        let hook = "[[hooks]]\non = \"approval\"\nrun = [\"notify-send\", \"Ostler\"]\nlimit = \"5s\"\n";
        let webhook = "[webhook]\nurl = \"https://hooks.example/x\"\non = [\"approval\", \"failed\"]\n";
        assert_eq!(fault(&format!("{hook}{webhook}secret_env = \"X\"\n")), None);
        let config: Config = toml::from_str(hook).unwrap();
        let channels = config.channels().unwrap();
        assert!(matches!(&channels[0].to, To::Hook(hook) if hook.limit == Duration::from_secs(5)));
        for (wrong, says) in [
            (webhook.to_owned(), "secret_env is missing"),
            (format!("{webhook}secret_env = \"X\"\nsecret_file = \"/x\"\n"), "not both"),
            (hook.replace("approval", "lunch"), "none of approval"),
            (hook.replace("notify-send", "./x"), "absolute path"),
            (hook.replace("\"notify-send\", \"Ostler\"", ""), "a program"),
            (hook.replace("limit", "seconds"), "unknown field"),
            (format!("{webhook}secret_env = \"X\"\n").replace("https", "ftp"), "neither http"),
        ] {
            assert!(fault(&wrong).is_some_and(|fault| fault.contains(says)), "{wrong}: {:?}", fault(&wrong));
        }
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(
            (span("90s"), span("1d")),
            (Some(Duration::from_secs(90)), Some(Duration::from_secs(86_400)))
        );
        assert_eq!((span("90"), span("m"), span("1w")), (None, None, None));
    }

    #[test]
    fn limits_of_sessions_are_read() {
        let read = |text: &str| toml::from_str::<Config>(text).map_err(|error| error.to_string());
        let limits = "[limits]\nsessions = 60\nfree_disk = \"2GiB\"\nfree_memory = 0\n";
        let config = read(&format!("idle_stop = \"2h\"\n{limits}")).unwrap();
        assert_eq!(config.idle_stop(), IdleStop::after(Duration::from_secs(7_200)));
        let said = MachineLimits { sessions: Some(60), free_memory: Some(0), free_disk: Some(2 << 30) };
        assert_eq!(config.admission(), said);
        assert_eq!(read("idle_stop = \"never\"").unwrap().idle_stop(), IdleStop::Never);
        assert_eq!(Config::default().idle_stop(), IdleStop::after(Duration::from_secs(1_800)));
        for wrong in ["[limits]\nsessions = 0", "[limits]\nfree_disk = \"much\"", "idle_stop = \"soon\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
