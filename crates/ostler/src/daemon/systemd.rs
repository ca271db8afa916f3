//! What systemd gives a daemon that it starts, and wants to hear of it: the listening socket, that it is ready, that it
//! ends, and now and then a sign of life.

use std::{
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::mpsc::{SyncSender, sync_channel},
};

use listenfd::ListenFd;
use ostler_domain::Refusal;
use ostler_engine::Engine;
use rustix::io::{FdFlags, fcntl_setfd};
use sd_notify::NotifyState;

/// Words that may wait to be heard.
const WAITING: usize = 4;

/// The control socket, where it is held for us.
pub(super) fn listener() -> Result<Option<UnixListener>, Refusal> {
    let unusable = |error: std::io::Error| {
        Refusal::internal("the socket that was handed over cannot be used").because(error.to_string())
    };
    let listener = ListenFd::from_env().take_unix_listener(0).map_err(unusable)?;
    if let Some(listener) = &listener {
        // Nobody that we start is to answer in our place.
        fcntl_setfd(listener, FdFlags::CLOEXEC).map_err(|errno| unusable(errno.into()))?;
    }
    Ok(listener)
}

/// Where people find it.
pub(super) fn path_of(listener: &UnixListener) -> Option<PathBuf> {
    listener.local_addr().ok()?.as_pathname().map(Path::to_owned)
}

/// Who started us, where it wants to hear of us. It is told by a thread of its own: one that does not listen must not
/// keep anybody waiting.
#[derive(Clone)]
pub(super) struct Manager {
    words: SyncSender<NotifyState<'static>>,
}

impl Manager {
    pub(super) fn new() -> Manager {
        let (words, heard) = sync_channel(WAITING);
        // It ends with the process, whatever it waits for.
        std::thread::spawn(move || {
            for word in heard {
                if let Err(error) = sd_notify::notify(&[word]) {
                    tracing::warn!(%error, "the service manager cannot be told");
                }
            }
        });
        Manager { words }
    }

    pub(super) fn say_ready(&self) {
        self.say(NotifyState::Ready);
    }

    pub(super) fn say_ending(&self) {
        self.say(NotifyState::Stopping);
    }

    /// Gives signs of life for as long as the record answers, if anybody waits for them: a daemon that cannot read it
    /// is of no use, and a new one may be.
    pub(super) async fn give_signs_of_life(self, engine: Engine) {
        let Some(wanted_every) = sd_notify::watchdog_enabled() else { return };
        loop {
            tokio::time::sleep(wanted_every / 3).await;
            match tokio::time::timeout(wanted_every, engine.campaigns()).await {
                Ok(Ok(_)) => self.say(NotifyState::Watchdog),
                Ok(Err(refusal)) => tracing::error!(%refusal, "the record does not answer"),
                Err(_) => tracing::error!("the record has not answered for {wanted_every:?}"),
            }
        }
    }

    fn say(&self, word: NotifyState<'static>) {
        // One that cannot be told the last words will not miss these.
        let _ = self.words.try_send(word);
    }
}
