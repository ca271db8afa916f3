//! What must hold in a plan as a whole. All that does not is said, each where it stands.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fault, Member, Plan, Strategy, Worktree};
use crate::{
    limits::{MISSION_ASSIGNMENTS, MISSION_EDGES, TASK_BYTES},
    mission::State,
    text::{nearest, one_line},
};

/// The lines on which a plan's keys stand.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    top: BTreeMap<&'static str, usize>,
    /// Of the keys that its tables have, by the table.
    inside: BTreeMap<(&'static str, &'static str), usize>,
    members: Vec<BTreeMap<&'static str, usize>>,
}

impl Lines {
    pub(super) fn new(
        top: BTreeMap<&'static str, usize>,
        inside: BTreeMap<(&'static str, &'static str), usize>,
        members: Vec<BTreeMap<&'static str, usize>>,
    ) -> Self {
        Self { top, inside, members }
    }

    /// The line of a key of the plan itself.
    pub fn top(&self, key: &str) -> Option<usize> {
        self.top.get(key).copied()
    }

    /// The line of a key of one of its tables; of the table where it has no such key.
    pub fn inside(&self, table: &'static str, key: &'static str) -> Option<usize> {
        self.inside.get(&(table, key)).copied().or_else(|| self.top(table))
    }

    /// The line that says something of an agent: its own, or that of the defaults where it has it from there.
    pub fn of_setting(&self, member: usize, key: &'static str, is_own: bool) -> Option<usize> {
        match self.inside.get(&("defaults", key)) {
            Some(line) if !is_own => Some(*line),
            _ => self.of(member, key),
        }
    }

    /// The line of a key of an agent, by its place.
    pub fn of(&self, member: usize, key: &str) -> Option<usize> {
        self.members.get(member)?.get(key).copied()
    }

    /// The same of agents that come after so many of no file.
    fn after(&self, others: usize) -> Self {
        let none = std::iter::repeat_n(BTreeMap::new(), others);
        Self {
            top: BTreeMap::new(),
            inside: BTreeMap::new(),
            members: none.chain(self.members.iter().cloned()).collect(),
        }
    }
}

/// Says everything that is wrong with a plan to which these agents are added, where they say it.
pub fn check_added(state: &State, members: &[Member], lines: &Lines) -> Vec<Fault> {
    let plan = state.plan();
    let mut grown = plan.clone();
    grown.agents.extend(members.iter().cloned());
    let mut faults = Vec::new();
    // What was removed keeps its name: whatever was said of it or to it is still found by that.
    for (n, member) in members.iter().enumerate().filter(|(_, member)| state.has_removed(&member.name)) {
        let message = format!("there was an agent \"{}\", and it was removed", member.name);
        faults.push(Fault::new(lines.of(n, "name"), message).hint("give this one another name"));
    }
    if faults.is_empty() { check(&grown, &lines.after(plan.agents.len())) } else { faults }
}

/// Says everything that is wrong with a plan; lines are those of no file where it was made from flags.
pub fn check(plan: &Plan, lines: &Lines) -> Vec<Fault> {
    let mut checks = Checks { plan, lines, faults: Vec::new(), called: BTreeMap::new() };
    checks.texts();
    checks.names();
    checks.needs();
    match plan.strategy {
        Strategy::Parallel | Strategy::Sequential => checks.neither_needs_nor_stages(),
        Strategy::Adaptive => {
            checks.no_stages("adaptive");
            checks.cycles();
        }
        Strategy::Pipeline => checks.stages(),
    }
    checks.sizes();
    checks.places();
    checks.merge();
    checks.limits();
    checks.faults
}

struct Checks<'a> {
    plan: &'a Plan,
    lines: &'a Lines,
    faults: Vec<Fault>,
    /// What agents are called, and the member that each name means.
    called: BTreeMap<String, usize>,
}

impl<'a> Checks<'a> {
    fn add(&mut self, line: Option<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.faults.push(Fault::new(line, message).hint(hint));
    }

