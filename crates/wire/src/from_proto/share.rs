//! Shares.

use ostler_domain::share::{Access, Scope};

use super::{Result, optional_time, required, required_time, text};
use crate::{
    InvalidField, pb,
    reply::{NewShare, Share},
};

pub fn access(word: &str) -> Result<Access> {
    Access::parse(word).ok_or_else(|| InvalidField::new("access", "it is none of observe, interact, manage"))
}

pub fn scope(id: &str) -> Result<Scope> {
    Scope::parse(id)
        .ok_or_else(|| InvalidField::new("scope", "it is the id of no session, conversation or campaign"))
}

pub fn share(share: pb::Share) -> Result<Share> {
    let pb::Share { name, id, access: word, scope: of, created, last_used, expires } = share;
    Ok(Share {
        name: text(name, "name")?,
        id: text(id, "id")?,
        access: access(&word)?,
        scope: scope(&of)?,
        created: required_time(created, "created")?,
        last_used: optional_time(last_used, "last_used")?,
        expires: required_time(expires, "expires")?,
    })
}

pub fn new_share(answer: pb::CreateShareResponse) -> Result<NewShare> {
    let share = share(required(answer.share, "share")?)?;
    Ok(NewShare { share, secret: text(answer.secret, "secret")? })
}
