//! Accounting for every numbered line: each must be in the record once, and in its place. Whoever was killed and went on
//! has said them in two sessions.

use std::collections::HashMap;

use ostler_client::{Client, ListEvents, Place, Received, query::EventFilter};
use ostler_domain::{Event, SessionId, limits::PAGE_MOST};

use super::team;
use crate::{failure::Failure, words};

/// How the record stands against what was said.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) expected: u64,
    pub(super) present: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) out_of_order: u64,
    /// Places in sessions' own sequences that no event has.
    pub(super) holes: u64,
}

impl Account {
    pub(super) fn is_right(&self) -> bool {
        self.present == self.expected && self.lost + self.doubled + self.out_of_order + self.holes == 0
    }

    /// `checked 288 numbered lines: 288 present, 0 lost, …`.
    pub(super) fn words(&self) -> String {
        let Account { expected, present, lost, doubled, out_of_order, holes } = self;
        let [expected, present] = [expected, present].map(|n| words::number(*n));
        format!(
            "checked {expected} numbered lines: {present} present, {lost} lost, {doubled} doubled, \
             {out_of_order} out of order, {holes} holes in the log"
        )
    }

    fn add(&mut self, expected: &[String], found: &[String]) {
        let mut times: HashMap<&str, u64> = HashMap::new();
        for line in found {
            *times.entry(line).or_default() += 1;
        }
        let count = |line: &String| times.get(line.as_str()).copied().unwrap_or(0);
        self.expected += expected.len() as u64;
        self.present += expected.iter().filter(|line| count(line) > 0).count() as u64;
        self.lost += expected.iter().filter(|line| count(line) == 0).count() as u64;
        self.doubled += expected.iter().map(|line| count(line).saturating_sub(1)).sum::<u64>();
        let place: HashMap<&str, usize> =
            expected.iter().enumerate().map(|(place, line)| (line.as_str(), place)).collect();
        let places: Vec<usize> = found.iter().filter_map(|line| place.get(line.as_str()).copied()).collect();
        self.out_of_order += places.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    }
}

/// Reads the record of the builders, each with all sessions that it had, and accounts for it.
pub(super) async fn take(client: &Client, builders: &[Vec<SessionId>]) -> Result<Account, Failure> {
    let expected = team::numbered_lines();
    let mut account = Account::default();
    for sessions in builders {
        let mut said = Vec::new();
        for session in sessions {
            let (found, holes) = read(client, *session).await?;
            said.extend(found);
            account.holes += holes;
        }
        account.add(&expected, &said);
    }
    Ok(account)
}

async fn read(client: &Client, session: SessionId) -> Result<(Vec<String>, u64), Failure> {
    let filter = EventFilter { session: Some(session), ..EventFilter::default() };
    let (mut found, mut holes) = (Vec::new(), 0);
    let (mut from, mut last) = (0, 0);
    loop {
        let page = client
            .events(&ListEvents { filter: filter.clone(), from: Place::After(from), limit: PAGE_MOST })
            .await?;
        for received in &page.events {
            let Received::Known(event) = received else { continue };
            holes += u64::from(event.session_seq != Some(last + 1));
            last = event.session_seq.unwrap_or(last);
            if let Event::AgentCompletion(said) = &event.event {
                found.push(said.text.clone());
            }
        }
        match page.next {
            Some(next) => from = next,
            None => return Ok((found, holes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(found: &[&str]) -> Account {
        let texts = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let mut account = Account::default();
        account.add(&texts(&["1", "2", "3"]), &texts(found));
        account
    }

    #[test]
    fn notices_what_is_lost_doubled_or_moved() {
        assert!(account(&["1", "2", "3"]).is_right());
        assert!(account(&["1", "something else", "2", "3"]).is_right());
        assert_eq!(account(&["1", "3"]).lost, 1);
        assert_eq!(account(&["1", "2", "2", "3"]).doubled, 1);
        assert_eq!(account(&["2", "1", "3"]).out_of_order, 1);
        for wrong in [&["1", "3"][..], &["1", "2", "2", "3"], &["2", "1", "3"], &[]] {
            assert!(!account(wrong).is_right());
        }
    }
}
