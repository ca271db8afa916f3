//! What the demo shows while it runs: each agent's deeds with the time, and the great moments.

use ostler_client::{Received, Session};
use ostler_domain::{
    Event, Recorded, SessionId,
    readiness::{Readiness, Trial},
};
use tokio::time::Instant;

use super::{account::Account, agents, place::Place};
use crate::{
    commands::trial,
    failure::Failure,
    output::{Line, Tone, Ui},
    screen::activity::Teller,
    words,
};

struct Player {
    id: SessionId,
    name: String,
    tone: Tone,
    teller: Teller,
}

pub(super) struct Stage<'a> {
    ui: &'a Ui,
    began: Instant,
    players: Vec<Player>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self { ui, began: Instant::now(), players: Vec::new() }
    }

    /// Writes a line at once; programs get only the result.
    pub(super) fn line(&self, line: &Line) -> Result<(), Failure> {
        if self.ui.is_json() {
            return Ok(());
        }
        self.ui.data(line)?;
        self.ui.flush()
    }

    /// A line with the time.
    pub(super) fn at(&self, line: Line) -> Result<(), Failure> {
        self.line(&self.clock().append(line))
    }

    /// A great moment.
    pub(super) fn loud(&self, line: Line) -> Result<(), Failure> {
        self.at(Line::toned(Tone::Warn, "▌ ").append(line))
    }

    pub(super) fn took(&self) -> std::time::Duration {
        self.began.elapsed()
    }

    fn clock(&self) -> Line {
        let tenths = self.began.elapsed().as_millis() / 100;
        Line::new().faint(format!("{:>4}.{}s  ", tenths / 10, tenths % 10))
    }

    pub(super) fn open(&self, place: &Place, readiness: &Readiness) -> Result<(), Failure> {
        self.line(
            &Line::new().strong("Three scripted agents in a small git repository: no key, no network."),
        )?;
        let words = format!("Home: {} (removed at the end; --keep leaves it).", place.root().display());
        self.line(&Line::new().faint(words))?;
        match &readiness.trial {
            Trial::Ran { .. } => {
                self.line(&Line::new().faint(format!("Sandbox: on; {}.", trial::words(readiness))))
            }
            Trial::Refused { hint, .. } => {
                self.line(&Line::toned(Tone::Bad, "┌─ sandbox=off ─────────────────────────────"))?;
                self.line(&Line::toned(Tone::Bad, "│ ").plain(trial::words(readiness)))?;
                if !hint.is_empty() {
                    self.line(&Line::toned(Tone::Bad, "│ ").plain(format!("cure: {hint}")))?;
                }
                self.line(
                    &Line::toned(Tone::Bad, "│ ")
                        .plain("The demo goes on with its scripted agents; nothing else ever does."),
                )?;
                self.line(&Line::toned(Tone::Bad, "└───────────────────────────────────────────"))
            }
        }
    }

    pub(super) fn meet(&mut self, sessions: &[Session]) -> Result<(), Failure> {
        let tones = [Tone::Accent, Tone::Good, Tone::Warn];
        for (session, tone) in sessions.iter().zip(tones.into_iter().cycle()) {
            let name = session.name.to_string();
            self.players.push(Player { id: session.id, name, tone, teller: Teller::new() });
        }
        let names: Vec<_> =
            self.players.iter().map(|player| format!("{} ({})", player.name, player.id.short())).collect();
        self.loud(Line::of(format!("started: {}", names.join(", "))))
    }

    /// Shows an event of an agent; of the numbered lines only each last one of a stretch.
    pub(super) fn show(&mut self, event: Recorded) -> Result<(), Failure> {
        let hidden = match &event.event {
            Event::AgentCompletion(said) => !agents::is_milestone(&said.text),
            Event::SessionCreated(_) | Event::MessageAccepted(_) | Event::SessionStopRequested(_) => true,
            _ => false,
        };
        let clock = self.clock();
        let Some(player) = self.players.iter_mut().find(|player| Some(player.id) == event.session) else {
            return Ok(());
        };
        if hidden {
            return Ok(());
        }
        let prefix = clock.append(Line::toned(player.tone, &player.name).padded(6));
        let told = player.teller.tell(&Received::Known(Box::new(event)));
        let width = self.ui.out_look().width;
        told.iter().flat_map(|told| told.lines(&prefix, width)).try_for_each(|line| self.line(&line))
    }

    /// Says how the record stands.
    pub(super) fn account(&self, account: &Account) -> Result<(), Failure> {
        let Account { expected, present, lost, doubled, out_of_order, holes } = account;
        let (tone, sign) = if account.is_right() { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let words = format!(
            " checked {} numbered lines: {} present, {lost} lost, {doubled} doubled, {out_of_order} out of order, {holes} holes in the log",
            words::number(*expected),
            words::number(*present),
        );
        self.at(Line::toned(tone, sign).plain(words))
    }
}
