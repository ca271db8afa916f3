//! What the record knows of a session's work, from its events alone.

use super::{Known, LAST_TURNS, MOST_CHARS, MOST_ITEMS, Made, Said, TURN_CHARS, TestRun};
use crate::{
    Event,
    event::{By, ToolCall},
    text::{head, one_line},
};

/// Words that commands which test something begin with, whatever stands before them (`cd x &&`, `env A=b`).
const TESTS: &[&str] = &[
    "cargo test",
    "cargo nextest",
    "npm test",
    "npm run test",
    "pnpm test",
    "yarn test",
    "pytest",
    "python -m pytest",
    "go test",
    "make test",
    "make check",
    "just test",
    "mvn test",
    "gradle test",
    "bundle exec rspec",
    "ctest",
    "tox",
];

/// Tools that write a file, as the providers name them.
const WRITERS: &[&str] =
    &["edit", "write", "multiedit", "notebookedit", "apply_patch", "write_file", "edit_file", "patch"];

/// Goes through a session's events in their order.
pub fn gather<'a>(events: impl IntoIterator<Item = &'a Event>) -> Known {
    let mut known = Known::default();
    let mut steps: Vec<String> = Vec::new();
    // Tests under way, by the call that runs them.
    let mut running: Vec<(String, usize)> = Vec::new();
    for event in events {
        match event {
            Event::MessageAccepted(accepted) if accepted.by != By::ostler() => {
                let text = &accepted.message.text;
                if known.asked.is_empty() {
                    known.asked = head(text, TURN_CHARS * 2).to_owned();
                }
                known
                    .last_turns
                    .push(Said { told: head(text, TURN_CHARS).to_owned(), answered: String::new() });
            }
            Event::AgentCompletion(text) if text.subagent.is_none() => {
                let answered = head(&text.text, TURN_CHARS).to_owned();
                match known.last_turns.last_mut().filter(|said| said.answered.is_empty()) {
                    Some(said) => said.answered = answered,
                    None => known.last_turns.push(Said { told: String::new(), answered }),
                }
            }
            Event::StepStarted(step) => steps.push(step.name.clone()),
            Event::StepEnded(step) => {
                steps.retain(|open| *open != step.name);
                if step.success {
                    known.finished.push(noted(&step.name, &step.note));
                } else {
                    known.unfinished.push(noted(&format!("{} failed", step.name), &step.note));
                }
            }
            Event::DoneReported(done) if !done.note.is_empty() => known.finished.push(done.note.clone()),
            Event::AgentToolCall(call) => {
                if let Some(file) = written(call) {
                    known.files.retain(|known| *known != file);
                    known.files.push(file);
                }
                if let Some(command) = tested(call) {
                    running.push((call.tool_id.clone(), known.tests.len()));
                    known.tests.push(TestRun { command, success: None });
                }
            }
            Event::AgentToolResult(result) => {
                if let Some(place) = running.iter().position(|(id, _)| *id == result.tool_id) {
                    let (_, test) = running.swap_remove(place);
                    known.tests[test].success =
                        Some(result.success && result.exit.is_none_or(|exit| exit == 0));
                }
            }
            _ => {}
        }
    }
    known.unfinished.extend(steps);
    // What is asked for stands above already.
    if known.last_turns.first().is_some_and(|said| said.told == known.asked) {
        known.last_turns[0].told.clear();
    }
    known.trim();
    known
}

impl Known {
    /// Keeps the end of each list: a long row of sessions hands on no more than a short one.
    pub(crate) fn trim(&mut self) {
        keep_last(&mut self.last_turns, LAST_TURNS);
        keep_last(&mut self.tests, MOST_ITEMS / 4);
        for texts in [&mut self.finished, &mut self.unfinished, &mut self.files, &mut self.commits] {
            keep_last(texts, MOST_ITEMS);
            texts.iter_mut().for_each(|text| *text = one_line(text, MOST_CHARS));
        }
    }

    /// Adds what became of the tree: commits, and files that no tool named, such as those that a shell wrote.
    pub(crate) fn add_made(&mut self, made: Made, working_dir: &str) {
        let within = |file: &str| {
            let below = file.strip_prefix(working_dir).and_then(|rest| rest.strip_prefix('/'));
            below.unwrap_or(file).to_owned()
        };
        let named: Vec<String> = self.files.iter().map(|file| within(file)).collect();
        let others = made.files.into_iter().filter(|file| !named.contains(file));
        self.files = others.chain(named.iter().cloned()).collect();
        self.commits.extend(made.commits);
    }
}

