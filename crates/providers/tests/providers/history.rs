//! Stores of real agent programs, read: what they tell is pinned, and it is the same wherever the reading was left and gone on
//! with. Files that somebody has damaged are read to their end.

use std::{fmt::Write, fs, path::Path};

use ostler_domain::{
    Usage,
    history::{Call, Source, Told, What},
    text::one_line,
};
use ostler_providers::history::{glance, reader, take_in};

fn recording(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/history").join(name);
    fs::read(path).unwrap()
}

/// Reads a file, putting the reader away and taking it up again after every `pause` lines.
fn read(source: Source, bytes: &[u8], pause: usize) -> (Vec<Told>, usize) {
    let mut told = Vec::new();
    let mut reading = reader(source, None);
    let (mut place, mut unreadable) = (0, 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        let understood = take_in(reading.as_mut(), whole, place, whole.len() as u64, &mut told);
        unreadable += usize::from(!understood);
        place += line.len() as u64;
        if (number + 1).is_multiple_of(pause) {
            reading = reader(source, Some(&reading.memory()));
        }
    }
    reading.pause(&mut told);
    (told, unreadable)
}

fn calls(told: &[Told]) -> Vec<&Call> {
    told.iter().filter_map(|told| if let What::Call(call) = &told.what { Some(call) } else { None }).collect()
}

fn sum(told: &[Told]) -> Usage {
    calls(told).iter().fold(Usage::default(), |sum, call| sum + call.usage)
}

fn shown(told: &[Told]) -> String {
    let mut text = String::new();
    for told in told {
        let at = told.at.map(|at| at.rfc3339()).unwrap_or_default();
        writeln!(text, "{at} {}", one_line(&format!("{:?}", told.what), 400)).unwrap();
    }
    text
}

const RECORDINGS: [(Source, &str); 6] = [
    (Source::Claude, "claude/session.jsonl"),
    (Source::Codex, "codex/rollout.jsonl"),
    (Source::OpenClaw, "openclaw/file-store.jsonl"),
    (Source::OpenClaw, "openclaw/version-4.jsonl"),
    (Source::OpenClaw, "openclaw/version-4-subagent.jsonl"),
    (Source::OpenClaw, "openclaw/handwritten.jsonl"),
];

#[test]
fn real_stores_tell_what_happened() {
    for (source, name) in RECORDINGS {
        let (told, unreadable) = read(source, &recording(name), usize::MAX);
        assert_eq!(unreadable, 0, "{name}");
        insta::assert_snapshot!(name.replace(['/', '.'], "-"), shown(&told));
    }
}

#[test]
fn wherever_reading_is_left_it_goes_on_the_same() {
    for (source, name) in RECORDINGS {
        let bytes = recording(name);
        let whole = read(source, &bytes, usize::MAX).0;
        for pause in [1, 2, 3, 7] {
            assert_eq!(read(source, &bytes, pause).0, whole, "{name}, every {pause} lines");
        }
    }
}

/// As the program itself summed it up at its end: `cost-state` of Claude Code, the last total of Codex.
#[test]
fn tokens_are_those_that_the_programs_count_themselves() {
    let (told, _) = read(Source::Claude, &recording("claude/session.jsonl"), usize::MAX);
    let expected = Usage { input: 45, cache_read: 9_300, cache_write: 3_230, output: 133, reasoning: 0 };
    assert_eq!(sum(&told), expected);
    assert_eq!(calls(&told).len(), 4, "one for each call, not for each of its lines");
    let (told, _) = read(Source::Codex, &recording("codex/rollout.jsonl"), usize::MAX);
    let expected = Usage { input: 840, cache_read: 160, cache_write: 0, output: 40, reasoning: 12 };
    assert_eq!((sum(&told), calls(&told).len()), (expected, 4));
}

