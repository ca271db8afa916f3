//! What is wrong with a plan: everything, with the lines.

use std::fmt;

use crate::{Refusal, text::one_line};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// From 1; none where the plan is no file, or the fault is in no line of it.
    pub line: Option<usize>,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(line: Option<usize>, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a plan, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Adds what was found further. On lines that are told of already, and of what is on none, it only follows from those.
    pub fn add(&mut self, further: Vec<Fault>) {
        if self.0.is_empty() {
            self.0 = further;
            return;
        }
        let told: Vec<Option<usize>> = self.0.iter().map(|fault| fault.line).collect();
        self.0
            .extend(further.into_iter().filter(|fault| fault.line.is_some() && !told.contains(&fault.line)));
    }

    /// The plan, or what is wrong with it.
    pub fn unless<T>(mut faults: Vec<Fault>, fine: T) -> Result<T, Faults> {
        faults.sort();
        faults.dedup();
        if faults.is_empty() { Ok(fine) } else { Err(Faults(faults)) }
    }
}

impl From<Faults> for Refusal {
    fn from(faults: Faults) -> Refusal {
        let count = match faults.0.len() {
            1 => "a mistake".to_owned(),
            n => format!("{n} mistakes"),
        };
        let all = faults.0.iter().map(|fault| one_line(&fault.to_string(), 300)).collect::<Vec<_>>();
        Refusal::invalid(format!("the plan has {count}")).because(all.join("\n"))
    }
}
