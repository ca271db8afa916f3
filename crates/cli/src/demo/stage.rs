//! What the demo shows: the mission's graph, drawn over itself at the foot of a terminal, and above it, with the time, the
//! moments that count. Where nothing can be drawn over, every transition is a line.

use std::{cell::RefCell, time::Duration};

use ostler_domain::readiness::{Readiness, Trial};
use tokio::time::Instant;

use super::{escape::Tried, place::Place};
use crate::{
    commands::trial,
    failure::Failure,
    output::{Line, Tone, Ui},
};

pub(super) struct Stage<'a> {
    ui: &'a Ui,
    began: Instant,
    /// What is at the foot of the screen now.
    picture: RefCell<Vec<Line>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self { ui, began: Instant::now(), picture: RefCell::default() }
    }

    /// Whether there is a screen on which the graph is drawn again and again.
    pub(super) fn is_drawn(&self) -> bool {
        self.ui.out_look().in_place && !self.ui.is_json()
    }

    /// What the graph has beside the time; it begins with two blanks of its own.
    pub(super) fn room(&self) -> Option<usize> {
        self.ui.out_look().width.map(|width| width.saturating_sub(CLOCK - 2))
    }

    pub(super) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Writes a line at once, above the picture; programs get only the result.
    pub(super) fn line(&self, line: &Line) -> Result<(), Failure> {
        self.write(line, 0)
    }

    /// A line with the time.
    pub(super) fn at(&self, line: Line) -> Result<(), Failure> {
        self.write(&self.clock().append(line), CLOCK)
    }

    fn write(&self, line: &Line, indent: usize) -> Result<(), Failure> {
        if self.ui.is_json() {
            return Ok(());
        }
        self.wipe()?;
        let width = self.ui.out_look().width;
        line.folded(width, indent).iter().try_for_each(|line| self.ui.data(line))?;
        self.paint()
    }

    /// A moment that counts.
    pub(super) fn loud(&self, line: Line) -> Result<(), Failure> {
        self.at(Line::toned(Tone::Warn, "▌ ").append(line))
    }

    /// Draws the graph in the place of the one before, with the time.
    pub(super) fn draw(&self, graph: Vec<Line>) -> Result<(), Failure> {
        if !self.is_drawn() {
            return Ok(());
        }
        self.wipe()?;
        *self.picture.borrow_mut() = self.beside_clock(graph);
        self.paint()
    }

    /// Leaves the graph where it is: what comes next stands below it.
    pub(super) fn leave(&self, graph: Vec<Line>) -> Result<(), Failure> {
        self.wipe()?;
        self.picture.borrow_mut().clear();
        self.beside_clock(graph).iter().try_for_each(|line| self.line(line))
    }

    fn beside_clock(&self, graph: Vec<Line>) -> Vec<Line> {
        let blank = Line::of(" ".repeat(CLOCK - 2));
        let prefixes = std::iter::once(self.time()).chain(std::iter::repeat(blank));
        graph.into_iter().zip(prefixes).map(|(line, prefix)| prefix.append(line)).collect()
    }

    fn wipe(&self) -> Result<(), Failure> {
        match self.picture.borrow().len() {
            0 => Ok(()),
            rows => self.ui.bytes(format!("\u{1b}[{rows}A\r\u{1b}[J").as_bytes()),
        }
    }

    fn paint(&self) -> Result<(), Failure> {
        self.picture.borrow().iter().try_for_each(|line| self.ui.data(line))?;
        self.ui.flush()
    }

    fn clock(&self) -> Line {
        self.time().padded(CLOCK)
    }

    fn time(&self) -> Line {
        let tenths = self.began.elapsed().as_millis() / 100;
        Line::new().faint(format!("{:>4}.{}s", tenths / 10, tenths % 10))
    }

    pub(super) fn open(&self, place: &Place, readiness: &Readiness) -> Result<(), Failure> {
        let words = "A planner, three builders and a reviewer, scripted: no key, no network.";
        self.line(&Line::new().strong(words))?;
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

    /// An agent looked for a way out.
    pub(super) fn tried(&self, who: &str, tried: &Tried) -> Result<(), Failure> {
        let (tone, sign) =
            if tried.is_stopped { (Tone::Good, "✓ stopped  ") } else { (Tone::Bad, "✗ got through  ") };
        let line = Line::toned(Tone::Accent, who).padded(7).append(Line::toned(tone, sign));
        let line = line.plain(&tried.command).faint(format!("   {} ({})", tried.said, tried.rule));
        let room = self.ui.out_look().width.map_or(usize::MAX, |width| width.saturating_sub(CLOCK));
        self.at(line.cut(room))
    }
}

/// Where texts begin, behind the time.
const CLOCK: usize = 9;