/// Before calls were told one by one.
#[test]
fn totals_of_older_versions_come_to_the_same() {
    let text = String::from_utf8(recording("codex/rollout.jsonl")).unwrap();
    let old: String =
        text.split_inclusive('\n').filter(|line| !line.contains("\"token_usage_record\"")).collect();
    let (told, _) = read(Source::Codex, old.as_bytes(), 1);
    let expected = Usage { input: 840, cache_read: 160, cache_write: 0, output: 40, reasoning: 12 };
    assert_eq!((sum(&told), calls(&told).len()), (expected, 4));
    assert!(calls(&told).iter().all(|call| !call.is_shared), "nobody else can have told of them");
    // A fork begins with its parent's lines, and says whose they are.
    let own = "01a1e5cf-056d-7732-a866-52276e3dc640";
    let fork = old.replacen(
        &format!("\"id\":\"{own}\""),
        &format!("\"id\":\"01a1e5cf-ffff-7732-a866-52276e3dc640\",\"forked_from_id\":\"{own}\""),
        1,
    );
    assert_ne!(fork, old);
    let more = r#"{"timestamp":"2026-11-16T20:00:00.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1500,"cached_input_tokens":160,"output_tokens":50,"reasoning_output_tokens":12}}}}"#;
    let (forked, _) = read(Source::Codex, format!("{fork}{more}\n").as_bytes(), usize::MAX);
    let names =
        |told: &[Told]| -> Vec<String> { calls(told).iter().filter_map(|call| call.name.clone()).collect() };
    assert!(calls(&forked).iter().all(|call| call.is_shared));
    assert_eq!(names(&forked)[..4], names(&told)[..], "what was copied has the same names");
    assert_eq!(calls(&forked)[4].usage, Usage { input: 500, output: 10, ..Usage::default() });
    assert!(!names(&told).contains(&names(&forked)[4]));
}

#[test]
fn a_glance_at_the_beginning_and_the_end_tells_what_a_file_is_about() {
    let about = |source, name: &str| {
        let bytes = recording(name);
        let end = &bytes[bytes.len().saturating_sub(4_096)..];
        glance(source, "session", &bytes[..bytes.len().min(16_384)], end)
    };
    let claude = about(Source::Claude, "claude/session.jsonl");
    assert_eq!(claude.dialogue.as_deref(), Some("5e550000-0000-4000-8000-000000000001"));
    assert_eq!((claude.cwd.as_deref(), claude.parent), (Some("/campaign"), None));
    assert!(claude.prompt.unwrap().starts_with("Make the file."));
    assert!(claude.first < claude.last);
    let codex = about(Source::Codex, "codex/rollout.jsonl");
    assert_eq!(codex.dialogue.as_deref(), Some("01a1e5cf-056d-7732-a866-52276e3dc640"));
    assert_eq!((codex.cwd.as_deref(), codex.prompt.as_deref()), (Some("/campaign"), Some("say hi")));
    let openclaw = about(Source::OpenClaw, "openclaw/handwritten.jsonl");
    assert_eq!(openclaw.prompt.as_deref(), Some("first question"));
}

#[test]
fn a_rollout_without_its_first_line_is_what_its_name_says() {
    let bytes = recording("codex/rollout.jsonl");
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let own = "01a1e5cf-056d-7732-a866-52276e3dc640";
    let stem = format!("rollout-2026-11-16T19-21-52-{own}");
    let whole = glance(Source::Codex, &stem, &bytes, b"");
    let damaged: [Vec<u8>; 3] = [
        [b"garbage", &bytes[first..]].concat(),
        [&bytes[..100], &bytes[first..]].concat(),
        bytes[first + 1..].to_vec(),
    ];
    for bytes in damaged {
        let about = glance(Source::Codex, &stem, &bytes, b"");
        assert_eq!(about.dialogue.as_deref(), Some(own));
        assert_eq!(
            (&about.prompt, &about.cwd),
            (&whole.prompt, &whole.cwd),
            "what it worked in is said again"
        );
        assert_eq!(glance(Source::Codex, "rollout-of-mine", &bytes, b"").dialogue, None);
        // Of a fork the next line that says who somebody is is its parent's.
        let parent = br#"{"type":"session_meta","payload":{"id":"01a1e5cf-ffff-7732-a866-52276e3dc640","cwd":"/elsewhere"}}"#;
        let fork = [b"garbage\n", &parent[..], b"\n", &bytes[first..]].concat();
        assert_eq!(glance(Source::Codex, &stem, &fork, b"").dialogue.as_deref(), Some(own));
    }
    // Whatever stands before it, it says more than the name.
    let late = [b"\n", &bytes[..]].concat();
    assert_eq!(glance(Source::Codex, &stem, &late, b""), whole);
}

