//! Whoever follows a session in a terminal and does not look is told there, where `notify` says so.

use std::time::{Duration, Instant};

use ostler_client::{Client, Notices, WantedNotices};
use ostler_domain::{
    SessionId,
    limits::NOTICE_LOOK,
    notice::{Channel, Notice, To},
};

use crate::{app::App, commands::channels};

/// The terminal's own notices, as they become due.
#[derive(Debug)]
pub(crate) struct Bell {
    notices: Option<Notices>,
    /// When somebody typed something last.
    looked: Option<Instant>,
}

/// What the settings say of terminals; none where they are not to be told.
pub(crate) fn terminal_channel(app: &App) -> Option<Channel> {
    let is_here = app.ui.terminals().stderr_is_terminal && app.ui.has_person();
    channels(app).into_iter().find(|channel| channel.to == To::Terminal).filter(|_| is_here)
}

impl Bell {
    /// For those who follow this session.
    pub(crate) fn new(app: &App, client: &Client, session: SessionId) -> Bell {
        let notices = terminal_channel(app).map(|channel| {
            let Channel { on, details, .. } = channel;
            client.notices(WantedNotices { on, details, session: Some(session) })
        });
        Bell { notices, looked: None }
    }

    /// The next that whoever is here has not seen; for ever where none is wanted.
    pub(crate) async fn next(&mut self) -> Notice {
        loop {
            let next = match &mut self.notices {
                Some(notices) => notices.next().await,
                None => std::future::pending().await,
            };
            match next {
                Some(notice) if !looks(self.looked.map(|looked| looked.elapsed())) => return notice,
                Some(_) => {}
                None => self.notices = None,
            }
        }
    }

    /// Somebody is here: they typed something.
    pub(crate) fn looked(&mut self) {
        self.looked = Some(Instant::now());
    }
}

fn looks(since: Option<Duration>) -> bool {
    since.is_some_and(|since| since < NOTICE_LOOK)
}
