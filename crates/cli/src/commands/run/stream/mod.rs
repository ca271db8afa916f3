//! Following a run at the terminal: activities on standard error, questions answered, Ctrl-C understood, the answer
//! alone on standard output.

mod checking;
mod ending;
mod holding;

use std::time::Duration;

use ostler_client::{AnswerApproval, Campaign, Client, Received, Session, Watched, query::EventFilter};
use ostler_domain::{
    Event, Kind, Reason, Refusal, SessionId,
    budget::Amount,
    session::{Approve, Hold, Status},
};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    super::answer,
    changes::Snapshot,
    check::{Check, Checks},
    grant::Rules,
    header,
    story::Story,
};
use crate::{
    app::App,
    bell::Bell,
    exit_code,
    failure::Failure,
    form::EventForm,
    input::Lines,
    output::{Format, Line, Tone, Ui},
    questions::{Questions, Typed},
    screen::activity::{Teller, Told},
    signals::{Asked, Signals},
    words,
};

/// What is to be done about a run.
enum Then {
    GoOn,
    Detach,
    /// A budget holds the session.
    Held,
    /// The session has ended, and another one will go on with it.
    Follow {
        after: u64,
    },
    /// This is that one.
    FollowOn(SessionId),
}

struct Stream<'a> {
    app: &'a App,
    client: &'a Client,
    session: Session,
    story: Story,
    teller: Teller,
    questions: Questions,
    typed: Lines,
    /// Questions wait for a person; otherwise they are answered by themselves.
    waits: bool,
    /// Who asked this program to end the session.
    asked: Option<Asked>,
    /// Stop, detach or continue was asked, and not yet answered.
    menu: bool,
    /// A budget holds it, and its turn may say first what was paid for.
    settles: bool,
    /// The larger budget that is offered while its own holds it.
    larger: Option<Amount>,
    /// Its turn to start has come.
    has_started: bool,
    /// What it waits for, where that was said to who does not see it change.
    said_why: bool,
    checks: Option<Checks>,
    /// Nothing more is to be checked.
    is_checked: bool,
    /// The time of the run was over while the work was checked: the daemon ends the session.
    is_out_of_time: bool,
    fail_on_denied: bool,
    campaign: &'a Campaign,
    before: Option<Snapshot>,
}

/// What is followed, and how far.
pub(super) struct Wanted {
    /// Until the turn ends, not the session.
    pub(super) keep: bool,
    pub(super) approve: Approve,
    /// With what the agent prints on its standard error.
    pub(super) verbose: bool,
    /// What says whether the work is good.
    pub(super) check: Option<Check>,
    /// Whether what was denied makes it a failure.
    pub(super) fail_on_denied: bool,
    /// The repository before the agent came.
    pub(super) before: Option<Snapshot>,
}

/// Follows a session until there is nothing more to wait for. Returns the exit code.
pub(super) async fn follow(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    session: &Session,
    wanted: Wanted,
) -> Result<u8, Failure> {
    let keep = wanted.keep;
    let ui = &app.ui;
    let ctrl_c = if ui.has_person() { " · Ctrl-C to stop or detach" } else { "" };
    let header = header(campaign, session).faint(ctrl_c);
    header.folded(ui.err_look().width, 2).iter().for_each(|line| ui.remark(line));
    let mut stream = Stream {
        app,
        client,
        session: session.clone(),
        story: Story::by(Rules::of(campaign, session)),
        teller: if wanted.verbose { Teller::new() } else { Teller::calm() },
        questions: Questions::default(),
        typed: Lines::default(),
        waits: matches!(wanted.approve, Approve::Ask | Approve::Policy),
        asked: None,
        menu: false,
        settles: false,
        larger: None,
        has_started: false,
        said_why: false,
        checks: wanted.check.map(Checks::new),
        is_checked: false,
        is_out_of_time: false,
        fail_on_denied: wanted.fail_on_denied,
        campaign,
        before: wanted.before,
    };
    let mut signals = Signals::catch()?;
    let filter = EventFilter { session: Some(session.id), ..EventFilter::default() };
    let mut watch = client.watch(filter, Some(0)).await?;
    let mut bell = Bell::new(app, client, session.id);
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stream.story.is_over(keep && stream.has_no_check_ahead() && !stream.is_out_of_time) {
        let is_to_be_checked = stream.story.is_at_rest() && !stream.has_no_check_ahead();
        let then = if is_to_be_checked && stream.asked.is_none() {
            stream.check(keep, &mut watch, &mut signals).await?
        } else {
            tokio::select! {
                item = watch.next() => stream.watched(some(item)?)?,
                asked = signals.next() => stream.asked_to_end(asked).await?,
                line = stream.typed.next(ui) => {
                    bell.looked();
                    stream.typed(line).await?
                }
                notice = bell.next() => {
                    ui.notify(&notice.body());
                    Then::GoOn
                }
                _ = seconds.tick() => stream.show_running().await,
            }
        };
        match then {
            Then::GoOn => {}
            Then::Detach => return detach(ui, &stream.session),
            Then::Held => stream.held().await?,
            // Its end was read: the one that goes on with it is created after that.
            Then::Follow { after } => {
                let kinds = vec![Kind::SessionCreated, Kind::RestartRefused];
                let filter = EventFilter { kinds, ..EventFilter::default() };
                watch = client.watch(filter, Some(after)).await?;
            }
            Then::FollowOn(id) => {
                stream.followed_on(id).await?;
                bell = Bell::new(app, client, id);
                let filter = EventFilter { session: Some(id), ..EventFilter::default() };
                watch = client.watch(filter, Some(0)).await?;
            }
        }
    }
    stream.finish(keep).await
}

