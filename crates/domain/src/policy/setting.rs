//! The grammar of `campaign set`: `KEY=V`, `KEY+=V`, `KEY-=V`, `KEY=`.

use std::net::Ipv4Addr;

use super::{Compat, IdleStop, NetMode, PRESETS, Policy, Snapshots, preset};
use crate::{
    approval::Rule,
    budget::CampaignBudget,
    config::check_provider,
    confinement::Protect,
    conversation::{DailyReset, IdleReset, SendAction, SendRule},
    retention::{After, MissionRules, tombstone},
    setting::{Assignment, Change, MOST_CHARS, unknown_key},
    text::one_line,
};

pub use crate::setting::SettingFault;

/// A key of a policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What holds when nobody says otherwise, in words.
    pub(super) default: &'static str,
    /// What is said comes on top of the default instead of in its place.
    pub(super) is_added_to: bool,
}

const fn key(name: &'static str, default: &'static str) -> Key {
    Key { name, default, is_added_to: false }
}

const fn list(name: &'static str, default: &'static str) -> Key {
    Key { name, default, is_added_to: true }
}

pub(super) const KEYS: &[Key] = &[
    list("read", "the system's programs and libraries"),
    list("write", "the campaign, a home of its own, /tmp"),
    list("hide", ".env, keys, certificates, credentials"),
    key("env", "none of yours"),
    list("commands", "fest camp just git"),
    key("net.mode", "provider for sessions; none for exec and scripts"),
    key("net.allow", "nobody else"),
    key("limits.memory", "none beyond the machine's"),
    key("limits.pids", "512"),
    key("limits.tmp", "512MiB"),
    key("limits.shm", "64MiB"),
    key("limits.sessions", "none beyond the machine's"),
    key("limits.helpers", "8 of each session"),
    list("peers", "nobody but its own helpers and whom it helps"),
    list("readers", "each its own past"),
    key("ptrace", "off"),
    key("protect_tooling", "existing"),
    key("compat", "none"),
    key("approve.rule", "its own files, its commands and git, but not git push"),
    key("budget", "none"),
    key("provider", "the machine's, else the only one that passes"),
    key("model", "the provider's"),
    key("idle_stop", "the machine's: 30m, or what config.toml says"),
    key("resume_after_rate_limit", "the machine's: on, or what config.toml says"),
    key("send.default", "allow"),
    key("send.rule", "none"),
    key("mirror", "nowhere"),
    key("snapshots", "git: in repositories and directories of one"),
    key("retention.archive_after", "the machine's, else never"),
    key("retention.delete_after", "the machine's, else never"),
    key("retention.tombstone", "the machine's, else 14d"),
    key("retention.missions", "the machine's, else never"),
    key("reset.idle", "never"),
    key("reset.daily", "never"),
];

/// The names of what a policy says, in the order in which they are shown.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// Longest list: a policy is read by people.
const MOST_ITEMS: usize = 256;

/// One change of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(Assignment);

impl Setting {
    pub fn parse(text: &str) -> Result<Setting, SettingFault> {
        Self::checked(Assignment::parse(text)?)
    }

    /// `set KEY VALUE`.
    pub fn set(name: &str, value: &str) -> Result<Setting, SettingFault> {
        Self::checked(Assignment::set(name, value))
    }

    fn checked(assignment: Assignment) -> Result<Setting, SettingFault> {
        let Assignment { key, change, value } = &assignment;
        if !KEYS.iter().any(|known| known.name == key) {
            let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
            return Err(unknown_key(key, &names));
        }
        if value.chars().count() > MOST_CHARS || value.chars().any(char::is_control) {
            return Err(SettingFault(format!("the value of {key} is too long or not text")));
        }
        if matches!(change, Change::Add | Change::Remove) && value.is_empty() {
            return Err(SettingFault(format!("what is to be added to or taken from {key}?")));
        }
        Ok(Setting(assignment))
    }

