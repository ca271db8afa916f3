//! Refusals as gRPC statuses and back.
//!
//! The code is for any gRPC client, the `ErrorInfo` (reason, `domain: "ostler"`, metadata) for those who know us:
//! `why` and the hints travel as metadata, so a refusal arrives as it was written.

use std::collections::HashMap;

use ostler_domain::{Hint, Reason, Refusal, text::head};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::InvalidField;

const DOMAIN: &str = "ostler";
const WHY: &str = "why";

// A status travels in HTTP/2 trailers, and peers refuse more than 16 KiB of them: a refusal cut short is better than
// one that arrives as a protocol error. Bytes of the message and of `why`; of each part of a hint; hints.
const SENTENCE_BYTES: usize = 1024;
const HINT_BYTES: usize = 256;
const HINTS: usize = 8;

/// The gRPC code for each reason.
pub const fn code(reason: Reason) -> Code {
    match reason {
        Reason::CampaignUnknown | Reason::AgentUnknown | Reason::SnapshotUnknown | Reason::ConversationUnknown | Reason::TicketUnknown | Reason::MissionUnknown | Reason::NodeUnknown | Reason::ProviderUnknown | Reason::SessionUnknown | Reason::MessageUnknown | Reason::ApprovalUnknown => {
            Code::NotFound
        }
        Reason::CampaignExists | Reason::TicketExists | Reason::NameTaken | Reason::RequestConflict => Code::AlreadyExists,
        Reason::CampaignRoot | Reason::Ambiguous | Reason::InvalidArgument => Code::InvalidArgument,
        // What tonic itself answers to a message over the limit; and what reading behind an end is called.
        Reason::TooLarge | Reason::CursorUnknown => Code::OutOfRange,
        Reason::CampaignMoved
        | Reason::CampaignBusy
        | Reason::ConversationBusy
        | Reason::Imported
        | Reason::SecondWriter
        | Reason::TicketClosed
        | Reason::TicketWaits
        | Reason::TicketCycle
        | Reason::ProviderMissing
        // Not UNAUTHENTICATED: that would be about the caller.
        | Reason::ProviderAuth
        | Reason::ApprovalAnswered
        | Reason::WorktreeRefused
        | Reason::WrongState
        | Reason::Halted
        | Reason::Quarantined
        | Reason::PriceUnknown
        | Reason::ModelUnreachable
        | Reason::StoreReadOnly
        | Reason::StoreNewer
        | Reason::DaemonRunning => Code::FailedPrecondition,
        Reason::OverBudget | Reason::InboxFull | Reason::Busy | Reason::DiskFull => Code::ResourceExhausted,
        Reason::PermissionDenied => Code::PermissionDenied,
        Reason::SandboxUnavailable => Code::FailedPrecondition,
        Reason::StoreCorrupt => Code::DataLoss,
        Reason::StoreBusy | Reason::DaemonUnreachable | Reason::ShuttingDown => Code::Unavailable,
        Reason::TimedOut => Code::DeadlineExceeded,
        Reason::Internal => Code::Internal,
    }
}

/// The status that carries a refusal.
pub fn from_refusal(refusal: &Refusal) -> Status {
    with(refusal, ErrorDetails::new())
}

/// The status that refuses a field of a request.
pub fn from_invalid(invalid: &InvalidField) -> Status {
    let details = ErrorDetails::with_bad_request_violation(&invalid.field, &invalid.problem);
    with(&Refusal::invalid(invalid.to_string()), details)
}

impl From<InvalidField> for Status {
    fn from(invalid: InvalidField) -> Status {
        from_invalid(&invalid)
    }
}

fn with(refusal: &Refusal, mut details: ErrorDetails) -> Status {
    let mut metadata = HashMap::new();
    if let Some(why) = &refusal.why {
        metadata.insert(WHY.to_owned(), head(why, SENTENCE_BYTES).to_owned());
    }
    for (n, hint) in refusal.hints.iter().take(HINTS).enumerate() {
        let (command, effect) = hint_keys(n);
        metadata.insert(command, head(&hint.command, HINT_BYTES).to_owned());
        metadata.insert(effect, head(&hint.effect, HINT_BYTES).to_owned());
    }
    details.set_error_info(refusal.reason.as_str(), DOMAIN, metadata);
    Status::with_error_details(code(refusal.reason), head(&refusal.message, SENTENCE_BYTES), details)
}

