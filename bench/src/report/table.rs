//! A benchmark's table: ours, the raw limit beside it, their ratio, and whether the goal is reached.

use super::Sample;

/// What was to be reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Nothing: shown for its own sake.
    Shown,
    /// Ours by raw.
    RatioAtLeast(f64),
    RatioAtMost(f64),
    /// Ours, in its own unit.
    AtMost(f64),
}

pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: Sample,
    raw: Beside,
    pub(crate) goal: Goal,
}

/// What stands beside ours.
enum Beside {
    Nothing,
    Measured(Sample),
    /// A peer that could not be measured, and why.
    Missing(String),
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, ours: Sample, goal: Goal) -> Self {
        Self { what: what.into(), ours, raw: Beside::Nothing, goal }
    }

    /// With the limit measured beside it.
    pub(crate) fn beside(self, raw: Sample) -> Self {
        Self { raw: Beside::Measured(raw), ..self }
    }

    /// With a peer measured beside it, or the reason why it was not: then nobody can say whether the goal is reached.
    pub(crate) fn beside_peer(self, peer: Result<Sample, String>) -> Self {
        let raw = match peer {
            Ok(sample) => Beside::Measured(sample),
            Err(why) => Beside::Missing(why),
        };
        Self { raw, ..self }
    }

    fn ratio(&self) -> Option<Sample> {
        match &self.raw {
            Beside::Measured(raw) => Some(self.ours.by(raw)),
            Beside::Nothing | Beside::Missing(_) => None,
        }
    }

    fn reached(&self) -> Option<bool> {
        let ratio = self.ratio().map(|ratio| ratio.median());
        match self.goal {
            Goal::Shown => None,
            Goal::RatioAtLeast(least) => ratio.map(|ratio| ratio >= least),
            Goal::RatioAtMost(most) => ratio.map(|ratio| ratio <= most),
            Goal::AtMost(most) => Some(self.ours.median() <= most),
        }
    }

    fn write(&self) -> String {
        let goal = match self.goal {
            Goal::Shown => String::new(),
            Goal::RatioAtLeast(least) => format!("≥ {least} ×"),
            Goal::RatioAtMost(most) => format!("≤ {most} ×"),
            Goal::AtMost(most) => format!("≤ {}", self.ours.unit.write(most)),
        };
        let reached = match self.reached() {
            None => "",
            Some(true) => "yes",
            Some(false) => "**no**",
        };
        let raw = match &self.raw {
            Beside::Nothing => String::new(),
            Beside::Measured(raw) => raw.write(),
            Beside::Missing(why) => why.clone(),
        };
        let ratio = self.ratio().map(|ratio| ratio.write()).unwrap_or_default();
        format!("| {} | {} | {raw} | {ratio} | {goal} | {reached} |", self.what, self.ours.write())
    }
}

/// One benchmark's part of the page.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<Row>,
    /// What was measured beside the table: where the time went.
    pub(crate) notes: Vec<String>,
}

impl Section {
    pub(crate) fn write(&self) -> String {
        let mut text = "| | ours | raw | ratio | goal | reached |\n|---|---|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            text.push_str(&row.write());
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }

    /// The rows whose goals were missed.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter(|row| row.reached() == Some(false)).map(|row| row.what.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;

    #[test]
    fn a_peer_that_is_not_there_is_named_and_nothing_is_judged() {
        let ours = Sample::new(Unit::Milliseconds, [1.0]);
        let row =
            Row::new("ls", ours.clone(), Goal::RatioAtMost(4.0)).beside_peer(Err("no `pueue`".to_owned()));
        assert_eq!(row.write(), "| ls | 1.00 ms | no `pueue` |  | ≤ 4 × |  |");
        let row = Row::new("ls", ours.clone(), Goal::RatioAtMost(4.0)).beside_peer(Ok(ours));
        assert_eq!(row.write(), "| ls | 1.00 ms | 1.00 ms | 1.00 | ≤ 4 × | yes |");
    }
}
