//! What a mission has decided, done: each may be repeated without harm.

use std::time::Duration;

use ostler_domain::{
    AssignmentId, Mode, Reason, Refusal, SessionId,
    command::shell_line,
    event::By,
    limits::MISSION_TEXT_BYTES,
    mission::{Effect, Errand, Input, StartSession, State},
    session::{Request, StopRule},
    text::head,
};

use super::{
    actor::Actor, by_mission, errands::Orders, member::Begun, merge, messages::nudge_key, shared_dir,
};
use crate::{Addressee, Change, Engine, WantedCommand, Words};

/// How long a refused wish of a mission waits before it is asked for again, and how often it is.
pub(super) const AGAIN: Duration = Duration::from_millis(500);
pub(super) const TRIES: u32 = 20;

impl Actor {
    pub(super) async fn carry_out_one(&mut self, effect: Effect) {
        let (engine, by) = (self.engine.clone(), by_mission(&self.state));
        match effect {
            Effect::Start(start) => self.start(start),
            Effect::Stop { session } => self.beside(async move {
                let stopped =
                    persist(|| engine.ask_session(session, Request::Stop(StopRule::Stop), &by)).await;
                report(session, "stopped", stopped);
                None
            }),
            Effect::Freeze { session, frozen } => {
                if frozen {
                    self.frozen.insert(session);
                } else {
                    self.frozen.remove(&session);
                }
                let asks = self.state.asks(session);
                self.beside(async move {
                    let asked = || {
                        let request = match (frozen, &asks) {
                            (true, Some(asks)) => Request::PauseAndAsk(asks.clone()),
                            (true, None) => Request::Pause,
                            (false, _) => Request::Resume { budget: None, tape_bytes: None },
                        };
                        engine.ask_session(session, request, &by)
                    };
                    report(session, "paused or resumed", persist(asked).await);
                    None
                });
            }
            Effect::Tell { session, text } => self.beside(async move {
                let to = Addressee { who: session.to_string(), key: None };
                // For the turn that is open, where its agent can be told something there.
                let key = Some(nudge_key(session, &text));
                let words = Words { key, text, mode: Some(Mode::Steer), ..Words::default() };
                let change = Change::by(by);
                report(session, "told something", engine.send(&to, &words, change).await.map(drop));
                None
            }),
            Effect::Check { assignment, attempt, session, command } => {
                self.run_errand(Errand::Check { assignment, attempt }, by, |orders| async move {
                    let (passed, output) = match checked(orders, session, &command).await {
                        Ok(()) => (true, String::new()),
                        Err(why) => (false, head(&why, MISSION_TEXT_BYTES).to_owned()),
                    };
                    Input::Checked { assignment, attempt, passed, output }
                });
            }
            Effect::Merge { attempt, into, gate, from } => {
                let (mission, campaign, from) = (self.state.id(), self.state.campaign(), self.named(from));
                let name = self.state.name().clone();
                self.run_errand(Errand::Merge { attempt }, by, move |orders| async move {
                    let merge = merge::Wanted { mission, name, campaign, into, gate, from };
                    Input::MergeTried { attempt, tried: merge::try_it(orders, merge).await }
                });
            }
            Effect::FreezeErrand(errand) => self.freeze_errand(errand).await,
            Effect::EndErrand(errand) => self.end_errand(errand),
            // Nobody pauses or cancels the mission in between: whoever does is heard when that has ended.
            Effect::Move { attempt, into, old, commit } => {
                let moved = engine.move_branch(&self.state, &into, (&old, &commit), &by).await;
                let (ok, output, commit) = match moved {
                    Ok(commit) => (true, String::new(), Some(commit)),
                    Err(why) => (false, why, None),
                };
                Box::pin(self.take(Input::Merged { attempt, ok, output, commit })).await;
            }
            Effect::WakeAt(deadline) => self.wake_at(deadline),
            Effect::WriteReport => {
                let shared = &self.engine.shared;
                let written =
                    shared_dir::write_report(&shared.options.state_dir, &self.state, shared.clock.now().wall);
                if let Err(error) = written {
                    tracing::warn!(mission = %self.state.id(), %error, "the report cannot be written");
                }
            }
        }
    }

    fn named(&self, from: Vec<(AssignmentId, SessionId)>) -> Vec<(String, SessionId)> {
        let name = |id: AssignmentId| {
            let place = self.state.place_of(id);
            place.map_or_else(|| id.short(), |place| self.state.slots()[place].assignment.name.to_string())
        };
        from.into_iter().map(|(id, session)| (name(id), session)).collect()
    }

    fn start(&self, start: StartSession) {
        // What members share may have been cleared away since the mission was last over.
        if !shared_dir::shared(&self.engine.shared.options.state_dir, self.state.id()).exists() {
            self.make_shared();
        }
        let (engine, state): (Engine, State) = (self.engine.clone(), self.state.clone());
        let change = Change::by(by_mission(&state)).with_keys(self.keys.clone());
        self.beside(async move {
            let StartSession { assignment, attempt, .. } = start;
            match engine.start_member(&state, &start, &change).await {
                Ok(Begun::As(session)) => Some(Input::SessionStarted { assignment, attempt, session }),
                Ok(Begun::Awaits(session)) => Some(Input::StartAwaits { assignment, attempt, session }),
                Err(refusal) if refusal.reason == Reason::ShuttingDown => None,
                Err(refusal) => {
                    let is_final = is_final(&refusal);
                    let why = refusal.told();
                    Some(Input::StartRefused { assignment, attempt, why, is_final })
                }
            }
        });
    }
}

impl Engine {
    /// Asks something of a session; one that has ended has nothing to be asked any more.
    async fn ask_session(&self, session: SessionId, request: Request, by: &By) -> Result<(), Refusal> {
        match self.shared.store.session(session).await? {
            // Not created yet: whoever creates it hears of it.
            None => return Ok(()),
            Some(view) if view.outcome.is_some() => return Ok(()),
            Some(_) => {}
        }
        match self.shared.wake(session).await? {
            Some(handle) => match handle.request(request, by.clone(), None).await {
                Err(refusal) if refusal.reason != Reason::WrongState => Err(refusal),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }
}

/// Runs the command that says whether a session's work is done, where it worked; with the end of what it said.
async fn checked(orders: Orders, session: SessionId, command: &str) -> Result<(), String> {
    let view = orders.engine.session(&session.to_string()).await.map_err(|refusal| refusal.told())?;
    let wanted = WantedCommand {
        campaign: view.campaign.to_string(),
        argv: shell_line(command),
        unlisted: true,
        directory: None,
        session: Some(session.to_string()),
    };
    let ended = orders.run(wanted).await?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("{}\n({})", ended.said.text().trim_end(), ended.status)),
    }
}

/// What is not final may go better in a moment.
fn is_final(refusal: &Refusal) -> bool {
    !matches!(
        refusal.reason,
        Reason::Internal | Reason::DiskFull | Reason::NameTaken | Reason::ConversationBusy | Reason::Halted
    )
}

async fn persist<F>(mut ask: impl FnMut() -> F) -> Result<(), Refusal>
where
    F: Future<Output = Result<(), Refusal>>,
{
    let mut tries = 0;
    loop {
        match ask().await {
            Err(_) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

fn report(session: SessionId, what: &str, done: Result<(), Refusal>) {
    if let Err(refusal) = done {
        tracing::warn!(%session, %refusal, "a member's session cannot be {what}");
    }
}