    fn members(&self) -> impl Iterator<Item = (usize, &'a Member)> + use<'a> {
        self.plan.agents.iter().enumerate()
    }

    fn texts(&mut self) {
        if self.plan.objective.trim().is_empty() {
            self.add(
                self.lines.top("objective"),
                "the objective is empty",
                "say what the agents are to reach",
            );
        }
        if self.plan.objective.len() > TASK_BYTES {
            let message = format!("the objective has more than {TASK_BYTES} bytes");
            self.add(self.lines.top("objective"), message, "put it into a file, and name that");
        }
        if self.plan.agents.is_empty() {
            self.add(self.lines.top("agents"), "there is no agent", "[[agents]]");
        }
        for (n, member) in self.members() {
            if member.task.trim().is_empty() {
                let message = format!("the task of {} is empty", member.name);
                self.add(self.lines.of(n, "task"), message, "say what it is to do");
            }
            if member.task.len() > TASK_BYTES {
                let message = format!("the task of {} has more than {TASK_BYTES} bytes", member.name);
                self.add(self.lines.of(n, "task"), message, "put it into a file, and name that");
            }
            let says_retries = member.settings.retries.is_some_and(|retries| retries > 0);
            if member.settings.side_effects == Some(true) && says_retries {
                let message = format!("{} has side_effects, and retries", member.name);
                self.add(
                    self.lines.of(n, "retries"),
                    message,
                    "what cannot be done twice is not tried again",
                );
            }
        }
    }

    fn names(&mut self) {
        let mut lines: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for (n, member) in self.members() {
            let line = self.lines.of(n, "name");
            let numbered = (1..=member.instances.min(MISSION_ASSIGNMENTS as u32)).map(|i| member.instance(i));
            let own: BTreeSet<String> =
                numbered.chain([member.name.clone()]).map(|name| name.to_string()).collect();
            for name in own {
                match lines.get(&name) {
                    Some(first) => {
                        let before = first.map_or(String::new(), |first| format!(", on line {first}"));
                        let message = format!("there is an agent \"{name}\" already{before}");
                        self.add(line, message, "give each its own name");
                    }
                    None => {
                        lines.insert(name.clone(), line);
                        self.called.insert(name, n);
                    }
                }
            }
        }
    }

    fn needs(&mut self) {
        for (n, member) in self.members() {
            let line = self.lines.of(n, "needs");
            for need in &member.needs {
                match self.called.get(need.as_str()) {
                    Some(other) if *other == n => {
                        let message = format!("{} needs itself", member.name);
                        self.add(line, message, "leave it out");
                    }
                    Some(_) => {}
                    None => {
                        let near = nearest(need.as_str(), self.called.keys().map(String::as_str));
                        let hint = match near {
                            Some(meant) => format!("did you mean {meant}?"),
                            None => "needs are names of agents of this plan".to_owned(),
                        };
                        let message = format!("{} needs \"{need}\", and there is no such agent", member.name);
                        self.add(line, message, hint);
                    }
                }
            }
        }
    }

    fn neither_needs_nor_stages(&mut self) {
        let strategy = self.plan.strategy.as_str();
        for (n, member) in self.members().filter(|(_, member)| !member.needs.is_empty()) {
            let message = format!("{} has needs, and the strategy is {strategy}", member.name);
            self.add(self.lines.of(n, "needs"), message, "strategy = \"adaptive\" goes by needs");
        }
        self.no_stages(strategy);
    }

    fn no_stages(&mut self, strategy: &str) {
        for (n, member) in self.members().filter(|(_, member)| member.stage.is_some()) {
            let message = format!("{} has a stage, and the strategy is {strategy}", member.name);
            self.add(self.lines.of(n, "stage"), message, "strategy = \"pipeline\" has stages");
        }
    }

    fn stages(&mut self) {
        let stages: BTreeSet<u32> = self.plan.agents.iter().filter_map(|member| member.stage).collect();
        for (n, member) in self.members() {
            let Some(stage) = member.stage else {
                let message = format!("{} has no stage, and the strategy is pipeline", member.name);
                self.add(self.lines.of(n, "name"), message, "stage = 1 is the first");
                continue;
            };
            if stage > 1 && !stages.contains(&(stage - 1)) {
                let message =
                    format!("{} is in stage {stage}, and nobody is in stage {}", member.name, stage - 1);
                self.add(self.lines.of(n, "stage"), message, "stages are numbered from 1 on, without holes");
            }
            for need in &member.needs {
                let other = self.called.get(need.as_str()).and_then(|other| self.plan.agents[*other].stage);
                if let Some(other) = other.filter(|other| *other >= stage) {
                    let message = format!(
                        "{} is in stage {stage} and needs {need}, which is in stage {other}",
                        member.name
                    );
                    self.add(self.lines.of(n, "needs"), message, "what is needed is in an earlier stage");
                }
            }
        }
    }

    /// The members that a member needs.
    fn needed(&self, member: usize) -> impl Iterator<Item = usize> {
        self.plan.agents[member].needs.iter().filter_map(|need| self.called.get(need.as_str()).copied())
    }

    fn cycles(&mut self) {
        // 0 not seen, 1 on the way, 2 done. The way is kept by hand: plans are longer than stacks are deep.
        let mut seen = vec![0u8; self.plan.agents.len()];
        for root in 0..self.plan.agents.len() {
            let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
            if seen[root] == 0 {
                seen[root] = 1;
                way.push((root, self.needed(root).collect()));
            }
            while let Some((member, left)) = way.last_mut() {
                let member = *member;
                let Some(next) = left.pop() else {
                    seen[member] = 2;
                    way.pop();
                    continue;
                };
                match seen[next] {
                    0 => {
                        seen[next] = 1;
                        way.push((next, self.needed(next).collect()));
                    }
                    1 if next != member => self.cycle(&way, next),
                    _ => {}
                }
            }
        }
    }

    fn cycle(&mut self, way: &[(usize, Vec<usize>)], back: usize) {
        let from = way.iter().position(|(member, _)| *member == back).unwrap_or(0);
        let round = way[from..].iter().map(|(member, _)| *member).chain([back]);
        let names: Vec<&str> = round.map(|member| self.plan.agents[member].name.as_str()).collect();
        let message = format!("agents wait for each other for ever: {}", shortened(&names));
        self.add(self.lines.of(back, "needs"), message, "leave one of these needs out");
    }

    fn sizes(&mut self) {
        let count = self.plan.assignments();
        if count > MISSION_ASSIGNMENTS {
            let message =
                format!("there would be {count} assignments; a mission has at most {MISSION_ASSIGNMENTS}");
            return self.add(self.lines.top("agents"), message, "fewer instances, or several missions");
        }
        let edges = self.edges();
        if edges > MISSION_EDGES {
            let message =
                format!("there would be {edges} dependencies; a mission has at most {MISSION_EDGES}");
            self.add(self.lines.top("agents"), message, "put one agent between two large groups");
        }
    }

    /// Dependencies from assignment to assignment.
    fn edges(&self) -> usize {
        let instances = |member: usize| self.plan.agents[member].instances as usize;
        let declared = |(n, member): (usize, &Member)| {
            let of = |name: &crate::Name| match self.called.get(name.as_str()) {
                Some(other) if self.plan.agents[*other].name == *name => instances(*other),
                Some(_) => 1,
                None => 0,
            };
            member.needs.iter().map(of).sum::<usize>() * instances(n)
        };
        match self.plan.strategy {
            Strategy::Parallel => 0,
            Strategy::Sequential => self.plan.assignments(),
            Strategy::Adaptive => self.members().map(declared).sum(),
            Strategy::Pipeline => {
                let mut of_stages: BTreeMap<u32, usize> = BTreeMap::new();
                for (n, member) in self.members() {
                    *of_stages.entry(member.stage.unwrap_or_default()).or_default() += instances(n);
                }
                let sizes: Vec<usize> = of_stages.into_values().collect();
                let between: usize = sizes.windows(2).map(|pair| pair[0] * pair[1]).sum();
                between + self.members().map(declared).sum::<usize>()
            }
        }
    }

    fn places(&mut self) {
        let mut branches: BTreeMap<&str, &str> = BTreeMap::new();
        for (n, member) in self.members() {
            let worktree = member.settings.worktree.as_ref().or(self.plan.defaults.worktree.as_ref());
            if let Some(Worktree::Branch(branch)) = worktree {
                let line = self.lines.of_setting(n, "worktree", member.settings.worktree.is_some());
                if member.instances > 1 {
                    let message =
                        format!("{} instances of {} have one branch", member.instances, member.name);
                    self.add(line, message, "worktree = true gives each its own");
                } else if let Some(other) = branches.insert(branch, member.name.as_str()) {
                    let message = format!("{other} and {} have one branch", member.name);
                    self.add(line, message, "worktree = true gives each its own");
                }
            }
            for path in &member.paths {
                if !is_place(path) {
                    let message = format!("\"{}\" is no path below the campaign's root", one_line(path, 80));
                    self.add(self.lines.of(n, "paths"), message, "paths = [\"src/api\"]");
                }
            }
        }
    }

    /// Whoever is to be merged is there, and has a branch.
    fn merge(&mut self) {
        let Some(merge) = &self.plan.merge else { return };
        let line = self.lines.inside("merge", "from");
        if !self.plan.agents.iter().any(|member| self.has_branch(member)) {
            let message = "there is nothing to merge: no agent has a work tree of its own";
            return self.add(line, message, "worktree = true");
        }
        for name in &merge.from {
            let meant = |(n, member): &(usize, &Member)| {
                member.role == *name || self.called.get(name.as_str()) == Some(n)
            };
            let mut meant = self.members().filter(meant).peekable();
            if meant.peek().is_none() {
                let roles = self.plan.agents.iter().map(|member| member.role.as_str());
                let hint = match nearest(name.as_str(), roles.chain(self.called.keys().map(String::as_str))) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "from = names of agents or roles of this plan".to_owned(),
                };
                self.add(line, format!("the merge is from \"{name}\", and there is no such agent"), hint);
            } else if !meant.any(|(_, member)| self.has_branch(member)) {
                let message = format!("the merge is from {name}, which has no work tree of its own");
                self.add(line, message, "worktree = true");
            }
        }
    }

