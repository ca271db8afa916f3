//! What somebody may who was given a part of a machine for a while: a session, a conversation or a campaign, to look, to
//! speak, or to steer. Decided here, for the machine's own door and for what comes by a hub alike.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CampaignId, ConversationId, SessionId};

/// How much. Each has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// To look.
    Observe,
    /// To speak too: messages, answers, an end to a turn.
    Interact,
    /// To steer too: pause, go on, stop, begin again.
    Manage,
}

impl Access {
    pub const ALL: [Access; 3] = [Access::Observe, Access::Interact, Access::Manage];

    pub const fn as_str(self) -> &'static str {
        match self {
            Access::Observe => "observe",
            Access::Interact => "interact",
            Access::Manage => "manage",
        }
    }

    pub fn parse(text: &str) -> Option<Access> {
        Self::ALL.into_iter().find(|access| access.as_str() == text)
    }
}

/// Of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Session(SessionId),
    Conversation(ConversationId),
    Campaign(CampaignId),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Session(id) => id.fmt(f),
            Scope::Conversation(id) => id.fmt(f),
            Scope::Campaign(id) => id.fmt(f),
        }
    }
}

impl Scope {
    pub fn parse(text: &str) -> Option<Scope> {
        let session = || text.parse().ok().map(Scope::Session);
        let conversation = || text.parse().ok().map(Scope::Conversation);
        session().or_else(conversation).or_else(|| text.parse().ok().map(Scope::Campaign))
    }

    /// Whether a session is a part of it.
    pub fn holds(&self, of: &Belongs) -> bool {
        match self {
            Scope::Session(id) => *id == of.session,
            Scope::Conversation(id) => *id == of.conversation,
            Scope::Campaign(id) => *id == of.campaign,
        }
    }
}

/// Where a session belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belongs {
    pub session: SessionId,
    pub conversation: ConversationId,
    pub campaign: CampaignId,
}

/// What is asked for, of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Look,
    Speak,
    Steer,
}

impl Verb {
    const fn needs(self) -> Access {
        match self {
            Verb::Look => Access::Observe,
            Verb::Speak => Access::Interact,
            Verb::Steer => Access::Manage,
        }
    }
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It is no part of what was shared. Said of what does not exist as well.
    Elsewhere,
    /// It takes more than was given.
    Needs(Access),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Elsewhere => f.write_str("it is no part of what was shared"),
            Denied::Needs(access) => write!(f, "that takes a share with --access {}", access.as_str()),
        }
    }
}

pub fn may(access: Access, scope: Scope, verb: Verb, of: &Belongs) -> Result<(), Denied> {
    match (scope.holds(of), verb.needs()) {
        (false, _) => Err(Denied::Elsewhere),
        (true, needs) if needs > access => Err(Denied::Needs(needs)),
        (true, _) => Ok(()),
    }
}

/// A request of the HTTP API, as far as it can be somebody's who has a share; all others have no place there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The list of sessions: those of the scope are in it.
    List,
    /// The log: of the scope, if that is one session.
    Events,
    Session {
        who: String,
        verb: Verb,
    },
    Approval {
        id: String,
        verb: Verb,
    },
}

impl Asked {
    pub fn of(method: &str, path: &str) -> Option<Asked> {
        let is_look = matches!(method, "GET" | "HEAD");
        let words: Vec<&str> = path.strip_prefix("/v1/")?.split('/').collect();
        let session = |who: &str, verb| Some(Asked::Session { who: who.to_owned(), verb });
        let approval = |id: &str, verb| Some(Asked::Approval { id: id.to_owned(), verb });
        match (words.as_slice(), is_look, method) {
            (["sessions"], true, _) => Some(Asked::List),
            (["events"], true, _) => Some(Asked::Events),
            (["sessions", who] | ["sessions", who, "messages" | "chain" | "diff"], true, _) => {
                session(who, Verb::Look)
            }
            (["sessions", who, "messages" | "interrupt"], _, "POST") => session(who, Verb::Speak),
            (["sessions", who, "stop" | "pause" | "resume" | "restart"], _, "POST") => {
                session(who, Verb::Steer)
            }
            (["approvals", id], true, _) => approval(id, Verb::Look),
            (["approvals", id, "answer"], _, "POST") => approval(id, Verb::Speak),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Time;

    fn belongs(session: u128, conversation: u128, campaign: u128) -> Belongs {
        let at = Time::default();
        Belongs {
            session: SessionId::new(at, session),
            conversation: ConversationId::new(at, conversation),
            campaign: CampaignId::new(at, campaign),
        }
    }

    fn scopes(of: &Belongs) -> [Scope; 3] {
        [Scope::Session(of.session), Scope::Conversation(of.conversation), Scope::Campaign(of.campaign)]
    }

    #[test]
    fn only_what_names_one_session_or_the_list_is_for_shares() {
        let asked = |method: &str, path: &str| Asked::of(method, path);
        assert_eq!(asked("GET", "/v1/sessions"), Some(Asked::List));
        let who = |verb| Some(Asked::Session { who: "a".to_owned(), verb });
        assert_eq!(asked("GET", "/v1/sessions/a/diff"), who(Verb::Look));
        assert_eq!(asked("POST", "/v1/sessions/a/messages"), who(Verb::Speak));
        assert_eq!(asked("POST", "/v1/sessions/a/stop"), who(Verb::Steer));
        for (method, path) in [
            ("POST", "/v1/sessions"),
            ("POST", "/v1/sessions/a/handoff"),
            ("POST", "/v1/sessions/a/fork"),
            ("POST", "/v1/halt"),
            ("GET", "/v1/approvals"),
            ("GET", "/v1/search"),
            ("GET", "/v1/cost"),
            ("GET", "/v1/campaigns"),
            ("DELETE", "/v1/sessions/a/messages"),
            ("GET", "/sessions/a"),
            ("GET", "/metrics"),
            ("GET", "/v1/sessions/a/../b"),
        ] {
            assert_eq!(asked(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        for scope in scopes(&belongs(1, 2, 3)) {
            assert_eq!(Scope::parse(&scope.to_string()), Some(scope));
        }
        assert_eq!(Scope::parse("shop"), None);
        assert!(Access::ALL.into_iter().all(|access| Access::parse(access.as_str()) == Some(access)));
    }

    proptest! {
        #[test]
        fn nothing_beyond_the_scope_and_nothing_beyond_the_access(
            shared in (0_u128..3, 0_u128..3, 0_u128..3),
            wanted in (0_u128..3, 0_u128..3, 0_u128..3),
            access in 0_usize..3,
            kind in 0_usize..3,
            verb in 0_usize..3,
        ) {
            let (shared, of) = (belongs(shared.0, shared.1, shared.2), belongs(wanted.0, wanted.1, wanted.2));
            let (access, scope) = (Access::ALL[access], scopes(&shared)[kind]);
            let verb = [Verb::Look, Verb::Speak, Verb::Steer][verb];
            let is_part = [
                shared.session == of.session,
                shared.conversation == of.conversation,
                shared.campaign == of.campaign,
            ][kind];
            let allowed = may(access, scope, verb, &of).is_ok();
            prop_assert_eq!(allowed, is_part && verb.needs() <= access);
            // More access never takes anything away.
            for more in Access::ALL.into_iter().filter(|more| *more >= access) {
                prop_assert!(!allowed || may(more, scope, verb, &of).is_ok());
            }
        }
    }
}
