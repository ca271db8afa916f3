//! One change of the file: `KEY VALUE`, `KEY=V`, `KEY+=V`, `KEY-=V`, `KEY=`.

use std::fmt;

use ostler_domain::{
    Refusal,
    config::{Holds, Kind, Place, UnknownKey, check_provider, find, is_section},
    policy::size,
    text::one_line,
};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use super::{
    comments::{heading, remove},
    joined, words,
};

/// What is wished for, checked as far as it can be without the file.
#[derive(Debug)]
pub(super) struct Wish {
    key: String,
    path: Vec<String>,
    kind: Option<Kind>,
    holds: Holds,
    act: Act,
}

#[derive(Debug)]
enum Act {
    Set(String),
    Add(String),
    Remove(String),
    Unset,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.act {
            Act::Set(text) => write!(f, "{key} = {}", one_line(text, 200)),
            Act::Add(text) => write!(f, "{key} has {} too", one_line(text, 200)),
            Act::Remove(text) => write!(f, "{key} no longer has {}", one_line(text, 200)),
            Act::Unset => write!(f, "{key} is unset"),
        }
    }
}

/// Reads what was typed.
pub(super) fn typed(settings: Vec<String>) -> Result<Vec<Wish>, Refusal> {
    match settings.as_slice() {
        [key, value] if !key.contains('=') => Ok(vec![Wish::set(key, value)?]),
        several => several.iter().map(|setting| Wish::parse(setting)).collect(),
    }
}

impl Wish {
    fn parse(setting: &str) -> Result<Self, Refusal> {
        let (left, text) = setting.split_once('=').ok_or_else(|| {
            Refusal::invalid(format!(
                "\"{}\" is not KEY=VALUE, KEY+=VALUE or KEY-=VALUE",
                one_line(setting, 80)
            ))
            .hint("ostler config set KEY VALUE", "sets one")
        })?;
        let text = text.to_owned();
        match (left.strip_suffix('+'), left.strip_suffix('-')) {
            (Some(key), _) => Self::of(key, Act::Add(text)),
            (_, Some(key)) => Self::of(key, Act::Remove(text)),
            _ if text.is_empty() => Self::unset(left),
            _ => Self::of(left, Act::Set(text)),
        }
    }

    pub(super) fn set(key: &str, text: &str) -> Result<Self, Refusal> {
        Self::of(key, Act::Set(text.to_owned()))
    }

    /// Of a setting, or of a section, also of one that nobody knows if the file has it: it is in the way of what is known.
    pub(super) fn unset(key: &str) -> Result<Self, Refusal> {
        let path = words(key)?;
        let known = find(&path).ok();
        let of_section = if path[0] == "providers" { Holds::NextSession } else { Holds::NextStart };
        Ok(Self {
            key: key.to_owned(),
            holds: known.map_or(of_section, |place| place.holds),
            path,
            kind: None,
            act: Act::Unset,
        })
    }

