//! Agents: the list, and one of them.

use ostler_client::{Agent, Conversation, Session};
use ostler_domain::{Time, text::one_line};

use super::{field, next_steps};
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

pub(crate) fn table(agents: &[(Agent, String)], now: Time) -> Table {
    let columns = [
        Column::new("NAME"),
        Column::new("ROLE"),
        Column::new("CAMPAIGN"),
        Column::new("PROVIDER").goes(3),
        Column::new("MODEL").goes(2),
        Column::new("BUDGET").right().goes(2),
        Column::new("ADDED").right(),
        Column::new("ID").goes(1),
    ];
    let mut table = Table::new(columns);
    let word = |value: Option<String>| value.map_or_else(|| Line::new().faint("–"), Line::of);
    for (agent, campaign) in agents {
        let profile = &agent.profile;
        table.row(vec![
            Line::new().strong(agent.name.as_str()),
            Line::of(profile.role.as_str()),
            Line::of(campaign.clone()),
            word(profile.provider.clone()),
            word(profile.model.clone()),
            word(profile.budget.map(|amount| amount.to_string())),
            Line::of(format!("{} ago", words::age(now.since(agent.added)))),
            Line::new().faint(agent.id.to_string()),
        ]);
    }
    table
}

pub(crate) fn empty() -> Vec<Line> {
    vec![
        Line::of(
            "No agents are registered. An agent is a name that keeps its conversations; sessions need none.",
        ),
        Line::of("  ")
            .with(Tone::Accent, "ostler agent add NAME --role reviewer")
            .plain("   ")
            .faint("registers one in this campaign"),
    ]
}

/// What an agent's sessions are started with.
pub(crate) fn profile(agent: &Agent, campaign: &str) -> Vec<Line> {
    let profile = &agent.profile;
    let mut lines = vec![
        Line::new()
            .strong(agent.name.as_str())
            .plain("   ")
            .append(Line::joined([Line::of(agent.address(campaign)), Line::of(agent.id.to_string())])),
        field("role", Line::of(profile.role.as_str())),
    ];
    for (key, value) in profile.values().into_iter().filter(|(key, _)| *key != "role") {
        lines.push(field(key, Line::of(one_line(&value, 300))));
    }
    lines
}

pub(crate) fn lines(
    agent: &Agent,
    campaign: &str,
    conversations: &[Conversation],
    last: Option<&Session>,
    now: Time,
) -> Vec<Line> {
    let mut lines = profile(agent, campaign);
    lines.push(field("added", Line::of(format!("{} ago", words::age(now.since(agent.added))))));
    let last = last.map(|session| {
        Line::of(format!("{} {}", session.id.short(), session.status.as_str()))
            .faint(format!("  {}", one_line(&session.evidence, 100)))
    });
    lines.push(field("session", last.unwrap_or_else(|| Line::new().faint("none yet"))));
    for (n, conversation) in conversations.iter().enumerate() {
        let word = if n == 0 { "keys" } else { "" };
        let active = words::age(now.since(conversation.active));
        let line = Line::of(conversation.key.as_str())
            .faint(format!("  {} · active {active} ago", conversation.id.short()));
        lines.push(field(word, line));
    }
    let name = &agent.name;
    lines.extend(next_steps(&[
        (format!("ostler run --agent {name} \"…\""), "starts a session, or goes on with its last one"),
        (format!("ostler ls -a --agent {name}"), "all its sessions"),
        (format!("ostler agent set {name} model=…"), "changes what the next one is started with"),
    ]));
    lines
}
