//! How the talk begins: what is said first, and the thread that is asked for then.

use ostler_domain::session::Begin;
use ostler_tape::Line;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::config::{SANDBOX, approval_policy};
use crate::{Heard, Say, Terms};

/// The beginning of the first line's tag; the rest is what the dialogue must know.
const OPENING: &str = "open:";
/// Notifications that say nothing we want, some of them long.
const UNWANTED: [&str; 5] = [
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "thread/readState/changed",
    "turn/diff/updated",
    "item/commandExecution/outputDelta",
];

pub(super) fn opening(terms: &Terms) -> Vec<Say> {
    let opening = Opening {
        cwd: terms.working_dir.to_string_lossy().into_owned(),
        approval: approval_policy(terms.approve).to_owned(),
        before: terms.begin.provider_id().map(str::to_owned),
        fork: matches!(terms.begin, Begin::Fork { .. }),
        model: terms.model.clone(),
    };
    let Ok(tag) = serde_json::to_string(&opening) else { return Vec::new() };
    let initialize = json!({"id": "open", "method": "initialize", "params": {
        "clientInfo": {"name": "ostler", "title": "Ostler", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"experimentalApi": true, "requestAttestation": false, "optOutNotificationMethods": UNWANTED},
    }});
    Say::line(format!("{OPENING}{tag}"), &initialize).into_iter().collect()
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Opening {
    cwd: String,
    approval: String,
    /// The thread that is gone on with.
    pub(super) before: Option<String>,
    fork: bool,
    model: Option<String>,
}

impl Opening {
    /// What a tag says, if it is the first line's.
    pub(super) fn of(tag: &str) -> Option<Opening> {
        tag.strip_prefix(OPENING).map(|opening| serde_json::from_str(opening).unwrap_or_default())
    }

    /// Asks for the thread: that of before, or a new one.
    pub(super) fn thread(&self, line: &Line<'_>, before: Option<&str>) -> Option<Heard> {
        let mut params = json!({"cwd": self.cwd, "approvalPolicy": self.approval, "sandbox": SANDBOX});
        // Else a thread of before comes back with the model that it had.
        if let Some(model) = &self.model {
            params["model"] = model.as_str().into();
        }
        let method = match before {
            None => "thread/start",
            Some(before) => {
                params["threadId"] = before.into();
                params["excludeTurns"] = true.into();
                if self.fork { "thread/fork" } else { "thread/resume" }
            }
        };
        let request = json!({"id": format!("at-{}", line.start), "method": method, "params": params});
        Say::line(method, &request).map(Heard::Say)
    }
}
