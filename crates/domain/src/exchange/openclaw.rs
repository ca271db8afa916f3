//! OpenClaw's store of files: `sessions.json`, a row for each key, and a transcript for each row.
//!
//! A row belongs to several: what this version does not know of it is kept as it is, and only the fields that Ostler owns
//! are written over.

use serde_json::{Map, Value, json};

use crate::{
    ConversationId, Name, Time,
    conversation::{CloseReason, Closed, Conversation, Entry, Form},
    event::StopReason,
    session::{Outcome, View},
    transcript::encoded,
};

/// The agent of conversations that belong to none.
pub const NOBODY: &str = "main";

/// The fields of a row that are Ostler's: what holds of them is what Ostler says, or nothing.
pub const OWNED: &[&str] = &[
    "sessionId",
    "updatedAt",
    "sessionStartedAt",
    "sessionFile",
    "spawnedBy",
    "status",
    "startedAt",
    "endedAt",
    "abortedLastRun",
    "sdkSessionId",
    "modelProvider",
    "model",
    "inputTokens",
    "outputTokens",
    "cacheRead",
    "cacheWrite",
    "totalTokens",
    "contextTokens",
    "compactionCount",
    "estimatedCostUsd",
    "ostler",
];

/// The id of the agent whose directory it is in.
pub fn agent_id(agent: Option<&Name>) -> String {
    agent.map_or_else(|| NOBODY.to_owned(), |agent| agent.as_str().to_lowercase())
}

/// The id of the agent whose conversation it is: the one that its key names, else its own.
pub fn agent_of(conversation: &Conversation, agent: Option<&Name>) -> String {
    match conversation.key.form() {
        Form::Chat { agent, .. } | Form::Subagent { agent, .. } | Form::Agent { agent, .. } => {
            agent.to_lowercase()
        }
        Form::Main | Form::Adhoc | Form::Plain => agent_id(agent),
    }
}

/// The key under which a conversation is found there.
pub fn key(conversation: &Conversation, agent: Option<&Name>) -> String {
    let id = agent_id(agent);
    match conversation.key.form() {
        Form::Main => format!("agent:{id}:main"),
        // No other one will ever have it.
        Form::Adhoc => format!("agent:{id}:explicit:{}", conversation.id),
        Form::Plain => format!("agent:{id}:{}", conversation.key.as_str()),
        Form::Chat { .. } | Form::Subagent { .. } | Form::Agent { .. } => {
            conversation.key.as_str().to_owned()
        }
    }
}

/// The key of a transcript that no row names, as OpenClaw itself makes it.
pub fn recovered_key(agent: &str, session: &str) -> String {
    format!("agent:{agent}:{RECOVERED}{session}")
}

const RECOVERED: &str = "recovered:";

/// The id of its transcript: the one that it came with, else the conversation's.
pub fn session_id(conversation: &Conversation) -> String {
    let own = conversation.notes.entry.other.get("sessionId").and_then(Value::as_str);
    let recovered = || match conversation.key.form() {
        Form::Agent { rest, .. } => rest.strip_prefix(RECOVERED),
        _ => None,
    };
    let own = own.or_else(recovered).filter(|id| is_session_id(id));
    own.map_or_else(|| conversation.id.to_string(), str::to_owned)
}

fn is_session_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=128).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
}

/// The name of its transcript. One that was closed is put aside under its key, as a reset or a deletion leaves it.
pub fn transcript_name(conversation: &Conversation) -> String {
    let id = session_id(conversation);
    let name = match conversation.key.topic() {
        Some(topic) => format!("{id}-topic-{}.jsonl", encoded(topic)),
        None => format!("{id}.jsonl"),
    };
    match conversation.closed {
        None => name,
        Some(Closed { at, why }) => {
            let word = if why == CloseReason::Reset { "reset" } else { "deleted" };
            format!("{name}.{word}.{}", at.rfc3339().replace(':', "-"))
        }
    }
}

/// What a row says beside what it says already.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    pub conversation: &'a Conversation,
    /// The campaign's name.
    pub campaign: &'a str,
    /// The last session that was run here.
    pub last: Option<&'a View>,
    /// How the last turn of that session ended, if one has.
    pub last_turn: Option<StopReason>,
    /// How often its context was compacted, in all sessions that were run here.
    pub compactions: u64,
    /// The key of the conversation whose agent asked for it.
    pub spawned_by: Option<&'a str>,
}

/// A conversation's row, as it is said here.
pub fn row(said: &Said<'_>) -> Map<String, Value> {
    let mut row = noted(said.conversation);
    own(&mut row, said);
    row
}

/// A conversation's row where others write too: what is there and not Ostler's stays, also what it does not know. What was
/// noted here is written where nobody else has changed it since.
pub fn merged(said: &Said<'_>, there: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut row = there.cloned().unwrap_or_default();
    let written = row.get("ostler").and_then(|own| own.get("noted")).and_then(Value::as_object).cloned();
    let written = written.unwrap_or_default();
    let noted = noted(said.conversation);
    for (field, value) in &written {
        if !noted.contains_key(field) && row.get(field) == Some(value) {
            row.remove(field);
        }
    }
    for (field, value) in &noted {
        if row.get(field).is_none_or(|there| written.get(field) == Some(there)) {
            row.insert(field.clone(), value.clone());
        }
    }
    OWNED.iter().filter(|field| !noted.contains_key(**field)).for_each(|field| drop(row.remove(*field)));
    own(&mut row, said);
    if let Some(Value::Object(own)) = row.get_mut("ostler") {
        own.insert("noted".to_owned(), Value::Object(noted));
    }
    row
}

