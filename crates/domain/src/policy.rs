//! What a campaign's agents may do beyond the strictest sandbox: a person's words, kept as they were typed.
//!
//! Only `ostler campaign set` changes it, recorded as an event. Nothing is ever read from a file inside a campaign: an
//! agent could write it.

pub mod grant;
mod idle;
mod narrow;
pub mod question;
mod setting;
mod snapshots;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Name,
    budget::CampaignBudget,
    confinement::Protect,
    conversation::{ResetRules, SendAction},
    retention::Rules,
};

pub use idle::IdleStop;
pub use narrow::Rights;
pub use setting::{Setting, SettingFault, host_fault, keys, size, size_text};
pub use snapshots::Snapshots;

/// One campaign's policy. Empty means the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Paths and presets that may be read: `/opt/sdk`, `@rust`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Paths beside the campaign's root that may be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Names of files that are hidden, beside the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// Names of variables that are taken over from the daemon's environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Programs that `ostler exec` runs, beside the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_mode: Option<NetMode>,
    /// Hosts and presets that may be reached through the proxy: `registry.example`, `*.example`, `@node`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub net_allow: Vec<String>,
    #[serde(skip_serializing_if = "PolicyLimits::is_default")]
    pub limits: PolicyLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptrace: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect_tooling: Option<Protect>,
    /// Whose tools are to find themselves at home in a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Rules that answer agents who ask for leave, in their order: `allow run cargo test *`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approve_rule: Vec<String>,
    /// What all its sessions together may use. No right of the sandbox's, so no policy is wider by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<CampaignBudget>,
    /// The provider of sessions that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model of that provider, for sessions that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Agents that the others of the campaign may speak to; `*` is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// Agents that may read what is recorded of the campaign's other sessions; `*` is all. No right of the sandbox's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readers: Vec<String>,
    /// When an idle session is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop: Option<IdleStop>,
    /// Whether something may be said to its conversations where no rule says so. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_default: Option<SendAction>,
    /// Rules for that, in their order: `deny channel=discord chat_type=group`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub send_rule: Vec<String>,
    /// How long what its sessions said is kept. No right of the sandbox's.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub retention: Rules,
    /// Where its conversations are kept for programs that read OpenClaw's store of files. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// When its conversations begin anew by themselves. No right of the sandbox's.
    #[serde(skip_serializing_if = "ResetRules::is_empty")]
    pub reset: ResetRules,
    /// Whether a turn that failed of the model's rate limit goes on by itself when that ends. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_after_rate_limit: Option<bool>,
    /// Whether its files are written down after each turn. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
}

/// What a session may use; unset means the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm: Option<u64>,
    /// Sessions that run at once; further ones wait. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Helpers that one session may have at work. No right of the sandbox's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helpers: Option<u32>,
}

impl PolicyLimits {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Tools that know a session by names of their own, which it then has beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// `OBEY_*`.
    Obey,
    /// `GT_SESSION_UUID`.
    Gastown,
}

impl Compat {
    pub const fn as_str(self) -> &'static str {
        match self {
            Compat::Obey => "obey",
            Compat::Gastown => "gastown",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Compat::Obey, Compat::Gastown].into_iter().find(|compat| compat.as_str() == text)
    }
}

/// How far a sandbox reaches into the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetMode {
    /// Loopback inside, and nothing else.
    None,
    /// The model's provider, and the hosts of `net.allow`.
    Provider,
    /// Every public host.
    Open,
    /// The host's own network.
    Host,
}

impl NetMode {
    pub const ALL: &'static [NetMode] = &[NetMode::None, NetMode::Provider, NetMode::Open, NetMode::Host];

    pub const fn as_str(self) -> &'static str {
        match self {
            NetMode::None => "none",
            NetMode::Provider => "provider",
            NetMode::Open => "open",
            NetMode::Host => "host",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text)
    }
}

/// A preset: what a language's tools need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    pub toolchains: &'static [Toolchain],
}

