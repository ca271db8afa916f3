//! What members' sessions ask of people, each with the command that answers it.

use std::fmt;

use crate::{
    session::{Attention, Desired, View, held::budget_cure},
    text::one_line,
};

/// Something that a session waits for, and that only a person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `run: cargo add governor`.
    pub what: String,
    /// `ostler allow c1w6j`.
    pub answer: String,
}

/// What a session asks of people now.
pub fn asked(session: &View) -> Vec<Asked> {
    let what = one_line(&session.evidence, 120);
    let one = |what: String, answer: String| vec![Asked { what, answer }];
    match session.attention {
        // The words are those of the first.
        Some(Attention::WaitingApproval) => {
            let asked = session.approvals_open.iter().enumerate().map(|(n, id)| Asked {
                what: if n == 0 { what.clone() } else { "and another approval".to_owned() },
                answer: format!("ostler allow {}", id.short()),
            });
            asked.collect()
        }
        Some(Attention::WaitingInput) => {
            one(format!("“{what}”"), format!("ostler send {} \"…\"", session.id.short()))
        }
        Some(Attention::Paused) if session.desired == Desired::Pause => {
            one("paused by hand".to_owned(), format!("ostler resume {}", session.id.short()))
        }
        Some(Attention::BudgetHold) => one(format!("held at a budget: {what}"), budget_cure(session)),
        _ => Vec::new(),
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The answer first: a line of a list may end before the question does.
        write!(f, "{} ({})", self.answer, self.what)
    }
}
