//! Tokens: what a program or a browser shows to come in.

use ostler_client::reply::HttpToken;
use ostler_domain::{Reason, Refusal, Time, event::is_person};
use serde::{Deserialize, Serialize};

use super::{
    Ring,
    secret::{hash, random},
    share::Shared,
};
use crate::clock;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Token {
    pub(super) name: String,
    pub(super) hash: String,
    #[serde(default)]
    pub(super) is_browser: bool,
    #[serde(default)]
    pub(super) read_only: bool,
    pub(super) created: Time,
    #[serde(default)]
    pub(super) last_used: Option<Time>,
    /// When that was written down, by this daemon.
    #[serde(skip)]
    pub(super) noted: Option<Time>,
    #[serde(default)]
    pub(super) expires: Option<Time>,
    /// The approval that it may see and answer; none, and it may everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<String>,
    /// The part of this machine that it is for; none, and it is for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<Shared>,
}

impl Token {
    pub(super) fn is_of(&self, now: Time) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    pub(super) fn id(&self) -> &str {
        &self.hash[..8.min(self.hash.len())]
    }

    fn shown(&self) -> HttpToken {
        HttpToken {
            name: self.name.clone(),
            id: self.id().to_owned(),
            is_browser: self.is_browser,
            read_only: self.read_only,
            created: self.created,
            last_used: self.last_used,
            expires: self.expires,
            approval: self.approval.clone(),
        }
    }
}

impl Ring {
    pub(crate) fn create_token(&self, name: &str, read_only: bool) -> Result<(HttpToken, String), Refusal> {
        if !is_person(name) {
            return Err(Refusal::invalid(format!("\"{name}\" is no name of a token")).because(
                "letters, digits and .-_@+, 64 at most: it stands in the record for whoever uses it",
            ));
        }
        let secret = format!("ost_{}", random());
        let token = Token {
            name: name.to_owned(),
            hash: hash(&secret),
            is_browser: false,
            read_only,
            created: clock::now(),
            last_used: None,
            noted: None,
            expires: None,
            approval: None,
            share: None,
        };
        let mut kept = self.kept();
        if kept.tokens.iter().any(|known| known.name == name && !known.is_browser && known.share.is_none()) {
            return Err(Refusal::new(Reason::NameTaken, format!("there is a token {name}"))
                .hint(format!("ostler api token rm {name}"), "takes that one back"));
        }
        kept.add(token.clone())?;
        kept.write(&self.file)?;
        Ok((token.shown(), secret))
    }

    /// The newest first.
    pub(crate) fn tokens(&self) -> Vec<HttpToken> {
        let now = clock::now();
        let mut tokens: Vec<_> = self
            .kept()
            .tokens
            .iter()
            .filter(|token| token.is_of(now) && token.share.is_none())
            .map(Token::shown)
            .collect();
        tokens.sort_by_key(|token| std::cmp::Reverse(token.created));
        tokens
    }

    pub(crate) fn revoke(&self, named: &str) -> Result<HttpToken, Refusal> {
        let mut kept = self.kept();
        let is_meant = |token: &Token| {
            token.share.is_none() && (token.id() == named || (token.name == named && !token.is_browser))
        };
        let Some(place) = kept.tokens.iter().position(is_meant) else {
            return Err(Refusal::new(Reason::InvalidArgument, format!("there is no token \"{named}\""))
                .hint("ostler api token", "lists them"));
        };
        let token = kept.tokens.remove(place);
        // Whoever is inside leaves, also where the disk does not take it down.
        self.turned_out.send_replace(());
        kept.write(&self.file)?;
        Ok(token.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::tests::ring;

    #[test]
    fn a_token_that_was_taken_back_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        let (token, secret) = here.create_token("ci", true).unwrap();
        assert_eq!(here.create_token("ci", false).unwrap_err().reason, Reason::NameTaken);
        assert!(here.create_token("a b", false).is_err());
        let guest = here.guest(&secret, false).unwrap();
        assert_eq!((guest.name.as_str(), guest.is_browser, guest.read_only), ("ci", false, true));
        assert!(here.guest(&secret, true).is_none());
        assert!(here.guest(&token.id, false).is_none() && here.guest("", false).is_none());
        assert_eq!(here.tokens().len(), 1);
        // When it was used last is known to the moment, however rarely that is written down.
        let used = here.tokens()[0].last_used.unwrap();
        while clock::now() <= used {}
        here.guest(&secret, false).unwrap();
        assert!(here.tokens()[0].last_used.unwrap() > used);
        assert_eq!(here.revoke("ci").unwrap().id, token.id);
        assert!(here.guest(&secret, false).is_none());
        assert!(here.revoke("ci").is_err());
    }
}
