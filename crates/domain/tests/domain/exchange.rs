//! What is recorded, in the forms of other programs.

use ostler_domain::{
    CampaignId, ConversationId, Event, Name, Recorded, Time,
    call::{StepEnded, StepStarted},
    conversation::{CloseReason, Closed, Conversation, Entry, Notes},
    event::{By, ContextCompacted, SeenCommit, StopReason},
    exchange::{
        gastown::{self, Around},
        openclaw::{self, Said},
        openclaw_index,
    },
    session::{Approve, Created, RestartPolicy, State, View, create},
};
use serde_json::{Map, Value, json};

use crate::any::{created, message, time};

fn conversation(key: &str, entry: Entry) -> Conversation {
    Conversation {
        id: ConversationId::new(time(1), 7),
        campaign: CampaignId::new(time(1), 1),
        agent: None,
        key: key.parse().unwrap(),
        name: "api".parse().unwrap(),
        opened: time(1),
        active: time(2),
        forked_from: None,
        forked_at: None,
        spawned_by: None,
        replaces: None,
        closed: None,
        notes: Notes { entry, ..Notes::default() },
    }
}

fn view() -> View {
    let events = create(created_here(), vec![(message(0), None)], &By("ann".into()));
    let log: Vec<(Time, Event)> = events.into_iter().map(|event| (time(0), event)).collect();
    State::replay(log.iter().map(|(at, event)| (*at, event))).unwrap().view()
}

fn created_here() -> Created {
    created(RestartPolicy::Never, Approve::Policy, false, None)
}

fn said<'a>(conversation: &'a Conversation, last: Option<&'a View>) -> Said<'a> {
    let compactions = last.map_or(0, |last| u64::from(last.compactions));
    Said { conversation, campaign: "shop", last, last_turn: None, compactions, spawned_by: None }
}

/// A row as another program wrote it, with what nobody here knows.
fn theirs() -> Map<String, Value> {
    let row = json!({
        "sessionId": "51121704-8733-4db7-91f5-e85f89148129",
        "updatedAt": 1_763_000_000_123_u64,
        "sessionFile": "51121704-8733-4db7-91f5-e85f89148129-topic-7.jsonl",
        "chatType": "group",
        "thinkingLevel": "high",
        "status": "done",
        "inputTokens": 12,
        "estimatedCostUsd": 0.25,
        "skillsSnapshot": {"prompt": "x", "version": 3},
        "acp": {"deep": [1, {"er": null}]},
        "somethingNew": "kept"
    });
    row.as_object().unwrap().clone()
}

#[test]
fn a_row_that_came_in_goes_out_as_it_was() {
    let entry: Entry = serde_json::from_value(theirs().into()).unwrap();
    let came = conversation("agent:main:telegram:group:-1:topic:7", entry);
    let mut row = openclaw::row(&said(&came, None));
    assert_eq!(row.remove("ostler").unwrap()["conversation"], json!(came.id));
    assert_eq!(Value::Object(row), Value::Object(theirs()));
    assert_eq!(openclaw::session_id(&came), "51121704-8733-4db7-91f5-e85f89148129");
    assert_eq!(openclaw::transcript_name(&came), "51121704-8733-4db7-91f5-e85f89148129-topic-7.jsonl");
    // What is run here since is said here.
    let last = view();
    let row = openclaw::row(&said(&came, Some(&last)));
    assert_eq!((&row["status"], &row["somethingNew"]), (&json!("running"), &json!("kept")));
    for (last_turn, is_aborted) in [
        (None, false),
        (Some(StopReason::Completed), false),
        (Some(StopReason::Error), false),
        (Some(StopReason::Interrupted), true),
        (Some(StopReason::ProcessEnded), true),
    ] {
        let row = openclaw::row(&Said { last_turn, ..said(&came, Some(&last)) });
        assert_eq!(row["abortedLastRun"], is_aborted, "{last_turn:?}");
    }
    assert_eq!(row["sessionId"], "51121704-8733-4db7-91f5-e85f89148129");
}

