//! Why something was not done: a stable reason, a sentence, one fact behind it, and what to try.
//!
//! One type from the engine to the terminal. The reason is for programs and decides the exit code; the rest is
//! for the person at 2 a.m.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal: $meaning:literal, $remedy:literal;)*) => {
        /// A stable word for each way in which a request can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $text,)* }
            }

            /// When it is given.
            pub const fn meaning(self) -> &'static str {
                match self { $(Reason::$variant => $meaning,)* }
            }

            /// What to do about it, in general; a refusal's own hints know more.
            pub const fn remedy(self) -> &'static str {
                match self { $(Reason::$variant => $remedy,)* }
            }

            pub fn parse(text: &str) -> Option<Reason> {
                match text { $($text => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    CampaignUnknown = "CAMPAIGN_UNKNOWN":
        "no campaign has this name or holds this path",
        "`ostler campaign ls`; `ostler campaign add DIR` makes one";
    CampaignExists = "CAMPAIGN_EXISTS":
        "the directory is a campaign already, by another name",
        "use the name that the error says";
    CampaignRoot = "CAMPAIGN_ROOT":
        "the path is gone, is no directory, or may not be a campaign: `/`, a home, a system directory, Ostler's own files",
        "name a directory of a project";
    CampaignMoved = "CAMPAIGN_MOVED":
        "another directory now lies at the campaign's path",
        "put the old one back, or `ostler campaign rm` and add the new one";
    CampaignBusy = "CAMPAIGN_BUSY":
        "it has sessions that have not ended, or missions that are not over",
        "`ostler stop -C NAME` and `ostler mission cancel MISSION`, then again";
    AgentUnknown = "AGENT_UNKNOWN":
        "no agent of this name is registered",
        "`ostler agent ls`; `ostler agent add NAME` registers one";
    ConversationUnknown = "CONVERSATION_UNKNOWN":
        "no conversation fits",
        "`ostler conversation ls -a`";
    Imported = "IMPORTED":
        "the session ran outside of Ostler and was imported: it is only read",
        "`ostler resume WHO` goes on with it in a session of its own";
    SecondWriter = "SECOND_WRITER":
        "somebody else goes on with the same dialogue outside of Ostler",
        "end it there, or let it end, then again";
    ConversationBusy = "CONVERSATION_BUSY":
        "a session of the conversation has not ended, and a conversation has one at a time",
        "`ostler send NAME` says something to that one";
    TicketUnknown = "TICKET_UNKNOWN":
        "no ticket fits",
        "`ostler ticket ls -a`; `ostler ticket add TEXT` writes one down";
    TicketClosed = "TICKET_CLOSED":
        "the ticket is done, cancelled or archived, so nothing is started for it",
        "`ostler ticket reopen TICKET`, then again";
    TicketWaits = "TICKET_WAITS":
        "tickets that must be done before it are not done; the error names them",
        "`ostler ticket start` of those; `ostler ticket link TICKET --no-depends-on OTHER` where they need not be";
    TicketCycle = "TICKET_CYCLE":
        "tickets would wait for each other for ever; the error says how",
        "leave one of the dependencies out";
    TicketExists = "TICKET_EXISTS":
        "a ticket of the campaign has this external reference",
        "`ostler ticket show REF`";
    MissionUnknown = "MISSION_UNKNOWN":
        "no mission fits",
        "`ostler mission ls -a`; `ostler mission start FILE` starts one";
    NodeUnknown = "NODE_UNKNOWN":
        "no machine has this name",
        "`ostler node ls`; `ostler node add NAME ssh://HOST` gives one a name";
    ProviderUnknown = "PROVIDER_UNKNOWN":
        "there is no such provider",
        "`ostler provider ls`; `ostler provider add acp:NAME` declares one";
    ProviderMissing = "PROVIDER_MISSING":
        "the provider's program is not there, or too old",
        "install it, or name it in `providers.NAME.program`; `ostler provider test NAME`";
    ProviderAuth = "PROVIDER_AUTH":
        "the provider has neither a key nor a login",
        "`ostler provider login NAME`, or set its key and `ostler resume`";
    SessionUnknown = "SESSION_UNKNOWN":
        "no session or message fits",
        "`ostler ls -a`";
    MessageUnknown = "MESSAGE_UNKNOWN":
        "no message has that id",
        "`ostler message ls WHO`";
    ApprovalUnknown = "APPROVAL_UNKNOWN":
        "no approval fits",
        "`ostler approval ls -a`";
    ApprovalAnswered = "APPROVAL_ANSWERED":
        "the question no longer waits for an answer",
        "nothing: somebody, a rule or its time limit was first (`ostler approval show ID`)";
    Ambiguous = "AMBIGUOUS":
        "the words fit several things; the error names them",
        "say more of the id, or `CAMPAIGN/NAME`";
    NameTaken = "NAME_TAKEN":
        "a session that has not ended, or a campaign, has this name",
        "take another name, or `ostler send NAME` to the one there is";
    InvalidArgument = "INVALID_ARGUMENT":
        "a value makes no sense; over gRPC the field is named in a `google.rpc.BadRequest`",
        "correct it: `--help` says what it takes";
    CursorUnknown = "CURSOR_UNKNOWN":
        "the log has no such place: it was put back from a copy, the place is another machine's, or a hub no longer has what came next",
        "begin anew: without a place there is what comes from now on, after 0 there is everything";
    TooLarge = "TOO_LARGE":
        "a message or request is over its limit",
        "put the text into a file of the campaign and name it";
    SnapshotUnknown = "SNAPSHOT_UNKNOWN":
        "there is no snapshot of that turn, or of anything: none could be taken, or the campaign is no git repository",
        "`ostler show WHO` says which there are; `ostler events --kind SNAPSHOT_TAKEN` why one is missing";
    WorktreeRefused = "WORKTREE_REFUSED":
        "there can be no work tree: the campaign is no git repository or has no commit, the branch is checked out elsewhere, or git is missing",
        "what the error says; without `--worktree` a session works in the campaign's own directory";
    WrongState = "WRONG_STATE":
        "the thing is not in a state that allows this; for instance, the session has ended",
        "`ostler show WHO` says its state and what can be done";
    Halted = "HALTED":
        "all agents are halted",
        "`ostler halt --release`";
    Quarantined = "QUARANTINED":
        "too many short lives in a row",
        "`ostler show WHO` says why they ended; `ostler resume WHO` tries again";
    OverBudget = "OVER_BUDGET":
        "the session's or the campaign's budget is used up",
        "`ostler resume WHO --budget …`, `ostler campaign set NAME budget=…`";
    PriceUnknown = "PRICE_UNKNOWN":
        "a budget in dollars, and a model whose price nobody knows",
        "`ostler price set MODEL input=… output=…`";
    InboxFull = "INBOX_FULL":
        "1 000 messages wait already",
        "wait, or `ostler message ls WHO`";
    RequestConflict = "REQUEST_CONFLICT":
        "this request id was used for another request",
        "make a new id for each change; repeat one only with the same request";
    Busy = "BUSY":
        "as much is asked for at once as may be: requests that are open, or connections",
        "let some of them end, then again";
    PermissionDenied = "PERMISSION_DENIED":
        "another user, a process in another user namespace, or an agent that asked for more than its own session",
        "ask as the user whose daemon it is";
    ModelUnreachable = "MODEL_UNREACHABLE":
        "a model is configured, and the campaign's `net.mode` (`none`, `host`) has no gateway that leads to it",
        "`ostler campaign set NAME net.mode=provider`";
    SandboxUnavailable = "SANDBOX_UNAVAILABLE":
        "this machine cannot confine an agent, so none is started; the text names what is missing",
        "`ostler doctor`, `ostler sandbox allow-userns`";
    DiskFull = "DISK_FULL":
        "there is no room on the disk of the state",
        "`ostler du` says what takes it; what waits goes on when there is room";
    StoreReadOnly = "STORE_READ_ONLY":
        "the state directory cannot be written",
        "give it back to the user who runs the daemon";
    StoreCorrupt = "STORE_CORRUPT":
        "the store is damaged, truncated, or another program's database",
        "`ostler db check`, `ostler db reindex`, or a copy made with `ostler db backup`";
    StoreNewer = "STORE_NEWER":
        "the store was written by a newer version of Ostler",
        "use that version; nothing was changed";
    StoreBusy = "STORE_BUSY":
        "another program holds the database",
        "end it and try again";
    DaemonRunning = "DAEMON_RUNNING":
        "another daemon serves this state directory",
        "use it; `ostler daemon status`";
    DaemonUnreachable = "DAEMON_UNREACHABLE":
        "none listens, or the connection broke for good",
        "`ostler daemon start`; `ostler daemon logs` may say why it ended";
    ShuttingDown = "SHUTTING_DOWN":
        "the daemon is just ending",
        "ask again in a moment: the next one answers";
    TimedOut = "TIMED_OUT":
        "a time limit passed; what was waited for goes on",
        "wait longer (`--timeout`)";
    Internal = "INTERNAL":
        "a mistake of ours",
        "`ostler daemon logs`; a report is welcome";
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
    /// The change that was refused, by the name that whoever asked for it gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Refusal {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), why: None, hints: Vec::new(), request_id: None }
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

    /// The sentence with the fact behind it, where its reason is said elsewhere.
    pub fn told(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.message),
            None => self.message.clone(),
        }
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
