//! Missions for programs. Fields are only ever added.

use std::collections::BTreeMap;

use ostler_client::{
    Mission,
    reply::{
        AssignmentRow, CollisionRow, MissionEta, MissionPreview, MissionPrice, PausedMission, PlannedMission,
        WholeMission,
    },
};
use ostler_domain::{
    Usage,
    mission::{Counts, Spent},
    price::Dollars,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{rfc3339, shape};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Mission")]
pub struct MissionForm<'a> {
    id: String,
    name: &'a str,
    campaign: &'a str,
    objective: &'a str,
    strategy: &'static str,
    status: &'static str,
    created: String,
    started: Option<String>,
    ended: Option<String>,
    updated: String,
    assignments_total: u32,
    assignments_completed: u32,
    assignments_failed: u32,
    assignments_skipped: u32,
    assignments_cancelled: u32,
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    /// Null where tokens were used and none of them has a price.
    cost_usd: Option<f64>,
    /// Some of it has no price, and is not in cost_usd.
    has_unpriced: bool,
}

impl<'a> MissionForm<'a> {
    pub fn new(mission: &'a Mission, campaign: &'a str) -> Self {
        let Counts { total, completed, failed, skipped, cancelled } = mission.counts;
        Self {
            id: mission.id.to_string(),
            name: mission.name.as_str(),
            campaign,
            objective: &mission.objective,
            strategy: mission.strategy.as_str(),
            status: mission.status.as_str(),
            created: rfc3339(mission.created_at),
            started: mission.started_at.map(rfc3339),
            ended: mission.ended_at.map(rfc3339),
            updated: rfc3339(mission.updated_at),
            assignments_total: total,
            assignments_completed: completed,
            assignments_failed: failed,
            assignments_skipped: skipped,
            assignments_cancelled: cancelled,
            usage: mission.spent.usage,
            cost_usd: spent(&mission.spent),
            has_unpriced: mission.spent.unpriced,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of money are far below 2^53 millionths")]
fn dollars(amount: Dollars) -> f64 {
    amount.0 as f64 / 1e6
}

fn spent(spent: &Spent) -> Option<f64> {
    let is_unknown = spent.cost == Dollars(0) && spent.unpriced;
    (!is_unknown).then(|| dollars(spent.cost))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WholeMission")]
pub struct WholeForm<'a> {
    #[serde(flatten)]
    mission: MissionForm<'a>,
    wait: Option<&'a str>,
    eta: EtaForm<'a>,
    assignments: Vec<AssignmentForm<'a>>,
    /// Whose work will not merge by itself.
    forecast: Vec<CollisionForm<'a>>,
    /// Why it ended as it did.
    why: Option<&'a str>,
    metadata: &'a BTreeMap<String, String>,
}

impl<'a> WholeForm<'a> {
    pub fn new(whole: &'a WholeMission, campaign: &'a str) -> Self {
        Self {
            mission: MissionForm::new(&whole.mission, campaign),
            wait: said(&whole.wait),
            eta: EtaForm::new(&whole.eta),
            assignments: whole.assignments.iter().map(AssignmentForm::new).collect(),
            forecast: whole.collisions.iter().map(CollisionForm::new).collect(),
            why: said(&whole.why),
            metadata: &whole.metadata,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Collision")]
struct CollisionForm<'a> {
    one: &'a str,
    other: &'a str,
    paths: &'a [String],
    turn: Option<u32>,
    since: String,
}

impl<'a> CollisionForm<'a> {
    fn new(seen: &'a CollisionRow) -> Self {
        let CollisionRow { one, other, paths, turn, since } = seen;
        Self { one, other, paths, turn: *turn, since: rfc3339(*since) }
    }
}

fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Assignment")]
pub struct AssignmentForm<'a> {
    id: String,
    name: &'a str,
    role: &'a str,
    instance: u32,
    status: &'static str,
    stage: Option<u32>,
    needs: &'a [String],
    attempt: u32,
    session: Option<String>,
    started: Option<String>,
    ended: Option<String>,
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    /// Null where tokens were used and none of them has a price.
    cost_usd: Option<f64>,
    /// Some of it has no price, and is not in cost_usd.
    has_unpriced: bool,
    why: Option<&'a str>,
    wait: Option<&'a str>,
    removed: bool,
    /// What it alone may write while it works.
    paths: &'a [String],
    /// How its last session ended.
    outcome: Option<&'static str>,
}

impl<'a> AssignmentForm<'a> {
    fn new(row: &'a AssignmentRow) -> Self {
        Self {
            id: row.id.to_string(),
            name: &row.name,
            role: &row.role,
            instance: row.instance,
            status: row.status.as_str(),
            stage: row.stage,
            needs: &row.needs,
            attempt: row.attempt,
            session: row.session.map(|id| id.to_string()),
            started: row.started.map(rfc3339),
            ended: row.ended.map(rfc3339),
            usage: row.spent.usage,
            cost_usd: spent(&row.spent),
            has_unpriced: row.spent.unpriced,
            why: said(&row.why),
            wait: said(&row.wait),
            removed: row.is_removed,
            paths: &row.paths,
            outcome: row.outcome.map(|outcome| outcome.as_str()),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MissionEta")]
pub struct EtaForm<'a> {
    words: &'a str,
    likely_s: Option<f64>,
    low_s: Option<f64>,
    high_s: Option<f64>,
    past_intervals: u32,
    past_intervals_held: u32,
}

impl<'a> EtaForm<'a> {
    fn new(eta: &'a MissionEta) -> Self {
        Self {
            words: &eta.words,
            likely_s: eta.interval.map(|interval| interval.likely().as_secs_f64()),
            low_s: eta.interval.map(|interval| interval.low().as_secs_f64()),
            high_s: eta.interval.map(|interval| interval.high().as_secs_f64()),
            past_intervals: eta.rate.of,
            past_intervals_held: eta.rate.held,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MissionPrice")]
pub struct PriceForm<'a> {
    words: &'a str,
    /// Null where nothing is known.
    likely_usd: Option<f64>,
    high_usd: Option<f64>,
    known: u32,
    unknown: u32,
}

impl<'a> PriceForm<'a> {
    fn new(price: &'a MissionPrice) -> Self {
        let known = price.known > 0;
        Self {
            words: &price.words,
            likely_usd: known.then(|| dollars(price.likely)),
            high_usd: known.then(|| dollars(price.high)),
            known: price.known,
            unknown: price.unknown,
        }
    }
}

/// A mission that was paused, and how its agents were made to stand still.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PausedMission")]
pub struct PausedForm<'a> {
    #[serde(flatten)]
    mission: MissionForm<'a>,
    frozen_by_freezer: u32,
    frozen_by_signals: u32,
    /// Sessions that had not said that they stand still.
    not_yet_frozen: Vec<String>,
}

impl<'a> PausedForm<'a> {
    pub fn new(paused: &'a PausedMission, campaign: &'a str) -> Self {
        Self {
            mission: MissionForm::new(&paused.mission, campaign),
            frozen_by_freezer: paused.by_freezer,
            frozen_by_signals: paused.by_signals,
            not_yet_frozen: paused.not_yet.iter().map(ToString::to_string).collect(),
        }
    }
}

/// What would run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MissionPreview")]
pub struct PreviewForm<'a> {
    mission: MissionForm<'a>,
    runs: &'a [String],
    goes_on: &'a [String],
    price: PriceForm<'a>,
    merges_into: Option<&'a str>,
}

impl<'a> PreviewForm<'a> {
    pub fn new(preview: &'a MissionPreview, campaign: &'a str) -> Self {
        Self {
            mission: MissionForm::new(&preview.mission, campaign),
            runs: &preview.runs,
            goes_on: &preview.goes_on,
            price: PriceForm::new(&preview.price),
            merges_into: preview.merges_into.as_deref(),
        }
    }
}

/// What a plan would come to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MissionPlan")]
pub struct PlanForm<'a> {
    name: String,
    objective: &'a str,
    strategy: &'static str,
    waves: &'a [Vec<String>],
    price: PriceForm<'a>,
    eta: EtaForm<'a>,
    /// With its parameters filled in, as TOML.
    plan: String,
}

impl<'a> PlanForm<'a> {
    /// None where the plan has faults.
    pub fn new(planned: &'a PlannedMission) -> Option<Self> {
        match planned {
            PlannedMission::Faulty(_) => None,
            PlannedMission::Sound { plan, waves, price, eta } => Some(Self {
                name: plan.named().to_string(),
                objective: &plan.objective,
                strategy: plan.strategy.as_str(),
                waves,
                price: PriceForm::new(price),
                eta: EtaForm::new(eta),
                plan: plan.to_toml(),
            }),
        }
    }
}