/// The conversation of which Ostler wrote a row.
pub fn conversation(row: &Map<String, Value>) -> Option<ConversationId> {
    row.get("ostler")?.get("conversation")?.as_str()?.parse().ok()
}

/// Whether a row is Ostler's to write over: one that it wrote, or that this conversation came with.
pub fn is_ours(row: &Map<String, Value>, of: &Conversation) -> bool {
    match conversation(row) {
        // One that had the key before is closed.
        Some(_) => true,
        None => row.get("sessionId").and_then(Value::as_str) == Some(session_id(of).as_str()),
    }
}

/// A row that is written over one that came in: what says the same stays in the words that it came in.
pub(super) fn in_words_of(mut row: Map<String, Value>, came: &Map<String, Value>) -> Map<String, Value> {
    let read = fields(&Entry::of_row(came));
    for (field, words) in came {
        if row.contains_key(field) && row.get(field) == read.get(field) {
            row.insert(field.clone(), words.clone());
        }
    }
    row
}

fn fields(entry: &Entry) -> Map<String, Value> {
    match serde_json::to_value(entry) {
        Ok(Value::Object(fields)) => fields,
        // Plain structs with string keys: serializing them cannot fail.
        _ => Map::new(),
    }
}

/// What is noted about a conversation: also the fields of the row that it came with.
fn noted(conversation: &Conversation) -> Map<String, Value> {
    let mut noted = fields(&conversation.notes.entry);
    if !conversation.notes.entry.other.contains_key("sessionId") {
        noted.entry("label").or_insert_with(|| json!(conversation.name));
    }
    noted
}

/// Writes over the fields that are Ostler's. What a row came with stays as long as nothing was run here since.
fn own(row: &mut Map<String, Value>, said: &Said<'_>) {
    let conversation = said.conversation;
    let is_imported = conversation.notes.entry.is_imported();
    // Who asked for it is another conversation, which may have been nobody's of ours.
    let is_said = |field: &&&str| match **field {
        "spawnedBy" => said.spawned_by.is_some(),
        // It began where it came from.
        "sessionStartedAt" => !is_imported,
        _ => true,
    };
    if said.last.is_some() {
        OWNED.iter().filter(is_said).for_each(|field| drop(row.remove(*field)));
    }
    let updated = said.last.map_or(conversation.active, |last| last.updated_at.max(conversation.active));
    let mut set = |field: &str, value: Value| {
        row.entry(field).or_insert(value);
    };
    set("sessionId", json!(session_id(conversation)));
    set("updatedAt", millis(updated));
    if !is_imported {
        set("sessionStartedAt", millis(conversation.opened));
    }
    set("sessionFile", json!(transcript_name(conversation)));
    if let Some(parent) = said.spawned_by {
        set("spawnedBy", json!(parent));
    }
    if let Some(last) = said.last {
        run(row, last, said.last_turn);
        let came_with = conversation.notes.entry.other.get("compactionCount").and_then(Value::as_u64);
        row.insert("compactionCount".to_owned(), json!(came_with.unwrap_or(0) + said.compactions));
    }
    let own = json!({
        "conversation": conversation.id,
        "campaign": said.campaign,
        "name": conversation.name,
        "session": said.last.map(|last| last.id),
    });
    row.insert("ostler".to_owned(), own);
}

/// The counters of a row are those of its last run, beside how often its context was compacted.
fn run(row: &mut Map<String, Value>, last: &View, last_turn: Option<StopReason>) {
    let mut set = |field: &str, value: Value| {
        if !value.is_null() {
            row.insert(field.to_owned(), value);
        }
    };
    set("status", json!(status(last.outcome)));
    set("startedAt", millis(last.started_at.unwrap_or(last.created_at)));
    set("endedAt", last.ended_at.map_or(Value::Null, millis));
    // An agent that was stopped while it rested had nothing aborted.
    let is_aborted = matches!(last_turn, Some(StopReason::Interrupted | StopReason::ProcessEnded));
    set("abortedLastRun", json!(is_aborted));
    set("sdkSessionId", json!(last.provider_id));
    set("modelProvider", json!(last.provider));
    set("model", json!(last.model));
    let usage = &last.usage;
    set("inputTokens", json!(usage.input));
    set("outputTokens", json!(usage.output));
    set("cacheRead", json!(usage.cache_read));
    set("cacheWrite", json!(usage.cache_write));
    set("totalTokens", json!(usage.input + usage.cache_read + usage.cache_write + usage.output));
    set("contextTokens", json!(last.context.and_then(|context| context.window)));
    // A number of dollars, as it is there, and none where nobody knows; whoever counts money reads the transcripts.
    if last.cost.unpriced.is_empty() {
        set("estimatedCostUsd", serde_json::from_str(&last.cost.paid.decimal()).unwrap_or(Value::Null));
    }
}

const fn status(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "running",
        Some(Outcome::Done | Outcome::Handoff | Outcome::Reset) => "done",
        Some(Outcome::Stopped | Outcome::Killed | Outcome::Budget) => "killed",
        Some(Outcome::Timeout) => "timeout",
        Some(
            Outcome::Crashed | Outcome::FailedStart | Outcome::Lost | Outcome::Oom | Outcome::TurnFailed,
        ) => "failed",
    }
}

fn millis(time: Time) -> Value {
    json!(time.micros() / 1_000)
}

/// A line of a transcript under the id that its row names.
pub fn transcript_line(line: &[u8], id: &str) -> Vec<u8> {
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(mut header))
            if header.get("type").and_then(Value::as_str) == Some("session")
                && header.get("id").and_then(Value::as_str) != Some(id) =>
        {
            header.insert("id".to_owned(), json!(id));
            Value::Object(header).to_string().into_bytes()
        }
        _ => line.to_vec(),
    }
}
