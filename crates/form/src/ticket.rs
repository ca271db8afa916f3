//! Tickets for programs. Fields are only ever added.

use ostler_client::Ticket;
use ostler_domain::{
    SessionId, Usage,
    ticket::{Blocker, Checkpoint, Dated, Iteration, Output, Step, Whole},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{rfc3339, shape};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ticket")]
pub struct TicketForm<'a> {
    id: String,
    campaign: &'a str,
    title: &'a str,
    intent: &'a str,
    r#type: &'a str,
    status: &'static str,
    why: Option<&'a str>,
    external_ref: Option<&'a str>,
    conversation: Option<String>,
    depends_on: Vec<String>,
    added: String,
    added_by: &'a str,
    moved: String,
}

impl<'a> TicketForm<'a> {
    pub fn new(ticket: &'a Ticket, campaign: &'a str) -> Self {
        Self {
            id: ticket.id.to_string(),
            campaign,
            title: ticket.about.title(),
            intent: &ticket.about.intent,
            r#type: &ticket.about.kind,
            status: ticket.status.as_str(),
            why: ticket.why.as_deref(),
            external_ref: ticket.links.external.as_ref().map(|external| external.as_str()),
            conversation: ticket.links.conversation.map(|id| id.to_string()),
            depends_on: ticket.links.depends_on.iter().map(ToString::to_string).collect(),
            added: rfc3339(ticket.added),
            added_by: &ticket.by.0,
            moved: rfc3339(ticket.moved),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WholeTicket")]
pub struct WholeForm<'a> {
    #[serde(flatten)]
    ticket: TicketForm<'a>,
    dependencies: Vec<DependencyForm<'a>>,
    outputs: Vec<OutputForm<'a>>,
    checkpoints: Vec<CheckpointForm<'a>>,
    steps: Vec<StepForm<'a>>,
    iterations: Vec<IterationForm<'a>>,
    /// What all attempts took, each call counted once.
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    /// Null where not all calls have a price.
    cost_usd: Option<f64>,
}

impl<'a> WholeForm<'a> {
    pub fn new(whole: &'a Whole, campaign: &'a str) -> Self {
        let mut usage = Usage::default();
        whole.iterations.iter().for_each(|iteration| usage += iteration.usage);
        let cost: Option<u64> = whole.iterations.iter().map(|one| one.cost.map(|cost| cost.0)).sum();
        Self {
            ticket: TicketForm::new(&whole.ticket, campaign),
            dependencies: whole.depends_on.iter().map(DependencyForm::new).collect(),
            outputs: whole.outputs.iter().map(OutputForm::new).collect(),
            checkpoints: whole.checkpoints.iter().map(CheckpointForm::new).collect(),
            steps: whole.steps.iter().map(StepForm::new).collect(),
            iterations: whole.iterations.iter().map(IterationForm::new).collect(),
            usage,
            cost_usd: cost.map(dollars),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of money are far below 2^53 millionths")]
fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn id(id: Option<SessionId>) -> Option<String> {
    id.map(|id| id.to_string())
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Dependency")]
struct DependencyForm<'a> {
    id: String,
    status: &'static str,
    external_ref: Option<&'a str>,
    title: &'a str,
}

impl<'a> DependencyForm<'a> {
    fn new(blocker: &'a Blocker) -> Self {
        Self {
            id: blocker.id.to_string(),
            status: blocker.status.as_str(),
            external_ref: blocker.external.as_ref().map(|external| external.as_str()),
            title: &blocker.title,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Output")]
pub struct OutputForm<'a> {
    name: &'a str,
    kind: &'static str,
    value: &'a str,
    time: String,
    by: &'a str,
    session: Option<String>,
}

impl<'a> OutputForm<'a> {
    pub fn new(output: &'a Dated<Output>) -> Self {
        Self {
            name: &output.what.name,
            kind: output.what.kind.as_str(),
            value: &output.what.value,
            time: rfc3339(output.time),
            by: &output.by.0,
            session: id(output.session),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
struct CheckpointForm<'a> {
    name: &'a str,
    session: Option<String>,
    turn: Option<u32>,
    snapshot: Option<&'a str>,
    time: String,
    by: &'a str,
}

impl<'a> CheckpointForm<'a> {
    fn new(checkpoint: &'a Dated<Checkpoint>) -> Self {
        Self {
            name: &checkpoint.what.name,
            session: checkpoint.what.at.map(|at| at.session.to_string()),
            turn: checkpoint.what.at.map(|at| at.turn),
            snapshot: checkpoint.what.snapshot.as_deref(),
            time: rfc3339(checkpoint.time),
            by: &checkpoint.by.0,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Step")]
struct StepForm<'a> {
    name: &'a str,
    session: Option<String>,
    started: Option<String>,
    ended: Option<String>,
    success: Option<bool>,
    note: &'a str,
}

impl<'a> StepForm<'a> {
    fn new(step: &'a Step) -> Self {
        Self {
            name: &step.name,
            session: id(step.session),
            started: step.started.map(rfc3339),
            ended: step.ended.map(rfc3339),
            success: step.success,
            note: &step.note,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Iteration")]
struct IterationForm<'a> {
    session: String,
    name: &'a str,
    provider: &'a str,
    started: String,
    ended: Option<String>,
    result: Option<&'static str>,
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    /// Null where not all calls have a price.
    cost_usd: Option<f64>,
    calls: u64,
}

impl<'a> IterationForm<'a> {
    fn new(iteration: &'a Iteration) -> Self {
        Self {
            session: iteration.session.to_string(),
            name: &iteration.name,
            provider: &iteration.provider,
            started: rfc3339(iteration.started),
            ended: iteration.ended.map(rfc3339),
            result: iteration.result.map(|outcome| outcome.as_str()),
            usage: iteration.usage,
            cost_usd: iteration.cost.map(|cost| dollars(cost.0)),
            calls: iteration.calls,
        }
    }
}