fn keep_last<T>(items: &mut Vec<T>, most: usize) {
    items.drain(..items.len().saturating_sub(most));
}

fn noted(name: &str, note: &str) -> String {
    if note.is_empty() { name.to_owned() } else { format!("{name}: {note}") }
}

/// The file that a call writes, as its summary names it.
pub fn written(call: &ToolCall) -> Option<String> {
    let tool = call.tool.to_ascii_lowercase();
    let is_writer = WRITERS.iter().any(|writer| tool == *writer || tool.ends_with(&format!("_{writer}")));
    let file = one_line(call.summary.trim(), MOST_CHARS);
    (is_writer && !file.is_empty()).then_some(file)
}

/// The test command that a call runs.
fn tested(call: &ToolCall) -> Option<String> {
    let line = call.summary.trim();
    let is_test = |part: &str| TESTS.iter().any(|test| part.trim_start().starts_with(test));
    let parts = line.split(['&', ';', '|', '"', '\'']).any(is_test);
    parts.then(|| one_line(line, MOST_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::{StepEnded, StepStarted},
        event::ToolResult,
    };

    fn call(tool: &str, id: &str, summary: &str) -> Event {
        Event::AgentToolCall(ToolCall {
            tool: tool.to_owned(),
            tool_id: id.to_owned(),
            summary: summary.to_owned(),
            input: String::new(),
            subagent: None,
        })
    }

    fn result(id: &str, exit: i32) -> Event {
        Event::AgentToolResult(ToolResult {
            tool_id: id.to_owned(),
            success: true,
            exit: Some(exit),
            output: String::new(),
            subagent: None,
        })
    }

    #[test]
    fn the_record_fills_what_the_agent_did_not_say() {
        let step = |name: &str| StepStarted { name: name.to_owned(), note: String::new() };
        let events = [
            Event::StepStarted(step("build")),
            Event::StepStarted(step("docs")),
            call("Edit", "1", "src/login.rs"),
            call("Write", "2", "src/limit.rs"),
            call("Edit", "3", "src/login.rs"),
            call("Bash", "4", "cd api && cargo test login"),
            result("4", 101),
            call("shell", "5", "bash -lc 'cargo nextest run'"),
            call("Bash", "6", "ls"),
            Event::StepEnded(StepEnded { name: "build".to_owned(), success: true, note: "green".to_owned() }),
            Event::AgentCompletion("Half of it works.".into()),
        ];
        let known = gather(&events);
        assert_eq!(known.files, ["src/limit.rs", "src/login.rs"]);
        assert_eq!(known.finished, ["build: green"]);
        assert_eq!(known.unfinished, ["docs"]);
        let tests: Vec<_> = known.tests.iter().map(|test| test.success).collect();
        assert_eq!(tests, [Some(false), None]);
        assert_eq!(known.last_turns[0].answered, "Half of it works.");
    }

    #[test]
    fn what_became_of_the_tree_is_told_once_however_it_was_written() {
        let mut known =
            gather(&[call("Edit", "1", "/home/ann/shop/src/login.rs"), call("Write", "2", "README.md")]);
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let made = Made {
            files: texts(&["README.md", "dist/app.js", "src/login.rs"]),
            commits: texts(&["1a2b3c4 fix the login"]),
        };
        known.add_made(made, "/home/ann/shop");
        assert_eq!(known.files, ["dist/app.js", "src/login.rs", "README.md"]);
        assert_eq!(known.commits, ["1a2b3c4 fix the login"]);
    }

    #[test]
    fn long_lives_are_told_by_their_end() {
        let events: Vec<Event> = (0..200)
            .flat_map(|n| {
                [call("Edit", "1", &format!("f{n}.rs")), Event::AgentCompletion(format!("turn {n}").into())]
            })
            .collect();
        let known = gather(&events);
        assert_eq!((known.files.len(), known.last_turns.len()), (MOST_ITEMS, LAST_TURNS));
        assert_eq!(known.last_turns.last().unwrap().answered, "turn 199");
    }
}
