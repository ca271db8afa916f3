//! Conversations: the list, and one of them.

use ostler_client::{Agent, Conversation, Session};
use ostler_domain::{
    Time,
    text::{one_line, shell_word},
};

use super::{field, next_steps, sessions::CampaignNames};
use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

/// A conversation, and whether its agent was removed: another one may have its name by now.
pub(crate) struct Shown<'a> {
    pub(crate) conversation: &'a Conversation,
    pub(crate) is_agent_removed: bool,
}

pub(crate) fn table(rows: &[Shown<'_>], names: &CampaignNames, now: Time) -> Table {
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
    for Shown { conversation, is_agent_removed } in rows {
        let campaign = names.of(&conversation.campaign);
        let label = conversation.notes.entry.label.as_deref().unwrap_or_default();
        table.row(vec![
            Line::of(conversation.id.short()),
            Line::new().strong(conversation.name.as_str()).faint(if *is_agent_removed {
                " (removed)"
            } else {
                ""
            }),
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

/// Where an imported conversation is gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GoesOn {
    /// In this campaign, which is around its directory.
    In(String),
    /// In its directory, once that is in a campaign.
    Unregistered,
    /// Nobody knows where its agent worked.
    Nowhere,
}

pub(crate) fn lines(
    conversation: &Conversation,
    campaign: &str,
    agent: Option<&Agent>,
    sessions: &[Session],
    goes_on: &GoesOn,
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
    let short = conversation.id.short();
    let steps = match conversation.closed {
        None => {
            let mut steps = to_go_on(conversation, sessions, goes_on);
            steps.push((
                format!("ostler conversation set {short} model=…"),
                "changes how its next session is started".to_owned(),
            ));
            steps.push((
                format!("ostler conversation reset {short}"),
                "begins anew under its key; this one stays readable".to_owned(),
            ));
            steps
        }
        Some(_) => vec![(
            format!("ostler conversation reopen {short}"),
            "opens it again, unless its key is taken".to_owned(),
        )],
    };
    let steps: Vec<_> = steps.iter().map(|(command, effect)| (command.clone(), effect.as_str())).collect();
    lines.extend(next_steps(&steps));
    lines
}

/// How it is gone on with. What ran outside is only read until somebody resumes it, which is done in a campaign.
fn to_go_on(conversation: &Conversation, sessions: &[Session], goes_on: &GoesOn) -> Vec<(String, String)> {
    let short = conversation.id.short();
    let Some(last) = sessions.first().filter(|last| last.imported.is_some()) else {
        let has_hearer =
            !sessions.is_empty() || conversation.agent.is_some() || conversation.replaces.is_some();
        let send = (format!("ostler send {short} \"…\""), "says something to it".to_owned());
        return has_hearer.then_some(send).into_iter().collect();
    };
    let (id, dir) = (last.id.short(), one_line(&last.working_dir, 200));
    let resume = format!("ostler resume {id}");
    let read = (format!("ostler transcript show {id}"), "reads it".to_owned());
    match goes_on {
        GoesOn::In(campaign) => vec![(resume, format!("goes on with it in {campaign}: {dir}")), read],
        GoesOn::Nowhere => vec![read],
        GoesOn::Unregistered => vec![
            (
                format!("ostler campaign add {}", shell_word(&dir)),
                "agents may then read and write there".to_owned(),
            ),
            (resume, "then goes on with it there".to_owned()),
            read,
        ],
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{
        ConversationId,
        conversation::{CloseReason, Closed, Notes, TurnRef},
        history::{Origin, Source},
        session::Outcome,
    };
    use serde_json::json;

    use super::*;
    use crate::testing::{self, NOW, ago};

    #[test]
    fn in_all_looks() {
        let session = testing::session(1, "api-auth");
        let open = Conversation {
            id: session.conversation,
            campaign: session.campaign,
            agent: None,
            key: "agent:api-auth:slack:channel:c0123456789".parse().unwrap(),
            name: "api-auth".parse().unwrap(),
            opened: ago(90_000),
            active: ago(120),
            forked_from: Some(ConversationId::new(ago(100_000), 9)),
            forked_at: Some(TurnRef { session: session.id, turn: 3 }),
            spawned_by: None,
            replaces: None,
            closed: None,
            notes: Notes::default(),
        };
        let mut open = open;
        open.notes.entry.label = Some("Checkout".to_owned());
        open.notes.state.insert("phase".to_owned(), json!(3));
        let closed = Conversation {
            id: ConversationId::new(ago(200_000), 5),
            name: "docs".parse().unwrap(),
            key: "main".parse().unwrap(),
            forked_from: None,
            forked_at: None,
            replaces: Some(open.id),
            closed: Some(Closed { at: ago(40), why: CloseReason::Archived }),
            notes: Notes::default(),
            ..open.clone()
        };
        let mut names = CampaignNames::default();
        names.0.insert(open.campaign, "shop".to_owned());
        let rows = [
            Shown { conversation: &open, is_agent_removed: false },
            Shown { conversation: &closed, is_agent_removed: true },
        ];
        assert_snapshot!(testing::in_all_looks(|look| table(&rows, &names, NOW).lines(look)));
        let past = testing::ended(3, "api-auth", Outcome::Done, 3_000, "The turn ended.");
        assert_snapshot!(testing::in_all_looks(|look| {
            let one = lines(&open, "shop", None, &[session.clone(), past.clone()], &GoesOn::Nowhere, NOW);
            let other = lines(&closed, "shop", None, &[], &GoesOn::Nowhere, NOW);
            testing::folded(&[one, other, empty()].concat(), look)
        }));
    }

    #[test]
    fn what_was_imported_is_resumed_where_it_can_be_and_not_spoken_to() {
        let mut session = testing::ended(3, "api-auth", Outcome::Done, 3_000, "Imported from claude.");
        session.working_dir = "/srv/my shop".to_owned();
        session.imported = Some(Origin {
            source: Source::Claude,
            dialogue: "d1".to_owned(),
            file: "/x/d1.jsonl".to_owned(),
            from: 0,
        });
        let conversation = Conversation {
            id: session.conversation,
            campaign: session.campaign,
            agent: None,
            key: "import:claude:d1".parse().unwrap(),
            name: session.name.clone(),
            opened: ago(90_000),
            active: ago(120),
            forked_from: None,
            forked_at: None,
            spawned_by: None,
            replaces: None,
            closed: None,
            notes: Notes::default(),
        };
        let shown = |sessions: &[Session], goes_on: GoesOn| {
            let lines = lines(&conversation, "shop", None, sessions, &goes_on, NOW);
            let look = crate::output::Look::plain(None);
            lines.iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        let resume = format!("ostler resume {}", session.id.short());
        let inside = shown(std::slice::from_ref(&session), GoesOn::In("shop".to_owned()));
        assert!(inside.contains(&resume) && inside.contains("in shop: /srv/my shop"), "{inside}");
        assert!(!inside.contains("ostler send") && !inside.contains("campaign add"), "{inside}");
        let outside = shown(std::slice::from_ref(&session), GoesOn::Unregistered);
        assert!(outside.contains("ostler campaign add '/srv/my shop'"), "{outside}");
        assert!(outside.contains(&resume) && !outside.contains("ostler send"), "{outside}");
        // A row that came without a transcript has nobody who would hear anything.
        assert!(!shown(&[], GoesOn::Nowhere).contains("ostler send"));
    }
}
