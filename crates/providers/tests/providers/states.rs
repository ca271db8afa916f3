//! What holds for the dialogue of every provider there is: its state is a function of the tape alone, and one of another
//! version is not read.

#[expect(dead_code, reason = "the tests of Claude Code use the rest")]
#[path = "../claude_code/recording.rs"]
mod claude;

use ostler_domain::session::Report;
use ostler_providers::{DialogueState, Heard, Provider, registry};
use ostler_tape::{InputMark, Line, LineBody, Stream};

use crate::{openclaw, recording::all};

/// A tape, by its name.
type Tape = (String, Vec<Line<'static>>);

/// Tapes of a provider. One that is added has to have some.
fn tapes(provider: &str) -> Vec<Tape> {
    let of =
        |folder, prefix, name| all(folder, prefix, name).into_iter().map(|one| one.into_tape()).collect();
    match provider {
        "claude-code" => {
            claude::Recording::all().into_iter().map(|one| (one.name.clone(), one.lines())).collect()
        }
        "codex" => of("codex", "app-server-", "codex"),
        "openclaw" => openclaw::recordings().into_iter().map(|one| one.into_tape()).collect(),
        // Ostler's own agent speaks ACP as others do.
        "openai-api" | "acp:any" => of("acp", "", "acp:any"),
        "script" => vec![("a-turn".to_owned(), script())],
        other => panic!("there is no tape of {other}"),
    }
}

fn script() -> Vec<Line<'static>> {
    let said = [
        r#"{"type":"ready"}"#,
        r#"{"type":"turn_started","prompt":"msg_00000000000000000000000001"}"#,
        r#"{"type":"tool_call","id":"call-1","tool":"run","summary":"git status","input":"git status"}"#,
        r#"{"type":"tool_result","id":"call-1","ok":true,"exit":0,"output":"clean"}"#,
        r#"{"type":"say","text":"done"}"#,
        r#"{"type":"turn_ended","reason":"completed"}"#,
    ];
    let prompt = r#"{"type":"prompt","id":"msg_00000000000000000000000001","text":"look"}"#;
    let tag = "prompt:msg_00000000000000000000000001".to_owned();
    let told = (Stream::In, prompt, Some(InputMark { input_no: 1, tag }));
    let mut lines: Vec<_> = said.iter().map(|text| (Stream::Out, *text, None)).collect();
    lines.insert(1, told);
    let line = |(number, (stream, text, input)): (usize, (Stream, &str, Option<InputMark>))| {
        let start = number as u64 * 100;
        let body = LineBody::Whole(text.as_bytes().to_vec().into());
        Line { stream, start, end: start + 100, time_us: 1_000_000, body, input }
    };
    lines.into_iter().enumerate().map(line).collect()
}

fn every_provider() -> Vec<std::sync::Arc<dyn Provider>> {
    registry::all().into_iter().chain(registry::find("acp:any")).collect()
}

/// What a new dialogue hears of lines, and where it is then.
fn folded(provider: &dyn Provider, lines: &[Line<'_>]) -> (Vec<Heard>, DialogueState) {
    let mut dialogue = provider.dialogue(None).unwrap();
    let mut heard = Vec::new();
    lines.iter().for_each(|line| dialogue.on_line(line, &mut heard));
    (heard, dialogue.state())
}

#[test]
fn a_state_of_another_version_is_not_read() {
    for provider in every_provider() {
        for (name, lines) in tapes(provider.name()) {
            let state = folded(provider.as_ref(), &lines).1;
            for version in [state.version + 1, state.version.wrapping_sub(1), u32::MAX] {
                let stale = DialogueState { version, ..state.clone() };
                assert!(provider.dialogue(Some(&stale)).is_err(), "{} {name}: {version}", provider.name());
            }
            assert!(provider.dialogue(Some(&state)).is_ok(), "{} {name}", provider.name());
        }
    }
}

#[test]
fn a_state_is_rebuilt_from_the_tape_alone_and_hears_the_same_from_there() {
    for provider in every_provider() {
        for (name, lines) in tapes(provider.name()) {
            let name = format!("{} {name}", provider.name());
            let (whole, last) = folded(provider.as_ref(), &lines);
            assert!(whole.iter().any(|heard| matches!(heard, Heard::Report(_))), "{name} says nothing");
            for middle in [0, 1, lines.len() / 3, lines.len() / 2, lines.len() - 1, lines.len()] {
                let (before, after) = lines.split_at(middle.min(lines.len()));
                // What is heard while a tape is folded again is discarded; the rest is heard for the first time.
                let (discarded, rebuilt) = folded(provider.as_ref(), before);
                let mut dialogue = provider.dialogue(Some(&rebuilt)).unwrap();
                let mut heard = discarded;
                after.iter().for_each(|line| dialogue.on_line(line, &mut heard));
                assert_eq!(heard, whole, "{name}: cut behind line {middle}");
                assert_eq!(dialogue.state(), last, "{name}: cut behind line {middle}");
            }
        }
    }
}

/// What a program prints in a mode that Ostler does not drive is kept, and taken for nothing.
#[test]
fn lines_of_another_protocol_are_kept_as_unknown_and_mean_nothing() {
    let mut tapes: Vec<(&str, Tape)> =
        all("codex", "exec-json-", "codex").into_iter().map(|one| ("codex", one.into_tape())).collect();
    assert_eq!(tapes.len(), 7);
    let local = include_str!("../recordings/openclaw/agent-local-json.json");
    let lines = local.lines().enumerate().map(|(number, text)| {
        let start = number as u64 * 1_000;
        let body = LineBody::Whole(text.as_bytes().to_vec().into());
        Line { stream: Stream::Out, start, end: start + 1_000, time_us: 0, body, input: None }
    });
    tapes.push(("openclaw", ("agent-local-json".to_owned(), lines.collect())));
    for (provider, (name, lines)) in tapes {
        let provider = registry::find(provider).unwrap();
        let (heard, _) = folded(provider.as_ref(), &lines);
        let kept = heard.iter().filter(|heard| {
            assert!(
                matches!(heard, Heard::Report(Report::Opaque(_) | Report::Stderr(_))),
                "{name}: {heard:?}"
            );
            true
        });
        let said = lines.iter().filter(|line| line.stream != Stream::In).count();
        assert_eq!(kept.count(), said, "{name}: every line is kept");
    }
}