/// A directory of a person's that programs live in. Only the parts named here are granted: beside them lie tokens and
/// credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolchain {
    /// The variable that says where it is.
    pub variable: Option<&'static str>,
    /// Where it is when the variable is not set.
    pub below_home: &'static str,
    /// The parts that are granted; an empty one is the whole.
    pub granted: &'static [&'static str],
    /// Where its programs are; `*` is every version, the newest first.
    pub programs: &'static [&'static str],
    /// Whether the variable is set inside too. Not where tools write what they fetch: that goes to the agent's home.
    pub is_exported: bool,
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "@rust",
        toolchains: &[
            Toolchain {
                variable: Some("CARGO_HOME"),
                below_home: ".cargo",
                granted: &["bin"],
                programs: &["bin"],
                is_exported: false,
            },
            Toolchain {
                variable: Some("RUSTUP_HOME"),
                below_home: ".rustup",
                granted: &[""],
                programs: &[],
                is_exported: true,
            },
        ],
    },
    Preset {
        name: "@node",
        toolchains: &[
            Toolchain {
                variable: Some("NVM_DIR"),
                below_home: ".nvm",
                granted: &["versions", "alias", "nvm.sh"],
                programs: &["versions/node/*/bin"],
                is_exported: true,
            },
            Toolchain {
                variable: Some("VOLTA_HOME"),
                below_home: ".volta",
                granted: &["bin", "tools"],
                programs: &["bin"],
                is_exported: true,
            },
            Toolchain {
                variable: None,
                below_home: ".npm-global",
                granted: &["bin", "lib"],
                programs: &["bin"],
                is_exported: false,
            },
        ],
    },
    Preset {
        name: "@python",
        toolchains: &[
            Toolchain {
                variable: Some("PYENV_ROOT"),
                below_home: ".pyenv",
                granted: &[""],
                programs: &["shims", "bin"],
                is_exported: true,
            },
            Toolchain {
                variable: None,
                below_home: ".local/share/uv",
                granted: &["python", "tools"],
                programs: &[],
                is_exported: false,
            },
        ],
    },
    Preset {
        name: "@go",
        toolchains: &[
            Toolchain {
                variable: Some("GOPATH"),
                below_home: "go",
                granted: &["bin"],
                programs: &["bin"],
                is_exported: false,
            },
            Toolchain {
                variable: None,
                below_home: "sdk",
                granted: &[""],
                programs: &["*/bin"],
                is_exported: false,
            },
        ],
    },
];

pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// One line of a policy, as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLine {
    pub key: &'static str,
    pub value: String,
    pub origin: Origin,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said otherwise.
    Default,
    /// `ostler campaign set`.
    Campaign,
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Campaign => "campaign",
        }
    }
}

impl Policy {
    /// Whether an agent may read what is recorded of the campaign's other sessions. A name that nobody registered is one
    /// that an agent could give to its helper.
    pub fn is_reader(&self, agent: Option<&Name>) -> bool {
        self.readers.iter().any(|reader| reader == "*" || agent.is_some_and(|agent| reader == agent.as_str()))
    }

    /// Whether the others of the campaign may speak to an agent, and hand it work.
    pub fn is_peer(&self, agent: &Name) -> bool {
        self.peers.iter().any(|peer| peer == "*" || peer == agent.as_str())
    }

