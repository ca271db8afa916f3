//! From the text of a file to a plan, or to everything that is wrong with it.

use std::collections::BTreeMap;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    CompleteWhen, Fault, Faults, Given, Limits, Lines, Member, Merge, OnDepFailure, Parameter, Plan,
    Settings, Strategy, Worktree, check, parameters as filling,
    reader::{Reader, Section, flag_of},
};
use crate::{
    Name,
    admission::Priority,
    agent::USUAL_ROLE,
    budget::{Amount, WhenUsedUp},
    limits::{MISSION_ASSIGNMENTS, MISSION_RETRIES_MOST, MODEL_BYTES, PLAN_BYTES},
    mission::words::micros,
    session::Approve,
    text::{nearest, one_line},
};

/// What a plan is read with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// Values for its parameters.
    pub parameters: Option<&'a BTreeMap<String, String>>,
    /// The providers that there are; none where nobody knows.
    pub providers: Option<&'a [String]>,
}

const TOP: &[&str] = &[
    "name",
    "objective",
    "strategy",
    "priority",
    "budget",
    "when_used_up",
    "time",
    "metadata",
    "parameters",
    "defaults",
    "limits",
    "merge",
    "agents",
];
const SETTINGS: &[&str] = &[
    "provider",
    "model",
    "account",
    "approve",
    "worktree",
    "budget",
    "timeout",
    "retries",
    "on_dep_failure",
    "complete_when",
    "priority",
    "side_effects",
];
const AGENT: &[&str] = &[
    "name",
    "role",
    "instances",
    "agent",
    "type",
    "task",
    "needs",
    "stage",
    "inputs",
    "paths",
    "provider",
    "model",
    "account",
    "approve",
    "worktree",
    "budget",
    "timeout",
    "retries",
    "on_dep_failure",
    "complete_when",
    "priority",
    "side_effects",
];
const LIMITS: &[&str] = &["concurrency", "roles", "providers", "accounts", "added", "depth"];
const MERGE: &[&str] = &["into", "from", "gate"];
const MOST: u32 = MISSION_ASSIGNMENTS as u32;

/// Reads a plan. Everything that is wrong with it is said at once.
pub fn read(text: &str, terms: &Terms<'_>) -> Result<Plan, Faults> {
    read_whole(text, terms)?.sound()
}

/// What a file says as far as it could be read, the lines on which that stands, and what is wrong with it: whoever knows
/// more may find further faults.
#[derive(Debug)]
pub struct Read<T> {
    pub what: T,
    pub lines: Lines,
    pub faults: Faults,
}

impl<T> Read<T> {
    /// What it says, where nothing is wrong with it.
    pub fn sound(self) -> Result<T, Faults> {
        Faults::unless(self.faults.0, self.what)
    }
}

/// The same as far as it goes. What is no TOML at all is refused.
pub fn read_whole(text: &str, terms: &Terms<'_>) -> Result<Read<Plan>, Faults> {
    let (mut root, mut reader) = parsed(text)?;
    let none = BTreeMap::new();
    filling::fill(&mut reader, &mut root, terms.parameters.unwrap_or(&none));
    let (plan, lines) = plan(&mut reader, root.get_ref(), terms);
    let mut faults = Faults(reader.faults);
    faults.add(check(&plan, &lines));
    Ok(Read { what: plan, lines, faults })
}

/// Reads agents to add to a mission that runs: a file with nothing but `[[agents]]`.
pub fn read_members(text: &str, terms: &Terms<'_>) -> Result<Vec<Member>, Faults> {
    read_members_whole(text, terms)?.sound()
}

/// The same as far as it goes.
pub fn read_members_whole(text: &str, terms: &Terms<'_>) -> Result<Read<Vec<Member>>, Faults> {
    let (root, mut reader) = parsed(text)?;
    let top = reader.section(root.get_ref(), "a file of agents", 0, &["agents"]);
    let (members, lines) = members(&mut reader, top, terms);
    if members.is_empty() && reader.faults.is_empty() {
        reader.fault(0, "there is no agent").hint = Some("[[agents]]".to_owned());
    }
    let lines = Lines::new(BTreeMap::new(), BTreeMap::new(), lines);
    Ok(Read { what: members, lines, faults: Faults(reader.faults) })
}

