//! What agents ask leave for.

use axum::{
    Extension,
    extract::Path,
    routing::{get, post},
};
use ostler_client::{AnswerApproval, Approval, ListEvents, Place as FromPlace, Received};
use ostler_domain::{
    Event, Kind as EventKind, Reason, Refusal,
    approval::{Place, always},
    event::ApprovalRequested,
    query::EventFilter,
    session::Sandbox,
};
use ostler_form::{ApprovalForm, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Endpoint, Form, asked, of, sessions::endpoint};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Failure, Wanted, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/approvals" "listApprovals" "Lists what agents ask leave for, the newest first", Some(of::<List>), None, Form::Page("approvals", of::<ApprovalForm>), get(list)),
        endpoint!("get" "/v1/approvals/{id}" "getApproval" "One question, and its answer", None, None, Form::One(of::<ApprovalForm>), get(show)),
        endpoint!("get" "/v1/approvals/{id}/rules" "previewRules" "The rules that `always` would store; changes nothing", None, None, Form::One(of::<RulesForm>), get(rules)),
        endpoint!("post" "/v1/approvals/{id}/answer" "answerApproval" "Answers a question; the first answer holds", None, Some(of::<Given>), Form::One(of::<ApprovalForm>), post(answer)),
    ]
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct List {
    /// Answered ones too.
    all: bool,
    /// Rows of a page.
    limit: Option<u32>,
    /// Where the page begins.
    cursor: Option<String>,
}

async fn list(Extension(visitor): Extension<Visitor>, Asked(wanted): Asked<List>) -> Answer {
    let page = asked::page(wanted.limit, wanted.cursor.as_deref())?;
    let listed = visitor.client.approvals(!wanted.all, page).await?;
    let rows = listed.rows.iter().map(ApprovalForm::new).collect();
    Ok(json(&Object { name: "approvals", rows, next_cursor: listed.next_cursor }))
}

async fn show(Extension(visitor): Extension<Visitor>, Path(id): Path<String>) -> Answer {
    Ok(json(&ApprovalForm::new(&visitor.client.approval(&id).await?)))
}

/// What `always` would store.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApprovalRules")]
struct RulesForm {
    /// The campaign that would get them.
    campaign: String,
    /// In the order in which they are stored; none where it is allowed already.
    rules: Vec<String>,
}

async fn rules(Extension(visitor): Extension<Visitor>, Path(id): Path<String>) -> Answer {
    let client = &visitor.client;
    let approval = client.approval(&id).await?;
    let session = client.session(&approval.session.to_string()).await?;
    let campaign = client.campaign(&session.campaign.to_string()).await?;
    let asked = request_of(&visitor, &approval).await?;
    let place = Place { root: &session.working_dir, is_confined: session.sandbox == Sandbox::On };
    let made = always(&campaign.policy, &place, &asked.tool, &asked.action).map_err(|why| {
        Refusal::new(Reason::WrongState, "no rule could allow this and nothing else").because(why)
    })?;
    let rules = made.into_iter().map(|rule| rule.text).collect();
    Ok(json(&RulesForm { campaign: campaign.name.to_string(), rules }))
}

/// The request as the agent made it: the last but few of those that its session made.
async fn request_of(visitor: &Visitor, approval: &Approval) -> Result<ApprovalRequested, Failure> {
    let filter = EventFilter {
        session: Some(approval.session),
        kinds: vec![EventKind::ApprovalRequested],
        since: Some(approval.asked),
        ..EventFilter::default()
    };
    let request = ListEvents { filter, from: FromPlace::After(0), limit: 0 };
    let found = visitor.client.events(&request).await?.events;
    let asked = found.into_iter().find_map(|received| match received {
        Received::Known(recorded) => match recorded.event {
            Event::ApprovalRequested(asked) if asked.id == approval.id => Some(*asked),
            _ => None,
        },
        Received::Unknown(_) => None,
    });
    Ok(asked.ok_or_else(|| Refusal::internal("the record of this question cannot be read"))?)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    /// Whether the agent may.
    allow: bool,
    /// The campaign gets rules that allow the same from now on.
    #[serde(default)]
    always: bool,
    /// What the agent is told beside it.
    #[serde(default)]
    message: String,
}

async fn answer(
    Extension(visitor): Extension<Visitor>,
    Path(approval): Path<String>,
    Wanted(Given { allow, always, message }): Wanted<Given>,
) -> Answer {
    if always && (visitor.guest.approval.is_some() || visitor.guest.share.is_some()) {
        return Err(Refusal::new(Reason::PermissionDenied, "no rule is made by a link or a share")
            .because("a rule would answer others too")
            .into());
    }
    let given = visitor.client.answer_approval(AnswerApproval { approval, allow, always, message }).await?;
    Ok(json(&ApprovalForm::new(&given.approval).with_rules(&given.rules)))
}
