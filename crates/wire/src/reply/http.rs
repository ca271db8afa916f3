//! Who may come in by the HTTP door.

use ostler_domain::Time;

/// A program's token, or a browser that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpToken {
    /// Its name, by which what it does is recorded.
    pub name: String,
    /// A few letters that tell it from others; no part of the secret.
    pub id: String,
    /// A browser rather than a program.
    pub is_browser: bool,
    /// It may look and not touch.
    pub read_only: bool,
    /// When it was made.
    pub created: Time,
    /// When it was last used, to the hour.
    pub last_used: Option<Time>,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// The approval that it may see and answer, and nothing else; none, and it is for all of the machine.
    pub approval: Option<String>,
}

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayIn {
    /// The link, whole.
    pub link: String,
    /// The door's own address.
    pub address: String,
    /// When the link ends unused.
    pub expires: Time,
    /// Names beside the machine's own by which the door may be reached.
    pub allowed_hosts: Vec<String>,
}

/// A token that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What is known of it.
    pub token: HttpToken,
    /// The secret. Only its hash is kept.
    pub secret: String,
}