    fn of(key: &str, act: Act) -> Result<Self, Refusal> {
        let Place { path, kind, holds } = find(&words(key.trim())?).map_err(|no| unknown(key, no))?;
        Ok(Self { key: joined(&path), path, kind: Some(kind), holds, act })
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// A line for the shell that is to say a key, checked before it is kept: at a session's start it is too late.
    pub(super) fn key_command(&self) -> Option<&str> {
        match (&self.act, self.path.last()?.as_str()) {
            (Act::Set(line), "api_key_command") => Some(line),
            _ => None,
        }
    }

    pub(super) fn holds(&self) -> Holds {
        self.holds
    }

    /// Leaves the comments above all of it where they are.
    pub(super) fn make(&self, document: &mut DocumentMut) -> Result<(), Refusal> {
        let text = document.to_string();
        let (heading, below) = heading(&text);
        let read = |text: &str| text.parse::<DocumentMut>().map_err(|error| self.refused(&error.to_string()));
        let mut below = read(below)?;
        self.make_below(&mut below)?;
        *document = read(&format!("{heading}{below}"))?;
        Ok(())
    }

    fn make_below(&self, document: &mut DocumentMut) -> Result<(), Refusal> {
        let Some((last, sections)) = self.path.split_last() else { return Ok(()) };
        let Some(kind) = self.kind else {
            let was_there = remove(document, sections, last);
            return match find(&self.path) {
                Err(no) if !was_there && !is_section(&self.path) => Err(unknown(&self.key, no)),
                _ => Ok(()),
            };
        };
        let mut at = document.as_item_mut();
        for section in sections {
            let is_providers = section == "providers";
            at = at
                .as_table_like_mut()
                .ok_or_else(|| Refusal::invalid(format!("{section} is in no section")))?
                .entry(section)
                .or_insert_with(|| if is_providers { implicit() } else { Item::Table(Table::new()) });
        }
        let at = at.as_table_like_mut().ok_or_else(|| self.refused("it is in no section"))?;
        let new = match &self.act {
            Act::Unset => return Ok(()),
            Act::Set(text) => self.value(kind, text)?,
            Act::Add(text) => self.with(kind, at.get(last), text)?,
            Act::Remove(text) => self.without(kind, at.get(last), text)?,
        };
        // A value keeps the comment behind it.
        match (at.get_mut(last).and_then(Item::as_value_mut), new) {
            (Some(old), Item::Value(mut new)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, new) => {
                at.insert(last, new);
            }
        }
        if last == "provider" {
            self.check_provider()?;
        }
        Ok(())
    }

    fn check_provider(&self) -> Result<(), Refusal> {
        let Act::Set(name) = &self.act else { return Ok(()) };
        check_provider(name).map_err(|no| {
            let meant = no.nearest.and_then(|key| key.strip_prefix("providers.").map(str::to_owned));
            let refusal = self.refused(&no.why);
            match meant {
                Some(name) => {
                    refusal.hint(format!("ostler config set provider {name}"), "may be what you meant")
                }
                None => refusal,
            }
        })
    }

    fn refused(&self, why: &str) -> Refusal {
        let text = match &self.act {
            Act::Set(text) | Act::Add(text) | Act::Remove(text) => text,
            Act::Unset => "",
        };
        Refusal::invalid(format!("{} cannot be \"{}\"", self.key, one_line(text, 80))).because(why)
    }

    fn value(&self, kind: Kind, text: &str) -> Result<Item, Refusal> {
        let wrong = || self.refused(&format!("it is {}", kind.expected()));
        let new: Value = match kind {
            Kind::Text | Kind::Span => text.into(),
            Kind::Bytes => size(text).and_then(|bytes| i64::try_from(bytes).ok()).ok_or_else(wrong)?.into(),
            Kind::Number => text.parse::<i64>().map_err(|_| wrong())?.into(),
            Kind::Switch => match text {
                "true" | "on" => true.into(),
                "false" | "off" => false.into(),
                _ => return Err(wrong()),
            },
            Kind::List | Kind::Names => match text.parse::<Value>() {
                Ok(list @ Value::Array(_)) => list,
                _ if kind == Kind::Names => text.into(),
                _ => return Err(wrong()),
            },
            Kind::Sections => {
                let Ok(Value::Array(list)) = text.parse::<Value>() else { return Err(wrong()) };
                let tables = list.into_iter().map(|one| match one {
                    Value::InlineTable(table) => Ok(table.into_table()),
                    _ => Err(wrong()),
                });
                return Ok(Item::ArrayOfTables(tables.collect::<Result<_, _>>()?));
            }
        };
        Ok(value(new))
    }

    /// What is there, and one more.
    fn with(&self, kind: Kind, there: Option<&Item>, text: &str) -> Result<Item, Refusal> {
        match kind {
            Kind::List | Kind::Names => {
                let mut list = texts(there);
                if !list.iter().any(|known| known == text) {
                    list.push(text.to_owned());
                }
                Ok(value(Value::Array(list.into_iter().collect::<Array>())))
            }
            Kind::Sections => {
                let one = text.parse::<Value>().ok().and_then(|one| match one {
                    Value::InlineTable(table) => Some(table),
                    _ => None,
                });
                let one: InlineTable = one.ok_or_else(|| {
                    self.refused("a section is {on = \"approval\", run = [\"notify-send\", \"Ostler\"]}")
                })?;
                let mut all: ArrayOfTables =
                    there.and_then(Item::as_array_of_tables).cloned().unwrap_or_default();
                all.push(one.into_table());
                Ok(Item::ArrayOfTables(all))
            }
            _ => Err(self
                .refused("it is one value, not a list")
                .hint(format!("ostler config set {} VALUE", self.key), "replaces it")),
        }
    }

    /// What is there, and one less; sections go by their number.
    fn without(&self, kind: Kind, there: Option<&Item>, text: &str) -> Result<Item, Refusal> {
        match kind {
            Kind::List | Kind::Names => {
                let list = texts(there);
                if !list.iter().any(|known| known == text) {
                    return Err(self.refused("it is not in the list"));
                }
                Ok(value(Value::Array(list.into_iter().filter(|known| known != text).collect::<Array>())))
            }
            Kind::Sections => {
                let mut all: ArrayOfTables =
                    there.and_then(Item::as_array_of_tables).cloned().unwrap_or_default();
                if all.is_empty() {
                    return Err(self.refused("there is no such section to take away"));
                }
                let place = text.parse::<usize>().ok().filter(|place| (1..=all.len()).contains(place));
                let place = place.ok_or_else(|| {
                    self.refused(&format!("a section is taken away by its number, from 1 to {}", all.len()))
                })?;
                all.remove(place - 1);
                Ok(Item::ArrayOfTables(all))
            }
            _ => Err(self
                .refused("it is one value, not a list")
                .hint(format!("ostler config unset {}", self.key), "takes it back")),
        }
    }
}

fn texts(there: Option<&Item>) -> Vec<String> {
    match there.and_then(Item::as_value) {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(one) => one.as_str().map(str::to_owned).into_iter().collect(),
        None => Vec::new(),
    }
}

fn unknown(key: &str, no: UnknownKey) -> Refusal {
    let refusal = Refusal::invalid(format!("there is no setting \"{}\"", one_line(key, 80))).because(no.why);
    let refusal = match no.nearest {
        Some(meant) => refusal.hint(format!("ostler config set {meant} …"), "may be what you meant"),
        None => refusal,
    };
    refusal.hint("ostler config show", "lists the settings")
}

/// A section that only holds others is not written.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::config::file::check;