#[test]
fn keys_are_found_where_the_other_program_looks() {
    let agent: Name = "API".parse().unwrap();
    let of = |key: &str, agent: Option<&Name>| openclaw::key(&conversation(key, Entry::default()), agent);
    assert_eq!(of("main", Some(&agent)), "agent:api:main");
    assert_eq!(of("release", Some(&agent)), "agent:api:release");
    assert_eq!(of("agent:Main:discord:dm:USER", None), "agent:Main:discord:dm:USER");
    let adhoc = conversation("adhoc:ses_x", Entry::default());
    assert_eq!(openclaw::key(&adhoc, None), format!("agent:main:explicit:{}", adhoc.id));
    let closed = Closed { at: time(5), why: CloseReason::Reset };
    let reset = Conversation { closed: Some(closed), ..adhoc };
    let name = openclaw::transcript_name(&reset);
    assert!(name.contains(".jsonl.reset.") && !name.contains(':'), "{name}");
    // An id that would lead out of the directory is none.
    let mut entry = Entry::default();
    entry.other.insert("sessionId".to_owned(), json!("../../etc/passwd"));
    let hostile = conversation("main", entry);
    assert_eq!(openclaw::session_id(&hostile), hostile.id.to_string());
}

#[test]
fn a_transcript_that_no_row_named_is_found_by_the_row_that_it_gets() {
    let orphan = conversation(&openclaw::recovered_key("main", "aaaaaaaa-0003"), Entry::default());
    let row = openclaw::row(&said(&orphan, None));
    let names = (&row["sessionId"], &row["sessionFile"]);
    assert_eq!(names, (&json!("aaaaaaaa-0003"), &json!("aaaaaaaa-0003.jsonl")));
}

#[test]
fn a_change_of_one_field_leaves_the_others_in_their_words() {
    let came =
        json!({"sessionId": "a", "updatedAt": 5, "chatType": "direct", "origin": {"chatType": "direct"}});
    let index = json!({"agent:main:main": came}).to_string();
    let mut entry: Entry = serde_json::from_value(came.clone()).unwrap();
    entry.thinking_level = Some("high".to_owned());
    let changed = conversation("agent:main:main", entry);
    let key = "agent:main:main".to_owned();
    let row = openclaw::row(&said(&changed, None));
    let own = openclaw_index::OwnRow { conversation: &changed, key, row, is_as_it_came: true };
    let written = openclaw_index::written(Some(index.as_bytes()), &[own]);
    let mut rows: Value = serde_json::from_slice(&written.text).unwrap();
    let row = rows["agent:main:main"].as_object_mut().unwrap();
    row.remove("ostler");
    assert_eq!(row.remove("thinkingLevel"), Some(json!("high")));
    assert_eq!(row.remove("sessionFile"), Some(json!("a.jsonl")));
    assert_eq!(Value::Object(row.clone()), came);
}

#[test]
fn a_word_that_would_mean_nothing_is_not_noted() {
    for wrong in ["exec_ask=bogus", "thinking_level=bogus"] {
        let fault = Notes::default().changed_by(&[wrong.to_owned()]).unwrap_err().to_string();
        assert!(fault.contains("expected: "), "{fault}");
    }
    for right in ["exec_ask=on-miss", "thinking_level=xhigh"] {
        Notes::default().changed_by(&[right.to_owned()]).unwrap();
    }
}

#[test]
fn where_others_write_too_only_what_is_ours_is_written_over() {
    let noted = |level: &str| {
        let settings = [format!("thinking_level={level}")];
        let notes = Notes::default().changed_by(&settings).unwrap();
        conversation("main", notes.entry)
    };
    let (first, last) = (noted("low"), view());
    let mut row = openclaw::merged(&said(&first, Some(&last)), None);
    assert_eq!((&row["thinkingLevel"], &row["label"]), (&json!("low"), &json!("api")));
    // Nobody has changed it: it follows.
    let second = noted("high");
    row = openclaw::merged(&said(&second, Some(&last)), Some(&row));
    assert_eq!(row["thinkingLevel"], "high");
    let labelled = Notes::default().changed_by(&["label=Login".to_owned()]).unwrap();
    let labelled = openclaw::merged(&said(&conversation("main", labelled.entry), None), Some(&row));
    assert_eq!((&labelled["label"], labelled.get("thinkingLevel")), (&json!("Login"), None));
    // Somebody has, and has added something, and has touched what is ours.
    row.insert("thinkingLevel".to_owned(), json!("medium"));
    row.insert("pinnedAt".to_owned(), json!(7));
    row.insert("status".to_owned(), json!("nonsense"));
    row = openclaw::merged(&said(&noted("max"), Some(&last)), Some(&row));
    assert_eq!((&row["thinkingLevel"], &row["pinnedAt"]), (&json!("medium"), &json!(7)));
    assert_eq!(row["status"], "running");
    // The same again changes nothing.
    assert_eq!(openclaw::merged(&said(&noted("max"), Some(&last)), Some(&row)), row);
    assert!(openclaw::is_ours(&row, &first));
    assert!(!openclaw::is_ours(&theirs(), &first));
}

