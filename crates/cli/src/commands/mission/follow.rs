//! Following a mission until it is over: drawn in place on a terminal, else told transition by transition. What comes is
//! heard from the log, from the place on where reading it ended.

use std::time::Duration;

use ostler_client::{Client, Received, Session, Watch, Watched, query::EventFilter, reply::WholeMission};
use ostler_domain::{
    Event, Kind, MissionId, Reason, Recorded, Refusal, SessionId, limits::PAGE_MOST, mission::State,
};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{form::WholeForm, show};
use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_mission},
    form::EventForm,
    input::Lines,
    listing,
    output::{Format, Line, Terminals, Tone},
    screen::{
        approval::somebody_is_asked_now,
        mission::{list::sign, show::Seen, tell_with},
    },
    signals::{Asked, Signals},
    words,
};

/// How soon a change is drawn, at the earliest: a busy agent changes many times a second.
const REDRAW: Duration = Duration::from_millis(250);

/// In which way a mission is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The graph, drawn over itself.
    Drawn,
    /// A line for each transition.
    Told,
    /// An object for each event.
    Events,
    /// Only what comes of it.
    Silent,
}

/// What became of following.
pub(super) enum Followed {
    Over(u8),
    /// Whoever watched left it to itself.
    Left,
}

/// `show -w`: until it is over, or nobody looks any more.
pub(super) async fn watch(app: &App, client: &Client, id: MissionId) -> Result<u8, Failure> {
    let mut story = Story::begin(app, client, id, None).await?;
    story.follow().await?;
    let exit = story.exit_code();
    story.close(exit).await?;
    Ok(exit_code::OK)
}

/// `start`: until it is over, with its exit code; Ctrl-C asks whether it is cancelled or left to itself.
pub(super) async fn start(
    app: &App,
    client: &Client,
    id: MissionId,
    fail_on_denied: bool,
) -> Result<Followed, Failure> {
    let signals = Signals::catch()?;
    let mut story = Story::begin(app, client, id, Some(signals)).await?;
    if story.follow().await? {
        return Ok(Followed::Left);
    }
    let denied = match fail_on_denied {
        true => show::sessions(client, id).await?.iter().any(|session| session.denied > 0),
        false => false,
    };
    let code = match story.exit_code() {
        exit_code::OK if denied => exit_code::DENIED,
        code => code,
    };
    story.close(code).await?;
    Ok(Followed::Over(code))
}

/// The exit code of a mission that is over.
pub(super) fn exit_of(state: &State) -> u8 {
    let Some(over) = state.ended() else { return exit_code::OK };
    of_mission(over.status, state.stop().map(|stop| stop.rule))
}

/// The last line of a mission that was followed with `-o jsonl`.
#[derive(Serialize)]
struct ResultForm<'a> {
    kind: &'static str,
    exit: u8,
    #[serde(flatten)]
    whole: WholeForm<'a>,
}

struct Story<'a> {
    app: &'a App,
    client: &'a Client,
    id: MissionId,
    way: Way,
    state: Option<State>,
    sessions: Vec<Session>,
    whole: Option<WholeMission>,
    watch: Watch,
    /// Where whoever started it is asked what becomes of it.
    signals: Option<Signals>,
    typed: Lines,
    menu: bool,
    /// Something has changed since it was last drawn, and something of its sessions has.
    is_stale: bool,
    has_news: bool,
    drawn: Option<Instant>,
}