    fn changed(before: &str, settings: &[&str]) -> Result<String, Refusal> {
        let mut document: DocumentMut = before.parse().unwrap();
        for wish in typed(settings.iter().map(|text| (*text).to_owned()).collect())? {
            wish.make(&mut document)?;
        }
        check(&document.to_string())?;
        Ok(document.to_string())
    }

    #[test]
    fn comments_and_order_stay() {
        let before =
            "# mine\norphan_grace = \"2h\" # long\n\n[providers.codex]\nmodel = \"gpt-5.5\" # the good one\n";
        let after = changed(before, &["providers.codex.base_url", "http://127.0.0.1:1"]).unwrap();
        assert_eq!(after, format!("{before}base_url = \"http://127.0.0.1:1\"\n"));
        let other = changed(before, &["providers.acp:opencode.args", "[\"acp\"]"]).unwrap();
        assert_eq!(changed(before, &["providers.\"acp:opencode\".args", "[\"acp\"]"]).unwrap(), other);
        assert_eq!(other, format!("{before}\n[providers.\"acp:opencode\"]\nargs = [\"acp\"]\n"));
        assert_eq!(
            changed("", &["providers.claude-code.model", "5"]).unwrap(),
            "[providers.claude-code]\nmodel = \"5\"\n"
        );
        let renamed = changed(before, &["providers.codex.model=gpt-6", "orphan_grace=3h"]).unwrap();
        assert_eq!(renamed, before.replace("gpt-5.5", "gpt-6").replace("\"2h\"", "\"3h\""));
        assert_eq!(changed(&after, &["providers.codex.base_url="]).unwrap(), before);
        assert_eq!(changed(before, &["providers.codex.program="]).unwrap(), before);
        let mut empty = DocumentMut::new();
        Wish::unset("providers.acp:mine").unwrap().make(&mut empty).unwrap();
        Wish::set("providers.acp:mine.model", "m").unwrap().make(&mut empty).unwrap();
        assert_eq!(empty.to_string(), "[providers.\"acp:mine\"]\nmodel = \"m\"\n");
    }

