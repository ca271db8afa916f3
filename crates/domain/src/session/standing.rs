//! How a session stands in a list: its place among the others, and the sign in front of it. The same wherever sessions are
//! listed, of this machine and of others.

use super::{Attention, Outcome, Status, View};

/// The order of a list: who needs you, who works, who waits, who failed, who is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    NeedsYou,
    AtWork,
    Waiting,
    Idle,
    Failed,
    Over,
}

impl Rank {
    pub fn of(status: Status, attention: Option<Attention>) -> Rank {
        match (status, attention) {
            (_, Some(attention)) if attention.needs_you() => Rank::NeedsYou,
            (Status::Working | Status::Starting | Status::Stopping, _) => Rank::AtWork,
            (_, Some(Attention::Idle)) => Rank::Idle,
            (Status::Created | Status::Running, _) => Rank::Waiting,
            (Status::Failed, _) => Rank::Failed,
            (Status::Stopped, _) => Rank::Over,
        }
    }
}

/// What the sign in front of a row says. The words beside it say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Imported,
    Failed,
    Done,
    Over,
    NeedsYou,
    Paused,
    Beginning,
    Working,
    Still,
}

impl Mark {
    pub fn of(
        status: Status,
        attention: Option<Attention>,
        outcome: Option<Outcome>,
        is_imported: bool,
    ) -> Mark {
        match (status, attention, outcome) {
            (Status::Stopped, ..) if is_imported => Mark::Imported,
            (Status::Failed, ..) => Mark::Failed,
            (Status::Stopped, _, Some(Outcome::Done | Outcome::Handoff)) => Mark::Done,
            (Status::Stopped, ..) => Mark::Over,
            (_, Some(attention), _) if attention.needs_you() => Mark::NeedsYou,
            (_, Some(Attention::Paused), _) => Mark::Paused,
            (Status::Created | Status::Starting, ..) | (_, Some(Attention::Detached), _) => Mark::Beginning,
            (Status::Working, ..) => Mark::Working,
            (Status::Running | Status::Stopping, ..) => Mark::Still,
        }
    }

    pub const fn sign(self) -> &'static str {
        match self {
            Mark::Imported => "↓",
            Mark::Failed => "✗",
            Mark::Done => "✓",
            Mark::Over => "–",
            Mark::NeedsYou => "!",
            Mark::Paused => "‖",
            Mark::Beginning => "◌",
            Mark::Working => "●",
            Mark::Still => "○",
        }
    }
}

impl View {
    pub fn rank(&self) -> Rank {
        if self.restart_refused.is_some() {
            return Rank::NeedsYou;
        }
        Rank::of(self.status, self.attention)
    }

    pub fn mark(&self) -> Mark {
        Mark::of(self.status, self.attention, self.outcome, self.imported.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_somebody_stands_first_and_who_is_done_last() {
        let of = Rank::of;
        let order = [
            of(Status::Working, Some(Attention::WaitingApproval)),
            of(Status::Working, Some(Attention::Working)),
            of(Status::Running, Some(Attention::Paused)),
            of(Status::Running, Some(Attention::Idle)),
            of(Status::Failed, None),
            of(Status::Stopped, None),
        ];
        assert!(order.is_sorted_by(|one, other| one < other), "{order:?}");
    }

    #[test]
    fn each_row_has_the_sign_of_what_is_most_to_be_known() {
        let sign = |status, attention, outcome| Mark::of(status, attention, outcome, false).sign();
        assert_eq!(sign(Status::Running, Some(Attention::Stalled), None), "!");
        assert_eq!(sign(Status::Running, Some(Attention::Paused), None), "‖");
        assert_eq!(sign(Status::Running, Some(Attention::Detached), None), "◌");
        assert_eq!(sign(Status::Working, Some(Attention::Working), None), "●");
        assert_eq!(sign(Status::Running, Some(Attention::Idle), None), "○");
        assert_eq!(sign(Status::Stopped, None, Some(Outcome::Done)), "✓");
        assert_eq!(sign(Status::Stopped, None, Some(Outcome::Killed)), "–");
        assert_eq!(sign(Status::Failed, None, Some(Outcome::Lost)), "✗");
        assert_eq!(Mark::of(Status::Stopped, None, Some(Outcome::Done), true).sign(), "↓");
    }
}