    /// Whether a policy allows nothing that another one does not.
    pub fn is_within(&self, wider: &Policy) -> bool {
        let subset = |ours: &[String], theirs: &[String]| ours.iter().all(|one| theirs.contains(one));
        let at_most = |ours: Option<u64>, theirs: Option<u64>| match (ours, theirs) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(ours), Some(theirs)) => ours <= theirs,
        };
        let (ours, theirs) = (&self.limits, &wider.limits);
        subset(&self.read, &wider.read)
            && subset(&self.write, &wider.write)
            && subset(&wider.hide, &self.hide)
            && subset(&self.env, &wider.env)
            && subset(&self.commands, &wider.commands)
            && subset(&self.net_allow, &wider.net_allow)
            && self.net_mode.unwrap_or(NetMode::Provider) <= wider.net_mode.unwrap_or(NetMode::Provider)
            && at_most(ours.memory, theirs.memory)
            && at_most(ours.pids, theirs.pids)
            && at_most(ours.tmp, theirs.tmp)
            && at_most(ours.shm, theirs.shm)
            && self.ptrace.unwrap_or(false) <= wider.ptrace.unwrap_or(false)
            && looseness(self.protect_tooling) <= looseness(wider.protect_tooling)
            && are_rules_within(&self.approve_rule, &wider.approve_rule)
    }

    /// The model of a session of this provider that names none: one that a campaign names is its own provider's.
    pub fn model_for(&self, provider: &str) -> Option<&str> {
        let is_its = self.provider.as_deref().is_none_or(|own| own == provider);
        self.model.as_deref().filter(|_| is_its)
    }

    /// Everything that holds and who says so, in the order of the keys. A key has two lines where the campaign adds to
    /// what is always there.
    pub fn lines(&self) -> Vec<PolicyLine> {
        let own: BTreeMap<&'static str, String> = self.values().into_iter().collect();
        let line = |key: &setting::Key| {
            let usual = PolicyLine { key: key.name, value: key.default.to_owned(), origin: Origin::Default };
            let Some(value) = own.get(key.name) else { return vec![usual] };
            let own = PolicyLine { key: key.name, value: value.clone(), origin: Origin::Campaign };
            if key.is_added_to { vec![usual, own] } else { vec![own] }
        };
        setting::KEYS.iter().flat_map(line).collect()
    }

    /// What was said, as it would be typed.
    pub fn settings(&self) -> Vec<String> {
        let lists = [
            ("read", &self.read),
            ("write", &self.write),
            ("hide", &self.hide),
            ("env", &self.env),
            ("commands", &self.commands),
            ("net.allow", &self.net_allow),
            ("approve.rule", &self.approve_rule),
            ("peers", &self.peers),
            ("readers", &self.readers),
            ("send.rule", &self.send_rule),
        ];
        let is_list = |key: &str| lists.iter().any(|(list, _)| *list == key);
        let words = self.values().into_iter().filter(|(key, _)| !is_list(key));
        let words = words.map(|(key, value)| format!("{key}={value}"));
        let items =
            lists.iter().flat_map(|(key, items)| items.iter().map(move |item| format!("{key}+={item}")));
        words.chain(items).collect()
    }

    /// The policy that settings add up to, and the first of them that is refused.
    pub fn changed_by<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a String>,
    ) -> Result<Policy, SettingFault> {
        settings.into_iter().try_fold(self.clone(), |policy, text| policy.changed(&Setting::parse(text)?))
    }

    /// What was said, by key.
    fn values(&self) -> Vec<(&'static str, String)> {
        let list = |key, items: &[String]| (!items.is_empty()).then(|| (key, items.join(" ")));
        let size = |key, bytes: Option<u64>| bytes.map(|bytes| (key, setting::size_text(bytes)));
        [
            list("read", &self.read),
            list("write", &self.write),
            list("hide", &self.hide),
            list("env", &self.env),
            list("commands", &self.commands),
            self.net_mode.map(|mode| ("net.mode", mode.as_str().to_owned())),
            list("net.allow", &self.net_allow),
            size("limits.memory", self.limits.memory),
            self.limits.pids.map(|pids| ("limits.pids", pids.to_string())),
            size("limits.tmp", self.limits.tmp),
            size("limits.shm", self.limits.shm),
            self.limits.sessions.map(|most| ("limits.sessions", most.to_string())),
            self.limits.helpers.map(|most| ("limits.helpers", most.to_string())),
            list("peers", &self.peers),
            list("readers", &self.readers),
            self.ptrace.map(|on| ("ptrace", if on { "on" } else { "off" }.to_owned())),
            self.protect_tooling.map(|protect| ("protect_tooling", protect_word(protect).to_owned())),
            self.compat.map(|compat| ("compat", compat.as_str().to_owned())),
            numbered(&self.approve_rule).map(|rules| ("approve.rule", rules)),
            self.budget.map(|budget| ("budget", budget.to_string())),
            self.provider.clone().map(|provider| ("provider", provider)),
            self.model.clone().map(|model| ("model", model)),
            self.idle_stop.map(|limit| ("idle_stop", limit.to_string())),
            self.send_default.map(|action| ("send.default", action.as_str().to_owned())),
            numbered(&self.send_rule).map(|rules| ("send.rule", rules)),
            self.mirror.clone().map(|dir| ("mirror", dir)),
            self.snapshots.map(|word| ("snapshots", word.as_str().to_owned())),
            self.resume_after_rate_limit
                .map(|on| ("resume_after_rate_limit", if on { "on" } else { "off" }.to_owned())),
        ]
        .into_iter()
        .flatten()
        .chain(self.retention.values())
        .chain(self.reset.values())
        .collect()
    }
}

/// Rules with their places, by which they are taken away.
fn numbered(rules: &[String]) -> Option<String> {
    let numbered = rules.iter().enumerate().map(|(n, rule)| format!("{} {rule}", n + 1));
    (!rules.is_empty()).then(|| numbered.collect::<Vec<_>>().join(" · "))
}

/// Rules decide by their order, so others are only surely no wider where nothing is allowed that was not.
fn are_rules_within(ours: &[String], theirs: &[String]) -> bool {
    let allows = |rule: &&String| rule.starts_with("allow");
    ours == theirs
        || (!ours.iter().any(|rule| allows(&rule))
            && theirs.iter().filter(|rule| !allows(rule)).all(|rule| ours.contains(rule)))
}

fn looseness(protect: Option<Protect>) -> u8 {
    match protect.unwrap_or(Protect::Existing) {
        Protect::Always => 0,
        Protect::Existing => 1,
        Protect::Off => 2,
    }
}

const fn protect_word(protect: Protect) -> &'static str {
    match protect {
        Protect::Existing => "existing",
        Protect::Always => "always",
        Protect::Off => "off",
    }
}

#[cfg(test)]
mod tests;
