//! `ostler attach`: a live view with an input line. Leaving ends nothing.

use std::time::Duration;

use clap::Args;
use ostler_client::{
    AnswerApproval, Client, CreateSession, ListEvents, Place, Received, SendMessage, Session, Taken, Watch,
    Watched, query::EventFilter,
};
use ostler_domain::{Event, Reason, Refusal};
use tokio::time::{MissedTickBehavior, interval};

use super::answer;
use crate::{
    app::App,
    bell::Bell,
    exit_code,
    failure::Failure,
    input::Lines,
    output::{Line, Tone},
    questions::{Questions, Typed},
    screen::{
        activity::{Teller, Told},
        hold, row,
    },
    signals::Signals,
    words,
};

/// How many events of the past are shown first.
const PAST: u32 = 60;

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Session or conversation: name, id, part of an id, or - for the last one of this terminal
    who: String,
}

struct Attached<'a> {
    app: &'a App,
    client: &'a Client,
    session: Session,
    teller: Teller,
    questions: Questions,
    /// A budget has begun to hold it, and what helps was not said.
    is_held: bool,
}

pub(crate) async fn run(app: &App, args: AttachArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let session = live(app, &client, &args.who).await?;
    let (teller, questions) = (Teller::calm(), Questions::default());
    let mut attached = Attached { app, client: &client, session, teller, questions, is_held: false };
    let mut watch = attached.begin().await?;
    let mut bell = Bell::new(app, &client, attached.session.id);
    let mut signals = Signals::catch()?;
    let mut typed = Lines::default();
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // No key answers by itself here: the line is for messages, and these begin with any letter.
        typed.ask(&app.ui, attached.label(), "");
        tokio::select! {
            item = watch.next() => match item {
                Some(item) => {
                    attached.watched(item?);
                    attached.say_what_helps().await?;
                }
                None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
            },
            line = typed.next(&app.ui) => match line {
                Some(line) => {
                    bell.looked();
                    if attached.typed(&line).await? {
                        watch = attached.begin().await?;
                        bell = Bell::new(app, &client, attached.session.id);
                    }
                }
                None => break,
            },
            _ = seconds.tick() => app.ui.show_meanwhile(attached.hint()),
            notice = bell.next() => app.ui.notify(&notice.body()),
            _ = signals.next() => break,
        }
    }
    typed.rest(&app.ui);
    attached.leave().await
}

/// The session that is meant. Where none lives, one is started: whoever attaches wants to talk.
async fn live(app: &App, client: &Client, who: &str) -> Result<Session, Failure> {
    let session = match app.session(client, who).await {
        // An agent that has not worked yet has no session, and can have its first.
        Err(failure) if failure.reason() == Some(Reason::SessionUnknown) => {
            let Ok(agent) = client.agent(who).await else { return Err(failure) };
            let wanted = CreateSession {
                agent: Some(agent.id.to_string()),
                ..CreateSession::new(agent.campaign.to_string(), "")
            };
            client.create_session(wanted).await?
        }
        Ok(session) if session.outcome.is_some() => {
            let fresh = client.restart_session(&session.id.to_string()).await?;
            let before = format!("  {} had ended; a new session goes on", session.id.short());
            app.ui.say(&Line::new().faint(before));
            fresh
        }
        found => return found,
    };
    app.touched(&session.id);
    Ok(session)
}

