//! What would have let an agent do what it was not let do: rules of its campaign, no wider than its question.

use ostler_client::{Campaign, Client, ListEvents, Place as From, Received, Session, query::EventFilter};
use ostler_domain::{
    Kind,
    approval::{Place, always, goes_by_rules},
    event::{ApprovalRequested, AskKind},
    limits::PAGE_MOST,
    redact::BLOT,
    session::Sandbox,
    text::shell_word,
};

use super::story::Story;
use crate::{failure::Failure, screen::session::Grant};

/// The rules that questions go by.
#[derive(Debug)]
pub(super) struct Rules {
    campaign: Campaign,
    root: String,
    is_confined: bool,
}

impl Rules {
    pub(super) fn of(campaign: &Campaign, session: &Session) -> Self {
        let is_confined = session.sandbox == Sandbox::On;
        Self { campaign: campaign.clone(), root: session.working_dir.clone(), is_confined }
    }

    /// The command that would allow what is asked for from now on; none where no rule could mean this and nothing else.
    pub(super) fn grant(&self, asked: &ApprovalRequested) -> Option<String> {
        if asked.kind != AskKind::Leave || !goes_by_rules(&asked.why) {
            return None;
        }
        let place = Place { root: &self.root, is_confined: self.is_confined };
        let missing = always(&self.campaign.policy, &place, &asked.tool, &asked.action).ok()?;
        // What has a secret in it is not recorded, so no rule can name it.
        if missing.is_empty() || missing.iter().any(|rule| rule.text.contains(BLOT)) {
            return None;
        }
        let settings: Vec<String> = missing.iter().map(|rule| shell_word(&rule.setting())).collect();
        Some(format!("ostler campaign set {} {}", self.campaign.name, settings.join(" ")))
    }
}

/// What a session was denied and could be allowed, as far as its last events tell.
pub(crate) async fn grants(client: &Client, session: &Session) -> Result<Vec<Grant>, Failure> {
    if session.denied == 0 {
        return Ok(Vec::new());
    }
    let campaign = client.campaign(&session.campaign.to_string()).await?;
    let kinds = vec![Kind::ApprovalRequested, Kind::ApprovalAnswered, Kind::Denied];
    let filter = EventFilter { session: Some(session.id), kinds, ..EventFilter::default() };
    let page = client.events(&ListEvents { filter, from: From::End, limit: PAGE_MOST }).await?;
    let mut story = Story::by(Rules::of(&campaign, session));
    for received in page.events.iter().rev() {
        if let Received::Known(recorded) = received {
            story.take(&recorded.event);
        }
    }
    Ok(story.grants())
}

#[cfg(test)]
mod tests {
    use ostler_domain::{ApprovalId, event::Action};

    use super::*;
    use crate::testing::{self, NOW};

    #[test]
    fn a_question_names_the_rule_that_would_answer_it() {
        let (campaign, session) = (testing::campaign(), testing::session(1, "api"));
        let rules = Rules::of(&campaign, &session);
        let asked = |kind, why: &str, command: &str| ApprovalRequested {
            id: ApprovalId::new(NOW, 1),
            ask: "1".to_owned(),
            tool: "Bash".to_owned(),
            input: command.to_owned(),
            kind,
            action: Action::Run { command: command.to_owned() },
            subagent: None,
            why: why.to_owned(),
            deadline: None,
        };
        let name = &campaign.name;
        assert_eq!(
            rules.grant(&asked(AskKind::Leave, "no rule", "git push origin main")),
            Some(format!("ostler campaign set {name} 'approve.rule+=allow run git push origin main'"))
        );
        let none = [
            asked(AskKind::Question, "no rule", "git push"),
            asked(AskKind::Leave, ostler_domain::approval::NO_RULES, "git push"),
            asked(AskKind::Leave, "no rule", "rm $(cat list)"),
        ];
        assert_eq!(none.map(|asked| rules.grant(&asked)), [None, None, None]);
    }
}
