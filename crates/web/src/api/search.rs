//! Full text over what was said and done.

use axum::{Extension, routing::get};
use ostler_domain::{Kind as EventKind, query::EventFilter};
use ostler_form::{HitForm, Object};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Endpoint, Form, SessionsAsked, asked, of, sessions::endpoint};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Failure, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/search" "search" "Finds events by their words, the newest first", Some(of::<SearchAsked>), None, Form::Page("hits", of::<HitForm<'static>>), get(search)),
    ]
}

#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SearchAsked {
    /// The words.
    pub(crate) text: String,
    /// Only of this session.
    pub(crate) session: Option<String>,
    /// Only of this campaign.
    pub(crate) campaign: Option<String>,
    /// Kinds of events, such as AGENT_COMPLETION.
    pub(crate) kind: Option<String>,
    /// A moment in RFC 3339, or a span before now such as 7d.
    pub(crate) since: Option<String>,
    /// Rows of a page.
    pub(crate) limit: Option<u32>,
    /// Where the page begins.
    pub(crate) cursor: Option<String>,
}

impl SearchAsked {
    pub(crate) async fn filter(&self, visitor: &Visitor) -> Result<EventFilter, Failure> {
        let session = match asked::said(&self.session) {
            Some(who) => Some(visitor.client.session(who).await?.id),
            None => None,
        };
        let sessions = match asked::said(&self.campaign) {
            Some(campaign) => {
                let of = SessionsAsked {
                    all: true,
                    campaign: Some(campaign.to_owned()),
                    ..SessionsAsked::default()
                };
                Some(Box::new(of.filter(&visitor.client).await?))
            }
            None => None,
        };
        Ok(EventFilter {
            session,
            sessions,
            kinds: asked::list(&self.kind, "kind", EventKind::ALL, EventKind::name)?,
            since: asked::moment(&self.since, "since")?,
            until: None,
        })
    }
}

async fn search(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<SearchAsked>) -> Answer {
    let page = asked::page(asked.limit, asked.cursor.as_deref())?;
    let found = visitor.client.search(&asked.text, &asked.filter(&visitor).await?, page).await?;
    let rows = found.rows.iter().map(HitForm::new).collect();
    Ok(json(&Object { name: "hits", rows, next_cursor: found.next_cursor }))
}
