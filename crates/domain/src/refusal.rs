//! Why something was not done: a stable reason, a sentence, one fact behind it, and what to try.
//!
//! One type from the engine to the terminal. The reason is for programs and decides the exit code; the rest is
//! for the person at 2 a.m.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A stable word for each way in which a request can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Reason> {
                match text { $($text => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    CampaignUnknown = "CAMPAIGN_UNKNOWN",
    CampaignExists = "CAMPAIGN_EXISTS",
    /// The path is gone, is no directory, or may not be a campaign.
    CampaignRoot = "CAMPAIGN_ROOT",
    /// Another directory now lies at the campaign's path.
    CampaignMoved = "CAMPAIGN_MOVED",
    CampaignBusy = "CAMPAIGN_BUSY",
    ProviderUnknown = "PROVIDER_UNKNOWN",
    ProviderMissing = "PROVIDER_MISSING",
    ProviderAuth = "PROVIDER_AUTH",
    SessionUnknown = "SESSION_UNKNOWN",
    MessageUnknown = "MESSAGE_UNKNOWN",
    ApprovalUnknown = "APPROVAL_UNKNOWN",
    ApprovalAnswered = "APPROVAL_ANSWERED",
    /// The words given fit several things.
    Ambiguous = "AMBIGUOUS",
    NameTaken = "NAME_TAKEN",
    InvalidArgument = "INVALID_ARGUMENT",
    TooLarge = "TOO_LARGE",
    /// The thing is not in a state that allows this.
    WrongState = "WRONG_STATE",
    Halted = "HALTED",
    Quarantined = "QUARANTINED",
    OverBudget = "OVER_BUDGET",
    /// A budget in dollars, and a model whose price nobody knows.
    PriceUnknown = "PRICE_UNKNOWN",
    InboxFull = "INBOX_FULL",
    /// The same request id came with another request.
    RequestConflict = "REQUEST_CONFLICT",
    PermissionDenied = "PERMISSION_DENIED",
    /// The campaign's network leads to no model.
    ModelUnreachable = "MODEL_UNREACHABLE",
    /// This machine cannot confine an agent, so none is started.
    SandboxUnavailable = "SANDBOX_UNAVAILABLE",
    DiskFull = "DISK_FULL",
    StoreReadOnly = "STORE_READ_ONLY",
    StoreCorrupt = "STORE_CORRUPT",
    StoreNewer = "STORE_NEWER",
    StoreBusy = "STORE_BUSY",
    DaemonRunning = "DAEMON_RUNNING",
    DaemonUnreachable = "DAEMON_UNREACHABLE",
    ShuttingDown = "SHUTTING_DOWN",
    TimedOut = "TIMED_OUT",
    Internal = "INTERNAL",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A command to try, and what it would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    pub command: String,
    pub effect: String,
}

/// Why something was not done, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
}

impl Refusal {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), why: None, hints: Vec::new() }
    }

    /// Adds the one fact behind it.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Adds a command to try.
    #[must_use]
    pub fn hint(mut self, command: impl Into<String>, effect: impl Into<String>) -> Self {
        self.hints.push(Hint { command: command.into(), effect: effect.into() });
        self
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::InvalidArgument, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Reason::Internal, message).hint("ostler daemon logs", "shows what the daemon says about it")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.reason)?;
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
