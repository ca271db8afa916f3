//! The only part that acts: it has the terminal, the client and the clock, gives messages to `update`, and does what that
//! wants.
//!
//! Pictures are never queued: one is drawn when the last was written and a tenth of a second has passed, of whatever is
//! true by then. A terminal that is slow sees fewer of them, and nobody waits for it but this loop.

mod asking;
mod following;
mod keys;
mod terminal;

use std::{
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};

use ostler_client::{Client, Notices, WantedNotices};
use ostler_domain::{CampaignId, Refusal, SessionId, notice::Notice, price::Prices};
use ostler_screen::{Look, words};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{
        Notify,
        mpsc::{self, Receiver, Sender},
    },
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

use self::{
    keys::{Keys, Typed},
    terminal::Screen,
};
use crate::{
    message::{Effect, Message},
    state::{Overview, State},
    update::update,
};

/// Between two pictures.
const PICTURE: Duration = Duration::from_millis(100);
/// Between two looks at how things stand, where something changes all the time, and where nothing does.
const LOOK: Duration = Duration::from_millis(250);
const GLANCE: Duration = Duration::from_secs(3);
/// A daemon that has not answered for this long is away.
const SILENCE: Duration = Duration::from_millis(800);
/// How long one look is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the clock is looked at: times on the screen are in seconds.
const TICK: Duration = Duration::from_millis(250);
/// Between two looks at the settings.
const HEAR_SETTINGS: Duration = Duration::from_secs(1);
/// Between two signs that somebody looks.
const SAY_LOOKING: Duration = Duration::from_secs(3);
/// Messages on their way. Who has more waits, and the daemon's log keeps it.
const QUEUE: usize = 256;

/// What the screen is told about where it is.
pub struct Settings<'a> {
    pub client: Client,
    /// What the terminal can show.
    pub look: Look,
    /// The machine that is looked at.
    pub node: String,
    /// The campaign around the working directory.
    pub near: Option<CampaignId>,
    /// For what was used when it had no price.
    pub prices: Prices,
    /// The command that attaches to a session.
    pub attach: Box<dyn Fn(SessionId) -> Command>,
    /// What whoever has this terminal and does not look is told by it, as the settings say by now.
    pub bell: Box<dyn Fn() -> Option<WantedNotices> + 'a>,
    /// The file that says that somebody looks at this machine's screen.
    pub looked_at: Option<PathBuf>,
}

/// How the screen was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Quit,
    Interrupted,
    Terminated,
}

/// Shows the screen until somebody leaves it. Leaving ends nothing.
pub async fn run(settings: Settings<'_>) -> Result<Ended, Refusal> {
    let failed = |error: io::Error| Refusal::internal(format!("the terminal cannot be used: {error}"));
    let (to_typed, typed) = mpsc::channel(QUEUE);
    let (to_inbox, inbox) = mpsc::channel(QUEUE);
    let Settings { client, look, node, near, prices, attach, bell, looked_at } = settings;
    let rested = Arc::new(Notify::new());
    let knows_focus = keys::knows_focus().await;
    let mut shell = Shell {
        state: State::new(words::now(), look, node, near),
        screen: Some(Screen::take(Arc::clone(&rested)).map_err(failed)?),
        rested,
        keys: Some(Keys::read(to_typed.clone(), knows_focus)),
        knows_focus,
        to_typed,
        to_inbox,
        client,
        prices: Arc::new(prices),
        attach,
        asked: JoinSet::new(),
        followed: None,
        looking: None,
        looked: None,
        wants_look: true,
        bell,
        wanted: None,
        notices: None,
        heard_settings: None,
        looked_at,
        said_looking: None,
    };
    shell.hear_settings();
    let ended = shell.run(typed, inbox).await;
    shell.leave();
    ended.map_err(failed)
}

