//! Typed ids: a prefix and a ULID, made by us, safe in file names. A provider's own id is never one of these.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};
use ulid::Ulid;

use crate::time::Time;

/// Characters of the short form. ULIDs share their first characters (the time), so the short form is the tail.
const SHORT: usize = 5;
/// Fewest characters accepted as a prefix or suffix: shorter ones fit something by accident.
pub const FRAGMENT_LEAST: usize = 4;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a {what} id")]
pub struct IdError {
    what: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "String")]
        pub struct $name(Ulid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// Makes an id from a moment and 80 bits of entropy, both the caller's.
            pub fn new(at: Time, entropy: u128) -> Self {
                Self(Ulid::from_parts(u64::try_from(at.micros() / 1000).unwrap_or(0), entropy))
            }

            /// The last characters in lower case: what people see and type.
            pub fn short(&self) -> String {
                let text = self.0.to_string();
                text[text.len() - SHORT..].to_ascii_lowercase()
            }

            /// The 128 bits behind the id.
            pub fn bits(&self) -> u128 {
                self.0.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let refuse = || IdError { what: $what, text: text.chars().take(64).collect() };
                let ulid = text
                    .strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .ok_or_else(refuse)?;
                let parsed = Ulid::from_string(ulid).map_err(|_| refuse())?;
                // One spelling only: file names and keys are compared as text.
                if !parsed.array_to_str(&mut [0; ulid::ULID_LEN]).eq_ignore_ascii_case(ulid) {
                    return Err(refuse());
                }
                Ok(Self(parsed))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData))
            }
        }
    )*};
}

/// Reads an id where its text lies: a list of sessions has hundreds, and none is worth a copy of its text.
struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err = IdError>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

ids! {
    /// A registered directory.
    CampaignId = "cmp", "campaign";
    /// A named identity in a campaign.
    AgentId = "agt", "agent";
    /// A dialogue that survives processes.
    ConversationId = "cnv", "conversation";
    /// One life of one agent process.
    SessionId = "ses", "session";
    /// A unit of work.
    TicketId = "tkt", "ticket";
    /// A group of agents with one objective.
    MissionId = "msn", "mission";
    /// One slot of a mission.
    AssignmentId = "asg", "assignment";
    /// Something said to a conversation.
    MessageId = "msg", "message";
    /// An agent's question for leave.
    ApprovalId = "apr", "approval";
    /// One daemon on one machine.
    NodeId = "nod", "node";
    /// A caller's name for one change, so that asking twice does it once.
    RequestId = "req", "request";
}

/// Part of an id as a person types it: the whole, a unique prefix or a unique suffix, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    ulid_part: String,
}

impl Fragment {
    /// Reads a fragment of an id with this prefix. `None` when the text cannot be part of such an id.
    pub fn parse(text: &str, prefix: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let part = lower.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).unwrap_or(&lower);
        let fits = (FRAGMENT_LEAST..=ulid::ULID_LEN).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric());
        fits.then(|| Self { ulid_part: part.to_ascii_uppercase() })
    }

    /// The characters in the case ids are written in.
    pub fn as_str(&self) -> &str {
        &self.ulid_part
    }

    /// Says whether an id (with or without its prefix) begins or ends with this fragment.
    pub fn fits(&self, id: &str) -> bool {
        let ulid = id.rsplit('_').next().unwrap_or(id);
        ulid.starts_with(&self.ulid_part) || ulid.ends_with(&self.ulid_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionId {
        SessionId::new(Time::from_micros(1_763_000_000_000_000), 0xdead_beef)
    }

    #[test]
    fn survives_its_text_form() {
        let id = session();
        assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<SessionId>(&json).unwrap(), id);
        assert!(serde_json::from_str::<CampaignId>(&json).unwrap_err().to_string().contains("campaign id"));
        let lower = format!("ses_{}", id.to_string()[4..].to_lowercase());
        assert_eq!(lower.parse::<SessionId>().unwrap(), id);
        assert_eq!(id.to_string().to_lowercase().parse::<CampaignId>().ok(), None);
        assert!(id.to_string().ends_with(&id.short().to_uppercase()));
    }

    #[test]
    fn refuses_what_is_no_id() {
        for text in [
            "",
            "ses_",
            "ses_x",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "ses_../../etc/passwd",
            "ses_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
    }

    #[test]
    fn fragments_fit_either_end() {
        let text = session().to_string();
        assert!(Fragment::parse(&session().short(), "ses").unwrap().fits(&text));
        assert!(Fragment::parse(&text, "ses").unwrap().fits(&text));
        assert!(Fragment::parse(&text[..10], "ses").unwrap().fits(&text));
        assert!(Fragment::parse("abc", "ses").is_none());
        assert!(Fragment::parse("a/../b", "ses").is_none());
    }
}
