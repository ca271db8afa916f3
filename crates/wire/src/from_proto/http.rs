//! The HTTP door.

use super::{Result, optional_time, required, required_time, text};
use crate::{
    pb,
    reply::{HttpToken, NewToken, WayIn},
};

pub fn http_token(token: pb::HttpToken) -> Result<HttpToken> {
    let pb::HttpToken { name, id, is_browser, read_only, created, last_used, expires, approval } = token;
    Ok(HttpToken {
        name: text(name, "name")?,
        id: text(id, "id")?,
        is_browser,
        read_only,
        created: required_time(created, "created")?,
        last_used: optional_time(last_used, "last_used")?,
        expires: optional_time(expires, "expires")?,
        approval: approval.map(|id| text(id, "approval")).transpose()?,
    })
}

pub fn way_in(answer: pb::OpenHttpResponse) -> Result<WayIn> {
    let pb::OpenHttpResponse { link, address, expires, allowed_hosts } = answer;
    let expires = required_time(expires, "expires")?;
    Ok(WayIn { link: text(link, "link")?, address: text(address, "address")?, expires, allowed_hosts })
}

pub fn new_token(answer: pb::CreateTokenResponse) -> Result<NewToken> {
    let token = http_token(required(answer.token, "token")?)?;
    Ok(NewToken { token, secret: text(answer.secret, "secret")? })
}
