//! Links: each lets one browser in, once.

use std::time::Duration;

use ostler_domain::{Refusal, Time, limits::APPROVAL_LINKS};
use serde::{Deserialize, Serialize};

use super::{
    Ring,
    secret::{hash, random, same},
    token::Token,
};
use crate::clock;

/// How long a link waits to be followed: long enough to be carried to a phone.
const LINK_LIVES: Duration = Duration::from_secs(300);
/// How long a browser stays let in.
const LOGIN_LIVES: Duration = Duration::from_secs(30 * 86_400);
/// Links that wait at once; the oldest gives way.
const LINKS: usize = 32;

/// A link that nobody has followed yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Link {
    pub(super) hash: String,
    pub(super) person: String,
    pub(super) path: String,
    pub(super) expires: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<String>,
}

/// A browser that has just been let in.
#[derive(Debug)]
pub(crate) struct LetIn {
    pub(crate) cookie: String,
    /// How long it stays.
    pub(crate) lives: Duration,
    pub(crate) person: String,
    pub(crate) path: String,
}

impl Ring {
    /// Makes a link's secret.
    pub(crate) fn link(&self, person: &str, path: &str) -> (String, Time) {
        let (secret, expires) = (random(), clock::now().plus(LINK_LIVES));
        let mut links = self.links();
        if links.len() == LINKS {
            links.remove(0);
        }
        let (person, path) = (person.to_owned(), path.to_owned());
        links.push(Link { hash: hash(&secret), person, path, expires, approval: None });
        (secret, expires)
    }

    /// Makes the secret of a link to one approval. It is kept until then, also for the daemons to come.
    pub(crate) fn approval_link(
        &self,
        person: &str,
        approval: &str,
        path: &str,
        until: Time,
    ) -> Result<String, Refusal> {
        let (secret, now) = (random(), clock::now());
        let mut kept = self.kept();
        kept.links.retain(|link| now < link.expires);
        if kept.links.len() >= APPROVAL_LINKS {
            kept.links.remove(0);
        }
        kept.links.push(Link {
            hash: hash(&secret),
            person: person.to_owned(),
            path: path.to_owned(),
            expires: until,
            approval: Some(approval.to_owned()),
        });
        kept.write(&self.file)?;
        Ok(secret)
    }

    /// Takes a link's secret for a cookie's, once.
    pub(crate) fn let_in(&self, secret: &str) -> Result<Option<LetIn>, Refusal> {
        let (now, wanted) = (clock::now(), hash(secret));
        let take = |links: &mut Vec<Link>| {
            links.retain(|link| now < link.expires);
            let place = links.iter().position(|link| same(&link.hash, &wanted))?;
            Some(links.remove(place))
        };
        let mut kept = self.kept();
        let Some(link) = take(&mut self.links()).or_else(|| take(&mut kept.links)) else { return Ok(None) };
        // Who may answer one approval may until its deadline.
        let lives = match link.approval {
            Some(_) => link.expires.since(now),
            None => LOGIN_LIVES,
        };
        let cookie = random();
        let token = Token {
            name: link.person.clone(),
            hash: hash(&cookie),
            is_browser: true,
            read_only: false,
            created: now,
            last_used: Some(now),
            noted: Some(now),
            expires: Some(now.plus(lives)),
            approval: link.approval,
            share: None,
        };
        kept.tokens.retain(|token| token.is_of(now));
        kept.add(token)?;
        kept.write(&self.file)?;
        Ok(Some(LetIn { cookie, lives, person: link.person, path: link.path }))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::ring::tests::ring;

    #[test]
    fn a_link_lets_one_browser_in_once() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        let (secret, _) = here.link("ann", "/sessions");
        assert!(here.let_in("another").unwrap().is_none());
        let let_in = here.let_in(&secret).unwrap().unwrap();
        assert_eq!((let_in.person.as_str(), let_in.path.as_str()), ("ann", "/sessions"));
        assert!(here.let_in(&secret).unwrap().is_none(), "it works once");
        assert_eq!(here.guest(&let_in.cookie, true).unwrap().name, "ann");
        assert!(here.guest(&let_in.cookie, false).is_none(), "a cookie is no token");
        // The next daemon knows the browser, and nobody can read its secret off the disk.
        assert!(ring(dir.path()).guest(&let_in.cookie, true).is_some());
        let text = fs::read_to_string(dir.path().join("http.json")).unwrap();
        assert!(!text.contains(&let_in.cookie) && !text.contains(&secret));
        let mode = fs::metadata(dir.path().join("http.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_link_to_an_approval_outlives_the_daemon_and_opens_no_more_than_that_once() {
        let dir = tempfile::tempdir().unwrap();
        let until = clock::now().plus(Duration::from_secs(3_600));
        let secret = ring(dir.path()).approval_link("phone", "apr_1", "/approvals/apr_1", until).unwrap();
        let late =
            ring(dir.path()).approval_link("phone", "apr_2", "/approvals/apr_2", clock::now()).unwrap();
        let text = fs::read_to_string(dir.path().join("http.json")).unwrap();
        assert!(!text.contains(&secret) && text.contains("apr_1"));
        let next = ring(dir.path());
        assert!(next.let_in(&late).unwrap().is_none(), "its deadline has passed");
        let let_in = next.let_in(&secret).unwrap().unwrap();
        assert_eq!((let_in.path.as_str(), let_in.person.as_str()), ("/approvals/apr_1", "phone"));
        assert!(let_in.lives <= Duration::from_secs(3_600));
        assert_eq!(next.guest(&let_in.cookie, true).unwrap().approval.as_deref(), Some("apr_1"));
        assert!(next.let_in(&secret).unwrap().is_none(), "it works once");
        assert!(ring(dir.path()).let_in(&secret).unwrap().is_none(), "with the next daemon too");
    }
}
