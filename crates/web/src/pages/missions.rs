//! Missions: the list, and one with its graph and its course in time.

use askama::Template;
use ostler_client::{Mission, reply::AssignmentRow};
use ostler_domain::{
    Time,
    mission::{
        AssignmentStatus, Filter, Spent, Status,
        plan::{Parameter, Template as Ready, templates},
    },
    price::Dollars,
    query::{EventFilter, Page},
    text::{one_line, visible},
};
use ostler_form::words;
use serde::Deserialize;

use super::{View, draw, live};
use crate::{api::names, clock, guard::Visitor, reply::Failure};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MissionsAsked {
    all: bool,
    cursor: Option<u64>,
}

struct MissionRow {
    id: String,
    name: String,
    campaign: String,
    status: &'static str,
    sign: &'static str,
    tone: &'static str,
    done: u32,
    total: u32,
    objective: String,
    age: String,
    cost: String,
}

impl MissionRow {
    fn new(mission: &Mission, campaign: String, now: Time) -> Self {
        let (tone, sign) = sign(mission.status);
        Self {
            id: mission.id.to_string(),
            name: mission.name.to_string(),
            campaign,
            status: mission.status.as_str(),
            sign,
            tone,
            done: mission.counts.completed,
            total: mission.counts.total,
            objective: visible(&mission.objective),
            age: words::age(now.since(mission.created_at)),
            cost: spent(&mission.spent),
        }
    }
}

const fn sign(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Running => ("good", "●"),
        Status::Created => ("dim", "◌"),
        Status::Paused => ("warn", "‖"),
        Status::Completed => ("good", "✓"),
        Status::Partial => ("warn", "✓"),
        Status::Failed => ("bad", "✗"),
        Status::Cancelled => ("dim", "–"),
    }
}

/// What is unknown is never nothing.
fn spent(spent: &Spent) -> String {
    match (spent.cost, spent.usage.total()) {
        (Dollars(0), 0) => String::new(),
        (Dollars(0), _) => "?".to_owned(),
        (cost, _) => cost.to_string(),
    }
}

/// With what it may cost, also where nothing was used.
fn of_budget(spent: String, most: Option<Dollars>) -> String {
    match most {
        Some(most) if spent.is_empty() => format!("{} of {most}", Dollars(0)),
        Some(most) => format!("{spent} of {most}"),
        None => spent,
    }
}

#[derive(Template)]
#[template(path = "missions.html")]
struct Missions {
    all: bool,
    rows: Vec<MissionRow>,
    next: String,
    templates: Vec<TemplateRow>,
    campaigns: Vec<String>,
}

/// A plan that comes with Ostler.
struct TemplateRow {
    name: &'static str,
    about: &'static str,
    parameters: Vec<ParameterRow>,
}

struct ParameterRow {
    name: String,
    about: String,
    default: String,
    is_wanted: bool,
}

fn template(template: &Ready) -> TemplateRow {
    let parameter = |(name, parameter): (String, Parameter)| ParameterRow {
        name,
        about: parameter.about,
        is_wanted: parameter.default.is_none(),
        default: parameter.default.unwrap_or_default(),
    };
    let mut parameters: Vec<_> = template.parameters().into_iter().map(parameter).collect();
    parameters.sort_by_key(|parameter| !parameter.is_wanted);
    TemplateRow { name: template.name, about: template.about(), parameters }
}

pub(super) async fn list(visitor: &Visitor, asked: &MissionsAsked) -> Result<View, Failure> {
    let filter = Filter { over_too: asked.all, ..Filter::default() };
    let listed = visitor.client.missions(&filter, Page::of(50, asked.cursor)).await?;
    let (now, names) = (clock::now(), names(&visitor.client).await?);
    let rows = listed.rows.iter().map(|mission| MissionRow::new(mission, names.of(&mission.campaign), now));
    let all = if asked.all { "all=true&" } else { "" };
    let page = Missions {
        all: asked.all,
        rows: rows.collect(),
        next: listed.next_cursor.map(|cursor| format!("/missions?{all}cursor={cursor}")).unwrap_or_default(),
        templates: templates().iter().map(template).collect(),
        campaigns: names.all(),
    };
    View::new("Missions", &page)
}

struct Part {
    id: String,
    name: String,
    role: String,
    status: &'static str,
    sign: &'static str,
    tone: &'static str,
    why: String,
    attempt: u32,
    took: String,
    cost: String,
    href: String,
}

