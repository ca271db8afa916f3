//! What the core's own types look like as JSON, for those who describe the forms: the core knows of no schemas. A test
//! compares each with what is written.
#![expect(dead_code, reason = "they are described, and never made")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Tokens. The buckets do not overlap; `reasoning` is a part of `output`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Usage {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

/// Dollars as a decimal number in a text, such as `0.30`.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Dollars(#[schemars(regex(pattern = r"^\d+\.\d{2,6}$"))] String);

/// How a session ended: a sentence, and the facts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Obituary {
    sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// The rule of Ostler's that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    oom: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<OutOfMemory>,
    /// What the agent was last seen doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// Processes that outlived the agent and were ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leftovers: Vec<Leftover>,
    /// What would let the next one start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cures: Vec<Cure>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct OutOfMemory {
    /// The limit of its campaign; absent where the whole machine had no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<LargestProcess>,
    oom_kills: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct LargestProcess {
    name: String,
    bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Leftover {
    pid: u32,
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Cure {
    command: String,
    effect: String,
}

/// Tokens that the last call took in and gave back, of those that the model can take in.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Context {
    used: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
}

/// What may be used; what is absent has no end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dollars: Option<Dollars>,
    when_used_up: WhenUsedUp,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum WhenUsedUp {
    Hold,
    Stop,
}

/// Where an imported session comes from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Origin {
    source: String,
    /// The program's own name for the dialogue.
    dialogue: String,
    file: String,
    /// The place in the file where this session begins.
    from: u64,
}

/// A rule that decided.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rule {
    /// Its place in the campaign's list, from 1; absent for what is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    text: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum AskKind {
    Leave,
    Question,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Answer {
    Allowed,
    Denied,
    Expired,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Mode {
    Followup,
    Steer,
    Collect,
    Interrupt,
}

/// An agent program as this machine has it.
#[derive(Serialize, JsonSchema)]
pub struct Provider {
    name: String,
    program: Option<String>,
    version: Option<String>,
    /// What keeps it from being started.
    problem: Option<String>,
    /// What it lacks before it can work; absent where a session can be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<String>,
    /// The command that cures what it lacks.
    cure: Option<String>,
    base_url: Option<String>,
    /// Where its key is found, in words; never the key.
    key: String,
    is_logged_in: bool,
    model: Option<String>,
    capabilities: Vec<String>,
    usage_sources: Vec<String>,
    /// How far its sessions reach into the network where a campaign does not say.
    net_mode: Option<String>,
    /// Further accounts of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<Account>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Account {
    name: String,
    base_url: Option<String>,
    key: String,
    is_logged_in: bool,
}

/// Files, and lines of them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Changed {
    files: u64,
    added: u64,
    removed: u64,
}

/// Of this kind of event; docs/json.md says which fields it has, and more may come.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Body(BTreeMap<String, Value>);

/// What is noted about a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Notes {
    /// As OpenClaw has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<BTreeMap<String, Value>>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ostler_domain::{
        self as domain,
        approval::Applied,
        event::{ContextMeasured, Leftover as Left},
        history::Source,
        refusal::Hint,
        session::{LargestProcess as Largest, OutOfMemory as Memory, StopRule},
    };

    use super::*;

    /// What the core writes, with everything in it, has the fields that are described, and no others.
    fn same<T: JsonSchema>(written: &impl Serialize) {
        let described = schemars::schema_for!(T);
        let described: BTreeSet<&String> =
            described.as_value()["properties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
        let written = serde_json::to_value(written).unwrap();
        let written: BTreeSet<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(described, written, "{}", T::schema_name());
    }

    fn words<T: JsonSchema>(written: &[impl Serialize]) {
        let described = schemars::schema_for!(T);
        let written: Vec<Value> = written.iter().map(|word| serde_json::to_value(word).unwrap()).collect();
        assert_eq!(described.as_value()["enum"], Value::Array(written), "{}", T::schema_name());
    }

    #[test]
    fn what_is_described_is_what_the_core_writes() {
        let dollars = domain::price::Dollars(300_000);
        assert_eq!(serde_json::to_value(dollars).unwrap(), "0.30");
        same::<Usage>(&domain::Usage::default());
        same::<Changed>(&domain::snapshot::Changed::default());
        same::<Context>(&ContextMeasured { used: 1, window: Some(2) });
        same::<Budget>(&domain::Budget {
            tokens: Some(1),
            dollars: Some(dollars),
            ..domain::Budget::default()
        });
        same::<Rule>(&Applied { number: Some(1), text: String::new() });
        let origin = domain::history::Origin {
            source: Source::Claude,
            dialogue: String::new(),
            file: String::new(),
            from: 0,
        };
        assert!(serde_json::to_value(&origin).unwrap()["source"].is_string());
        same::<Origin>(&origin);
        let largest = Largest { name: String::new(), bytes: 1 };
        same::<LargestProcess>(&largest);
        let memory =
            Memory { limit_bytes: Some(1), used_bytes: Some(1), largest: Some(largest), oom_kills: 1 };
        same::<OutOfMemory>(&memory);
        let (left, hint) =
            (Left { pid: 1, name: String::new() }, Hint { command: String::new(), effect: String::new() });
        same::<Leftover>(&left);
        same::<Cure>(&hint);
        same::<Obituary>(&domain::session::Obituary {
            sentence: String::new(),
            exit_code: Some(1),
            signal: Some(1),
            rule: Some(StopRule::Stop),
            by: Some(String::new()),
            oom: true,
            memory: Some(memory),
            last: Some(String::new()),
            leftovers: vec![left],
            cures: vec![hint],
        });
        let account = domain::provider::Account::default();
        same::<Account>(&account);
        let lacks = Some(String::new());
        same::<Provider>(&domain::provider::Status {
            lacks,
            profiles: vec![account],
            ..domain::provider::Status::default()
        });
        words::<Mode>(domain::Mode::ALL);
        words::<AskKind>(&[domain::event::AskKind::Leave, domain::event::AskKind::Question]);
        use domain::event::Answer::{Allowed, Denied, Expired};
        words::<Answer>(&[Allowed, Denied, Expired]);
        words::<WhenUsedUp>(&[domain::budget::WhenUsedUp::Hold, domain::budget::WhenUsedUp::Stop]);
    }
}
