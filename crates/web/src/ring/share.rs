//! Shares: tokens for a part of this machine, for a while.

use std::time::Duration;

use ostler_client::reply::{NewShare, Share};
use ostler_domain::{
    Reason, Refusal,
    event::is_person,
    share::{Access, Scope},
};
use serde::{Deserialize, Serialize};

use super::{
    Ring,
    secret::{hash, random},
    token::Token,
};
use crate::clock;

/// How the secrets of shares begin.
pub(crate) const SHARE: &str = "shr_";

/// A part of this machine, and how much may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) scope: Scope,
}

impl Token {
    fn share(&self) -> Option<Share> {
        let Shared { access, scope } = self.share?;
        Some(Share {
            name: self.name.strip_prefix("share.").unwrap_or(&self.name).to_owned(),
            id: self.id().to_owned(),
            access,
            scope,
            created: self.created,
            last_used: self.last_used,
            expires: self.expires.unwrap_or_default(),
        })
    }
}

impl Ring {
    pub(crate) fn create_share(
        &self,
        name: &str,
        shared: Shared,
        lives: Duration,
    ) -> Result<NewShare, Refusal> {
        let (now, person) = (clock::now(), format!("share.{name}"));
        if !is_person(&person) {
            return Err(Refusal::invalid(format!("\"{name}\" is no name of a share")).because(
                "letters, digits and .-_@+, 58 at most: it stands in the record for whoever uses it",
            ));
        }
        let mut kept = self.kept();
        kept.tokens.retain(|token| token.is_of(now));
        if kept.tokens.iter().any(|known| known.share.is_some() && known.name == person) {
            return Err(Refusal::new(Reason::NameTaken, format!("there is a share {name}"))
                .hint(format!("ostler share rm {name}"), "takes that one back"));
        }
        let secret = format!("{SHARE}{}", random());
        let token = Token {
            name: person,
            hash: hash(&secret),
            is_browser: false,
            read_only: false,
            created: now,
            last_used: None,
            noted: None,
            expires: Some(now.plus(lives)),
            approval: None,
            share: Some(shared),
        };
        kept.add(token.clone())?;
        kept.write(&self.file)?;
        let share = token.share().ok_or_else(|| Refusal::internal("a share that is none"))?;
        Ok(NewShare { share, secret })
    }

    /// The newest first.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let now = clock::now();
        let mut shares: Vec<_> =
            self.kept().tokens.iter().filter(|token| token.is_of(now)).filter_map(Token::share).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.created));
        shares
    }

    pub(crate) fn revoke_share(&self, named: &str) -> Result<Share, Refusal> {
        let mut kept = self.kept();
        let is_meant =
            |token: &Token| token.share().is_some_and(|share| share.name == named || share.id == named);
        let share = kept.tokens.iter().position(is_meant).map(|place| kept.tokens.remove(place));
        let Some(share) = share.as_ref().and_then(Token::share) else {
            return Err(Refusal::invalid(format!("there is no share \"{named}\""))
                .hint("ostler share ls", "lists them"));
        };
        // Whoever is inside leaves, also where the disk does not take it down.
        self.turned_out.send_replace(());
        kept.write(&self.file)?;
        Ok(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::tests::ring;

    #[test]
    fn a_share_ends_by_itself_and_is_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        let shared = Shared {
            access: Access::Observe,
            scope: Scope::Session(ostler_domain::SessionId::new(clock::now(), 1)),
        };
        let made = here.create_share("bob", shared, Duration::from_secs(60)).unwrap();
        assert!(made.secret.starts_with(SHARE));
        assert_eq!(here.guest(&made.secret, false).unwrap().share, Some(shared));
        assert_eq!(here.guest(&made.secret, false).unwrap().name, "share.bob");
        assert!(here.tokens().is_empty() && here.revoke("share.bob").is_err());
        assert_eq!(here.create_share("bob", shared, Duration::ZERO).unwrap_err().reason, Reason::NameTaken);
        let over = here.create_share("old", shared, Duration::ZERO).unwrap();
        assert!(here.guest(&over.secret, false).is_none(), "its time is over");
        assert_eq!(here.shares().len(), 1);
        assert_eq!(here.revoke_share("bob").unwrap().id, made.share.id);
        assert!(here.guest(&made.secret, false).is_none());
    }
}