/// What a watch has given, which ends only with its daemon.
fn some(item: Option<Result<Watched, ostler_client::Error>>) -> Result<Watched, Failure> {
    match item {
        Some(item) => Ok(item?),
        None => Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
    }
}

/// The session that goes on with this one, if the event is its first.
fn successor(event: &Event, id: SessionId) -> Option<SessionId> {
    match event {
        Event::SessionCreated(created) if created.continues == Some(id) => Some(created.id),
        _ => None,
    }
}

fn detach(ui: &Ui, session: &Session) -> Result<u8, Failure> {
    let id = session.id.short();
    ui.say(
        &Line::of(format!("{} goes on: ", session.name)).with(Tone::Accent, format!("ostler attach {id}")),
    );
    Ok(exit_code::OK)
}

impl Stream<'_> {
    fn watched(&mut self, item: Watched) -> Result<Then, Failure> {
        let ui = &self.app.ui;
        let received = match item {
            Watched::Event(event) => Received::Known(event),
            Watched::Unknown(event) => Received::Unknown(event),
            Watched::Reconnected => {
                ui.remark(&Line::new().faint("  the daemon was away and is back; nothing was missed"));
                return Ok(Then::GoOn);
            }
        };
        if self.story.is_followed() {
            let successor = match &received {
                Received::Known(recorded) => {
                    if let Event::RestartRefused(refused) = &recorded.event
                        && refused.session == self.session.id
                    {
                        self.teller.tell(&received).iter().for_each(|told| self.show(told));
                    }
                    successor(&recorded.event, self.session.id)
                }
                Received::Unknown(_) => None,
            };
            return Ok(successor.map_or(Then::GoOn, Then::FollowOn));
        }
        if ui.format() == Some(Format::Jsonl) {
            ui.json(&EventForm::new(&received))?;
            ui.flush()?;
        }
        let Received::Known(recorded) = &received else { return Ok(Then::GoOn) };
        self.has_started |= matches!(&recorded.event, Event::SessionStarting(_));
        let earlier = self.story.take(&recorded.event);
        earlier.iter().for_each(|text| self.show(&Told::said(text)));
        match &recorded.event {
            // Its turn to be shown comes when it is known whether it is the answer.
            Event::AgentCompletion(said) if said.subagent.is_none() => {}
            // The prompt was typed a moment ago, and how it ended is said at the end.
            Event::MessageAccepted(_)
            | Event::SessionCreated(_)
            | Event::SessionStarted(_)
            | Event::SessionStopRequested(_)
            | Event::SessionStopped(_)
            | Event::SessionFailed(_) => {}
            Event::ApprovalRequested(asked) if asked.waits() && ui.has_person() && !ui.is_json() => {
                if self.questions.asked(asked) {
                    self.ask();
                }
            }
            event => {
                self.teller.tell(&received).iter().for_each(|told| self.show(told));
                if let Event::ApprovalRequested(asked) = event
                    && self.waits
                {
                    let allow = format!("ostler allow {}", asked.id.short());
                    ui.remark(&Line::new().faint("          it waits for ").with(Tone::Accent, allow));
                }
                if let Event::ApprovalAnswered(answered) = event {
                    if self.questions.answered(answered.id) {
                        self.typed.answered();
                        self.ask();
                    } else {
                        self.await_answer();
                    }
                }
            }
        }
        Ok(match &recorded.event {
            _ if self.story.is_followed() => Then::Follow { after: recorded.seq },
            Event::SessionHeld(held) => self.held_by(held),
            Event::TurnEnded(_) if self.settles => self.has_settled(),
            Event::WatchdogFired(fired) if fired.watchdog.is_of_a_budget() && self.settles => {
                self.has_settled()
            }
            Event::SessionReleased(released) if released.hold == Hold::Budget => self.released(),
            Event::SessionStopRequested(_) => self.released(),
            _ => Then::GoOn,
        })
    }

    /// Another session goes on with this one: it is followed instead.
    async fn followed_on(&mut self, id: SessionId) -> Result<(), Failure> {
        let before = self.client.session(&self.session.id.to_string()).await?;
        let why = before.obituary.map(|obituary| obituary.sentence).unwrap_or_default();
        self.session = self.client.session(&id.to_string()).await?;
        self.story.follow_on();
        self.app.ui.remark(
            &Line::of("  ")
                .plain(why)
                .plain(" It goes on in session ")
                .with(Tone::Accent, self.session.id.short())
                .plain("."),
        );
        // Asked between the two: there was nothing left to stop.
        if self.asked.is_some() {
            self.client.stop_session(&id.to_string(), false).await?;
        }
        Ok(())
    }

    fn show(&self, told: &Told) {
        let ui = &self.app.ui;
        told.lines(&Line::of("  "), ui.err_look().width).iter().for_each(|line| ui.remark(line));
    }

    async fn show_running(&mut self) -> Then {
        if !self.has_started {
            self.show_waiting().await;
        } else if !self.menu && self.larger.is_none() && self.questions.is_empty() {
            match self.teller.running(words::now()) {
                Some(line) => self.app.ui.show_meanwhile(line),
                None => self.app.ui.clear_transient(),
            }
        }
        Then::GoOn
    }

    /// Says what a session that has not started waits for: on a terminal as it changes, else once.
    async fn show_waiting(&mut self) {
        let ui = &self.app.ui;
        let session = self.client.session(&self.session.id.to_string()).await;
        let Some(session) = session.ok().filter(|session| session.status == Status::Created) else { return };
        let line = Line::new().faint("  ").plain(&session.evidence);
        if ui.terminals().stderr_is_terminal {
            ui.show_meanwhile(line);
        } else if !std::mem::replace(&mut self.said_why, true) {
            ui.remark(&line);
        }
    }

    /// Shows the question that is to be answered now.
    fn ask(&mut self) {
        self.app.ui.say_folded(&self.questions.lines());
        self.await_answer();
    }

    /// Asks for a line, or a key, while something waits for one.
    fn await_answer(&mut self) {
        let ui = &self.app.ui;
        if self.menu {
            self.typed.ask_whoever_called(ui, "[s]top  [d]etach  [c]ontinue >", "sdc");
        } else if let Some(larger) = &self.larger {
            self.typed.ask(ui, &holding::label(larger), "rsd");
        } else if self.questions.is_empty() {
            self.typed.rest(ui);
        } else {
            self.typed.ask(ui, self.questions.label(), self.questions.keys());
        }
    }

    async fn asked_to_end(&mut self, asked: Asked) -> Result<Then, Failure> {
        let ui = &self.app.ui;
        let may_ask = asked == Asked::Interrupt && ui.has_person();
        if may_ask && !self.menu && self.asked.is_none() {
            self.menu = true;
            self.await_answer();
            return Ok(Then::GoOn);
        }
        self.menu = false;
        self.await_answer();
        self.end(asked).await
    }

    /// Ends the session, the second time without asking it.
    async fn end(&mut self, asked: Asked) -> Result<Then, Failure> {
        let again = self.asked.replace(asked).is_some();
        let words = if again { "killing it" } else { "stopping it (once more kills it)" };
        self.app.ui.remark(&Line::new().faint(format!("  {words}")));
        self.client.stop_session(&self.session.id.to_string(), again).await?;
        Ok(Then::GoOn)
    }

    async fn typed(&mut self, line: Option<String>) -> Result<Then, Failure> {
        let ui = &self.app.ui;
        let Some(line) = line else { return Ok(Then::GoOn) };
        if self.menu {
            self.menu = false;
            self.await_answer();
            return match line.trim() {
                "s" | "stop" => self.end(Asked::Interrupt).await,
                "d" | "detach" => Ok(Then::Detach),
                _ => {
                    if !self.questions.is_empty() {
                        self.ask();
                    }
                    Ok(Then::GoOn)
                }
            };
        }
        if let Some(larger) = self.larger {
            return self.answered_hold(&line, larger).await;
        }
        match self.questions.typed(&line) {
            Typed::Answer { id, allow, always, message } => {
                let answer = AnswerApproval { approval: id.to_string(), allow, always, message };
                match self.client.answer_approval(answer).await.map_err(Failure::from) {
                    Ok(given) => {
                        let (rules, undo) = answer::kept(self.app, self.client, &given).await;
                        rules
                            .iter()
                            .chain(&undo)
                            .for_each(|line| ui.say(&Line::of("          ").append(line.clone())));
                    }
                    // Somebody else may have been quicker: the event that says so is on its way.
                    Err(failure) if failure.reason() == Some(Reason::ApprovalAnswered) => {}
                    // No rule can be made of it: it still waits.
                    Err(Failure::Refused(refusal)) if always => {
                        ui.say_refusal(&refusal);
                        self.ask();
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Typed::AskWhy => self.await_answer(),
            Typed::Show(lines) => {
                lines.iter().for_each(|line| ui.say(&Line::of("          ").plain(line)));
                self.ask();
            }
            Typed::Other(_) if !self.questions.is_empty() => self.ask(),
            Typed::Other(_) => {}
        }
        Ok(Then::GoOn)
    }
}
