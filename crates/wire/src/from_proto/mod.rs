//! Messages, made into types of the core. A field that is missing or does not fit is an error that names it.
//!
//! Filters and requests may name things by words (a name, a part of an id). Filters of the core hold ids: a daemon
//! puts the id in the word's place first, then reads the filter.

mod admin;
mod agent;
mod conversation;
mod event;
mod history;
mod http;
mod mission;
mod provider;
mod request;
mod retention;
mod session;
mod share;
mod sql;
mod tape;
mod ticket;
mod transcript;
mod tree;

use std::{fmt::Display, str::FromStr, time::Duration};

use ostler_domain::{
    CampaignId, Name, Policy, RequestId, Time,
    campaign::{Campaign, Root},
    query::{Listed, Page},
};

pub use self::{
    admin::*, agent::*, conversation::*, event::*, history::*, http::*, mission::*, provider::*, request::*,
    retention::*, session::*, share::*, sql::*, tape::*, ticket::*, transcript::*, tree::*,
};
pub use crate::enums::from::{
    answer, approve, ask_kind, assignment_status, attention, close_reason, desired, history_source,
    history_verdict, import_change, mission_action, mission_status, mission_strategy, mode, on_budget,
    outcome, output_kind, phase, priority, receipt, restart_policy, severity, status, step_mark, stop_rule,
    ticket_status, ticket_verb, usage_by,
};
use crate::{InvalidField, pb};

type Result<T> = std::result::Result<T, InvalidField>;

/// Reads a time. Parts of a microsecond are dropped: the record has none.
pub fn time(time: prost_types::Timestamp, field: &str) -> Result<Time> {
    let nanos = u32::try_from(time.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let micros =
        nanos.and_then(|nanos| time.seconds.checked_mul(1_000_000)?.checked_add(i64::from(nanos / 1_000)));
    micros
        .map(Time::from_micros)
        .ok_or_else(|| InvalidField::new(field, "no time in the years of microseconds"))
}

pub fn duration(span: prost_types::Duration, field: &str) -> Result<Duration> {
    let seconds = u64::try_from(span.seconds).ok();
    let nanos = u32::try_from(span.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match (seconds, nanos) {
        (Some(seconds), Some(nanos)) => Ok(Duration::new(seconds, nanos)),
        _ => Err(InvalidField::new(field, "no duration of zero or more")),
    }
}

/// A text that must not be empty.
pub fn text(text: String, field: &str) -> Result<String> {
    if text.is_empty() { Err(InvalidField::missing(field)) } else { Ok(text) }
}

/// An id, or anything else with a text form.
pub fn id<T: FromStr<Err: Display>>(text: &str, field: &str) -> Result<T> {
    if text.is_empty() {
        return Err(InvalidField::missing(field));
    }
    text.parse().map_err(|problem| InvalidField::new(field, problem))
}

/// The caller's name for a change. None when it asks for no protection.
pub fn request_id(text: &str) -> Result<Option<RequestId>> {
    if text.is_empty() { Ok(None) } else { id(text, "request_id").map(Some) }
}

/// A page of a list, within what is allowed.
pub fn page(limit: u32, cursor: &str) -> Result<Page> {
    Ok(Page::of(limit, self::cursor(cursor, "cursor")?))
}

/// A list's cursor; empty means that there is none.
pub fn cursor(text: &str, field: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| InvalidField::new(field, "not a cursor that a list has given out"))
}

/// A page's rows and the cursor of the next one.
pub fn listed<P, T>(rows: Vec<P>, next_cursor: &str, read: impl Fn(P) -> Result<T>) -> Result<Listed<T>> {
    Ok(Listed {
        rows: rows.into_iter().map(read).collect::<Result<_>>()?,
        next_cursor: cursor(next_cursor, "next_cursor")?,
    })
}

pub fn campaign(campaign: pb::Campaign) -> Result<Campaign> {
    let root = required(campaign.root, "root")?;
    Ok(Campaign {
        id: id(&campaign.id, "id")?,
        name: id::<Name>(&campaign.name, "name")?,
        root: Root { path: text(root.path, "root.path")?, device: root.device, inode: root.inode },
        added: required_time(campaign.added_time, "added_time")?,
        policy: policy(&campaign.policy),
        tracked_hidden: campaign
            .tracked_hidden
            .into_iter()
            .map(|path| text(path, "tracked_hidden"))
            .collect::<Result<_>>()?,
        unwatched: (!campaign.unwatched.is_empty()).then_some(campaign.unwatched),
    })
}

fn policy(settings: &[String]) -> Policy {
    let nothing = Policy::default();
    // A daemon of a later version has keys that this one does not know: they are the daemon's to obey.
    let known = || {
        settings
            .iter()
            .fold(nothing.clone(), |policy, setting| policy.changed_by([setting]).unwrap_or(policy))
    };
    nothing.changed_by(settings).unwrap_or_else(|_| known())
}

/// A campaign of which no more is asked.
pub fn campaign_name(campaign: pb::Campaign) -> Result<(CampaignId, Name)> {
    Ok((id(&campaign.id, "id")?, id(&campaign.name, "name")?))
}

/// A message that must be there.
pub fn required<T>(value: Option<T>, field: &str) -> Result<T> {
    value.ok_or_else(|| InvalidField::missing(field))
}

fn required_time(value: Option<prost_types::Timestamp>, field: &str) -> Result<Time> {
    time(required(value, field)?, field)
}

fn optional_time(value: Option<prost_types::Timestamp>, field: &str) -> Result<Option<Time>> {
    value.map(|value| time(value, field)).transpose()
}

fn optional_id<T: FromStr<Err: Display>>(value: Option<String>, field: &str) -> Result<Option<T>> {
    value.map(|value| id(&value, field)).transpose()
}
