//! Enums in both directions. Each match is exhaustive on both sides: a new word does not compile until it has its
//! counterpart.

use ostler_domain::{
    Mode, Receipt, admission, budget, call, conversation, event, history, mission, session, ticket,
};

use crate::{
    InvalidField, pb,
    reply::{Severity, UsageBy},
    request::MissionAction,
};

macro_rules! enums {
    ($($name:ident: $core:ty => $wire:ident { $($variant:ident),* $(,)? })*) => {
        pub(crate) mod to {
            use super::*;
            $(pub fn $name(value: $core) -> pb::$wire {
                match value { $(<$core>::$variant => pb::$wire::$variant,)* }
            })*
        }

        pub(crate) mod from {
            use super::*;
            $(pub fn $name(number: i32, field: &str) -> Result<$core, InvalidField> {
                match pb::$wire::try_from(number) {
                    Ok(pb::$wire::Unspecified) => Err(InvalidField::missing(field)),
                    $(Ok(pb::$wire::$variant) => Ok(<$core>::$variant),)*
                    Err(_) => Err(InvalidField::new(field, format_args!("{number} is not known to this version"))),
                }
            })*
        }
    };
}

enums! {
    status: session::Status => SessionStatus { Created, Starting, Running, Working, Stopping, Stopped, Failed }
    phase: session::Phase => SessionPhase { Created, Starting, Live, Stopping, Ended }
    attention: session::Attention => Attention {
        Detached, Paused, BudgetHold, WaitingApproval, WaitingInput, RateLimited, Stalled, Working, Idle,
        TurnFailed,
    }
    outcome: session::Outcome => Outcome {
        Done, Handoff, Stopped, Killed, Crashed, FailedStart, Lost, Timeout, Budget, Oom, Reset, TurnFailed,
    }
    desired: session::Desired => Desired { Run, Pause, Stop }
    restart_policy: session::RestartPolicy => RestartPolicy { Never, OnFailure, Always }
    approve: session::Approve => ApproveMode { Ask, All, Nobody, Policy }
    stop_rule: session::StopRule => StopRule {
        Stop, Kill, Halt, TurnEnded, Timeout, Budget, StartWatchdog, StallWatchdog, Restart,
        ProviderAuth, Done, Idle, GaveWay, Handoff, Reset, CannotStart,
    }
    ticket_status: ticket::Status => TicketStatus {
        Initialized, Queued, Running, Done, Failed, Cancelled, Archived,
    }
    ticket_verb: ticket::Verb => TicketVerb { Queue, Start, Done, Fail, Cancel, Reopen, Archive }
    output_kind: ticket::OutputKind => TicketOutputKind { Text, Path, Commit, Url }
    mission_strategy: mission::Strategy => MissionStrategy { Parallel, Sequential, Adaptive, Pipeline }
    mission_status: mission::Status => MissionStatus {
        Created, Running, Paused, Completed, Partial, Failed, Cancelled,
    }
    assignment_status: mission::AssignmentStatus => AssignmentStatus {
        Pending, Ready, Running, Paused, Completed, Failed, Skipped, Cancelled,
    }
    mission_action: MissionAction => MissionAction { Start, Resume, Retry }
    step_mark: call::StepMark => TicketStepMark { Start, End, Fail }
    import_change: ticket::ImportChange => TicketImportChange { Added, Changed, Same }
    history_source: history::Source => HistorySource { Claude, Codex, OpenClaw }
    history_verdict: history::Verdict => HistoryVerdict { New, Grown, Same, Cut, Rewritten, Empty, Failed }
    close_reason: conversation::CloseReason => CloseReason { Reset, Archived, Removed }
    priority: admission::Priority => Priority { Low, Normal, High }
    on_budget: budget::WhenUsedUp => OnBudget { Hold, Stop }
    mode: Mode => MessageMode { Followup, Steer, Collect, Interrupt }
    receipt: Receipt => Receipt { Accepted, Delivered, Seen, Answered, Unknown, Dropped, Cancelled }
    answer: event::Answer => Answer { Allowed, Denied, Expired }
    ask_kind: event::AskKind => AskKind { Leave, Question }
    usage_by: UsageBy => UsageBy { Day, Model, Provider, Campaign, Session, Chain, Ticket, Mission }
    severity: Severity => FindingSeverity { Note, Repairable, Damage }
}

/// Reads an enum of a request, where the unset value asks for the default.
pub(crate) fn or_default<T: Default>(
    number: i32,
    field: &str,
    read: impl FnOnce(i32, &str) -> Result<T, InvalidField>,
) -> Result<T, InvalidField> {
    if number == 0 { Ok(T::default()) } else { read(number, field) }
}
