//! The HTTP door.

use super::time;
use crate::{
    pb,
    reply::{HttpToken, NewToken, WayIn},
};

pub fn http_token(token: HttpToken) -> pb::HttpToken {
    let HttpToken { name, id, is_browser, read_only, created, last_used, expires, approval } = token;
    pb::HttpToken {
        name,
        id,
        is_browser,
        read_only,
        created: Some(time(created)),
        last_used: last_used.map(time),
        expires: expires.map(time),
        approval,
    }
}

pub fn way_in(way: WayIn) -> pb::OpenHttpResponse {
    let WayIn { link, address, expires, allowed_hosts } = way;
    pb::OpenHttpResponse { link, address, expires: Some(time(expires)), allowed_hosts }
}

pub fn new_token(made: NewToken) -> pb::CreateTokenResponse {
    pb::CreateTokenResponse { token: Some(http_token(made.token)), secret: made.secret }
}