impl<'a> Story<'a> {
    async fn begin(
        app: &'a App,
        client: &'a Client,
        id: MissionId,
        signals: Option<Signals>,
    ) -> Result<Self, Failure> {
        let way = match app.ui.format() {
            Some(Format::Jsonl) => Way::Events,
            Some(Format::Json | Format::Name) => Way::Silent,
            _ if app.ui.is_quiet() => Way::Silent,
            _ if listing::is_table(app) && app.ui.out_look().in_place => Way::Drawn,
            _ => Way::Told,
        };
        let mut past = Vec::new();
        let mut after = 0;
        loop {
            let page = client.mission_events(&id.to_string(), after, PAGE_MOST).await?;
            past.extend(page.events);
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        let seen = past.last().map_or(0, Received::seq);
        // What agents do is drawn beside the graph; otherwise only what becomes of assignments is told.
        let kinds = match way {
            Way::Drawn => Vec::new(),
            Way::Told => Client::MISSION_KINDS.iter().copied().chain([Kind::ApprovalRequested]).collect(),
            Way::Events | Way::Silent => Client::MISSION_KINDS.to_vec(),
        };
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let watch = client.watch(filter, Some(seen)).await?;
        let mut story = Self {
            app,
            client,
            id,
            way,
            state: None,
            sessions: Vec::new(),
            whole: None,
            watch,
            signals,
            typed: Lines::default(),
            menu: false,
            is_stale: true,
            has_news: true,
            drawn: None,
        };
        past.into_iter().try_for_each(|event| story.take(event))?;
        Ok(story)
    }

    fn exit_code(&self) -> u8 {
        self.state.as_ref().map_or(exit_code::FAILURE, exit_of)
    }

    fn is_over(&self) -> bool {
        self.state.as_ref().is_some_and(State::is_over)
    }

    /// Follows it until it is over. True where it was left to itself.
    async fn follow(&mut self) -> Result<bool, Failure> {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_over() {
            let due = self.drawn.map_or_else(Instant::now, |drawn| drawn + REDRAW);
            let is_due = self.way == Way::Drawn && self.is_stale && !self.menu;
            tokio::select! {
                item = self.watch.next() => match item {
                    Some(item) => self.watched(item?)?,
                    None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
                },
                asked = asked(&mut self.signals) => if self.asked_to_end(asked).await? { return Ok(true) },
                line = self.typed.next(&self.app.ui) => if self.answered(line).await? { return Ok(true) },
                () = sleep_until(due), if is_due => self.draw().await?,
                // Ages grow even when nothing happens.
                _ = seconds.tick() => self.is_stale = true,
            }
        }
        self.typed.rest(&self.app.ui);
        Ok(false)
    }

    fn watched(&mut self, item: Watched) -> Result<(), Failure> {
        match item {
            Watched::Event(event) => self.take(Received::Known(event)),
            Watched::Unknown(_) => Ok(()),
            Watched::Reconnected => {
                self.app.ui.remark(&Line::new().faint("the daemon is back; nothing was missed"));
                self.has_news = true;
                self.is_stale = true;
                Ok(())
            }
        }
    }

    fn take(&mut self, event: Received) -> Result<(), Failure> {
        let Received::Known(recorded) = &event else { return Ok(()) };
        if recorded.event.mission() != Some(self.id) {
            // One of its sessions does something.
            if recorded.session.is_some_and(|session| self.is_ours(session)) {
                self.has_news = true;
                self.is_stale = true;
                self.tell_question(recorded);
            }
            return Ok(());
        }
        match &mut self.state {
            Some(state) => state.apply(recorded.time, &recorded.event),
            None => self.state = State::replay([(recorded.time, &recorded.event)]),
        }
        self.has_news = true;
        self.is_stale = true;
        match self.way {
            Way::Events => {
                self.app.ui.json(&EventForm::new(&event))?;
                self.app.ui.flush()
            }
            Way::Told => {
                self.tell(recorded);
                Ok(())
            }
            Way::Drawn | Way::Silent => Ok(()),
        }
    }

    fn is_ours(&self, session: SessionId) -> bool {
        self.state.as_ref().is_some_and(|state| state.of_session(session).is_some())
    }

    /// What a member asks of whoever watches, and what answers it.
    fn tell_question(&self, recorded: &Recorded) {
        if let (Way::Told, Some(session), Event::ApprovalRequested(asked)) =
            (self.way, recorded.session, &recorded.event)
            && let Some(line) = somebody_is_asked_now(&session, asked)
        {
            self.app.ui.remark(&line);
        }
    }

    fn tell(&self, recorded: &Recorded) {
        let Some(state) = &self.state else { return };
        let ran = words::took(recorded.time.since(state.created_at()));
        let prefix = Line::new().faint(format!("{ran:>7}  "));
        for line in told(state, recorded).lines(&prefix, self.app.ui.err_look().width) {
            self.app.ui.say(&line);
        }
    }

    /// Looks at its sessions, and what is expected of it now.
    async fn look(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.has_news) {
            self.sessions = show::sessions(self.client, self.id).await?;
            self.whole = Some(self.client.mission(&self.id.to_string()).await?);
        }
        Ok(())
    }

