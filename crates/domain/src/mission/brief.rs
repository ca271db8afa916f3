//! What a member's agent is told: who it is, what all are to reach, its task, and what came of those before it.

use std::fmt::Write;

use super::{
    AssignmentStatus, State, Strategy,
    assignment::cut,
    plan::{CompleteWhen, Given, Worktree},
};
use crate::{Time, limits::BRIEF_RESULTS_BYTES};

/// The first words to the agent of the assignment at this place. Files that it is given are named, not read.
pub fn brief(state: &State, place: usize) -> String {
    let (slot, work) = (&state.slots()[place], state.work(place));
    let assignment = &slot.assignment;
    let mut text = String::new();
    let same = state.slots().iter().filter(|other| other.assignment.member == assignment.member).count();
    let number = match same {
        0 | 1 => String::new(),
        n => format!(", number {} of {n} with this task", assignment.instance),
    };
    let _ = writeln!(
        text,
        "You are {} ({}{number}) in a mission of several agents. Its objective:\n\n{}\n\n# Your task\n\n{}",
        assignment.name,
        assignment.role,
        state.plan().objective,
        work.task
    );
    given(&mut text, &work.inputs);
    results(&mut text, state, place, None);
    if !work.paths.is_empty() {
        let _ = writeln!(text, "\n# Where you may write\n\nOnly here: {}", work.paths.join(", "));
    }
    if let Some(trouble) = &slot.trouble {
        let _ = writeln!(
            text,
            "\n# What happened before\n\nThis was tried before and came to nothing: {trouble}\nLook at what is there \
             before you do anything again."
        );
    }
    team(&mut text, state, place);
    let end = match &work.complete_when {
        CompleteWhen::Turn => {
            "Your work is over when your turn ends. What you say last is handed on.".to_owned()
        }
        CompleteWhen::Done => {
            "When your work is done, run `ostler done`. What you say last is handed on.".to_owned()
        }
        CompleteWhen::Check(command) => {
            format!("Your work is done when this succeeds: {command}\nWhat you say last is handed on.")
        }
    };
    let _ = writeln!(text, "\n# The end\n\n{end}");
    if state.plan().merge.is_some() && work.worktree != Worktree::None && state.is_merge_source(place) {
        text.push_str("Only what you commit on your branch is merged: leave nothing uncommitted.\n");
    }
    text
}

/// How it reaches the others, and they it.
fn team(text: &mut String, state: &State, place: usize) {
    let assignment = &state.slots()[place].assignment;
    let name = &assignment.name;
    let _ = writeln!(
        text,
        "\n# The others\n\nIn $OSTLER_MISSION_DIR, which all of you share, are the objective and the plan (context), a \
         directory for files that you hand on (agents/{name}), and what others say to you (messages/inbox/{name}). \
         `ostler send NAME TEXT` says something to another who works now; messages/outbox/{name} has the receipts."
    );
    let limits = &state.plan().limits;
    if state.plan().strategy == Strategy::Adaptive && limits.added > 0 && assignment.depth < limits.depth {
        text.push_str(
            "`ostler mission add FILE` adds agents to this mission; the file is TOML with [[agents]], each with name, \
             task and, where it waits for others, needs = [names].\n",
        );
    }
}

fn given(text: &mut String, inputs: &[Given]) {
    if inputs.is_empty() {
        return;
    }
    text.push_str("\n# What you are given\n\n");
    for input in inputs {
        let _ = match input {
            Given::File(path) => writeln!(text, "- the file {path}"),
            Given::Text(words) => writeln!(text, "{words}\n"),
        };
    }
}

/// What came of the agents that it needs since its last attempt began, where something of it was done again; else nothing.
pub fn redone(state: &State, place: usize, since: Time) -> String {
    let mut text = String::new();
    results(&mut text, state, place, Some(since));
    text
}

/// What the agents that it needs have said and made, each in its share of the room; only what is newer than a moment,
/// where one is said.
fn results(text: &mut String, state: &State, place: usize, since: Option<Time>) {
    let is_new = |need: &usize| {
        let end = state.slots()[*need].end();
        end.is_some_and(|end| since.is_none_or(|since| end.at > since))
    };
    let needs = state.graph().needs(place).iter().map(|need| *need as usize);
    let over: Vec<usize> = needs.filter(is_new).collect();
    if over.is_empty() {
        return;
    }
    let share = (BRIEF_RESULTS_BYTES / over.len()).max(200);
    text.push_str(match since {
        None => "\n# What came before you\n",
        Some(_) => "\n# What was done again before you, since then\n",
    });
    for need in over {
        let slot = &state.slots()[need];
        let Some(end) = slot.end().filter(|_| !slot.removed) else { continue };
        let _ = writeln!(text, "\n## {} ({})\n", slot.assignment.name, end.status.as_str());
        if end.status != AssignmentStatus::Completed {
            let _ = writeln!(text, "It was not completed: {}", cut(&end.why, share));
        }
        if !end.product.text.is_empty() {
            let _ = writeln!(text, "{}", cut(&end.product.text, share));
        }
        for output in &end.product.outputs {
            let _ =
                writeln!(text, "- {} ({}): {}", output.name, output.kind.as_str(), cut(&output.value, share));
        }
    }
}
