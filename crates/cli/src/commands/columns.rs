//! The columns of each list, by the command that shows it: what may be typed after `--columns`.

use super::{config, hub, mission, node, notify, policy, price, provider, share, token, usage};
use crate::{
    output::Table,
    screen::{self, cost::Sum, sessions::CampaignNames},
    words,
};

/// `command` as `ostler-campaign-ls`. None for what shows no list.
pub(crate) fn columns(command: &str) -> Option<Vec<String>> {
    Some(empty_table(command)?.names().into_iter().filter(|name| !name.is_empty()).collect())
}

/// The table that a command shows, with nothing in it.
pub(crate) fn empty_table(command: &str) -> Option<Table> {
    let now = words::now();
    Some(match command.strip_prefix("ostler-")? {
        "ls" | "find" | "session-ls" | "session-find" => screen::sessions::table(&[], now),
        "agent-ls" => screen::agent::table(&[], now),
        "approval" | "approval-ls" => screen::approval::table(&[], now),
        "campaign-ls" => screen::campaign::table(&[], None, now),
        "conversation-ls" => screen::conversation::table(&[], &CampaignNames::default(), now),
        "cost" => screen::cost::table("MODEL", &[], &Sum::default()),
        "message" | "message-ls" => screen::message::table(&[], &[1], now),
        "api-token-ls" => token::table(),
        "hub-node-ls" | "hub-viewer-ls" => hub::table(),
        "mission-template-ls" => mission::template_table(),
        "notify-ls" => notify::table(),
        "share-ls" => share::table(),
        "mission-ls" => screen::mission::list::table(&[], now),
        "retention-ls" => screen::retention::table(&[], now),
        "retention-plan" => screen::retention::plan(&[], now),
        "search" => screen::search::table(&[], now),
        "ticket-ls" => screen::ticket::table(&[], now),
        "worktree-ls" => screen::worktree::table(&[], None, now),
        "config-show" => config::empty_table(),
        "node-ls" => node::empty_table(),
        "policy-show" => policy::empty_table(),
        "price-ls" => price::empty_table(),
        "provider-ls" => provider::empty_table(),
        "usage-audit" => usage::empty_table(),
        _ => return None,
    })
}