/// The parameters that a file declares.
pub fn parameters(text: &str) -> Result<BTreeMap<String, Parameter>, Faults> {
    let (root, mut reader) = parsed(text)?;
    let declared = filling::declared(&mut reader, root.get_ref());
    Faults::unless(reader.faults, declared)
}

fn parsed(text: &str) -> Result<(Spanned<DeTable<'_>>, Reader<'_>), Faults> {
    if text.len() > PLAN_BYTES {
        return Err(Faults(vec![Fault::new(None, format!("a plan has at most {PLAN_BYTES} bytes"))]));
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    let reader = Reader::new(text);
    let broken: Vec<Fault> = errors
        .iter()
        .map(|error| {
            let line = error.span().map(|span| reader.line(span.start));
            Fault::new(line, one_line(error.message(), 200)).hint("this is no TOML")
        })
        .collect();
    if broken.is_empty() { Ok((root, reader)) } else { Err(Faults(broken)) }
}

fn plan<'a>(reader: &mut Reader<'a>, root: &DeTable<'a>, terms: &Terms<'_>) -> (Plan, Lines) {
    let top = reader.section(root, "a plan", 0, TOP);
    let amount = amount(reader, top);
    let when_used_up = reader.word(top, "when_used_up", "hold or stop", |text| match text {
        "hold" => Some(WhenUsedUp::Hold),
        "stop" => Some(WhenUsedUp::Stop),
        _ => None,
    });
    let defaults = reader.inner(top, "defaults", "[defaults]", SETTINGS);
    let (agents, of_members) = members(reader, top, terms);
    if agents.is_empty() && top.get("agents").is_none() {
        reader.fault(0, "a plan has agents").hint = Some("[[agents]]".to_owned());
    }
    let plan = Plan {
        name: reader.word(top, "name", "a name such as checkout-v2", |text| text.parse().ok()),
        objective: reader
            .needed(top, "objective", "\"what the agents are to reach\"", |text| Some(text.trim().to_owned()))
            .unwrap_or_default(),
        strategy: reader
            .word(top, "strategy", "parallel, sequential, adaptive or pipeline", Strategy::parse)
            .unwrap_or_default(),
        priority: priority(reader, top).unwrap_or_default(),
        budget: amount,
        when_used_up: when_used_up.unwrap_or_default(),
        time_us: reader.span(top, "time").map(micros),
        defaults: defaults.map(|section| settings(reader, section, terms)).unwrap_or_default(),
        limits: limits(reader, top).unwrap_or_default(),
        merge: merge(reader, top),
        metadata: metadata(reader, top),
        agents,
    };
    let lines_of_top = TOP.iter().map(|key| (*key, reader.line(top.at(key)))).collect();
    (plan, Lines::new(lines_of_top, lines_inside(reader, top), of_members))
}

/// The lines of what the plan's own tables have.
fn lines_inside<'a>(
    reader: &Reader<'a>,
    top: Section<'_, 'a>,
) -> BTreeMap<(&'static str, &'static str), usize> {
    let mut lines = BTreeMap::new();
    for (name, keys) in [("defaults", SETTINGS), ("limits", LIMITS), ("merge", MERGE)] {
        let Some(DeValue::Table(table)) = top.get(name).map(Spanned::get_ref) else { continue };
        for (key, _) in table {
            if let Some(known) = keys.iter().find(|known| **known == key.get_ref().as_ref()) {
                lines.insert((name, *known), reader.line(key.span().start));
            }
        }
    }
    lines
}

type MemberLines = Vec<BTreeMap<&'static str, usize>>;

fn members<'a>(
    reader: &mut Reader<'a>,
    top: Section<'_, 'a>,
    terms: &Terms<'_>,
) -> (Vec<Member>, MemberLines) {
    let read = reader.list(top, "agents", |reader, value| {
        let DeValue::Table(table) = value.get_ref() else {
            reader.refuse(value, "agents", "tables: [[agents]]");
            return None;
        };
        let section = reader.section(table, "an agent", value.span().start, AGENT);
        let member = member(reader, section, terms)?;
        let lines = AGENT.iter().map(|key| (*key, reader.line(section.at(key)))).collect();
        Some((member, lines))
    });
    read.into_iter().unzip()
}

