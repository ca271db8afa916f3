//! The mission at work: what it comes to is read from the log, the graph is drawn from it, and two things are killed on the
//! way.

use std::{collections::HashMap, time::Duration};

use ostler_client::{Client, Session, Watch, Watched, query::EventFilter};
use ostler_domain::{
    AssignmentId, Event, MissionId, Reason, Recorded, Refusal, SessionId, event::Process, mission::State,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{
    account::{self, Account},
    escape::Escapes,
    kills::{self, Adopted},
    place::Place,
    stage::Stage,
    team,
};
use crate::{
    app::App,
    commands::mission,
    failure::Failure,
    output::{Line, Tone},
    screen::mission::{show::Seen, tell_with},
    words,
};

/// How soon a change is drawn, at the earliest.
const REDRAW: Duration = Duration::from_millis(200);
/// Lines that every builder has said when the daemon is killed: they are in the middle of it.
const UNDER_WAY: usize = 15;

/// What there is to tell when all is over.
pub(super) struct Played {
    pub(super) state: State,
    pub(super) sessions: Vec<Session>,
    pub(super) account: Account,
    pub(super) escapes: Escapes,
    pub(super) adopted: Option<Adopted>,
    pub(super) killed: Option<SessionId>,
}

pub(super) struct Play<'a> {
    app: &'a App,
    place: &'a Place,
    client: &'a Client,
    stage: &'a Stage<'a>,
    id: MissionId,
    watch: Watch,
    state: Option<State>,
    sessions: Vec<Session>,
    /// Agents' processes, and the numbered lines that they have said, by their sessions.
    processes: HashMap<SessionId, Process>,
    said: HashMap<SessionId, usize>,
    escapes: Escapes,
    adopted: Option<Adopted>,
    killed: Option<SessionId>,
    is_stale: bool,
    drawn: Option<Instant>,
}

