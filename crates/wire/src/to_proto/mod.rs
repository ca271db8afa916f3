//! Types of the core, made into messages. Never fails. One function for each message, under the core's name.

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

use std::time::Duration;

use ostler_domain::{CampaignId, Name, Time, campaign::Campaign};

pub use self::{
    admin::*, agent::*, conversation::*, event::*, history::*, http::*, mission::*, provider::*, request::*,
    retention::*, session::*, share::*, sql::*, tape::*, ticket::*, transcript::*, tree::*,
};
pub use crate::enums::to::{
    answer, approve, ask_kind, assignment_status, attention, close_reason, desired, history_source,
    history_verdict, import_change, mission_action, mission_status, mission_strategy, mode, on_budget,
    outcome, output_kind, phase, priority, receipt, restart_policy, severity, status, step_mark, stop_rule,
    ticket_status, ticket_verb, usage_by,
};
use crate::pb;

pub fn time(time: Time) -> prost_types::Timestamp {
    let micros = time.micros();
    // The remainder of a division by a million times a thousand is below a billion.
    let nanos = (micros.rem_euclid(1_000_000) * 1_000) as i32;
    prost_types::Timestamp { seconds: micros.div_euclid(1_000_000), nanos }
}

pub fn duration(span: Duration) -> prost_types::Duration {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    // Below a billion by its type.
    prost_types::Duration { seconds, nanos: span.subsec_nanos() as i32 }
}

/// A list's cursor; empty means that there is none.
pub fn cursor(cursor: Option<u64>) -> String {
    cursor.map(|cursor| cursor.to_string()).unwrap_or_default()
}

/// A campaign of which no more is asked.
pub fn campaign_name(id: CampaignId, name: &Name) -> pb::Campaign {
    pb::Campaign { id: id.to_string(), name: name.to_string(), ..pb::Campaign::default() }
}

pub fn campaign(campaign: &Campaign) -> pb::Campaign {
    pb::Campaign {
        id: campaign.id.to_string(),
        name: campaign.name.to_string(),
        root: Some(pb::CampaignRoot {
            path: campaign.root.path.clone(),
            device: campaign.root.device,
            inode: campaign.root.inode,
        }),
        added_time: Some(time(campaign.added)),
        policy: campaign.policy.settings(),
        tracked_hidden: campaign.tracked_hidden.clone(),
        unwatched: campaign.unwatched.clone().unwrap_or_default(),
    }
}