struct Shell<'a> {
    state: State,
    screen: Option<Screen>,
    /// The last picture was written.
    rested: Arc<Notify>,
    keys: Option<Keys>,
    /// Of the terminal: what it says of being in front is true.
    knows_focus: bool,
    to_typed: Sender<Typed>,
    to_inbox: Sender<Message>,
    client: Client,
    prices: Arc<Prices>,
    attach: Box<dyn Fn(SessionId) -> Command>,
    /// What was asked for and has not come to its end.
    asked: JoinSet<Option<Message>>,
    /// The task that tells what the session under the cursor does.
    followed: Option<JoinHandle<()>>,
    /// The look at how things stand that is on its way, and since when.
    looking: Option<(Instant, JoinHandle<Option<Overview>>)>,
    /// When the last one came back.
    looked: Option<Instant>,
    wants_look: bool,
    bell: Box<dyn Fn() -> Option<WantedNotices> + 'a>,
    /// What the settings said of this terminal last, and when they were looked at.
    wanted: Option<WantedNotices>,
    heard_settings: Option<Instant>,
    notices: Option<Notices>,
    looked_at: Option<PathBuf>,
    /// When it was last said that somebody looks.
    said_looking: Option<Instant>,
}

impl Shell<'_> {
    async fn run(&mut self, mut typed: Receiver<Typed>, mut inbox: Receiver<Message>) -> io::Result<Ended> {
        let mut signals = Signals::catch()?;
        let news = Arc::new(Notify::new());
        let watch = following::changes(self.client.clone(), Arc::clone(&news), self.to_inbox.clone());
        let watch = tokio::spawn(watch);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let rested = Arc::clone(&self.rested);
        let (mut is_stale, mut next_picture) = (true, Instant::now());
        let ended = loop {
            let is_busy = self.screen.as_ref().is_some_and(Screen::is_busy);
            let message = tokio::select! {
                ended = signals.next() => break ended,
                _ = sleep_until(next_picture), if is_stale && !is_busy => {
                    if let Some(screen) = &mut self.screen {
                        screen.show(&mut self.state)?;
                    }
                    (is_stale, next_picture) = (false, Instant::now() + PICTURE);
                    continue;
                }
                // Counted from its end: a terminal that takes long has as long to rest.
                () = rested.notified() => {
                    next_picture = Instant::now() + PICTURE;
                    continue;
                }
                typed = typed.recv() => match typed {
                    Some(Typed::Message(message)) => message,
                    Some(Typed::Resized) => Message::Tick,
                    Some(Typed::Over) | None => break Ended::Terminated,
                },
                message = inbox.recv() => message.unwrap_or(Message::Tick),
                notice = next_notice(&mut self.notices) => Message::Notice(notice.body()),
                Some(done) = self.asked.join_next() => match done {
                    Ok(Some(message)) => message,
                    Ok(None) => continue,
                    // A panic has given the terminal back and said what happened.
                    Err(error) => return Err(io::Error::other(error)),
                },
                overview = look_ends(&mut self.looking) => {
                    self.looked = Some(Instant::now());
                    let message = match overview {
                        Some(overview) => Message::Overview(Box::new(overview)),
                        None => self.lost(),
                    };
                    self.looking = None;
                    message
                }
                () = news.notified() => {
                    self.wants_look = true;
                    self.look();
                    continue;
                }
                _ = ticks.tick() => self.tick(),
            };
            is_stale = true;
            let effects = update(&mut self.state, words::now(), message);
            if let Some(ended) = self.act(effects, &mut typed, &mut signals).await? {
                break ended;
            }
            self.look();
        };
        watch.abort();
        Ok(ended)
    }

    /// Does what is wanted, which may be to leave.
    async fn act(
        &mut self,
        effects: Vec<Effect>,
        typed: &mut Receiver<Typed>,
        signals: &mut Signals,
    ) -> io::Result<Option<Ended>> {
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(Some(Ended::Quit)),
                Effect::Refresh => self.wants_look = true,
                Effect::Ring(text) => {
                    if let Some(screen) = &self.screen {
                        screen.ring(&text);
                    }
                }
                Effect::Follow(id) => {
                    let follow = following::session(self.client.clone(), id, self.to_inbox.clone());
                    if let Some(before) = self.followed.replace(tokio::spawn(follow)) {
                        before.abort();
                    }
                }
                Effect::Attach(id) => {
                    if let Some(ended) = self.attach(id, typed, signals).await? {
                        return Ok(Some(ended));
                    }
                }
                other => {
                    let (client, prices) = (self.client.clone(), Arc::clone(&self.prices));
                    self.asked.spawn(async move { asking::ask(&client, &prices, other).await });
                }
            }
        }
        Ok(None)
    }

    /// Leaves terminal and keys to another program until it ends. What interrupts that program does not interrupt this one.
    async fn attach(
        &mut self,
        id: SessionId,
        typed: &mut Receiver<Typed>,
        signals: &mut Signals,
    ) -> io::Result<Option<Ended>> {
        self.leave();
        // What was typed for this screen is not for that program.
        while typed.try_recv().is_ok() {}
        let mut command = (self.attach)(id);
        let mut attached = tokio::task::spawn_blocking(move || command.status());
        let mut ended = None;
        loop {
            tokio::select! {
                status = &mut attached => {
                    status.map_err(io::Error::other)??;
                    break;
                }
                asked = signals.next() => ended = Some(asked).filter(|asked| *asked != Ended::Interrupted),
            }
        }
        if ended.is_none() {
            self.screen = Some(Screen::take(Arc::clone(&self.rested))?);
            self.keys = Some(Keys::read(self.to_typed.clone(), self.knows_focus));
            self.wants_look = true;
        }
        Ok(ended)
    }

    fn leave(&mut self) {
        if let Some(keys) = self.keys.take() {
            keys.stop();
        }
        self.screen = None;
    }

    /// Looks how things stand, if that is wanted, none is on its way, and the last was a while ago.
    fn look(&mut self) {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        if !self.wants_look || !is_due || self.looking.is_some() {
            return;
        }
        self.wants_look = false;
        let (client, with_ended) = (self.client.clone(), self.state.with_ended);
        let look = tokio::spawn(async move {
            let overview = timeout(PATIENCE, asking::overview(&client, with_ended)).await;
            overview.ok().and_then(Result::ok)
        });
        self.looking = Some((Instant::now(), look));
    }

    /// Time has passed: somebody may have waited too long for an answer.
    fn tick(&mut self) -> Message {
        self.say_looking();
        self.hear_settings();
        match &self.looking {
            Some((since, _)) if since.elapsed() >= SILENCE => self.lost(),
            Some(_) => Message::Tick,
            None => {
                self.wants_look |= self.looked.is_none_or(|looked| looked.elapsed() >= GLANCE);
                Message::Tick
            }
        }
    }

    /// A channel that somebody adds or takes back while this runs holds from then on.
    fn hear_settings(&mut self) {
        if self.heard_settings.is_some_and(|heard| heard.elapsed() < HEAR_SETTINGS) {
            return;
        }
        self.heard_settings = Some(Instant::now());
        let wanted = (self.bell)();
        if wanted != self.wanted {
            self.notices = wanted.clone().map(|wanted| self.client.notices(wanted));
            self.wanted = wanted;
        }
    }

    /// Says to whoever would tell this machine's desktop that it is seen here.
    fn say_looking(&mut self) {
        let Some(file) = &self.looked_at else { return };
        let is_due = self.said_looking.is_none_or(|said| said.elapsed() >= SAY_LOOKING);
        if self.state.is_looked_at() && is_due {
            self.said_looking = Some(Instant::now());
            // Who cannot say it is told twice.
            let opened = File::options().write(true).create(true).truncate(false).mode(0o600).open(file);
            let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// The daemon is away since it was asked in vain: since the look began that is on its way, or has just ended. Asked again
    /// until it is back.
    fn lost(&mut self) -> Message {
        self.wants_look = true;
        let since = self.looking.as_ref().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        Message::Lost(words::now().minus(since))
    }
}

/// The next notice; for ever where none are wanted.
async fn next_notice(notices: &mut Option<Notices>) -> Notice {
    if let Some(notices) = notices
        && let Some(notice) = notices.next().await
    {
        return notice;
    }
    std::future::pending().await
}

/// Waits for a look to end; for ever where there is none.
async fn look_ends(looking: &mut Option<(Instant, JoinHandle<Option<Overview>>)>) -> Option<Overview> {
    match looking {
        Some((_, look)) => look.await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// The signals that end programs. Once caught, they end nothing by themselves.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Ended {
        tokio::select! {
            _ = self.interrupt.recv() => Ended::Interrupted,
            _ = self.terminate.recv() => Ended::Terminated,
            _ = self.hang_up.recv() => Ended::Terminated,
        }
    }
}
