//! Being asked to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{exit_code, failure::Failure};

/// What asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Interrupt,
    Terminate,
}

impl Asked {
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Asked::Interrupt => exit_code::INTERRUPTED,
            Asked::Terminate => exit_code::TERMINATED,
        }
    }
}

/// Ctrl-C and the signals that end programs. Once made, they end nothing by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| {
                Failure::from(ostler_domain::Refusal::internal(format!("signals cannot be caught: {error}")))
            })
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hang_up.recv() => Asked::Terminate,
        }
    }
}
