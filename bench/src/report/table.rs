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
    pub(crate) raw: Option<Sample>,
    pub(crate) goal: Goal,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, ours: Sample, goal: Goal) -> Self {
        Self { what: what.into(), ours, raw: None, goal }
    }

    /// With the limit measured beside it.
    pub(crate) fn beside(self, raw: Sample) -> Self {
        Self { raw: Some(raw), ..self }
    }

    fn ratio(&self) -> Option<Sample> {
        self.raw.as_ref().map(|raw| self.ours.by(raw))
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
        let raw = self.raw.as_ref().map(Sample::write).unwrap_or_default();
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
