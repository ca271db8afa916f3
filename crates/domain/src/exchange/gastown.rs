//! Gas Town's files: an index of sessions, a file for each, and the feed of its events.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Event, Recorded, SessionId,
    event::SeenCommit,
    session::{Outcome, View},
};

/// What is known of a session beside its row.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The campaign's name.
    pub rig: &'a str,
    /// The session that goes on with it.
    pub child: Option<SessionId>,
    pub branch: Option<&'a str>,
    /// Newest first.
    pub commits: &'a [SeenCommit],
    pub steps: &'a [Step],
}

/// A session in the words of Gas Town. The line of the index is the same without what is only in its own file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Session {
    pub id: String,
    pub tmux_session: String,
    pub agent: String,
    pub rig: String,
    pub role: String,
    pub started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_id: Option<String>,
    pub chain_id: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What there is no word for.
    pub ostler: Value,
}

/// A step of the work, as its agent told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub name: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub success: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Session {
    pub fn new(view: &View, around: &Around<'_>) -> Session {
        let role = view.agent.as_ref().map_or("agent", |agent| agent.role.as_str());
        let name = view.agent.as_ref().map_or(&view.name, |agent| &agent.name);
        let last_step = around.steps.iter().rev().find(|step| step.ended_at.is_none());
        Session {
            id: view.id.to_string(),
            // There is no terminal; what it would be called.
            tmux_session: format!("gt-{}-{name}", around.rig),
            agent: format!("{}/{role}/{name}", around.rig),
            rig: around.rig.to_owned(),
            role: role.to_owned(),
            started_at: view.started_at.unwrap_or(view.created_at).rfc3339(),
            ended_at: view.ended_at.map(|at| at.rfc3339()),
            outcome: view.outcome.map(outcome),
            work_unit: view.ticket.clone(),
            step_ref: last_step.map(|step| step.name.clone()),
            parent_id: view.continues.map(|id| id.to_string()),
            child_id: around.child.map(|id| id.to_string()),
            chain_id: view.chain.to_string(),
            cwd: view.working_dir.clone(),
            branch: around.branch.map(str::to_owned).or_else(|| view.branch.clone()),
            commits: around.commits.iter().map(|commit| commit.hash.clone()).collect(),
            steps: around.steps.to_vec(),
            ostler: json!({
                "provider": view.provider,
                "model": view.model,
                "provider_id": view.provider_id,
                "outcome": view.outcome.map(Outcome::as_str),
                "turns": view.turns,
                "usage": view.usage,
                "cost_usd": view.cost.unpriced.is_empty().then(|| view.cost.paid.decimal()),
            }),
        }
    }

    /// Its line of the index.
    pub fn index_line(&self) -> String {
        let short = Session { commits: Vec::new(), steps: Vec::new(), ostler: Value::Null, ..self.clone() };
        let mut line = match serde_json::to_value(&short) {
            Ok(Value::Object(line)) => line,
            // Plain structs with string keys: serializing them cannot fail.
            _ => Map::new(),
        };
        line.remove("ostler");
        format!("{}\n", Value::Object(line))
    }

    /// Its own file.
    pub fn file(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(self).unwrap_or_default())
    }

    /// An event of the feed, in a line; none for what the feed does not tell of.
    pub fn feed_line(&self, recorded: &Recorded) -> Option<String> {
        let mut payload = json!({"session_id": self.id, "role": self.agent, "cwd": self.cwd});
        let kind = match &recorded.event {
            Event::SessionStarted(_) => "session_start",
            Event::SessionStopped(ended) | Event::SessionFailed(ended) => {
                payload["outcome"] = json!(outcome(ended.outcome));
                "session_end"
            }
            Event::HandoffRequested(_) => "handoff",
            Event::DoneReported(_) => "done",
            Event::StepStarted(step) => {
                payload["step"] = json!(step.name);
                "session_step_started"
            }
            Event::StepEnded(step) => {
                payload["step"] = json!(step.name);
                payload["success"] = json!(step.success);
                "session_step_completed"
            }
            _ => return None,
        };
        if let Some(work) = &self.work_unit {
            payload["topic"] = json!(work);
        }
        let line = json!({
            "ts": recorded.time.rfc3339(),
            "source": "ostler",
            "type": kind,
            "actor": self.agent,
            "payload": payload,
            "visibility": "feed",
        });
        Some(format!("{line}\n"))
    }
}

/// Adds what an event says of steps.
pub fn step(steps: &mut Vec<Step>, recorded: &Recorded) {
    let at = || Some(recorded.time.rfc3339());
    match &recorded.event {
        Event::StepStarted(step) => steps.push(Step {
            name: step.name.clone(),
            started_at: at(),
            ended_at: None,
            success: None,
            note: step.note.clone(),
        }),
        Event::StepEnded(ended) => {
            let open = |step: &&mut Step| step.name == ended.name && step.ended_at.is_none();
            match steps.iter_mut().rev().find(open) {
                Some(step) => {
                    step.ended_at = at();
                    step.success = Some(ended.success);
                    if !ended.note.is_empty() {
                        step.note.clone_from(&ended.note);
                    }
                }
                None => steps.push(Step {
                    name: ended.name.clone(),
                    started_at: None,
                    ended_at: at(),
                    success: Some(ended.success),
                    note: ended.note.clone(),
                }),
            }
        }
        _ => {}
    }
}

/// Gas Town has four words.
const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Handoff => "handoff",
        Outcome::Done | Outcome::Reset => "done",
        Outcome::Stopped | Outcome::Killed | Outcome::Timeout | Outcome::Budget => "killed",
        Outcome::Crashed | Outcome::FailedStart | Outcome::Lost | Outcome::Oom | Outcome::TurnFailed => {
            "crash"
        }
    }
}
