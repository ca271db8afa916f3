//! The ways in which asking the daemon can fail.

use std::{error::Error as _, io, path::PathBuf};

use ostler_domain::{Reason, Refusal, limits::REQUEST_BYTES};
use ostler_wire::{InvalidField, status};
use tonic::{Code, Status};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No daemon listens.
    #[error("no daemon listens on {}", socket.display())]
    Unreachable {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another machine's daemon cannot be reached.
    #[error("{name} cannot be reached")]
    NodeUnreachable {
        /// What people call it.
        name: String,
        /// What was said on the way.
        why: String,
        /// Where it is, if it is there and its shell does not find the program.
        lacks_program: Option<String>,
    },
    /// A daemon was started and did not become ready.
    #[error("{} did not become a daemon: {why}", program.display())]
    NotStarted {
        /// What was started.
        program: PathBuf,
        /// What became of it.
        why: String,
        /// What it wrote to its log; may be empty.
        log: String,
    },
    /// The connection broke, and asking again did not help.
    #[error("the connection to the daemon broke: {what}")]
    Broken {
        /// What broke.
        what: String,
    },
    /// The daemon's answer makes no sense to this version.
    #[error("the daemon's answer makes no sense to this version: {0}")]
    Answer(#[from] InvalidField),
}

impl Error {
    /// Names the change that was refused.
    pub(crate) fn of_request(self, id: &str) -> Self {
        match self {
            Error::Refused(refusal) => Error::Refused(Refusal { request_id: Some(id.to_owned()), ..refusal }),
            other => other,
        }
    }

    /// Whether the daemon said no for this reason.
    pub fn is_refused_for(&self, reason: Reason) -> bool {
        matches!(self, Error::Refused(refusal) if refusal.reason == reason)
    }

    /// The failure in the daemon's own form: a reason, a sentence, a fact, what to try.
    pub fn to_refusal(&self) -> Refusal {
        let log = "shows what the daemon said last";
        match self {
            Error::Refused(refusal) => refusal.clone(),
            Error::Unreachable { source, socket } if source.kind() == io::ErrorKind::PermissionDenied => {
                let message = format!("the daemon behind {} belongs to somebody else", socket.display());
                Refusal::new(Reason::PermissionDenied, message)
                    .because(source.to_string())
                    .hint("ostler doctor", "shows which home is used; OSTLER_HOME names another")
            }
            Error::Unreachable { source, .. } => Refusal::new(Reason::DaemonUnreachable, self.to_string())
                .because(source.to_string())
                .hint("ostler daemon start", "starts one"),
            Error::NodeUnreachable { name, why, lacks_program: Some(address) } => {
                let name = if name.contains("://") { "NAME" } else { name };
                Refusal::new(Reason::DaemonUnreachable, self.to_string())
                    .because(why.clone())
                    .hint(
                        format!("ostler node add {name} {address} --program PATH"),
                        "says where Ostler is over there; no login without a terminal finds it",
                    )
                    .hint("ssh HOST ostler version", "shows whether it is found")
            }
            Error::NodeUnreachable { why, .. } => Refusal::new(Reason::DaemonUnreachable, self.to_string())
                .because(why.clone())
                .hint("ostler node ls", "shows which machines answer")
                .hint("ssh HOST ostler version", "shows whether SSH gets there, and Ostler is there"),
            Error::NotStarted { log: said, .. } => {
                let refusal = Refusal::new(Reason::DaemonUnreachable, self.to_string());
                let refusal = if said.is_empty() { refusal } else { refusal.because(said.clone()) };
                refusal.hint("ostler daemon run", "runs it in this terminal, where it says what is wrong")
            }
            Error::Broken { .. } => {
                Refusal::new(Reason::DaemonUnreachable, self.to_string()).hint("ostler daemon logs", log)
            }
            Error::Answer(_) => Refusal::new(Reason::Internal, self.to_string())
                .hint("ostler daemon restart", "makes the daemon the version of this program"),
        }
    }
}

/// What a failed call means for whoever made it.
pub(crate) enum Failure {
    /// Final.
    Final(Error),
    /// The connection broke or the daemon is going: asking again may help.
    Lost(Status),
}

impl Failure {
    pub(crate) fn of(status: Status) -> Failure {
        match status::to_refusal(&status) {
            Some(refusal) if refusal.reason == Reason::ShuttingDown => Failure::Lost(status),
            Some(refusal) => Failure::Final(refusal.into()),
            None if timed_out(&status) => {
                let refusal = Refusal::new(Reason::TimedOut, "the daemon does not answer");
                Failure::Final(refusal.hint("ostler daemon logs", "shows what it is doing").into())
            }
            // A status that the daemon sent has no source; one that was made here, of an error of the transport, has.
            None if status.source().is_some() || status.code() == Code::Unavailable => Failure::Lost(status),
            None if status.code() == Code::Unimplemented => {
                let refusal = Refusal::new(Reason::Internal, "the daemon does not know this request");
                Failure::Final(
                    refusal.hint("ostler daemon restart", "makes it the version of this program").into(),
                )
            }
            // What the transport says of a message beyond its limit, before anybody looks at it.
            None if status.code() == Code::OutOfRange => {
                let refusal = Refusal::new(
                    Reason::TooLarge,
                    format!("a request has at most {} MiB", REQUEST_BYTES >> 20),
                );
                Failure::Final(
                    refusal
                        .because("put long texts into a file of the campaign and name it in the prompt")
                        .into(),
                )
            }
            None => Failure::Final(Refusal::new(status::nearest(status.code()), status.message()).into()),
        }
    }
}

/// What is said when a call stays lost.
pub(crate) fn given_up(status: &Status, socket: PathBuf) -> Error {
    if let Some(refusal) = status::to_refusal(status) {
        return refusal.into();
    }
    match causes(status).find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(error) if is_nobody(error) => {
            Error::Unreachable { socket, source: io::Error::new(error.kind(), error.to_string()) }
        }
        _ => {
            let root = causes(status).last().map(ToString::to_string);
            Error::Broken { what: root.unwrap_or_else(|| status.message().to_owned()) }
        }
    }
}

/// Says whether an error means that nobody listens: no socket, or nobody behind it.
pub(crate) fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn timed_out(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<tonic::TimeoutExpired>())
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(status.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_the_connection_is_asked_again() {
        let lost = |status| matches!(Failure::of(status), Failure::Lost(_));
        assert!(lost(Status::from_error(Box::new(io::Error::from(io::ErrorKind::BrokenPipe)))));
        assert!(lost(Status::unavailable("")));
        assert!(lost(status::from_refusal(&Refusal::new(Reason::ShuttingDown, "ends"))));
        assert!(!lost(status::from_refusal(&Refusal::new(Reason::StoreBusy, "busy"))));
        assert!(!lost(Status::from_error(Box::new(tonic::TimeoutExpired(())))));
        assert!(!lost(Status::unimplemented("")));
    }

    #[test]
    fn every_failure_has_a_cure() {
        let socket = PathBuf::from("/run/control.sock");
        let unreachable = Error::Unreachable { socket, source: io::ErrorKind::NotFound.into() };
        let broken = Error::Broken { what: "broken pipe".to_owned() };
        let answer = Error::Answer(InvalidField::missing("session"));
        for error in [unreachable, broken, answer] {
            assert!(!error.to_refusal().hints.is_empty(), "{error}");
        }
    }
}
