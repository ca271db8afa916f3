//! A plan as a TOML file again: the same plan when it is read.

use std::{collections::BTreeMap, fmt::Write};

use toml::Value;

use super::{CompleteWhen, Given, Limits, Member, Plan, Settings, Worktree, parameters::unfilled};
use crate::{budget::WhenUsedUp, session::Approve, ticket::USUAL_TYPE, time::span_text};

impl Plan {
    /// The file. Parameters are gone: their values are in it, and none is looked for in them again.
    pub fn to_toml(&self) -> String {
        let mut file = File::default();
        file.say("name", self.name.as_ref().map(|name| text(name.as_str())));
        file.say("objective", Some(text(&self.objective)));
        file.say("strategy", Some(text(self.strategy.as_str())));
        file.say("priority", (!self.priority.is_usual()).then(|| text(self.priority.as_str())));
        file.say("budget", self.budget.map(|budget| text(&budget.to_string())));
        file.say("when_used_up", (self.when_used_up == WhenUsedUp::Stop).then(|| text("stop")));
        file.say("time", self.time().map(|time| text(&span_text(time))));
        if !self.metadata.is_empty() {
            file.head("[metadata]");
            self.metadata.iter().for_each(|(key, value)| file.say(&quoted_key(key), Some(text(value))));
        }
        if self.defaults != Settings::default() {
            file.head("[defaults]");
            file.settings(&self.defaults);
        }
        if self.limits != Limits::default() {
            file.limits(&self.limits);
        }
        if let Some(merge) = &self.merge {
            file.head("[merge]");
            file.say("into", Some(text(&merge.into)));
            let from: Vec<String> = merge.from.iter().map(|name| text(name.as_str())).collect();
            file.say("from", (!from.is_empty()).then(|| list(&from)));
            file.say("gate", merge.gate.as_deref().map(text));
        }
        self.agents.iter().for_each(|member| file.member(member));
        file.0
    }
}

#[derive(Default)]
struct File(String);

impl File {
    fn head(&mut self, head: &str) {
        let _ = writeln!(self.0, "\n{head}");
    }

    fn say(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }

    fn limits(&mut self, limits: &Limits) {
        let usual = Limits::default();
        self.head("[limits]");
        self.say("concurrency", limits.concurrency.map(|most| most.to_string()));
        for (key, counts) in
            [("roles", &limits.roles), ("providers", &limits.providers), ("accounts", &limits.accounts)]
        {
            self.say(key, (!counts.is_empty()).then(|| table(counts)));
        }
        self.say("added", (limits.added != usual.added).then(|| limits.added.to_string()));
        self.say("depth", (limits.depth != usual.depth).then(|| limits.depth.to_string()));
    }

    fn member(&mut self, member: &Member) {
        self.head("[[agents]]");
        self.say("name", Some(text(member.name.as_str())));
        self.say("role", (member.role != member.name).then(|| text(member.role.as_str())));
        self.say("instances", (member.instances != 1).then(|| member.instances.to_string()));
        self.say("agent", member.agent.as_ref().map(|agent| text(agent.as_str())));
        self.say("type", (member.kind != USUAL_TYPE).then(|| text(&member.kind)));
        self.say("task", Some(text(&member.task)));
        let needs: Vec<String> = member.needs.iter().map(|need| text(need.as_str())).collect();
        self.say("needs", (!needs.is_empty()).then(|| list(&needs)));
        self.say("stage", member.stage.map(|stage| stage.to_string()));
        let inputs: Vec<String> = member.inputs.iter().map(given).collect();
        self.say("inputs", (!inputs.is_empty()).then(|| list(&inputs)));
        let paths: Vec<String> = member.paths.iter().map(|path| text(path)).collect();
        self.say("paths", (!paths.is_empty()).then(|| list(&paths)));
        self.settings(&member.settings);
    }

    fn settings(&mut self, settings: &Settings) {
        let Settings {
            provider,
            model,
            account,
            approve,
            worktree,
            budget,
            timeout_us,
            retries,
            on_dep_failure,
            complete_when,
            priority,
            side_effects,
        } = settings;
        self.say("provider", provider.as_deref().map(text));
        self.say("model", model.as_deref().map(text));
        self.say("account", account.as_ref().map(|account| text(account.as_str())));
        self.say("approve", approve.map(|approve| text(approve_word(approve))));
        self.say("worktree", worktree.as_ref().map(worktree_value));
        self.say("budget", budget.map(|budget| text(&budget.to_string())));
        let timeout = timeout_us.map(std::time::Duration::from_micros);
        self.say("timeout", timeout.map(|timeout| text(&span_text(timeout))));
        self.say("retries", retries.map(|retries| retries.to_string()));
        self.say("on_dep_failure", on_dep_failure.map(|rule| text(rule.as_str())));
        self.say("complete_when", complete_when.as_ref().map(complete_value));
        self.say("priority", priority.map(|priority| text(priority.as_str())));
        self.say("side_effects", side_effects.map(|flag| flag.to_string()));
    }
}

fn text(text: &str) -> String {
    Value::String(unfilled(text)).to_string()
}

fn list(parts: &[String]) -> String {
    format!("[{}]", parts.join(", "))
}

fn table(counts: &BTreeMap<String, u32>) -> String {
    let pairs: Vec<String> =
        counts.iter().map(|(name, most)| format!("{} = {most}", quoted_key(name))).collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn quoted_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

fn given(given: &Given) -> String {
    match given {
        Given::File(path) => text(path),
        Given::Text(words) => format!("{{ text = {} }}", text(words)),
    }
}

fn approve_word(approve: Approve) -> &'static str {
    match approve {
        Approve::Ask => "ask",
        Approve::All => "all",
        Approve::Nobody => "nobody",
        Approve::Policy => "policy",
    }
}

fn worktree_value(worktree: &Worktree) -> String {
    match worktree {
        Worktree::None => "false".to_owned(),
        Worktree::Own => "true".to_owned(),
        Worktree::Branch(branch) => text(branch),
    }
}

fn complete_value(complete_when: &CompleteWhen) -> String {
    match complete_when {
        CompleteWhen::Turn => text("turn"),
        CompleteWhen::Done => text("done"),
        CompleteWhen::Check(command) => format!("{{ check = {} }}", text(command)),
    }
}
