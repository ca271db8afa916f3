//! Who may come in: tokens of programs, browsers that were let in, and links that let one in once. Kept as hashes; a
//! secret is told when it is made, and never again.

mod kept;
mod link;
mod secret;
mod share;
mod token;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_domain::Refusal;
use tokio::sync::watch;

use self::{kept::Kept, link::Link, token::Token};
pub(crate) use self::{
    secret::{csrf, hash, request_id, same},
    share::{SHARE, Shared},
};
use crate::clock;

/// When something was used is written down this often: a daemon that dies forgets no more of it.
const NOTED_EVERY: Duration = Duration::from_secs(3_600);

/// Somebody who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    pub(crate) name: String,
    pub(crate) is_browser: bool,
    pub(crate) read_only: bool,
    /// The approval that they may see and answer; none, and they may everything.
    pub(crate) approval: Option<String>,
    /// The part of this machine that they may see.
    pub(crate) share: Option<Shared>,
    /// What they showed, as it is kept.
    key: String,
}

impl Guest {
    /// What tells them from every other guest.
    pub(crate) fn whose(&self) -> &str {
        &self.key
    }
}

#[derive(Debug)]
pub(crate) struct Ring {
    file: PathBuf,
    kept: Mutex<Kept>,
    links: Mutex<Vec<Link>>,
    /// Told whenever somebody may no longer come in.
    turned_out: watch::Sender<()>,
}

impl Ring {
    pub(crate) fn read(file: PathBuf) -> Result<Ring, Refusal> {
        let kept = Kept::read(&file)?;
        Ok(Ring {
            file,
            kept: Mutex::new(kept),
            links: Mutex::default(),
            turned_out: watch::Sender::default(),
        })
    }

    pub(crate) fn open_at(&self) -> Option<SocketAddr> {
        self.kept().open_at
    }

    /// Remembers where the door is. A door that closes turns all browsers out.
    pub(crate) fn set_open_at(&self, open_at: Option<SocketAddr>) -> Result<(), Refusal> {
        let mut kept = self.kept();
        if kept.open_at == open_at {
            return Ok(());
        }
        kept.open_at = open_at;
        if open_at.is_none() {
            kept.tokens.retain(|token| !token.is_browser);
            kept.links.clear();
            self.links().clear();
            self.turned_out.send_replace(());
        }
        kept.write(&self.file)
    }

    /// Who shows this secret. A browser's opens nothing as a token, nor the other way round.
    pub(crate) fn guest(&self, secret: &str, is_browser: bool) -> Option<Guest> {
        let (now, wanted) = (clock::now(), hash(secret));
        let mut kept = self.kept();
        let is_meant = |token: &&mut Token| same(&token.hash, &wanted) && token.is_browser == is_browser;
        let token = kept.tokens.iter_mut().find(is_meant).filter(|token| token.is_of(now))?;
        let guest = Guest {
            name: token.name.clone(),
            is_browser,
            read_only: token.read_only,
            approval: token.approval.clone(),
            share: token.share,
            key: token.hash.clone(),
        };
        token.last_used = Some(now);
        if token.noted.is_none_or(|noted| now.since(noted) >= NOTED_EVERY) {
            token.noted = Some(now);
            // Who comes in is not turned away for a full disk.
            let _ = kept.write(&self.file);
        }
        Some(guest)
    }

    /// Waits until this one may no longer stay: a stream is one request, however long it lasts.
    pub(crate) async fn turned_out(&self, guest: &Guest) {
        let mut news = self.turned_out.subscribe();
        while let Some(left) = self.may_stay(guest) {
            // What runs out is noticed too, not only what is taken back.
            let _ = tokio::time::timeout(left.min(NOTED_EVERY), news.changed()).await;
        }
    }

    /// For how long yet; none, and it is over.
    fn may_stay(&self, guest: &Guest) -> Option<Duration> {
        let now = clock::now();
        let kept = self.kept();
        let token = kept.tokens.iter().find(|token| token.hash == guest.key && token.is_of(now))?;
        Some(token.expires.map_or(Duration::MAX, |expires| expires.since(now)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, Vec<Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ostler_domain::share::{Access, Scope};

    use super::*;

    pub(super) fn ring(dir: &Path) -> Ring {
        Ring::read(dir.join("http.json")).unwrap()
    }

    #[tokio::test]
    async fn who_is_turned_out_leaves_at_once_and_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        let (_, ci) = here.create_token("ci", true).unwrap();
        let (_, other) = here.create_token("other", true).unwrap();
        let shared = Shared {
            access: Access::Observe,
            scope: Scope::Session(ostler_domain::SessionId::new(clock::now(), 1)),
        };
        let bob = here.create_share("bob", shared, Duration::from_secs(60)).unwrap().secret;
        let [ci, other, bob] = [&ci, &other, &bob].map(|secret| here.guest(secret, false).unwrap());
        let mut stays = std::pin::pin!(here.turned_out(&other));
        for (leaves, turn_out) in [
            (&ci, &(|| drop(here.revoke("ci").unwrap())) as &dyn Fn()),
            (&bob, &|| {
                drop(here.revoke_share("bob").unwrap());
            }),
        ] {
            tokio::select! {
                biased;
                () = &mut stays => panic!("the other was turned out"),
                _ = async { tokio::join!(here.turned_out(leaves), async { turn_out() }) } => {}
                () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{} stays", leaves.name),
            }
        }
    }

    #[tokio::test]
    async fn whoever_s_time_is_over_leaves_when_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        let scope = Scope::Session(ostler_domain::SessionId::new(clock::now(), 1));
        let shared = Shared { access: Access::Observe, scope };
        let share =
            |name, lives| here.create_share(name, shared, Duration::from_millis(lives)).unwrap().secret;
        let [soon, later] =
            [share("bob", 200), share("eve", 3_600_000)].map(|secret| here.guest(&secret, false).unwrap());
        tokio::select! {
            () = here.turned_out(&soon) => {}
            () = here.turned_out(&later) => panic!("whose time is not over was turned out"),
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("bob stays"),
        }
    }

    #[test]
    fn closing_turns_browsers_out_and_leaves_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let here = ring(dir.path());
        here.set_open_at(Some("127.0.0.1:1".parse().unwrap())).unwrap();
        let (secret, _) = here.link("ann", "/");
        let browser = here.let_in(&secret).unwrap().unwrap();
        let (unused, _) = here.link("ann", "/");
        let (_, token) = here.create_token("ci", false).unwrap();
        here.set_open_at(None).unwrap();
        assert!(here.guest(&browser.cookie, true).is_none());
        assert!(here.let_in(&unused).unwrap().is_none());
        assert!(here.guest(&token, false).is_some());
    }
}