    async fn draw(&mut self) -> Result<(), Failure> {
        self.look().await?;
        let Some(state) = &self.state else { return Ok(()) };
        // Windows are drawn larger and smaller meanwhile.
        let terminals = Terminals::find();
        let seen = Seen { state, sessions: &self.sessions, whole: self.whole.as_ref(), now: words::now() };
        let room = terminals.rows.map_or(usize::MAX, |rows| rows.saturating_sub(2).max(1));
        let lines = seen.fitting(&terminals.out, room);
        self.app.ui.draw(&lines, &terminals.out, self.drawn.is_none())?;
        self.is_stale = false;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// The mission is to end, or to be left. True where it is left.
    async fn asked_to_end(&mut self, asked: Asked) -> Result<bool, Failure> {
        let ui = &self.app.ui;
        if asked == Asked::Interrupt && ui.has_person() && !self.menu {
            self.menu = true;
            self.typed.ask_whoever_called(ui, "[c]ancel  [d]etach  [g]o on >", "cdg");
            return Ok(false);
        }
        self.menu = false;
        self.typed.rest(ui);
        self.cancel(asked).await?;
        Ok(false)
    }

    async fn cancel(&self, asked: Asked) -> Result<(), Failure> {
        let why = match asked {
            Asked::Interrupt => "interrupted (Ctrl-C)",
            Asked::Terminate => "whoever started it was told to end",
        };
        self.app.ui.remark(&Line::new().faint("cancelling it; what was completed stays"));
        self.client.cancel_mission(&self.id.to_string(), why).await?;
        Ok(())
    }

    async fn answered(&mut self, line: Option<String>) -> Result<bool, Failure> {
        if !std::mem::take(&mut self.menu) {
            return Ok(false);
        }
        let ui = &self.app.ui;
        self.typed.rest(ui);
        self.is_stale = true;
        match line.as_deref().map(str::trim) {
            Some("c" | "cancel") => self.cancel(Asked::Interrupt).await.map(|()| false),
            Some("d" | "detach") => {
                if let Some(state) = &self.state {
                    let show = format!("ostler mission show {}", state.name());
                    ui.remark(&Line::of("it goes on   ").with(Tone::Accent, show).faint("   how far it is"));
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Says what came of it.
    async fn close(mut self, exit: u8) -> Result<(), Failure> {
        self.has_news = true;
        let ui = &self.app.ui;
        if self.way == Way::Drawn {
            self.draw().await?;
        }
        let whole: WholeMission = self.client.mission(&self.id.to_string()).await?;
        let Some(state) = self.state.take() else { return Ok(()) };
        if ui.is_json() {
            let campaign = self.app.campaign_name(self.client, &whole.mission.campaign).await;
            let form = WholeForm::new(&whole, &campaign);
            return match self.way {
                Way::Events => ui.json(&ResultForm { kind: "result", exit, whole: form }),
                _ => ui.json(&form),
            };
        }
        if self.way == Way::Silent {
            return ui.data(&Line::of(self.id.to_string()));
        }
        self.look().await?;
        let seen = Seen { state: &state, sessions: &self.sessions, whole: None, now: words::now() };
        if self.way == Way::Told {
            let (tone, sign) = sign(state.status());
            ui.data(&Line::toned(tone, sign).plain(" ").append(seen.head()))?;
        }
        show::hints(self.app, &seen);
        if exit == exit_code::DENIED {
            let denied: u32 = self.sessions.iter().map(|session| session.denied).sum();
            ui.remark(&Line::toned(Tone::Bad, format!("✗ {denied} denied")).faint("   --fail-on-denied"));
        }
        Ok(())
    }
}

/// What happened, with the assignments' names.
pub(super) fn told(state: &State, recorded: &Recorded) -> crate::screen::activity::Told {
    tell_with(&recorded.event, |id| match state.place_of(id) {
        Some(place) => state.slots()[place].assignment.name.to_string(),
        None => id.short(),
    })
}

/// Waits to be asked to end; for ever where signals are not caught.
async fn asked(signals: &mut Option<Signals>) -> Asked {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}
