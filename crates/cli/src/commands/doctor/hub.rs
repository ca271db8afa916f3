//! The hub that this machine is to connect to: whether it is there.

use std::time::Duration;

use ostler_client::Client;
use ostler_domain::{Refusal, hub::Hub, text::one_line};
use tokio::time::timeout;

use super::{Finding, Verdict};
use crate::words;

/// Who says nothing within this time is not waited for.
const SAYS_WITHIN: Duration = Duration::from_secs(5);

/// Nothing where none is named.
pub(super) async fn found(client: &Client, named: Option<Hub>) -> Option<Finding> {
    let named = named?;
    let listed = match timeout(SAYS_WITHIN, client.hub_lists()).await {
        Ok(Ok(listed)) => Ok(listed.len()),
        Ok(Err(error)) => Err(error.to_refusal()),
        Err(_) => Err(Refusal::invalid(format!("it said nothing within {} s", SAYS_WITHIN.as_secs()))),
    };
    Some(finding(&named.url, listed))
}

fn finding(url: &str, listed: Result<usize, Refusal>) -> Finding {
    let url = one_line(url, 100);
    match listed {
        Ok(machines) => {
            let machines = words::plural(machines as u64, "machine", "machines");
            Finding::new(Verdict::Ok, "hub", format!("{url} is reached, {machines}"))
        }
        Err(refusal) => {
            let why = one_line(&refusal.why.unwrap_or(refusal.message), 200);
            Finding::new(Verdict::Warn, "hub", format!("{url} is not reached: {why}"))
                .fix("ostler daemon logs")
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::Reason;

    use super::*;

    #[test]
    fn a_hub_that_is_not_there_is_told_of() {
        let there = finding("http://hub:7979", Ok(2));
        assert_eq!((there.verdict, &*there.text), (Verdict::Ok, "http://hub:7979 is reached, 2 machines"));
        let refusal = Refusal::new(Reason::WrongState, "no hub is connected");
        let away = finding("http://hub:7979", Err(refusal.clone().because("Connection refused")));
        assert_eq!(away.text, "http://hub:7979 is not reached: Connection refused");
        assert_eq!((away.verdict, away.cure()), (Verdict::Warn, "ostler daemon logs"));
        assert!(finding("http://hub:7979", Err(refusal)).text.ends_with(": no hub is connected"));
    }
}
