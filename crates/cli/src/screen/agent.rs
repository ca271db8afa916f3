//! Agents: the list, and one of them.

use ostler_client::{Agent, Conversation, Session};
use ostler_domain::{
    Time,
    budget::{Standing, Used},
    text::one_line,
};

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
            word(profile.budgets()),
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
    used: Option<&Used>,
    now: Time,
) -> Vec<Line> {
    let mut lines = profile(agent, campaign);
    if let Some((used, budget)) = used.zip(agent.profile.period_budget) {
        let amount = budget.amount();
        let word = match amount.standing(used) {
            Standing::UsedUp => ", used up",
            Standing::Unpriced(_) => ", of which a part has no price",
            Standing::Warned | Standing::Within => "",
        };
        lines.push(field("used", Line::of(format!("{} {}{word}", amount.told(used), budget.period.words()))));
    }
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
        (
            format!("ostler run -C {campaign} --agent {name} \"…\""),
            "starts a session, or goes on with its last one",
        ),
        (format!("ostler ls -a -C {campaign} --agent {name}"), "all its sessions"),
        (format!("ostler agent set {campaign}/{name} model=…"), "changes what the next one is started with"),
    ]));
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{AgentId, agent::Profile, conversation::Notes};

    use super::*;
    use crate::testing::{self, NOW, ago};

    pub(crate) fn agent(n: u128, name: &str, profile: Profile) -> Agent {
        let campaign = testing::campaign().id;
        Agent {
            id: AgentId::new(ago(9_000), n),
            campaign,
            name: name.parse().unwrap(),
            added: ago(90_000),
            profile,
        }
    }

    #[test]
    fn in_all_looks() {
        let reviewer = Profile {
            role: "reviewer".parse().unwrap(),
            provider: Some("claude-code".to_owned()),
            model: Some("claude-opus-4-7".to_owned()),
            system_prompt: Some("Say what is wrong, and how one sees it.".to_owned()),
            budget: Some(crate::parse::budget("2usd,500k").unwrap()),
            ..Profile::default()
        };
        let agents = [
            (agent(1, "api-auth", Profile::default()), "shop".to_owned()),
            (agent(2, "reviewer-of-everything", reviewer), "shop".to_owned()),
        ];
        assert_snapshot!(testing::in_all_looks(|look| table(&agents, NOW).lines(look)));
        let session = testing::session(2, "reviewer-of-everything");
        let conversation = Conversation {
            id: session.conversation,
            campaign: session.campaign,
            agent: Some(agents[1].0.id),
            key: "main".parse().unwrap(),
            name: session.name.clone(),
            opened: ago(5_000),
            active: ago(60),
            forked_from: None,
            forked_at: None,
            spawned_by: None,
            replaces: None,
            closed: None,
            notes: Notes::default(),
        };
        assert_snapshot!(testing::in_all_looks(|look| {
            let conversations = std::slice::from_ref(&conversation);
            let with_all = lines(&agents[1].0, "shop", conversations, Some(&session), None, NOW);
            let with_nothing = lines(&agents[0].0, "shop", &[], None, None, NOW);
            testing::folded(&[with_all, with_nothing, empty()].concat(), look)
        }));
    }
}