impl Attached<'_> {
    /// Shows who it is and the end of its past, and follows from there.
    async fn begin(&mut self) -> Result<Watch, Failure> {
        let ui = &self.app.ui;
        let (tone, sign) = row::sign(&self.session);
        ui.say(&Line::toned(tone, sign).plain(" ").append(Line::joined([
            Line::new().strong(self.session.name.as_str()),
            Line::toned(Tone::Accent, self.session.id.short()),
            Line::of(self.session.status.as_str()),
            Line::of(format!("sandbox {}", self.session.sandbox.as_str())),
            Line::new().faint("Ctrl-C leaves, the agent goes on"),
        ])));
        let filter = EventFilter { session: Some(self.session.id), ..EventFilter::default() };
        let request = ListEvents { filter: filter.clone(), from: Place::End, limit: PAST };
        let mut past = self.client.events(&request).await?.events;
        past.reverse();
        let seen = past.last().map_or(0, Received::seq);
        for received in past {
            self.show(&received, false);
        }
        hold::at_a_budget(&self.session).iter().for_each(|line| ui.say(line));
        self.ask();
        if self.session.outcome.is_some() {
            ui.say(&Line::new().faint("  it has ended; a message starts a new session of the conversation"));
        }
        Ok(self.client.watch(filter, Some(seen)).await?)
    }

    fn watched(&mut self, item: Watched) {
        match item {
            Watched::Event(event) => self.show(&Received::Known(event), true),
            Watched::Unknown(event) => self.show(&Received::Unknown(event), true),
            Watched::Reconnected => {
                self.app.ui.say(&Line::new().faint("  the daemon was away and is back; nothing was missed"));
            }
        }
    }

    fn show(&mut self, received: &Received, is_now: bool) {
        let mut ask_next = false;
        if let Received::Known(recorded) = received {
            match &recorded.event {
                Event::ApprovalRequested(asked) if asked.waits() => ask_next = self.questions.asked(asked),
                Event::ApprovalAnswered(answered) => ask_next = self.questions.answered(answered.id),
                _ => {}
            }
        }
        let told = self.teller.tell(received);
        // What is asked below, with its keys, is not told as well.
        let is_asked = matches!(received, Received::Known(recorded)
            if matches!(&recorded.event, Event::ApprovalRequested(asked)
                if (is_now && asked.waits()) || self.session.approvals_open.contains(&asked.id)));
        if !is_asked {
            told.iter().for_each(|told| self.say(told));
        }
        if let Received::Known(recorded) = received
            && let (Event::SessionHeld(held), true) = (&recorded.event, is_now)
        {
            self.is_held = hold::at_a_budget_now(&self.session.id, held).is_some();
        }
        if ask_next && is_now {
            self.ask();
        }
    }

    /// What lets it go on depends on whose budget holds it, which the session knows.
    async fn say_what_helps(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_held) {
            let session = self.client.session(&self.session.id.to_string()).await?;
            hold::at_a_budget(&session).iter().for_each(|line| self.app.ui.say(line));
        }
        Ok(())
    }

    fn say(&self, told: &Told) {
        let ui = &self.app.ui;
        told.lines(&Line::of("  "), ui.err_look().width).iter().for_each(|line| ui.say(line));
    }

    /// In front of what is typed. A pipe needs none.
    fn label(&self) -> &'static str {
        if self.app.ui.has_person() { self.questions.label() } else { "" }
    }

    /// What is seen where nothing is typed: what the agent does now.
    fn hint(&self) -> Line {
        if !self.questions.is_empty() {
            return Line::new().faint("one of these and Enter, or a message; Ctrl-C leaves");
        }
        let idle = || Line::new().faint("a message, Enter sends it; Ctrl-C leaves");
        self.teller.running(words::now()).unwrap_or_else(idle)
    }

    fn ask(&self) {
        self.app.ui.say_folded(&self.questions.lines());
    }

    /// Acts on a typed line. True when the conversation goes on in another session.
    async fn typed(&mut self, line: &str) -> Result<bool, Failure> {
        match self.questions.typed(line) {
            Typed::Answer { id, allow, always, message } => {
                let request = AnswerApproval { approval: id.to_string(), allow, always, message };
                let given =
                    self.refused(self.client.answer_approval(request).await.map_err(Failure::from))?;
                if let Some(given) = given {
                    let (rules, undo) = answer::kept(self.app, self.client, &given).await;
                    rules.iter().chain(&undo).for_each(|line| self.app.ui.say(line));
                }
            }
            Typed::AskWhy => {}
            Typed::Show(lines) => {
                lines.iter().for_each(|line| self.app.ui.say(&Line::of("          ").plain(line)));
                self.ask();
            }
            Typed::Other(text) if text.trim().is_empty() => {}
            Typed::Other(text) => {
                let request =
                    SendMessage { who: self.session.id.to_string(), text, ..SendMessage::default() };
                let sent = self.refused(self.client.send_message(request).await.map_err(Failure::from))?;
                if let Some(Taken::Reset(_)) = &sent {
                    self.app
                        .ui
                        .say(&Line::new().faint("the conversation begins anew with your next message"));
                }
                let sent = sent.and_then(Taken::sent);
                if let Some(sent) = sent.filter(|sent| sent.session.id != self.session.id) {
                    self.session = sent.session;
                    self.app.touched(&self.session.id);
                    self.teller.reset();
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Says a refusal and stays; other failures end the view.
    fn refused<T>(&self, outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Refused(refusal)) if refusal.reason != Reason::DaemonUnreachable => {
                self.app.ui.say_refusal(&refusal);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn leave(&self) -> Result<u8, Failure> {
        let session = self.client.session(&self.session.id.to_string()).await?;
        let goes_on = if session.outcome.is_some() { "has ended" } else { "goes on" };
        self.app.ui.say(
            &Line::of(format!("{} {goes_on}", session.name))
                .faint(" · ")
                .append(row::now(&session, words::now())),
        );
        Ok(exit_code::OK)
    }
}