impl<'a> Play<'a> {
    pub(super) async fn begin(
        app: &'a App,
        place: &'a Place,
        client: &'a Client,
        id: MissionId,
        stage: &'a Stage<'a>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            app,
            place,
            client,
            stage,
            id,
            watch: client.watch(EventFilter::default(), Some(0)).await?,
            state: None,
            sessions: Vec::new(),
            processes: HashMap::new(),
            said: HashMap::new(),
            escapes: Escapes::default(),
            adopted: None,
            killed: None,
            is_stale: false,
            drawn: None,
        })
    }

    /// Follows the mission to its end.
    pub(super) async fn watch(&mut self) -> Result<(), Failure> {
        let mut ages = interval(Duration::from_secs(1));
        ages.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.state.as_ref().is_some_and(State::is_over) {
            let due = self.drawn.map_or_else(Instant::now, |drawn| drawn + REDRAW);
            tokio::select! {
                item = self.watch.next() => match item {
                    Some(Ok(Watched::Event(event))) => self.take(&event)?,
                    Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
                },
                () = sleep_until(due), if self.is_stale && self.stage.is_drawn() => self.draw().await?,
                _ = ages.tick() => self.is_stale = true,
            }
            if self.adopted.is_none() && self.is_under_way() {
                self.kill_the_daemon().await?;
            }
        }
        Ok(())
    }

    fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.is_stale = true;
        if recorded.event.mission() == Some(self.id) {
            match &mut self.state {
                Some(state) => state.apply(recorded.time, &recorded.event),
                None => self.state = State::replay([(recorded.time, &recorded.event)]),
            }
            return self.tell(&recorded.event);
        }
        let Some(session) = recorded.session else { return Ok(()) };
        match &recorded.event {
            Event::SessionSpawned(spawned) => {
                self.processes.insert(session, spawned.agent.clone());
            }
            Event::AgentCompletion(said) if team::is_numbered(&said.text) => {
                *self.said.entry(session).or_default() += 1;
            }
            Event::AgentToolCall(call) if team::is_slow_check(&call.summary) => {
                return self.kill_a_builder(session, &call.summary);
            }
            _ => {}
        }
        match self.escapes.see(session, &recorded.event, &self.place.record()) {
            Some(tried) => self.stage.tried(&self.name_of(session), &tried),
            None => Ok(()),
        }
    }

    fn name_of(&self, session: SessionId) -> String {
        let state = self.state.as_ref();
        let slot = state.and_then(|state| Some(&state.slots()[state.of_session(session)?]));
        slot.map_or_else(|| session.short(), |slot| slot.assignment.name.to_string())
    }

    /// A transition, where the graph is not drawn; and everywhere that somebody is tried again.
    fn tell(&self, event: &Event) -> Result<(), Failure> {
        let Some(state) = &self.state else { return Ok(()) };
        let name = |id: AssignmentId| {
            let place = state.place_of(id);
            place.map_or_else(|| id.short(), |place| state.slots()[place].assignment.name.to_string())
        };
        match event {
            Event::AssignmentStarted(started) if started.attempt > 1 => {
                let (who, session) = (name(started.assignment), started.session.short());
                let words = format!("{who} goes on in session {session}, with what is there");
                return self.stage.loud(Line::of(words));
            }
            Event::AssignmentRetried(_) => {}
            Event::AssignmentsReady(_) => return Ok(()),
            _ if self.stage.is_drawn() => return Ok(()),
            _ => {}
        }
        let prefix = Line::new();
        let told = tell_with(event, name);
        told.lines(&prefix, None).into_iter().try_for_each(|line| self.stage.at(line))
    }

    /// The sessions that each builder has had, in their order.
    fn builders(&self) -> Vec<Vec<SessionId>> {
        let Some(state) = &self.state else { return Vec::new() };
        let is_builder = |name: &str| team::BUILDERS.iter().any(|builder| builder.name == name);
        let slots = state.slots().iter().filter(|slot| is_builder(slot.assignment.name.as_str()));
        slots.map(|slot| slot.sessions.clone()).collect()
    }

    fn is_under_way(&self) -> bool {
        let said = |session: &SessionId| self.said.get(session).copied().unwrap_or(0);
        let builders = self.builders();
        !builders.is_empty() && builders.iter().all(|own| own.iter().map(said).sum::<usize>() >= UNDER_WAY)
    }

    async fn kill_the_daemon(&mut self) -> Result<(), Failure> {
        self.look().await?;
        // What was seen until then stays on the screen, above what follows.
        self.stage.leave(self.graph())?;
        let builders = self.builders().concat();
        let adopted = kills::daemon(self.app, self.place, self.client, &builders, self.stage).await?;
        self.adopted = Some(adopted);
        Ok(())
    }

    fn kill_a_builder(&mut self, session: SessionId, command: &str) -> Result<(), Failure> {
        if self.killed.is_some() {
            return Ok(());
        }
        let unknown =
            || Refusal::internal(format!("the process of session {} is not known", session.short()));
        let process = self.processes.get(&session).ok_or_else(unknown)?;
        kills::agent(process)?;
        self.killed = Some(session);
        let words =
            format!("kill -9 {} (pid {}) in the middle of: {command}", self.name_of(session), process.pid);
        self.stage.loud(Line::of(words))
    }

    /// Looks at the mission's sessions as they are now.
    async fn look(&mut self) -> Result<(), Failure> {
        self.sessions = mission::sessions(self.client, self.id).await?;
        Ok(())
    }

    fn graph(&self) -> Vec<Line> {
        let Some(state) = &self.state else { return Vec::new() };
        let seen = Seen { state, sessions: &self.sessions, whole: None, now: words::now() };
        seen.graph(self.stage.room())
    }

    async fn draw(&mut self) -> Result<(), Failure> {
        self.look().await?;
        self.is_stale = false;
        self.drawn = Some(Instant::now());
        self.stage.draw(self.graph())
    }

    /// What it came to, with the graph as it is in the end.
    pub(super) async fn over(mut self) -> Result<Played, Failure> {
        self.look().await?;
        self.stage.leave(self.graph())?;
        let account = account::take(self.client, &self.builders()).await?;
        let (tone, sign) = if account.is_right() { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        self.stage.at(Line::toned(tone, sign).plain(format!(" {}", account.words())))?;
        let state = self.state.ok_or_else(|| Refusal::internal("the mission never began"))?;
        let Self { sessions, escapes, adopted, killed, .. } = self;
        Ok(Played { state, sessions, account, escapes, adopted, killed })
    }
}