#[test]
fn a_transcript_is_of_the_session_that_its_row_names() {
    let header = br#"{"type":"session","version":3,"id":"cnv_1","timestamp":"t","cwd":"/x"}"#;
    let line: Value = serde_json::from_slice(&openclaw::transcript_line(header, "abc")).unwrap();
    assert_eq!((&line["id"], &line["version"]), (&json!("abc"), &json!(3)));
    let theirs = br#"{"version":3,"type":"session", "id":"abc"}"#;
    assert_eq!(openclaw::transcript_line(theirs, "abc"), theirs, "to the byte");
    let other = br#"{"type":"message","id":"00000001"}"#;
    assert_eq!(openclaw::transcript_line(other, "abc"), other);
}

#[test]
fn a_session_is_told_in_gas_town_s_words() {
    let view = view();
    let at =
        |seq, event| Recorded { seq, session: Some(view.id), session_seq: Some(seq), time: time(9), event };
    let started = at(3, Event::StepStarted(StepStarted { name: "build".to_owned(), note: String::new() }));
    let ended =
        at(4, Event::StepEnded(StepEnded { name: "build".to_owned(), success: true, note: "ok".to_owned() }));
    let mut steps = Vec::new();
    gastown::step(&mut steps, &started);
    gastown::step(&mut steps, &ended);
    assert_eq!((steps.len(), steps[0].success, steps[0].note.as_str()), (1, Some(true), "ok"));
    let commits = [SeenCommit { hash: "0f1e".to_owned(), subject: "x".to_owned() }];
    let around =
        Around { rig: "shop", child: Some(view.id), branch: Some("main"), commits: &commits, steps: &steps };
    let session = gastown::Session::new(&view, &around);
    let line: Value = serde_json::from_str(&session.index_line()).unwrap();
    assert_eq!((&line["id"], &line["rig"]), (&json!(view.id), &json!("shop")));
    assert_eq!((&line["chain_id"], &line["child_id"]), (&json!(view.chain), &json!(view.id)));
    assert!(line.get("commits").is_none() && line.get("ostler").is_none(), "the index is for fast scans");
    let file: Value = serde_json::from_str(&session.file()).unwrap();
    assert_eq!((&file["commits"], &file["steps"][0]["name"]), (&json!(["0f1e"]), &json!("build")));
    let fed: Value = serde_json::from_str(&session.feed_line(&ended).unwrap()).unwrap();
    assert_eq!((&fed["type"], &fed["visibility"]), (&json!("session_step_completed"), &json!("feed")));
    assert_eq!((&fed["actor"], &fed["payload"]["session_id"]), (&json!(session.agent), &json!(view.id)));
    let unfed = at(5, Event::AgentStatus("x".into()));
    assert_eq!(session.feed_line(&unfed), None);
}

#[test]
fn a_row_has_how_often_its_context_was_compacted() {
    let here = conversation("main", Entry::default());
    let compacted = Event::ContextCompacted(ContextCompacted { automatic: true, before: None, after: None });
    let events = create(created_here(), vec![(message(0), None)], &By("ann".into()));
    let log: Vec<Event> = events.into_iter().chain([compacted.clone(), compacted]).collect();
    let last = State::replay(log.iter().map(|event| (time(0), event))).unwrap().view();
    assert_eq!(openclaw::row(&said(&here, Some(&last)))["compactionCount"], 2);
    // With those of the sessions before it, and those that it came with.
    let mut entry = Entry::default();
    entry.other.insert("compactionCount".to_owned(), json!(5));
    let came = conversation("main", entry);
    let said = Said { compactions: 3, ..said(&came, Some(&last)) };
    assert_eq!(openclaw::row(&said)["compactionCount"], 8);
}

#[test]
fn a_row_says_who_asked_for_it_and_what_its_program_calls_the_dialogue() {
    let mut entry = Entry::default();
    entry.other.insert("spawnedBy".to_owned(), json!("agent:main:main"));
    let came = conversation("agent:main:subagent:x", entry);
    let last = View { provider_id: Some("sdk-1".to_owned()), ..view() };
    let row = openclaw::row(&said(&came, Some(&last)));
    assert_eq!((&row["spawnedBy"], &row["sdkSessionId"]), (&json!("agent:main:main"), &json!("sdk-1")));
    assert_eq!(openclaw::merged(&said(&came, Some(&last)), Some(&row))["spawnedBy"], "agent:main:main");
    let here = Said { spawned_by: Some("agent:api:main"), ..said(&came, Some(&last)) };
    assert_eq!(openclaw::row(&here)["spawnedBy"], "agent:api:main", "what is known here counts");
}