    #[test]
    fn what_is_taken_back_leaves_nothing_behind() {
        let unset = |before: &str, key: &str| changed(before, &[&format!("{key}=")]);
        let two = "[providers.codex.env]\nA = \"1\"\nB = \"2\"\n";
        let one = unset(two, "providers.codex.env.A").unwrap();
        assert_eq!(one, "[providers.codex.env]\nB = \"2\"\n");
        assert_eq!(unset(&one, "providers.codex.env.B").unwrap(), "");
        assert_eq!(unset(two, "providers.codex").unwrap(), "");
        // What nobody knows can go, where it is; where it is not, the name is a mistake.
        assert_eq!(unset("[old]\nx = 1\n", "old.x").unwrap(), "");
        for known in [
            "watchdog",
            "watchdog.silent",
            "providers",
            "providers.codex",
            "providers.codex.env",
            "nodes.far",
        ] {
            assert_eq!(unset("", known).unwrap(), "", "{known}");
        }
        for wrong in ["watchdog.silnet", "old.x", "providers.nope", "providers.codex.modle"] {
            assert!(unset("", wrong).is_err(), "{wrong}");
        }
        assert!(unset("", "watchdog.silnet").unwrap_err().hints[0].command.contains("watchdog.silent"));
    }

    #[test]
    fn comments_outlive_what_they_stood_beside() {
        let unset = |before: &str, key: &str| changed(before, &[&format!("{key}=")]).unwrap();
        let only = "# top comment\n[limits]\n# why 3\nsessions = 40 # trailing\n# end\n";
        assert_eq!(unset(only, "limits.sessions"), "# top comment\n# why 3\n[limits]\n# end\n");
        let two = "\n[limits]\n# why 3\nsessions = 40\n# why 8\ntape = 8\n";
        assert_eq!(unset(two, "limits.sessions"), "\n[limits]\n# why 3\n# why 8\ntape = 8\n");
        assert_eq!(unset(two, "limits.tape"), "\n# why 8\n[limits]\n# why 3\nsessions = 40\n");
        // A section that nobody wrote about goes, and what stood above the whole file stays.
        assert_eq!(unset("# mine\n\n[limits]\nsessions = 40\n", "limits.sessions"), "# mine\n\n");
        let top = "# why\nidle_stop = \"1h\"\n\n[limits]\nsessions = 40\n";
        assert_eq!(unset(top, "idle_stop"), "# why\n\n[limits]\nsessions = 40\n");
        assert_eq!(unset("# why\nidle_stop = \"1h\"\n# end\n", "idle_stop"), "# why\n# end\n");
        assert_eq!(
            unset("# why\nlimits.sessions = 40\n[watchdog]\n", "limits.sessions"),
            "# why\n[watchdog]\n"
        );
        // Of a whole section, what stands above it: that may be about more.
        let whole = "# all\n[providers.codex]\n# its\nmodel = \"m\"\n# next\n[watchdog]\nsilent = \"5m\"\n";
        assert_eq!(unset(whole, "providers.codex"), "# all\n# next\n[watchdog]\nsilent = \"5m\"\n");
        assert_eq!(unset(whole, "watchdog"), "# all\n[providers.codex]\n# its\nmodel = \"m\"\n# next\n");
        let hooks = "[limits]\nsessions = 1\n# ring\n[[hooks]]\non = \"failed\"\nrun = [\"x\"]\n";
        assert_eq!(unset(hooks, "hooks"), "[limits]\nsessions = 1\n# ring\n");
    }

    #[test]
    fn what_is_new_stands_below_the_files_heading() {
        let set = |before: &str| changed(before, &["idle_stop", "1h"]).unwrap();
        let below = "# about limits\n[limits]\nsessions = 40\n";
        assert_eq!(
            set(&format!("# mine\n# all\n\n{below}")),
            format!("# mine\n# all\n\nidle_stop = \"1h\"\n{below}")
        );
        assert_eq!(set(below), format!("idle_stop = \"1h\"\n{below}"), "that comment is of the section");
        assert_eq!(set("# mine\n"), "# mine\nidle_stop = \"1h\"\n");
        assert_eq!(
            changed("# mine\n", &["limits.sessions", "4"]).unwrap(),
            "# mine\n[limits]\nsessions = 4\n"
        );
        assert_eq!(
            set("# mine\n\nprovider = \"codex\"\n"),
            "# mine\n\nprovider = \"codex\"\nidle_stop = \"1h\"\n"
        );
    }