#[derive(Template)]
#[template(path = "mission.html")]
struct MissionPage {
    row: MissionRow,
    strategy: &'static str,
    eta: String,
    wait: String,
    is_over: bool,
    graph: String,
    gantt: String,
    assignments: Vec<Part>,
    roles: Vec<Role>,
    forecast: Vec<String>,
}

/// How far those of one role are.
#[derive(Default)]
struct Role {
    name: String,
    total: u32,
    pending: u32,
    running: u32,
    completed: u32,
    failed: u32,
}

fn roles(rows: &[AssignmentRow]) -> Vec<Role> {
    let mut roles: Vec<Role> = Vec::new();
    for row in rows {
        let place = roles.iter().position(|role| role.name == row.role).unwrap_or_else(|| {
            roles.push(Role { name: row.role.clone(), ..Role::default() });
            roles.len() - 1
        });
        let role = &mut roles[place];
        role.total += 1;
        match row.status {
            AssignmentStatus::Pending | AssignmentStatus::Ready => role.pending += 1,
            AssignmentStatus::Running | AssignmentStatus::Paused => role.running += 1,
            AssignmentStatus::Completed => role.completed += 1,
            AssignmentStatus::Failed | AssignmentStatus::Skipped | AssignmentStatus::Cancelled => {
                role.failed += 1;
            }
        }
    }
    roles
}

/// What came of it, as it is: markdown is text to whoever looks here.
pub(super) async fn report(visitor: &Visitor, who: &str) -> Result<View, Failure> {
    let (state, report) = visitor.client.mission_report(who, clock::now()).await?;
    let name = state.name().to_string();
    let page = Report { id: state.id().to_string(), report: visible(&report), name };
    let view = View::new(format!("Report of {}", page.name), &page)?;
    Ok(View { watches: of_missions(), ..view })
}

#[derive(Template)]
#[template(path = "report.html")]
struct Report {
    id: String,
    name: String,
    report: String,
}

/// What its members do and use is on its page, too.
fn of_missions_at_work() -> EventFilter {
    let missions = of_missions();
    EventFilter { kinds: [missions.kinds.as_slice(), live::FRAME_KINDS].concat(), ..missions }
}

fn of_missions() -> EventFilter {
    EventFilter { kinds: ostler_client::Client::MISSION_KINDS.to_vec(), ..EventFilter::default() }
}

pub(super) async fn one(visitor: &Visitor, who: &str) -> Result<View, Failure> {
    let whole = visitor.client.mission(who).await?;
    let (now, mission) = (clock::now(), &whole.mission);
    let campaign = names(&visitor.client).await?.of(&mission.campaign);
    let rows: Vec<_> = whole.assignments.iter().filter(|row| !row.is_removed).cloned().collect();
    let part = |row: &AssignmentRow| {
        let (tone, sign) = draw::sign(row.status);
        Part {
            id: row.id.to_string(),
            name: row.name.clone(),
            role: row.role.clone(),
            status: row.status.as_str(),
            sign,
            tone,
            why: one_line(if row.wait.is_empty() { &row.why } else { &row.wait }, 300),
            attempt: row.attempt,
            took: row.started.map(|at| words::span(row.ended.unwrap_or(now).since(at))).unwrap_or_default(),
            cost: spent(&row.spent),
            href: row.session.map(|id| format!("/sessions/{id}")).unwrap_or_default(),
        }
    };
    let roles = roles(&rows);
    let forecast = whole.collisions.iter().map(|seen| {
        format!("{} × {} will collide in {}", seen.one, seen.other, visible(&seen.paths.join(", ")))
    });
    // Its budget may have been raised since: only its events say what it is.
    let budget = visitor.client.mission_state(who).await.ok().and_then(|(state, _)| state.budget());
    let mut row = MissionRow::new(mission, campaign, now);
    row.cost = of_budget(row.cost, budget.and_then(|budget| budget.dollars));
    let template = MissionPage {
        strategy: mission.strategy.as_str(),
        eta: if mission.ended_at.is_some() { String::new() } else { whole.eta.words.clone() },
        wait: whole.wait.clone(),
        is_over: mission.ended_at.is_some(),
        graph: draw::graph(&rows, now),
        gantt: draw::gantt(&rows, mission.started_at, mission.ended_at, now),
        assignments: rows.iter().map(part).collect(),
        roles,
        forecast: forecast.collect(),
        row,
    };
    let view = View::new(mission.name.to_string(), &template)?;
    Ok(View { watches: of_missions_at_work(), ..view })
}