fn member<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>, terms: &Terms<'_>) -> Option<Member> {
    let name_of = |text: &str| text.parse::<Name>().ok();
    let role = reader.word(section, "role", "a name such as builder", name_of);
    let name = match (section.get("name"), &role) {
        (None, Some(role)) => Some(role.clone()),
        _ => reader.needed(section, "name", "\"a-name\"", name_of),
    };
    // Whose name is no name has other mistakes to be told of.
    let name = name.or_else(|| Name::slug(section.get("name")?.get_ref().as_str()?));
    let task = reader.needed(section, "task", "\"what it is to do\"", |text| Some(text.trim().to_owned()));
    let usual =
        |name: &Name| if section.get("role").is_some() { Name::slug(USUAL_ROLE) } else { Some(name.clone()) };
    let is_type = |text: &str| crate::ticket::About::new("x", Some(text)).ok().map(|about| about.kind);
    let kind = reader.word(section, "type", "one word in small letters: task, bug, review", is_type);
    let instances = reader.number(section, "instances", 1..=MOST);
    let agent = reader.word(section, "agent", "the name of a registered agent", name_of);
    let needs = reader.list(section, "needs", |reader, value| {
        reader.word_of(value, "needs", "names of agents in this file", name_of)
    });
    // What is there and wrong is not missing, too.
    let stage = reader.number(section, "stage", 1..=MOST).or(section.get("stage").map(|_| 1));
    let inputs = reader.list(section, "inputs", given);
    let paths = reader.list(section, "paths", |reader, value| {
        reader.word_of(value, "paths", "directories or files below the campaign's root", |text| {
            Some(text.trim_end_matches('/').to_owned())
        })
    });
    let settings = settings(reader, section, terms);
    let name = name?;
    Some(Member {
        role: role.or_else(|| usual(&name))?,
        instances: instances.unwrap_or(1),
        agent,
        kind: kind.unwrap_or_else(|| crate::ticket::USUAL_TYPE.to_owned()),
        task: task.unwrap_or_default(),
        needs,
        stage,
        inputs,
        paths,
        settings,
        name,
    })
}

fn given<'a>(reader: &mut Reader<'a>, value: &Spanned<DeValue<'a>>) -> Option<Given> {
    const EXPECTED: &str = "a file of the campaign, or { text = \"…\" }";
    match value.get_ref() {
        DeValue::String(path) if !path.trim().is_empty() => Some(Given::File(path.to_string())),
        DeValue::Table(table) => {
            let section = reader.section(table, "an input", value.span().start, &["file", "text"]);
            let file = reader.text(section, "file").map(Given::File);
            let text = reader.text(section, "text").map(Given::Text);
            match (file, text) {
                (Some(one), None) | (None, Some(one)) => Some(one),
                _ => {
                    reader.refuse(value, "inputs", EXPECTED);
                    None
                }
            }
        }
        _ => {
            reader.refuse(value, "inputs", EXPECTED);
            None
        }
    }
}

fn settings<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>, terms: &Terms<'_>) -> Settings {
    let is_model = |text: &str| {
        let fits = !text.is_empty() && text.len() <= MODEL_BYTES && !text.contains(char::is_whitespace);
        fits.then(|| text.to_owned())
    };
    Settings {
        provider: provider(reader, section, terms),
        model: reader.word(section, "model", "a model's name, as its provider has it", is_model),
        account: reader
            .word(section, "account", "a name of the provider's profiles", |text| text.parse().ok()),
        approve: reader.word(section, "approve", "policy, nobody, ask or all", |text| match text {
            "policy" => Some(Approve::Policy),
            "nobody" => Some(Approve::Nobody),
            "ask" => Some(Approve::Ask),
            "all" => Some(Approve::All),
            _ => None,
        }),
        worktree: worktree(reader, section),
        budget: amount(reader, section),
        timeout_us: reader.span(section, "timeout").map(micros),
        retries: reader.number(section, "retries", 0..=MISSION_RETRIES_MOST),
        on_dep_failure: reader.word(section, "on_dep_failure", "skip, block or run", OnDepFailure::parse),
        complete_when: complete_when(reader, section),
        priority: priority(reader, section),
        side_effects: reader.flag(section, "side_effects"),
    }
}

fn provider<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>, terms: &Terms<'_>) -> Option<String> {
    let name = reader.word(section, "provider", "a provider's name", |text| {
        (!text.trim().is_empty()).then(|| text.to_owned())
    })?;
    if let Some(known) = terms.providers.filter(|known| !known.contains(&name)) {
        let hint = match nearest(&name, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("there are: {}; ostler provider ls", known.join(" ")),
        };
        let fault =
            reader.fault(section.at("provider"), format!("there is no provider \"{}\"", one_line(&name, 40)));
        fault.hint = Some(hint);
    }
    Some(name)
}

