//! Every recording of the real program, played to the dialogue. What it understood is pinned as text that a person can
//! check against the recording; `OSTLER_BLESS=1` writes missing files.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod recording;
mod words;

use std::{fs, path::Path};

use ostler_domain::{Usage, session::Report};
use ostler_providers::{Dialogue, DialogueState, Heard, Provider, claude_code::ClaudeCode};

use ostler_tape::{Line, LineBody, Stream};
use recording::Recording;

fn dialogue(state: Option<&DialogueState>) -> Box<dyn Dialogue> {
    ClaudeCode.dialogue(state).unwrap()
}

fn play(recording: &Recording) -> Vec<Heard> {
    let mut dialogue = dialogue(None);
    let mut heard = Vec::new();
    for line in recording.lines() {
        dialogue.on_line(&line, &mut heard);
    }
    heard
}

#[test]
fn every_recording_means_what_it_meant() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude_code/expected");
    let mut different = Vec::new();
    for recording in Recording::all() {
        let text = words::tell(&play(&recording));
        let path = dir.join(format!("{}.txt", recording.name));
        match fs::read_to_string(&path) {
            Ok(expected) if expected == text => {}
            Err(_) if std::env::var_os("OSTLER_BLESS").is_some() => {
                fs::create_dir_all(&dir).unwrap();
                fs::write(&path, text).unwrap();
            }
            _ => different.push(format!("{}:\n{text}", recording.name)),
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn a_daemon_that_dies_between_any_two_records_hears_the_same() {
    for recording in Recording::all() {
        let mut whole = dialogue(None);
        let mut cut = dialogue(None);
        let (mut heard, mut heard_again) = (Vec::new(), Vec::new());
        for line in recording.lines() {
            // Saved and restored before each record, by a daemon that has just been started.
            cut = dialogue(Some(&cut.state()));
            whole.on_line(&line, &mut heard);
            cut.on_line(&line, &mut heard_again);
            assert_eq!(heard, heard_again, "{}", recording.name);
            assert_eq!(whole.state(), cut.state(), "{}", recording.name);
        }
    }
}

#[test]
fn a_state_of_another_version_is_rebuilt_from_the_tape() {
    for recording in Recording::all() {
        let lines = recording.lines();
        for middle in [lines.len() / 3, lines.len() / 2, lines.len()] {
            let (before, after) = lines.split_at(middle);
            let mut known = dialogue(None);
            let mut discarded = Vec::new();
            before.iter().for_each(|line| known.on_line(line, &mut discarded));
            let stale = DialogueState { version: u32::MAX, ..known.state() };
            assert!(ClaudeCode.dialogue(Some(&stale)).is_err());
            let mut folded = dialogue(None);
            before.iter().for_each(|line| folded.on_line(line, &mut discarded));
            assert_eq!(known.state(), folded.state(), "{}", recording.name);
            let (mut heard, mut heard_again) = (Vec::new(), Vec::new());
            after.iter().for_each(|line| known.on_line(line, &mut heard));
            after.iter().for_each(|line| folded.on_line(line, &mut heard_again));
            assert_eq!(heard, heard_again, "{}", recording.name);
        }
    }
}

#[test]
fn tokens_add_up_to_what_the_program_counted_itself() {
    let mut compared = 0;
    for recording in Recording::all() {
        let Some(counted) = recording.counted() else { continue };
        // The program forgets what a call cost whose answer was interrupted; the server does not.
        if recording.has_an_interrupted_answer() || recording.has_a_reset() {
            continue;
        }
        let usages = play(&recording).into_iter().filter_map(|heard| match heard {
            Heard::Report(Report::Usage(call)) => Some(call.usage),
            _ => None,
        });
        let sum = usages.fold(Usage::default(), |sum, usage| sum + usage);
        assert_eq!(Usage { reasoning: 0, ..sum }, counted, "{}", recording.name);
        compared += 1;
    }
    assert!(compared > 50, "only {compared} recordings have totals to compare with");
}

#[test]
fn the_calls_of_the_golden_session_are_known_one_by_one() {
    let golden = Recording::all().into_iter().find(|recording| recording.name == "golden-session").unwrap();
    let calls: Vec<_> = play(&golden)
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Report(Report::Usage(call)) => {
                let Usage { input, cache_write, cache_read, output, .. } = call.usage;
                Some((call.call.is_some(), input, cache_write, cache_read, output))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            (true, 11, 3000, 0, 61),
            (true, 12, 100, 3000, 42),
            (true, 13, 80, 3100, 23),
            (true, 9, 50, 3200, 7)
        ]
    );
}

#[test]
fn what_reading_a_picture_gives_is_the_picture() {
    let line = serde_json::json!({
        "type": "user", "session_id": "s", "parent_tool_use_id": null,
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
        ]}]},
        "tool_use_result": {"type": "image", "file": {"base64": "aGVsbG8=", "type": "image/png", "originalSize": 5}},
    });
    let mut heard = Vec::new();
    let body = LineBody::Whole(line.to_string().into_bytes().into());
    let line = Line { stream: Stream::Out, start: 0, end: 1, time_us: 0, body, input: None };
    dialogue(None).on_line(&line, &mut heard);
    let reports: Vec<&Report> = heard
        .iter()
        .filter_map(|heard| if let Heard::Report(report) = heard { Some(report) } else { None })
        .collect();
    let [.., Report::Image(shown), Report::ToolResult(result)] = reports[..] else { panic!("{heard:?}") };
    assert_eq!((shown.tool_id.as_deref(), shown.image.data()), (Some("toolu_1"), Some(&b"hello"[..])));
    assert_eq!((result.tool_id.as_str(), result.output.as_str()), ("toolu_1", ""));
}