    /// The setting as it is typed.
    pub fn text(&self) -> String {
        self.0.text()
    }
}

impl Policy {
    /// The policy with one thing changed. Takes it whole: policies have long lists, and many settings make one.
    pub fn changed(mut self, setting: &Setting) -> Result<Policy, SettingFault> {
        match setting.0.key.as_str() {
            "read" => setting.list(&mut self.read, check_readable)?,
            "write" => setting.list(&mut self.write, check_path)?,
            "hide" => setting.list(&mut self.hide, check_pattern)?,
            "env" => setting.list(&mut self.env, check_variable)?,
            "commands" => setting.list(&mut self.commands, check_command)?,
            "net.allow" => setting.list(&mut self.net_allow, check_host)?,
            "net.mode" => self.net_mode = setting.0.word(NetMode::parse, "none, provider, open, host")?,
            "limits.memory" => {
                let size = |text: &str| size(text).filter(|bytes| *bytes >= LEAST_MEMORY);
                self.limits.memory = setting.0.word(size, "a size such as 8GiB, at least 64MiB")?
            }
            "limits.tmp" => {
                self.limits.tmp = setting.0.word(room, "a size such as 2GiB, at least 1MiB, at most 1TiB")?
            }
            "limits.shm" => {
                self.limits.shm = setting.0.word(room, "a size such as 256MiB, at least 1MiB, at most 1TiB")?
            }
            "limits.pids" => {
                self.limits.pids = setting.0.word(count, "a number of processes from 8 to 100000")?
            }
            "limits.sessions" => {
                self.limits.sessions = setting.0.word(slots, "a number of sessions from 1 to 100000")?
            }
            "limits.helpers" => {
                let most = |text: &str| text.parse().ok().filter(|count| *count <= 1_000);
                self.limits.helpers = setting.0.word(most, "a number of helpers from 0 to 1000")?
            }
            "peers" => setting.list(&mut self.peers, check_peer)?,
            "readers" => setting.list(&mut self.readers, check_peer)?,
            "idle_stop" => {
                self.idle_stop = setting.0.word(IdleStop::parse, "a span such as 30m or 2h, or never")?
            }
            "send.default" => self.send_default = setting.0.word(SendAction::parse, "allow, deny")?,
            "send.rule" => setting.rules(&mut self.send_rule, |text| Ok(SendRule::parse(text)?.to_string()))?,
            "mirror" => {
                let dir = |text: &str| check_path(text).is_ok().then(|| text.to_owned());
                self.mirror = setting.0.word(dir, "a directory: an absolute path without \"..\"")?
            }
            "retention.archive_after" => self.retention.archive_after = setting.after()?,
            "retention.delete_after" => self.retention.delete_after = setting.after()?,
            "retention.tombstone" => {
                self.retention.tombstone = setting.0.word(tombstone, "a span such as 14d, at least 1h")?
            }
            "retention.missions" => {
                let rules = setting.0.word(MissionRules::parse, "30d, or completed:7d,failed:30d,cancelled:never")?;
                self.retention.missions = rules.unwrap_or_default();
            }
            "reset.idle" => {
                self.reset.idle = setting.0.word(IdleReset::parse, "a span such as 30d or 12h, at least 1s")?
            }
            "reset.daily" => {
                self.reset.daily = setting.0.word(DailyReset::parse, "a time of day such as 04:00")?
            }
            "resume_after_rate_limit" => {
                self.resume_after_rate_limit = setting.0.word(switch, "on, off")?
            }
            "snapshots" => self.snapshots = setting.0.word(Snapshots::parse, "git, always, never")?,
            "ptrace" => self.ptrace = setting.0.word(switch, "on, off")?,
            "protect_tooling" => self.protect_tooling = setting.0.word(protect, "existing, always, off")?,
            "approve.rule" => {
                setting.rules(&mut self.approve_rule, |text| Ok(Rule::parse(text)?.to_string()))?;
            }
            "compat" => self.compat = setting.0.word(Compat::parse, "obey, gastown")?,
            "budget" => {
                self.budget = setting.0.word(
                    CampaignBudget::parse,
                    "dollars, tokens or both, for a day, a month or for good: 25usd/day, 50M/month, 100usd,50M/total",
                )?
            }
            "provider" => {
                self.provider = match &setting.0.change {
                    Change::Set => {
                        check_provider(&setting.0.value).map_err(|unknown| SettingFault(unknown.why))?;
                        Some(setting.0.value.clone())
                    }
                    _ => setting.0.word(|_| None, "a provider's name")?,
                }
            }
            "model" => {
                let is_name = |text: &str| !text.contains(char::is_whitespace);
                let name = |text: &str| is_name(text).then(|| text.to_owned());
                self.model = setting.0.word(name, "a model's name, as its provider has it")?
            }
            _ => unreachable!("a setting has a key of the list"),
        }
        Ok(self)
    }
}

