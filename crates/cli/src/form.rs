//! What programs read, `-o json` and `-o jsonl`: the forms are shared with the daemon's HTTP door, and pinned here.

pub(crate) use ostler_form::{
    AgentForm, ApprovalForm, CampaignForm, ConversationForm, DrainForm, EventForm, HaltForm, MessageForm,
    SessionForm, StatusForm, WorktreeForm,
};

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_client::{Received, UnknownEvent};
    use ostler_domain::{Event, Recorded, event::Text};

    use super::*;
    use crate::{
        output::to_json,
        testing::{self, NOW},
    };

    /// What programs may rely on: changing a line of these snapshots breaks somebody's script.
    #[test]
    fn lists_of_sessions_are_pinned() {
        let fleet = testing::fleet();
        let sessions = vec![SessionForm::new(&fleet[0], "shop"), SessionForm::new(&fleet[6], "shop")];
        let form = crate::listing::Object { name: "sessions", rows: sessions, next_cursor: Some(17) };
        assert_snapshot!(serde_json::to_string_pretty(&form).unwrap());
    }

    #[test]
    fn events_are_pinned() {
        let session = Some(testing::fleet()[0].id);
        let event = Event::AgentCompletion(Text::from("done\u{1b}[2J".to_owned()));
        let known = Recorded { seq: 7, session, session_seq: Some(3), time: NOW, event };
        let (kind, body) = ("AGENT_DREAM".to_owned(), r#"{"of":"sheep"}"#.to_owned());
        let unknown = UnknownEvent { seq: 8, session: None, session_seq: None, time: NOW, kind, body };
        let lines = [Received::Known(Box::new(known)), Received::Unknown(unknown)];
        assert_snapshot!(
            lines.iter().map(|event| to_json(&EventForm::new(event))).collect::<Vec<_>>().join("\n")
        );
    }

    #[test]
    fn campaigns_are_pinned() {
        assert_snapshot!(to_json(&CampaignForm::new(&testing::campaign())));
    }
}
