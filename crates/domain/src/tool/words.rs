//! What a model is told of its call: short texts, because they are read again with every call that follows.

use serde_json::json;

use super::ALL;
use crate::{
    Refusal,
    ask::Found,
    call::Reply,
    session::View,
    text::one_line,
    ticket::{Step, Whole},
};

/// How much of one thing that was found is told.
const FOUND: usize = 400;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub ok: bool,
    pub text: String,
}

/// What the reply to a tool's call comes to in words. None where nobody answers: then the call is on the tape.
pub fn told(tool: &str, reply: Option<&Reply>) -> Told {
    let only_reads = ALL.iter().any(|known| known.name == tool && known.only_reads);
    let text = match reply {
        Some(Reply::Refused(refusal)) => return Told { ok: false, text: refused(refusal) },
        None | Some(Reply::Taped { .. }) if only_reads => {
            return Told { ok: false, text: "nobody answers: the daemon is away; go on without".to_owned() };
        }
        None | Some(Reply::Taped { .. }) => {
            "recorded; the daemon is away, and hears it when it is back".to_owned()
        }
        Some(Reply::Ok {}) => "ok".to_owned(),
        Some(Reply::Session(view)) => session(view),
        Some(Reply::Spawned { session, name, budget }) => {
            let within = budget.map(|budget| format!(" with {budget} of your budget")).unwrap_or_default();
            format!("started {name} ({}){within}", session.short())
        }
        Some(Reply::Sent { message }) => format!("accepted as {message}"),
        Some(Reply::Assigned { names }) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!("added {}", names.join(", "))
        }
        Some(Reply::Found(found)) if found.is_empty() => "nothing found".to_owned(),
        Some(Reply::Found(found)) => found.iter().map(hit).collect::<Vec<_>>().join("\n"),
        Some(Reply::Ticket(whole)) => ticket(whole),
    };
    Told { ok: true, text }
}

fn refused(refusal: &Refusal) -> String {
    let why = refusal.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{why}", refusal.message)
}

fn hit(found: &Found) -> String {
    format!("{} {} {} {}", found.time, found.session, found.kind, one_line(&found.text, FOUND))
}

fn session(view: &View) -> String {
    let budget =
        view.budget.as_ref().map(|budget| json!({"tokens": budget.tokens, "dollars": budget.dollars}));
    json!({
        "session": view.id.short(),
        "name": view.name,
        "provider": view.provider,
        "model": view.model,
        "turns": view.turns,
        "tokens": {"input": view.usage.input, "output": view.usage.output},
        "cost": view.cost.paid.to_string(),
        "budget": budget,
        "ticket": view.ticket,
        "branch": view.branch,
        "messages_waiting": view.messages_waiting,
    })
    .to_string()
}

fn ticket(whole: &Whole) -> String {
    let ticket = &whole.ticket;
    let mut lines = vec![
        format!("{} · {} · {}", ticket.shown(), ticket.about.kind, ticket.status.as_str()),
        ticket.about.intent.clone(),
    ];
    let mut list = |title: &str, rows: Vec<String>| {
        if !rows.is_empty() {
            lines.push(format!("{title}:"));
            lines.extend(rows.into_iter().map(|row| format!("- {row}")));
        }
    };
    let blockers = whole.depends_on.iter();
    list("waits for", blockers.map(|on| format!("{} ({})", on.title, on.status.as_str())).collect());
    list("steps", whole.steps.iter().map(step).collect());
    let outputs = whole.outputs.iter().map(|output| &output.what);
    list("outputs", outputs.map(|output| format!("{}: {}", output.name, output.value)).collect());
    let attempts = whole.iterations.iter().map(|one| {
        let result = one.result.map_or("goes on", |outcome| outcome.as_str());
        format!("{} {} {result}", one.session.short(), one.provider)
    });
    list("attempts", attempts.collect());
    lines.join("\n")
}

fn step(step: &Step) -> String {
    let how = match (step.ended, step.success) {
        (None, _) => "goes on",
        (Some(_), Some(false)) => "failed",
        (Some(_), _) => "done",
    };
    let note = if step.note.is_empty() { String::new() } else { format!(": {}", step.note) };
    format!("{} {how}{note}", step.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reason, call::denied};

    #[test]
    fn answers_are_short_and_say_whether_it_is_so() {
        assert_eq!(told("note", Some(&Reply::Ok {})), Told { ok: true, text: "ok".to_owned() });
        assert!(told("note", None).ok, "it is on the tape");
        assert!(!told("search", None).ok, "and nobody reads it out");
        let refusal =
            Refusal::new(Reason::WrongState, "8 helpers are at work already").because("8 is the limit");
        let text = "8 helpers are at work already: 8 is the limit".to_owned();
        assert_eq!(told("spawn", Some(&Reply::Refused(refusal))), Told { ok: false, text });
        assert!(!told("send", Some(&Reply::Refused(denied()))).ok);
        let found = Found {
            session: "k7q4x".to_owned(),
            kind: "AGENT_COMPLETION".to_owned(),
            time: "2026-11-16T18:00:00Z".to_owned(),
            text: "a\nb".to_owned(),
        };
        let text = told("search", Some(&Reply::Found(vec![found]))).text;
        assert_eq!(text, "2026-11-16T18:00:00Z k7q4x AGENT_COMPLETION a b");
    }
}
