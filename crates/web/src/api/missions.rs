//! Teams of agents.

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::Path,
    routing::{get, post},
};
use ostler_client::{CreateMission, Mission, MissionAction, ResumeMission, RetryMission};
use ostler_domain::{
    Refusal,
    mission::{Filter, Status, plan::Template},
};
use ostler_form::{
    Object,
    mission::{MissionForm, PreviewForm, WholeForm},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Endpoint, Form,
    asked::{self, WorkAsked},
    names, of,
    sessions::{Nothing, endpoint},
};
use crate::{
    clock,
    guard::Visitor,
    reply::{Answer, Asked, Wanted, json},
};

const MISSION: Form = Form::One(of::<MissionForm<'static>>);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/missions" "listMissions" "Lists missions, the newest first", Some(of::<WorkAsked>), None, Form::Page("missions", of::<MissionForm<'static>>), get(list)),
        endpoint!("post" "/v1/missions" "startMission" "Starts a mission from a plan or a template", None, Some(of::<Create>), MISSION, post(create)),
        endpoint!("get" "/v1/missions/{who}/report" "reportMission" "What came of it, in markdown", None, None, Form::One(of::<ReportForm>), get(report)),
        endpoint!("post" "/v1/missions/{who}/assignments" "addAssignments" "Adds agents to it while it runs", None, Some(of::<Add>), MISSION, post(add)),
        endpoint!("get" "/v1/missions/{who}" "getMission" "A mission with its assignments, waits and forecast", None, None, Form::One(of::<WholeForm<'static>>), get(show)),
        endpoint!("get" "/v1/missions/{who}/preview" "previewMission" "What an action would run, and its price; changes nothing", Some(of::<Preview>), None, Form::One(of::<PreviewForm<'static>>), get(preview)),
        endpoint!("post" "/v1/missions/{who}/pause" "pauseMission" "Freezes what runs, and begins nothing new", None, Some(of::<Why>), MISSION, post(pause)),
        endpoint!("post" "/v1/missions/{who}/resume" "resumeMission" "Lets it go on", None, Some(of::<Nothing>), MISSION, post(resume)),
        endpoint!("post" "/v1/missions/{who}/cancel" "cancelMission" "Ends it and its sessions", None, Some(of::<Why>), MISSION, post(cancel)),
        endpoint!("post" "/v1/missions/{who}/retry" "retryMission" "Does again what was not completed", None, Some(of::<Which>), MISSION, post(retry)),
    ]
}

async fn list(Extension(visitor): Extension<Visitor>, Asked(wanted): Asked<WorkAsked>) -> Answer {
    let campaign = wanted.campaign(&visitor.client).await?;
    let statuses = asked::list(&wanted.status, "status", Status::ALL, Status::as_str)?;
    let filter = Filter { campaign, statuses, over_too: wanted.all, ..Filter::default() };
    let listed = visitor.client.missions(&filter, wanted.page()?).await?;
    let campaigns = names(&visitor.client).await?.of_each(&listed.rows, |mission| &mission.campaign);
    let rows =
        listed.rows.iter().zip(&campaigns).map(|(mission, name)| MissionForm::new(mission, name)).collect();
    Ok(json(&Object { name: "missions", rows, next_cursor: listed.next_cursor }))
}

async fn show(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    let whole = visitor.client.mission(&who).await?;
    let campaign = names(&visitor.client).await?.of(&whole.mission.campaign);
    Ok(json(&WholeForm::new(&whole, &campaign)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// Name, id, or a path in it.
    campaign: String,
    /// The text of a TOML file; or a template.
    plan: Option<String>,
    /// One that comes with Ostler, such as plan-build-review.
    template: Option<String>,
    /// Values for the parameters that it declares.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

async fn create(Extension(visitor): Extension<Visitor>, Wanted(wanted): Wanted<Create>) -> Answer {
    let plan = match (asked::said(&wanted.plan), asked::said(&wanted.template)) {
        (Some(plan), None) => plan.to_owned(),
        (None, Some(name)) => {
            let found = Template::find(name);
            let found = found.ok_or_else(|| Refusal::invalid(format!("there is no template \"{name}\"")));
            found?.text.to_owned()
        }
        _ => return Err(Refusal::invalid("a plan or a template is wanted, and one of them only").into()),
    };
    let wanted =
        CreateMission { campaign: wanted.campaign, plan, parameters: wanted.parameters, starts: true };
    shown(&visitor, &visitor.client.create_mission(wanted).await?).await
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MissionReport")]
struct ReportForm {
    id: String,
    name: String,
    status: &'static str,
    report: String,
}

async fn report(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    let (state, report) = visitor.client.mission_report(&who, clock::now()).await?;
    let (id, name) = (state.id().to_string(), state.name().to_string());
    Ok(json(&ReportForm { id, name, status: state.status().as_str(), report }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// [[agents]] of a plan, as TOML.
    agents: String,
}

async fn add(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Add { agents }): Wanted<Add>,
) -> Answer {
    shown(&visitor, &visitor.client.add_assignments(&who, &agents).await?).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Preview {
    /// Start, resume or retry; without one, retry.
    action: Option<String>,
}

async fn preview(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Asked(wanted): Asked<Preview>,
) -> Answer {
    let action = match asked::said(&wanted.action) {
        Some("start") => MissionAction::Start,
        Some("resume") => MissionAction::Resume,
        None | Some("retry") => MissionAction::Retry,
        Some(other) => {
            return Err(Refusal::invalid(format!("action: there is no \"{other}\"")).into());
        }
    };
    let wanted = ResumeMission { who, ..ResumeMission::default() };
    let preview = visitor.client.preview_mission(action, wanted).await?;
    let campaign = names(&visitor.client).await?.of(&preview.mission.campaign);
    Ok(json(&PreviewForm::new(&preview, &campaign)))
}

async fn shown(visitor: &Visitor, mission: &Mission) -> Answer {
    let campaign = names(&visitor.client).await?.of(&mission.campaign);
    Ok(json(&MissionForm::new(mission, &campaign)))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Why {
    /// For the record.
    why: String,
}

async fn pause(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Why { why }): Wanted<Why>,
) -> Answer {
    shown(&visitor, &visitor.client.pause_mission(&who, &why).await?.mission).await
}

async fn resume(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Nothing {}): Wanted<Nothing>,
) -> Answer {
    let wanted = ResumeMission { who, ..ResumeMission::default() };
    shown(&visitor, &visitor.client.resume_mission(wanted).await?).await
}

async fn cancel(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Why { why }): Wanted<Why>,
) -> Answer {
    shown(&visitor, &visitor.client.cancel_mission(&who, &why).await?).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Which {
    /// Names or ids of assignments; without one, all that it can be.
    which: Vec<String>,
}

async fn retry(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Which { which }): Wanted<Which>,
) -> Answer {
    let wanted = RetryMission { who, which, ..RetryMission::default() };
    shown(&visitor, &visitor.client.retry_mission(wanted).await?).await
}
