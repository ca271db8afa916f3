//! Conversations: the list, and one of them.

use ostler_client::{Agent, Conversation, Session};
use ostler_domain::{Time, text::one_line};

use super::{field, next_steps, sessions::CampaignNames};
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

pub(crate) fn table(conversations: &[Conversation], names: &CampaignNames, now: Time) -> Table {
    let columns = [
        Column::new("ID"),
        Column::new("NAME"),
        Column::new("CAMPAIGN").goes(3),
        Column::new("KEY").gives_way_to(20),
        Column::new("STATE"),
        Column::new("ACTIVE").right(),
        Column::new("LABEL").goes(1),
    ];
    let mut table = Table::new(columns);
    for conversation in conversations {
        let campaign = names.of(&conversation.campaign);
        let label = conversation.notes.entry.label.as_deref().unwrap_or_default();
        table.row(vec![
            Line::of(conversation.id.short()),
            Line::new().strong(conversation.name.as_str()),
            Line::of(campaign),
            Line::of(one_line(conversation.key.as_str(), 80)),
            state(conversation),
            Line::of(format!("{} ago", words::age(now.since(conversation.active)))),
            Line::of(one_line(label, 40)),
        ]);
    }
    table
}

fn state(conversation: &Conversation) -> Line {
    match conversation.closed {
        None => Line::of("open"),
        Some(closed) => Line::new().faint(closed.why.as_str()),
    }
}

pub(crate) fn empty() -> Vec<Line> {
    vec![
        Line::of("No conversations."),
        Line::of("  ").with(Tone::Accent, "ostler run \"…\"").plain("   ").faint("begins one"),
        Line::of("  ")
            .with(Tone::Accent, "ostler conversation ls -a")
            .plain("   ")
            .faint("lists closed ones too"),
    ]
}

pub(crate) fn lines(
    conversation: &Conversation,
    campaign: &str,
    agent: Option<&Agent>,
    sessions: &[Session],
    now: Time,
) -> Vec<Line> {
    let ago = |at: Time| format!("{} ago", words::age(now.since(at)));
    let head = [
        Line::of(conversation.id.to_string()),
        state(conversation),
        Line::of(format!("opened {}", ago(conversation.opened))),
        Line::of(format!("active {}", ago(conversation.active))),
    ];
    let mut lines = vec![
        Line::new().strong(conversation.name.as_str()).plain("   ").append(Line::joined(head)),
        field("key", Line::of(conversation.key.as_str())),
    ];
    let whose = agent.map_or_else(|| campaign.to_owned(), |agent| agent.address(campaign));
    lines.push(field(if agent.is_some() { "agent" } else { "campaign" }, Line::of(whose)));
    if let Some(closed) = conversation.closed {
        lines.push(field("closed", Line::of(format!("{} {}", closed.why.as_str(), ago(closed.at)))));
    }
    let links = [
        conversation.replaces.map(|id| format!("in the place of {}", id.short())),
        conversation.forked_from.map(|id| match conversation.forked_at {
            Some(at) => format!("a fork of {} at turn {}", id.short(), at.turn),
            None => format!("a fork of {}", id.short()),
        }),
        conversation.spawned_by.map(|id| format!("asked for by session {}", id.short())),
    ];
    let links: Vec<String> = links.into_iter().flatten().collect();
    if !links.is_empty() {
        lines.push(field("links", Line::of(links.join(" · "))));
    }
    for (n, session) in sessions.iter().enumerate() {
        let ended = session.outcome.map_or_else(|| session.status.as_str(), |outcome| outcome.as_str());
        let line = Line::of(format!("{} {ended}", session.id.short())).faint(format!(
            "  {} · {} · {}",
            session.provider,
            words::plural(u64::from(session.turns), "turn", "turns"),
            ago(session.created_at)
        ));
        lines.push(field(if n == 0 { "sessions" } else { "" }, line));
    }
    for (key, value) in conversation.notes.entry.values() {
        lines.push(field(&key, Line::of(value)));
    }
    for (word, object) in [("state", &conversation.notes.state), ("metadata", &conversation.notes.metadata)] {
        if !object.is_empty() {
            let text = serde_json::to_string(object).unwrap_or_default();
            lines.push(field(word, Line::of(one_line(&text, 300))));
        }
    }
    let (short, name) = (conversation.id.short(), &conversation.name);
    let steps = match conversation.closed {
        None => vec![
            (format!("ostler send {name} \"…\""), "says something to it"),
            (format!("ostler conversation set {short} model=…"), "changes how its next session is started"),
            (
                format!("ostler conversation reset {short}"),
                "begins anew under its key; this one stays readable",
            ),
        ],
        Some(_) => {
            vec![(format!("ostler conversation reopen {short}"), "opens it again, unless its key is taken")]
        }
    };
    lines.extend(next_steps(&steps));
    lines
}