impl Setting {
    fn after(&self) -> Result<Option<After>, SettingFault> {
        self.0.word(After::parse, "a span such as 30d or 12h, or never")
    }

    fn list(
        &self,
        items: &mut Vec<String>,
        check: fn(&str) -> Result<(), String>,
    ) -> Result<(), SettingFault> {
        // A whole list is words; one that is added or taken away may have spaces in it, as paths do.
        let named: Vec<&str> = match self.0.change {
            Change::Set => self.0.value.split_whitespace().collect(),
            Change::Add | Change::Remove => vec![self.0.value.as_str()],
            Change::Unset => Vec::new(),
        };
        match self.0.change {
            Change::Unset => items.clear(),
            Change::Remove => {
                for item in named {
                    let place = items.iter().position(|known| known == item);
                    let place = place.ok_or_else(|| {
                        SettingFault(format!("{} does not have {}", self.0.key, one_line(item, 80)))
                    })?;
                    items.remove(place);
                }
            }
            Change::Set | Change::Add => {
                if self.0.change == Change::Set {
                    items.clear();
                }
                for item in named {
                    check(item).map_err(|why| {
                        SettingFault(format!("{} cannot have \"{}\": {why}", self.0.key, one_line(item, 80)))
                    })?;
                    if !items.iter().any(|known| known == item) {
                        items.push(item.to_owned());
                    }
                }
                if items.len() > MOST_ITEMS {
                    return Err(SettingFault(format!("{} has at most {MOST_ITEMS} entries", self.0.key)));
                }
            }
        }
        Ok(())
    }

    /// Rules have an order and spaces: one at a time, by its place when it is taken away, and `+=N RULE` before another.
    fn rules(
        &self,
        rules: &mut Vec<String>,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), SettingFault> {
        let key = &self.0.key;
        let fault = |why: String| {
            SettingFault(format!("{key} cannot have \"{}\": {why}", one_line(&self.0.value, 80)))
        };
        let place_of =
            |text: &str| text.parse::<usize>().ok().filter(|place| (1..=rules.len()).contains(place));
        match self.0.change {
            Change::Unset => rules.clear(),
            Change::Remove => {
                let known = rules.iter().position(|rule| *rule == self.0.value);
                let place = place_of(&self.0.value).map(|place| place - 1).or(known).ok_or_else(|| {
                    SettingFault(format!("{key} does not have {}", one_line(&self.0.value, 80)))
                })?;
                rules.remove(place);
            }
            Change::Set | Change::Add => {
                let first = self.0.value.split(' ').next().unwrap_or_default();
                let (place, text) = match self.0.value.split_once(' ') {
                    Some((_, rule)) if first.chars().all(|c| c.is_ascii_digit()) => {
                        let place =
                            place_of(first).ok_or_else(|| fault(format!("there is no rule {first}")))?;
                        (Some(place - 1), rule)
                    }
                    _ => (None, self.0.value.as_str()),
                };
                let rule = read(text).map_err(fault)?;
                if self.0.change == Change::Set {
                    rules.clear();
                }
                match (place.filter(|_| self.0.change == Change::Add), rules.contains(&rule)) {
                    (Some(place), _) => {
                        rules.insert(place, rule.clone());
                        let mut is_first = true;
                        rules.retain(|known| *known != rule || std::mem::take(&mut is_first));
                    }
                    (None, false) => rules.push(rule),
                    (None, true) => {}
                }
                if rules.len() > MOST_ITEMS {
                    return Err(SettingFault(format!("{key} has at most {MOST_ITEMS} entries")));
                }
            }
        }
        Ok(())
    }
}