fn hint_keys(n: usize) -> (String, String) {
    (format!("hint_{n}_command"), format!("hint_{n}_effect"))
}

/// The refusal that a status carries. None when no daemon of ours wrote it: then it is about the connection.
pub fn to_refusal(status: &Status) -> Option<Refusal> {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
    let mut metadata = info.metadata;
    let hints = (0..HINTS).map_while(|n| {
        let (command, effect) = hint_keys(n);
        Some(Hint { command: metadata.remove(&command)?, effect: metadata.remove(&effect)? })
    });
    let hints = hints.collect();
    // A reason that came after this version still has a code that says what sort of failure it is.
    let reason = Reason::parse(&info.reason).unwrap_or_else(|| nearest(status.code()));
    Some(Refusal {
        reason,
        message: status.message().to_owned(),
        why: metadata.remove(WHY),
        hints,
        request_id: None,
    })
}

/// The reason that says best what a bare code says.
pub fn nearest(code: Code) -> Reason {
    match code {
        Code::InvalidArgument => Reason::InvalidArgument,
        Code::OutOfRange => Reason::TooLarge,
        Code::NotFound => Reason::SessionUnknown,
        Code::AlreadyExists => Reason::NameTaken,
        Code::PermissionDenied | Code::Unauthenticated => Reason::PermissionDenied,
        Code::FailedPrecondition | Code::Aborted => Reason::WrongState,
        Code::DeadlineExceeded | Code::Cancelled => Reason::TimedOut,
        Code::Unavailable => Reason::DaemonUnreachable,
        Code::DataLoss => Reason::StoreCorrupt,
        Code::ResourceExhausted => Reason::TooLarge,
        Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal => Reason::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_arrives_as_it_was_written() {
        for reason in Reason::ALL {
            let refusal = Refusal::new(*reason, "session k7q4x is busy")
                .because("turn 12 is open")
                .hint("ostler wait k7q4x", "waits for it")
                .hint("ostler interrupt k7q4x", "ends its turn");
            let status = from_refusal(&refusal);
            assert_ne!(status.code(), Code::Ok);
            assert_eq!(to_refusal(&status), Some(refusal));
        }
    }

    #[test]
    fn a_field_is_named_for_every_client() {
        let status = Status::from(InvalidField::missing("campaign"));
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(
            (violations[0].field.as_str(), violations[0].description.as_str()),
            ("campaign", "is missing")
        );
        assert_eq!(to_refusal(&status).unwrap(), Refusal::invalid("campaign is missing"));
    }

    #[test]
    fn a_reason_of_the_future_keeps_its_sort() {
        let mut details = ErrorDetails::new();
        details.set_error_info("NO_SUCH_MOON", DOMAIN, HashMap::new());
        let status = Status::with_error_details(Code::FailedPrecondition, "no such moon", details);
        assert_eq!(to_refusal(&status), Some(Refusal::new(Reason::WrongState, "no such moon")));
    }

    #[test]
    fn what_others_write_is_no_refusal() {
        assert_eq!(to_refusal(&Status::unavailable("tcp connect error")), None);
    }

    #[test]
    fn the_longest_refusal_fits_into_trailers() {
        let mut refusal = Refusal::new(Reason::Ambiguous, "ä".repeat(100_000)).because("ö".repeat(100_000));
        for _ in 0..100 {
            refusal = refusal.hint("x".repeat(10_000), "y".repeat(10_000));
        }
        let status = from_refusal(&refusal);
        // Non-ASCII text is percent-encoded (three characters a byte), details are in base64.
        let trailers = status.message().len() * 3 + status.details().len() * 4 / 3;
        assert!(trailers < 15 * 1024, "{trailers}");
        assert_eq!(to_refusal(&status).unwrap().hints.len(), HINTS);
    }
}