/// Lines of a call may be written between two imports; the last one says what it took.
#[test]
fn a_call_that_goes_on_after_it_was_told_is_told_the_rest() {
    let line = |output: u64| {
        format!(
            r#"{{"type":"assistant","sessionId":"s","requestId":"r","message":{{"id":"m","model":"claude-x","content":[{{"type":"text","text":"a"}}],"usage":{{"input_tokens":5,"output_tokens":{output}}}}}}}"#
        )
    };
    let mut told = Vec::new();
    let mut reading = reader(Source::Claude, None);
    for output in [1, 7] {
        take_in(reading.as_mut(), line(output).as_bytes(), 0, 1, &mut told);
    }
    reading.pause(&mut told);
    let mut reading = reader(Source::Claude, Some(&reading.memory()));
    for output in [7, 9] {
        take_in(reading.as_mut(), line(output).as_bytes(), 0, 1, &mut told);
    }
    reading.pause(&mut told);
    let outputs: Vec<(u64, u64, bool)> =
        calls(&told).iter().map(|call| (call.usage.input, call.usage.output, call.is_shared)).collect();
    assert_eq!(outputs, [(5, 7, true), (0, 2, false)]);
}

/// The flat form of the first versions, with and without a type, beside the last one.
#[test]
fn openclaw_is_read_in_all_its_forms() {
    let text = [
        r#"{"type":"session","version":1,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/c"}"#,
        r#"{"role":"user","content":"one","timestamp":1767225601000}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"two"}],"model":"m","usage":{"input":3,"output":4}}"#,
        r#"{"type":"user","content":"three"}"#,
        r#"{"type":"message","id":"1","parentId":null,"message":{"role":"assistant","content":[{"type":"text","text":"four"}],"stopReason":"stop"}}"#,
    ];
    let (told, unreadable) = read(Source::OpenClaw, text.join("\n").as_bytes(), 1);
    assert_eq!(unreadable, 0);
    let said: Vec<String> = told
        .iter()
        .filter_map(|told| match &told.what {
            What::Prompt { text, .. } => Some(format!("> {text}")),
            What::Completion(text) => Some(text.text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["> one", "two", "> three", "four"]);
    assert_eq!(sum(&told), Usage { input: 3, output: 4, ..Usage::default() });
}

/// What a crash, a full disk or somebody's editor leave behind.
#[test]
fn damaged_lines_are_counted_and_hide_nothing_behind_them() {
    for (source, name) in RECORDINGS {
        let bytes = recording(name);
        let whole = read(source, &bytes, usize::MAX).0;
        let mut damaged = b"\0\0\0\0\n\xff\xfe broken\n[1,2]\n{\"type\":\"user\",\n".to_vec();
        damaged.extend(b"{\"a\":".repeat(5_000));
        damaged.extend(b"\n\n   \n\"text\"\n");
        damaged.extend_from_slice(&bytes);
        let (told, unreadable) = read(source, &damaged, usize::MAX);
        assert_eq!(unreadable, 6, "{name}");
        let behind: Vec<What> = told.into_iter().skip(6).map(|told| told.what).map(without_place).collect();
        let whole: Vec<What> = whole.into_iter().map(|told| told.what).map(without_place).collect();
        assert_eq!(behind, whole, "{name}");
    }
}

fn without_place(what: What) -> What {
    match what {
        What::Prompt { text, .. } => What::Prompt { text, place: 0, images: Vec::new() },
        what => what,
    }
}

/// Every field of every line replaced by something else, one after another: nothing is refused, and nothing panics.
#[test]
fn fields_of_any_kind_are_read() {
    use serde_json::{Value, json};
    fn places(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, inner)| {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(path.clone());
                places(inner, &path, found);
            }),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(at, inner)| places(inner, &format!("{path}/{at}"), found))
            }
            _ => {}
        }
    }
    let strange = [
        json!(null),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!("\u{0}"),
        json!([]),
        json!([[{}]]),
        json!({}),
    ];
    for (source, name) in RECORDINGS {
        for line in recording(name).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: Value = serde_json::from_slice(line).unwrap();
            let mut found = Vec::new();
            places(&value, "", &mut found);
            for path in found {
                for other in &strange {
                    let mut changed = value.clone();
                    *changed.pointer_mut(&path).unwrap() = other.clone();
                    let mut reading = reader(source, None);
                    let mut told = Vec::new();
                    reading.object(changed, 0, &mut told);
                    reading.pause(&mut told);
                    let _ = reader(source, Some(&reading.memory()));
                }
            }
        }
    }
}

