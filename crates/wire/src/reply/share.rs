//! What is shared of a machine.

use ostler_domain::{
    Time,
    share::{Access, Scope},
};

/// A part of a machine that others may see for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its name; whoever uses it is recorded as `share.NAME`.
    pub name: String,
    /// A few letters that tell it from others; no part of the token.
    pub id: String,
    /// How much may be done with it.
    pub access: Access,
    /// What it is of.
    pub scope: Scope,
    /// When it was made.
    pub created: Time,
    /// When it was last used, to the hour.
    pub last_used: Option<Time>,
    /// When it ends by itself.
    pub expires: Time,
}

/// A share that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewShare {
    /// What is known of it.
    pub share: Share,
    /// The token. Only its hash is kept.
    pub secret: String,
}