fn check_readable(item: &str) -> Result<(), String> {
    if item.starts_with('@') { check_preset(item) } else { check_path(item) }
}

fn check_preset(item: &str) -> Result<(), String> {
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    preset(item).map(drop).ok_or_else(|| format!("the presets are {}", names.join(" ")))
}

fn check_path(item: &str) -> Result<(), String> {
    let is_plain = item.starts_with('/') && !item.split('/').any(|part| part == "..");
    if is_plain { Ok(()) } else { Err("a path is absolute and has no \"..\"".to_owned()) }
}

fn check_pattern(item: &str) -> Result<(), String> {
    if item.contains('/') {
        return Err("a pattern fits the name of a file, wherever it is".to_owned());
    }
    if item.chars().all(|c| c == '*') {
        return Err("everything would be hidden".to_owned());
    }
    Ok(())
}

/// A variable that a person may hand on to agents.
pub(crate) fn check_variable(name: &str) -> Result<(), String> {
    crate::environment::refusal(name).map_or(Ok(()), Err)
}

/// Whom agents may speak to.
fn check_peer(item: &str) -> Result<(), String> {
    if item == "*" {
        return Ok(());
    }
    item.parse::<crate::Name>().map(drop).map_err(|error| error.to_string())
}

fn check_command(item: &str) -> Result<(), String> {
    if item.contains('/') {
        return Err("a command is named without its directory".to_owned());
    }
    let is_one = !item.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_one {
        Ok(())
    } else {
        Err("a command is one word; what follows it is not part of its name".to_owned())
    }
}

fn check_host(item: &str) -> Result<(), String> {
    if item.starts_with('@') { check_preset(item) } else { host_fault(item).map_or(Ok(()), Err) }
}

/// Why a text is no host of `net.allow`; none when it is one.
pub fn host_fault(item: &str) -> Option<String> {
    let name = item.strip_prefix("*.").unwrap_or(item);
    let is_label = |label: &str| {
        !label.is_empty() && label.len() <= 63 && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let fits = name.len() <= 253 && name.split('.').all(is_label);
    if !fits {
        return Some("a host is a name such as registry.example or *.example, without a port".to_owned());
    }
    let is_never_let_through = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| {
            address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
        });
    is_never_let_through.then(|| {
        "this machine and private networks are never let through; net.mode=host opens them".to_owned()
    })
}

/// A size in bytes: `8GiB`, `512 MiB`, `4G`; never none.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().trim_start() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// A size in its largest whole unit.
pub fn size_text(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.iter().find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    whole.map_or_else(|| format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// No agent starts with less.
const LEAST_MEMORY: u64 = 64 << 20;

/// The size of a file system in memory.
fn room(text: &str) -> Option<u64> {
    size(text).filter(|bytes| (1 << 20..=1 << 40).contains(bytes))
}

/// An agent and the commands that it runs are several; more than this no machine has.
fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| (8..=100_000).contains(count))
}

fn slots(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| (1..=100_000).contains(count))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" => Some(true),
        "off" | "false" => Some(false),
        _ => None,
    }
}

fn protect(text: &str) -> Option<Protect> {
    match text {
        "existing" => Some(Protect::Existing),
        "always" => Some(Protect::Always),
        "off" => Some(Protect::Off),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