    #[test]
    fn every_sort_of_setting_can_be_set() {
        let set = |key: &str, text: &str| changed("", &[key, text]).unwrap();
        assert_eq!(set("watchdog.silent", "5m"), "[watchdog]\nsilent = \"5m\"\n");
        assert_eq!(set("limits.tape", "8GiB"), "[limits]\ntape = 8589934592\n");
        assert_eq!(
            set("limits.resume_after_rate_limit", "off"),
            "[limits]\nresume_after_rate_limit = false\n"
        );
        assert_eq!(
            set("sandbox.run_agents_unconfined_on_this_machine", "true"),
            "[sandbox]\nrun_agents_unconfined_on_this_machine = true\n"
        );
        assert_eq!(set("provider", "codex"), "provider = \"codex\"\n");
        assert_eq!(
            changed("[watchdog]\nsilent = \"5m\"\n", &["provider", "codex"]).unwrap(),
            "provider = \"codex\"\n[watchdog]\nsilent = \"5m\"\n"
        );
        let hooks = changed("", &["hooks+={on = \"failed\", run = [\"notify-send\", \"Ostler\"]}"]).unwrap();
        assert!(hooks.starts_with("[[hooks]]\non = \"failed\"\n"), "{hooks}");
        let two =
            changed(&hooks, &["hooks+={on = \"budget\", run = [\"notify-send\", \"Ostler\"]}"]).unwrap();
        assert_eq!(two.matches("[[hooks]]").count(), 2);
        assert_eq!(changed(&two, &["hooks-=2"]).unwrap(), hooks);
        let none = changed("", &["hooks-=1"]).unwrap_err().to_string();
        assert!(none.contains("there is no such section"), "{none}");
        assert_eq!(changed(&hooks, &["hooks="]).unwrap(), "");
        let hosts = changed("", &["network.presets.rust+=crates.example"]).unwrap();
        assert_eq!(hosts, "[network]\n\n[network.presets]\nrust = [\"crates.example\"]\n");
        let hosts = changed(&hosts, &["network.presets.rust+=*.b.example"]).unwrap();
        assert!(hosts.contains("[\"crates.example\", \"*.b.example\"]"), "{hosts}");
        assert!(!changed(&hosts, &["network.presets.rust-=crates.example"]).unwrap().contains("crates"));
    }

    #[test]
    fn what_the_daemon_would_refuse_is_refused() {
        for (key, text) in [
            ("watchdog.silent", "soon"),
            ("watchdog.silnet", "1m"),
            ("limits.tape", "lots"),
            ("limits.resume_after_rate_limit", "maybe"),
            ("webhook.url", "https://hooks.example/x"),
            ("hooks", "[]x"),
            ("hooks", "[1]"),
            ("provider", "nope"),
            ("providers.nope.model", "x"),
            ("providers.codex", "x"),
            ("providers.codex.api_key", "sk-1"),
            ("providers.codex.base_url", "nowhere"),
            ("providers.codex.args", "acp"),
            ("providers.codex.env", "A=B"),
            ("providers.codex.env.LD_PRELOAD", "x"),
            ("network.presets.cobol", "[]"),
            ("providers.codex.model", ""),
            ("providers.codex.program", ""),
            ("providers.codex.sessions", "0"),
            ("providers.codex.api_key_env", "bad name"),
            ("providers.codex.api_key_command", " "),
        ] {
            assert!(changed("", &[key, text]).is_err(), "{key}");
        }
        let two = changed(
            "[providers.codex]\napi_key_env = \"A\"\n",
            &["providers.codex.api_key_command", "pass x"],
        );
        assert!(two.unwrap_err().why.unwrap().contains("only one"));
        let near = changed("", &["watchdog.silnet", "1m"]).unwrap_err();
        assert!(near.hints[0].command.contains("watchdog.silent"), "{near:?}");
        assert!(changed("", &["provider", "claude"]).unwrap_err().hints[0].command.contains("claude-code"));
        assert!(changed("", &["limits.tape+=1"]).unwrap_err().why.unwrap().contains("one value"));
    }
}
