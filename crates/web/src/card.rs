//! One approval, on a page of its own: where the link of a notice leads. It shows nothing that whoever was let in for this
//! approval alone may not see.

use askama::Template;
use axum::{
    Extension,
    extract::Path,
    http::header,
    response::{IntoResponse, Response},
};
use ostler_domain::{
    Reason, Refusal,
    event::{Answer as ApprovalAnswer, AskKind},
    text::visible,
};
use ostler_form::words;

use crate::{api::names, assets, clock, guard::Visitor, reply::Failure};

#[derive(Template)]
#[template(path = "card.html")]
struct Card<'a> {
    csrf: &'a str,
    id: String,
    short: String,
    session: String,
    name: String,
    campaign: String,
    provider: String,
    word: String,
    waits: String,
    asks: String,
    why: &'a str,
    input: String,
    is_open: bool,
    is_question: bool,
    only_this: bool,
}

pub(crate) async fn card(
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let approval = match visitor.client.approval(&id).await {
        Ok(approval) => approval,
        Err(error) if error.to_refusal().reason == Reason::ApprovalUnknown => {
            return Ok(assets::no_card());
        }
        Err(error) => return Err(error.into()),
    };
    let session = visitor.client.session(&approval.session.to_string()).await?;
    let campaign = names(&visitor.client).await?.of(&session.campaign);
    let now = clock::now();
    let word = match &approval.answer {
        Some(answered) => {
            let ago = words::span(now.since(answered.at));
            let answer = match answered.answer {
                ApprovalAnswer::Allowed => "allowed",
                ApprovalAnswer::Denied => "denied",
                ApprovalAnswer::Expired => "nobody answered in time",
            };
            format!("answered by {}, {ago} ago: {answer}", answered.by.0)
        }
        None => "waits for you".to_owned(),
    };
    let left = approval.deadline.map(|at| format!("denied in {}", words::span(at.since(now))));
    let page = Card {
        csrf: visitor.csrf.as_deref().unwrap_or_default(),
        id: approval.id.to_string(),
        short: approval.id.short(),
        session: session.id.to_string(),
        name: session.name.to_string(),
        campaign,
        provider: session.provider.clone(),
        word,
        waits: left.filter(|_| approval.answer.is_none()).unwrap_or_default(),
        asks: visible(&approval.asks),
        why: &approval.why,
        input: visible(&approval.input),
        is_open: approval.answer.is_none(),
        is_question: approval.kind == AskKind::Question,
        only_this: visitor.guest.approval.is_some(),
    };
    let html = page.render().map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response())
}
