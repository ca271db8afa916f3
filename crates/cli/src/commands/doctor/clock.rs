//! The wall clock: whether somebody keeps it in step, and whether it was set back. What is counted within one boot of the
//! machine does not depend on it; what outlives a boot does, and so do days, `--since` and logins.

use std::{path::Path, process::Stdio, time::Duration};

use ostler_client::{Client, ListEvents, Place, query::EventFilter};
use ostler_domain::Time;
use tokio::time::timeout;

use super::{Finding, Verdict};
use crate::{failure::Failure, words};

/// An event may be this much younger than the clock that is read here a moment later: clocks are adjusted all the time.
const SLACK: Duration = Duration::from_secs(2);
/// Who says nothing within this time is not waited for.
const SAYS_WITHIN: Duration = Duration::from_secs(2);

/// What the machine says about its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    InStep,
    ByNobody,
    /// Nobody here can say.
    Unknown,
}

/// Asks the service manager, which asks the kernel: whichever program keeps the clock tells that.
pub(super) async fn kept() -> Kept {
    if !Path::new("/run/systemd/system").exists() {
        return Kept::Unknown;
    }
    let asked = tokio::process::Command::new("timedatectl")
        .args(["show", "--property", "NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(SAYS_WITHIN, asked).await {
        Ok(Ok(said)) => read(&said.stdout),
        _ => Kept::Unknown,
    }
}

fn read(said: &[u8]) -> Kept {
    match said.trim_ascii() {
        b"yes" => Kept::InStep,
        b"no" => Kept::ByNobody,
        _ => Kept::Unknown,
    }
}

/// When the last thing in the log happened, as whoever wrote it had it.
pub(super) async fn last_event(client: &Client) -> Result<Option<Time>, Failure> {
    let last = ListEvents { filter: EventFilter::default(), from: Place::End, limit: 1 };
    Ok(client.events(&last).await?.events.first().map(ostler_client::Received::time))
}

pub(super) fn finding(kept: Kept, last: Option<Time>, now: Time) -> Finding {
    let ahead = last.map(|last| last.since(now)).filter(|ahead| *ahead > SLACK);
    if let Some(ahead) = ahead {
        let text = format!(
            "was set back: the last event is {} ahead of it; what waits for a moment after a reboot comes late",
            words::span(ahead)
        );
        return Finding::new(Verdict::Warn, "clock", text).fix("timedatectl set-ntp true");
    }
    match kept {
        Kept::InStep => Finding::new(Verdict::Ok, "clock", "in step, and behind no event"),
        Kept::ByNobody => {
            let text = "nobody keeps it in step: days, deadlines after a reboot and logins depend on it";
            Finding::new(Verdict::Warn, "clock", text).fix("timedatectl set-ntp true")
        }
        Kept::Unknown => {
            Finding::new(Verdict::Ok, "clock", "behind no event; whether it is kept in step nobody says here")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, ago};

    #[test]
    fn a_clock_that_was_set_back_or_that_nobody_keeps_is_told() {
        let verdict = |kept, last| finding(kept, last, NOW).verdict;
        assert_eq!(verdict(Kept::InStep, Some(ago(1))), Verdict::Ok);
        assert_eq!(verdict(Kept::InStep, None), Verdict::Ok);
        assert_eq!(verdict(Kept::Unknown, Some(NOW.plus(Duration::from_secs(1)))), Verdict::Ok);
        assert_eq!(verdict(Kept::ByNobody, Some(ago(1))), Verdict::Warn);
        let back = finding(Kept::InStep, Some(NOW.plus(Duration::from_secs(7_200))), NOW);
        assert!(back.is_wrong() && back.text.contains("is 2h ahead of it"), "{}", back.text);
        assert_eq!(back.cure(), "timedatectl set-ntp true");
    }

    #[test]
    fn what_the_machine_says_is_read() {
        assert_eq!([read(b"yes\n"), read(b"no\n")], [Kept::InStep, Kept::ByNobody]);
        assert_eq!(read(b"System has not been booted with systemd"), Kept::Unknown);
    }
}
