//! How a dialogue with the gateway begins: who we are, whether it remembers what is gone on with, the session, and what of
//! it is told.

use ostler_domain::session::Begin;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    THINKING,
    config::{PORT, permission_mode, token},
};
use crate::{Heard, Say, Terms};

const PROTOCOL: u32 = 4;
const OPENING: &str = "open:";
pub(super) const CONNECT: &str = "connect";
pub(super) const FIND: &str = "find";
pub(super) const CREATE: &str = "create";
pub(super) const PERMISSION: &str = "permission";
pub(super) const SUBSCRIBE: &str = "subscribe";
pub(super) const WORKS: &str = "works";

/// Where the bridge finds the gateway, and what the dialogue must know: the first line that is written.
pub(super) fn opening(terms: &Terms) -> Option<Say> {
    let session = terms.session.to_string();
    let opening = Opening {
        key: match terms.begin.provider_id() {
            Some(before) => before.to_owned(),
            // `main` is where its own background work goes; ours must never be that.
            None => format!("agent:main:{}", session.to_lowercase()),
        },
        token: token(&session),
        permission: permission_mode(terms.approve).to_owned(),
        is_resumed: matches!(terms.begin, Begin::Resume { .. }),
        thinking: terms.config.get(THINKING).cloned(),
    };
    let tag = serde_json::to_string(&opening).ok()?;
    Say::line(format!("{OPENING}{tag}"), &json!({"bridge": format!("ws://127.0.0.1:{PORT}")}))
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Opening {
    pub(super) key: String,
    token: String,
    permission: String,
    /// It is to be there already.
    pub(super) is_resumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
}

impl Opening {
    /// What a tag says, if it is the first line's.
    pub(super) fn of(tag: &str) -> Option<Opening> {
        tag.strip_prefix(OPENING).map(|opening| serde_json::from_str(opening).unwrap_or_default())
    }

    pub(super) fn introduction(&self) -> Value {
        json!({
            "minProtocol": PROTOCOL, "maxProtocol": PROTOCOL,
            // This very client, with the shared token, needs no key of its own and no pairing.
            "client": {"id": "gateway-client", "version": env!("CARGO_PKG_VERSION"), "platform": "linux", "mode": "backend"},
            "role": "operator",
            "scopes": ["operator.read", "operator.write", "operator.approvals", "operator.admin"],
            // Left out, tools are silent and everything that needs leave is denied, and nothing says so.
            "caps": ["tool-events", "session-scoped-events", "approvals", "exec-approvals", "plugin-approvals"],
            "auth": {"token": self.token},
        })
    }

    /// Asks whether it is there. Creating it would make an empty one in its place, without a word.
    pub(super) fn find(&self) -> Option<Heard> {
        say(FIND, "sessions.describe", json!({"key": self.key}))
    }

    pub(super) fn lost(&self) -> String {
        format!("openclaw has no record of {} any more", self.key)
    }

    pub(super) fn create(&self) -> Option<Heard> {
        let mut wanted = json!({"key": self.key});
        if let Some(level) = &self.thinking {
            wanted["thinkingLevel"] = json!(level);
        }
        say(CREATE, "sessions.create", wanted)
    }

    pub(super) fn subscribe(&self) -> impl Iterator<Item = Heard> {
        let mode = json!({"key": self.key, "permissionMode": self.permission});
        let wanted = json!({"key": self.key, "includeApprovals": true});
        [say(PERMISSION, "sessions.patch", mode), say(SUBSCRIBE, "sessions.messages.subscribe", wanted)]
            .into_iter()
            .flatten()
    }

    /// Asks whether it works. Whoever subscribed before that hears of all that begins later.
    pub(super) fn look_for_work(&self) -> Option<Heard> {
        say(WORKS, "sessions.describe", json!({"key": self.key}))
    }
}

pub(super) fn req(id: &str, method: &str, params: Value) -> Value {
    json!({"type": "req", "id": id, "method": method, "params": params})
}

pub(super) fn say(id: &str, method: &str, params: Value) -> Option<Heard> {
    Say::line(id, &req(id, method, params)).map(Heard::Say)
}
