//! Shares.

use super::time;
use crate::{
    pb,
    reply::{NewShare, Share},
};

pub fn share(share: Share) -> pb::Share {
    let Share { name, id, access, scope, created, last_used, expires } = share;
    pb::Share {
        name,
        id,
        access: access.as_str().to_owned(),
        scope: scope.to_string(),
        created: Some(time(created)),
        last_used: last_used.map(time),
        expires: Some(time(expires)),
    }
}

pub fn new_share(made: NewShare) -> pb::CreateShareResponse {
    pb::CreateShareResponse { share: Some(share(made.share)), secret: made.secret }
}
