//! What an agent does now, and what it was at when it ended.

use ostler_domain::event::{ToolCall, ToolResult};

use super::*;

fn run(id: &str, command: &str) -> Report {
    Report::ToolCall(ToolCall {
        tool: "run".to_owned(),
        tool_id: id.to_owned(),
        summary: command.to_owned(),
        input: String::new(),
        subagent: None,
    })
}

fn result(id: &str, success: bool) -> Report {
    Report::ToolResult(ToolResult {
        tool_id: id.to_owned(),
        success,
        exit: None,
        output: String::new(),
        subagent: None,
    })
}

impl Life {
    /// What it does now, and since which step.
    fn now(&self) -> (String, u64) {
        let doing = self.state.view().doing.unwrap();
        let steps = (0..=self.step).find(|step| context(*step).now.wall == doing.since);
        (doing.text, steps.unwrap())
    }

    fn last(&self) -> Option<String> {
        self.state.ended().unwrap().obituary.last.clone()
    }
}

#[test]
fn a_command_whose_result_is_in_does_not_run_any_more() {
    let mut life = Life::plain();
    life.working().report(run("a", "sleep 1"));
    let called = life.step;
    assert_eq!(life.now(), ("run: sleep 1".to_owned(), called));
    life.report(result("a", true));
    assert_eq!(life.now(), ("after run: sleep 1".to_owned(), life.step));
    life.report(Report::Completion("it slept".into()));
    assert_eq!(life.now().0, "“it slept”");
    life.report(run("b", "false")).report(result("b", false));
    assert_eq!(life.now(), ("after run: false, which failed".to_owned(), life.step));
    assert_eq!(life.state.view().evidence, life.now().0);
}

#[test]
fn of_several_calls_the_newest_open_one_is_what_it_does() {
    let mut life = Life::plain();
    life.working().report(run("a", "make"));
    let first = life.step;
    life.report(run("b", "ls")).report(Report::Completion("both run".into()));
    assert_eq!(life.now().0, "run: ls");
    life.report(result("b", true)).report(result("unknown", true));
    assert_eq!(life.now(), ("run: make".to_owned(), first));
    life.report(result("a", true));
    assert_eq!(life.now().0, "after run: make");
}

#[test]
fn only_an_open_call_ended_without_a_result() {
    let killed = How::Signaled { signal: 9 };
    let mut open = Life::plain();
    open.working().report(run("a", "make")).exit(killed.clone());
    let last = open.last().unwrap();
    assert!(
        last.starts_with("run: make, started ") && last.ends_with(" before the end, no result"),
        "{last}"
    );
    let mut over = Life::plain();
    over.working().report(run("a", "make")).report(result("a", false)).exit(killed);
    let last = over.last().unwrap();
    assert!(last.starts_with("run: make, failed ") && last.ends_with(" before the end"), "{last}");
    let mut lost = Life::plain();
    lost.working().report(run("a", "make")).exit(How::Lost { reason: "the machine restarted".into() });
    assert_eq!(lost.last().unwrap(), "run: make, no result", "nobody knows when it ended");
    let mut rests = Life::plain();
    rests.working().report(run("a", "make")).report(result("a", true));
    rests.report(Report::TurnEnded { stop_reason: StopReason::Completed }).exit(How::Exited { code: 0 });
    assert_eq!(rests.last(), None);
}