fn amount<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>) -> Option<Amount> {
    reader.word(section, "budget", "dollars, tokens or both: 2usd, 500k, 2usd,500k", |text| {
        Amount::parse(text).ok()
    })
}

fn priority<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>) -> Option<Priority> {
    reader.word(section, "priority", "low, normal or high", Priority::parse)
}

fn worktree<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>) -> Option<Worktree> {
    let value = section.get("worktree")?;
    match (flag_of(value.get_ref()), value.get_ref()) {
        (Some(true), _) => Some(Worktree::Own),
        (Some(false), _) => Some(Worktree::None),
        (None, DeValue::String(branch)) if super::check::is_branch(branch) => {
            Some(Worktree::Branch(branch.to_string()))
        }
        _ => {
            reader.refuse(value, "worktree", "true, false or the name of a branch");
            None
        }
    }
}

fn complete_when<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>) -> Option<CompleteWhen> {
    const EXPECTED: &str = "\"turn\", \"done\" or { check = \"a command\" }";
    let value = section.get("complete_when")?;
    match value.get_ref() {
        DeValue::String(word) if word == "turn" => Some(CompleteWhen::Turn),
        DeValue::String(word) if word == "done" => Some(CompleteWhen::Done),
        DeValue::Table(table) => {
            let inner = reader.section(table, "complete_when", value.span().start, &["check"]);
            let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
            // A key that was only misspelt is not missing, too.
            let command = match table.is_empty() {
                true => reader.needed(inner, "check", "\"a command\"", some),
                false => reader.word(inner, "check", "a command", some),
            };
            command.map(CompleteWhen::Check)
        }
        _ => {
            reader.refuse(value, "complete_when", EXPECTED);
            None
        }
    }
}

fn limits<'a>(reader: &mut Reader<'a>, top: Section<'_, 'a>) -> Option<Limits> {
    let section = reader.inner(top, "limits", "[limits]", LIMITS)?;
    let usual = Limits::default();
    Some(Limits {
        concurrency: reader.number(section, "concurrency", 1..=MOST),
        roles: counts(reader, section, "roles"),
        providers: counts(reader, section, "providers"),
        accounts: counts(reader, section, "accounts"),
        added: reader.number(section, "added", 0..=MOST).unwrap_or(usual.added),
        depth: reader.number(section, "depth", 0..=100).unwrap_or(usual.depth),
    })
}

fn counts<'a>(reader: &mut Reader<'a>, section: Section<'_, 'a>, key: &str) -> BTreeMap<String, u32> {
    let Some((table, _)) = reader.any_table(section, key) else { return BTreeMap::new() };
    let count = |(name, value): (&Spanned<_>, &Spanned<DeValue<'a>>)| {
        let name: &std::borrow::Cow<'_, str> = name.get_ref();
        Some((name.to_string(), reader.number_of(value, name, 1..=MOST)?))
    };
    table.iter().filter_map(count).collect()
}

fn merge<'a>(reader: &mut Reader<'a>, top: Section<'_, 'a>) -> Option<Merge> {
    let section = reader.inner(top, "merge", "[merge]", MERGE)?;
    let branch = |text: &str| super::check::is_branch(text).then(|| text.to_owned());
    let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let into = reader.needed(section, "into", "\"the name of a branch\"", branch);
    let from = reader.list(section, "from", |reader, value| {
        reader.word_of(value, "from", "names of agents or roles in this file", |text| text.parse().ok())
    });
    let gate = reader.word(section, "gate", "a command", some);
    Some(Merge { into: into?, from, gate })
}

fn metadata<'a>(reader: &mut Reader<'a>, top: Section<'_, 'a>) -> BTreeMap<String, String> {
    let Some((table, _)) = reader.any_table(top, "metadata") else { return BTreeMap::new() };
    let entry = |(name, value): (&Spanned<_>, &Spanned<DeValue<'a>>)| {
        let name: &std::borrow::Cow<'_, str> = name.get_ref();
        let text = reader.word_of(value, name, "a text in quotes", |text| Some(text.to_owned()))?;
        Some((name.to_string(), text))
    };
    table.iter().filter_map(entry).collect()
}
