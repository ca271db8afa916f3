//! Telling somebody who is not looking: channels, each with a place of its own in the log.
//!
//! The log is the queue. A place is remembered only when what stands there was told, or never can be; so a daemon that
//! dies at the wrong moment tells again, with the same id, and loses nothing. When something is told is decided in
//! [`ostler_domain::notice::Pace`].

mod channels;
mod desktop;
mod hook;
mod post;
mod sign;
mod tell;
mod untold;

use std::{fmt, path::PathBuf, sync::Arc};

use ostler_domain::{Refusal, Time, notice::Channel};

pub use post::{Post, Poster};
pub(crate) use post::{Tried, judged};
pub(crate) use untold::Untold;

/// Who is told, and how.
#[derive(Clone, Default)]
pub struct NoticeSettings {
    pub channels: ChannelSettings,
    /// How an address is reached.
    pub post: Option<Poster>,
    /// How a link is made.
    pub link: Option<Linker>,
    /// The file that whoever looks at this machine's screen touches.
    pub looked_at: Option<PathBuf>,
}

impl fmt::Debug for NoticeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeSettings").finish_non_exhaustive()
    }
}

type Read = dyn Fn() -> Result<Vec<Channel>, Refusal> + Send + Sync;
type MakeLink = dyn Fn(&Wanted<'_>) -> Option<String> + Send + Sync;

/// Who is told, asked anew for each occasion: it may be changed while a daemon runs.
#[derive(Clone)]
pub struct ChannelSettings(Arc<Read>);

impl ChannelSettings {
    pub fn new(read: impl Fn() -> Result<Vec<Channel>, Refusal> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn all(&self) -> Result<Vec<Channel>, Refusal> {
        (self.0)()
    }
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self::new(|| Ok(Vec::new()))
    }
}

/// A link that a notice is to have.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Where it leads.
    pub page: &'a str,
    /// The channel that it is told on; whoever follows a link that lets them in is recorded by it.
    pub channel: &'a str,
    /// The approval that it lets whoever follows it answer, and until when; none, and it lets nobody in.
    pub approval: Option<(&'a str, Time)>,
}

/// Makes links, where there is a door for them. Given by whoever has one; the engine has none.
#[derive(Clone)]
pub struct Linker(Arc<MakeLink>);

impl Linker {
    pub fn new(make: impl Fn(&Wanted<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    fn make(&self, wanted: &Wanted<'_>) -> Option<String> {
        (self.0)(wanted)
    }
}
