//! Screens: what is known, laid out for people. Pure: data, a moment and a look go in, lines come out.

pub(crate) mod activity;
pub(crate) mod agent;
pub(crate) mod approval;
pub(crate) mod attack;
pub(crate) mod campaign;
pub(crate) mod chain;
pub(crate) mod conversation;
pub(crate) mod cost;
mod edit;
pub(crate) mod message;
pub(crate) mod mission;
pub(crate) mod money;
pub(crate) mod reboot;
pub(crate) mod retention;
pub(crate) mod row;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod sessions;
mod tell;
pub(crate) mod ticket;
pub(crate) mod trace;
pub(crate) mod tree;
pub(crate) mod worktree;

use crate::output::{Line, Tone};

/// A label and what belongs to it: `why      The kernel ended it.`
pub(crate) fn field(label: &str, text: Line) -> Line {
    Line::new().faint(format!("{label:<8} ")).append(text)
}

/// Commands to paste, with what they do, under one label.
pub(crate) fn next_steps(steps: &[(String, &str)]) -> Vec<Line> {
    let column = steps.iter().map(|(command, _)| Line::of(command).width()).max().unwrap_or(0);
    let step = |(n, (command, effect)): (usize, &(String, &str))| {
        let command = Line::toned(Tone::Accent, command);
        let line =
            if effect.is_empty() { command } else { command.padded(column).plain("   ").faint(effect) };
        field(if n == 0 { "next" } else { "" }, line)
    };
    steps.iter().enumerate().map(step).collect()
}