    fn has_branch(&self, member: &Member) -> bool {
        let tree = member.settings.worktree.as_ref().or(self.plan.defaults.worktree.as_ref());
        tree.is_some_and(|tree| *tree != Worktree::None)
    }

    fn limits(&mut self) {
        let limits = &self.plan.limits;
        let roles: BTreeSet<&str> = self.plan.agents.iter().map(|member| member.role.as_str()).collect();
        for role in limits.roles.keys().filter(|role| !roles.contains(role.as_str())) {
            let hint = match nearest(role, roles.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("there are: {}", roles.iter().copied().collect::<Vec<_>>().join(" ")),
            };
            let line = self.lines.inside("limits", "roles");
            self.add(line, format!("no agent has the role \"{}\"", one_line(role, 40)), hint);
        }
        let all =
            [("roles", &limits.roles), ("providers", &limits.providers), ("accounts", &limits.accounts)];
        let zero = all.into_iter().flat_map(|(key, limits)| limits.iter().map(move |limit| (key, limit)));
        for (key, (name, _)) in zero.filter(|(_, (_, most))| **most == 0) {
            let line = self.lines.inside("limits", key);
            self.add(line, format!("the limit of {name} lets nobody start"), "1 or more");
        }
        if limits.concurrency == Some(0) {
            let line = self.lines.inside("limits", "concurrency");
            self.add(line, "concurrency = 0 lets nobody start", "1 or more");
        }
    }
}

/// A way round in few words: the beginning and the end of a long one.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    match names {
        long if long.len() > SHOWN => {
            let (first, last) = (long[..SHOWN - 2].join(" → "), long[long.len() - 1]);
            format!("{first} → … {} more … → {last}", long.len() - SHOWN + 1)
        }
        all => all.join(" → "),
    }
}

/// Below a root, said in one way. What is git's own is nobody's to lease.
fn is_place(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains(char::is_control)
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && part != ".git")
}

/// What git takes for the name of a branch, roughly; it has the last word.
pub(super) fn is_branch(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.ends_with(".lock")
        && !name.contains("..")
        && !name.contains("//")
        && !name.contains("@{")
        && !name.contains(is_odd)
}