/// Pictures of prompts and of results, in the forms of all programs.
#[test]
fn pictures_are_told_with_what_they_are_of() {
    let data = "aGVsbG8=";
    let lines = [
        (
            Source::Claude,
            vec![
                format!(
                    r#"{{"type":"user","sessionId":"s","message":{{"role":"user","content":[{{"type":"text","text":"look"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}}}"#
                ),
                format!(
                    r#"{{"type":"user","sessionId":"s","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}]}}}}"#
                ),
            ],
        ),
        (
            Source::Codex,
            vec![
                format!(
                    r#"{{"type":"event_msg","payload":{{"type":"user_message","message":"look","images":["data:image/png;base64,{data}"]}}}}"#
                ),
                format!(
                    r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"t1","output":[{{"type":"input_image","image_url":"data:image/png;base64,{data}"}}]}}}}"#
                ),
            ],
        ),
        (
            Source::OpenClaw,
            vec![
                format!(
                    r#"{{"type":"message","id":"1","message":{{"role":"user","content":[{{"type":"text","text":"look"}},{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
                ),
                format!(
                    r#"{{"type":"message","id":"2","message":{{"role":"toolResult","toolCallId":"t1","content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
                ),
            ],
        ),
    ];
    for (source, lines) in lines {
        let (told, _) = read(source, format!("{}\n", lines.join("\n")).as_bytes(), usize::MAX);
        let whats: Vec<&What> = told.iter().map(|told| &told.what).collect();
        let [What::Prompt { text, images, .. }, What::Image(shown), What::ToolResult(result)] = whats[..]
        else {
            panic!("{source:?}: {whats:?}")
        };
        assert_eq!((text.as_str(), images.len(), result.output.as_str()), ("look", 1, ""), "{source:?}");
        assert_eq!((shown.tool_id.as_deref(), result.tool_id.as_str()), (Some("t1"), "t1"), "{source:?}");
        assert_eq!((images[0].data(), &images[0]), (Some(&b"hello"[..]), &shown.image), "{source:?}");
    }
    // A picture alone has a word, so that there is something to be listed.
    let alone = format!(
        r#"{{"type":"message","id":"1","message":{{"role":"user","content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
    );
    let (told, _) = read(Source::OpenClaw, format!("{alone}\n").as_bytes(), usize::MAX);
    assert!(
        matches!(&told[0].what, What::Prompt { text, images, .. } if text == "[image]" && images.len() == 1)
    );
}
