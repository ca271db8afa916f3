//! One session in one line: its sign, what it does now, how pressing it is, its short id.

use std::{
    cmp::{Ordering, Reverse},
    time::Duration,
};

use jiff::tz::TimeZone;
use ostler_client::Session;
use ostler_domain::{
    SessionId, Time,
    session::{Attention, Mark, Outcome, Rank, Restart, Status},
    text::one_line,
};

pub use ostler_form::held::{budget_cure, raise, shared_budget_cure};

use crate::{Line, Tone, words};

/// The sign in front of a row. The words beside it say the same.
pub fn sign(session: &Session) -> (Tone, &'static str) {
    let mark = session.mark();
    let tone = match mark {
        Mark::Failed => Tone::Bad,
        Mark::Done | Mark::Working => Tone::Good,
        Mark::NeedsYou => Tone::Warn,
        Mark::Paused => Tone::Accent,
        Mark::Imported | Mark::Over | Mark::Beginning | Mark::Still => Tone::Faint,
    };
    (tone, mark.sign())
}

/// The title over those that belong together, where a list has such.
pub fn group(session: &Session) -> &'static str {
    match session.rank() {
        Rank::NeedsYou => "NEEDS YOU",
        Rank::AtWork => "WORKING",
        Rank::Waiting => "WAITING",
        Rank::Idle => "IDLE",
        Rank::Failed | Rank::Over => "ENDED",
    }
}

/// The order of a list in which each machine has its own line.
pub fn by_rank(one: &Session, other: &Session) -> Ordering {
    one.rank().cmp(&other.rank())
}

/// The order of a list. Who needs you for the longest comes first, and of those that wait to start the first in line. Within
/// the other ranks whatever order they have stays.
pub fn in_order(one: &Session, other: &Session) -> Ordering {
    let in_line = |session: &Session| {
        // As ostler_domain::admission has them wait.
        let place = (Reverse(session.priority), session.continues.is_none(), session.created_at);
        (session.status == Status::Created).then_some(place)
    };
    let by_line = || match (in_line(one), in_line(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // Who runs and cannot go on does not stand among those who wait to start.
        (one, other) => one.is_some().cmp(&other.is_some()),
    };
    let by_patience = || match one.rank() {
        Rank::NeedsYou => one.attention_since.cmp(&other.attention_since),
        _ => Ordering::Equal,
    };
    by_rank(one, other).then_with(by_patience).then_with(by_line)
}

/// What happens now, from events. Of an agent outside of Ostler, that it is there.
pub fn now(session: &Session, now: Time) -> Line {
    let line = doing(session, now);
    match &session.imported {
        Some(_) if session.outcome.is_none() => {
            Line::toned(Tone::Accent, "outside").faint(" · ").append(line)
        }
        _ => line,
    }
}

fn doing(session: &Session, now: Time) -> Line {
    let since = |time: Time| words::span(now.since(time));
    let detail = |line: Line, text: &str| {
        if text.is_empty() { line } else { line.faint(" · ").plain(one_line(text, 200)) }
    };
    match (session.status, session.attention) {
        (Status::Stopped | Status::Failed, _) => ended(session, now),
        (Status::Created, _) => Line::of(one_line(&session.evidence, 200)),
        _ if session.is_getting_ready() => Line::of(format!("starting {}", since(session.attention_since))),
        (Status::Stopping, _) => {
            detail(Line::of(format!("stopping {}", since(session.attention_since))), &session.evidence)
        }
        (_, Some(Attention::Working)) => match &session.doing {
            _ if session.background().is_some() => Line::of(one_line(&session.evidence, 200))
                .faint(format!(" · {}", since(session.attention_since))),
            Some(doing) => Line::of(one_line(&doing.text, 200)).faint(format!(" · {}", since(doing.since))),
            None => Line::of(format!("working {}", since(session.attention_since))),
        },
        (_, Some(Attention::Idle)) => {
            let line = Line::of(format!("idle {}", since(session.attention_since)));
            match session.messages_waiting {
                0 => line,
                n => line.faint(" · ").plain(words::plural(u64::from(n), "message waits", "messages wait")),
            }
        }
        (_, Some(attention @ Attention::RateLimited)) => {
            let until = session.limited_until.map(|until| until_when(until, now, &words::zone()));
            let until =
                until.map_or("until not said".to_owned(), |until| format!("until {until} (reported)"));
            detail(Line::of(format!("{} {until}", attention.as_str())), &session.evidence)
        }
        (_, Some(attention)) => {
            let line = Line::of(format!("{} {}", attention.as_str(), since(session.attention_since)));
            detail(line, &session.evidence)
        }
        (_, None) => Line::of(one_line(&session.evidence, 200)),
    }
}

/// `14:02`, with the day where it is another.
pub fn until_when(until: Time, now: Time, zone: &TimeZone) -> String {
    // One of the two is nothing: logs tell of what is over.
    let is_near = until.since(now).max(now.since(until)) < Duration::from_secs(12 * 3_600);
    if is_near { words::hour_and_minute(until, zone) } else { words::day_and_minute(until, zone) }
}

fn ended(session: &Session, now: Time) -> Line {
    let outcome = session.outcome.map_or("ended", |outcome| outcome.as_str());
    // How it ended nobody here knows.
    let outcome = session.imported.as_ref().map_or(outcome, |_| "imported, ended");
    let ago = session.ended_at.map(|at| format!(" {} ago", words::age(now.since(at)))).unwrap_or_default();
    let line = Line::of(format!("{outcome}{ago}"));
    let follows = match &session.restart {
        _ if session.continued_by.is_some() => String::new(),
        _ if session.restart_refused.is_some() => "cannot go on".to_owned(),
        Some(Restart::At(deadline)) if deadline.wall() > now => {
            format!("starts again in {}", words::age(deadline.wall().since(now)))
        }
        Some(Restart::Quarantined { short_lives }) => format!("quarantined after {short_lives} short lives"),
        _ => String::new(),
    };
    let obituary = session.obituary.as_ref().filter(|_| session.status == Status::Failed);
    let limit = obituary.and_then(|obituary| obituary.memory.as_ref()?.limit_bytes);
    let why = match (obituary, limit.filter(|_| session.outcome == Some(Outcome::Oom))) {
        _ if session.restart_refused.is_some() => {
            session.restart_refused.as_ref().map(|refused| one_line(&refused.why, 200)).unwrap_or_default()
        }
        (Some(_), Some(limit)) => format!("{} limit", words::bytes(limit)),
        (Some(obituary), None) => one_line(&obituary.sentence, 200),
        (None, _) => String::new(),
    };
    let parts = [Line::of(follows), Line::of(why)];
    Line::joined([line].into_iter().chain(parts))
}

/// The model after its provider; none where it says no more than that.
pub fn model(session: &Session) -> String {
    let model = session.model.as_deref().filter(|model| *model != session.provider);
    model.map(|model| format!(" {}", one_line(model, 40))).unwrap_or_default()
}

/// The shortest ids by which these sessions can be told apart: the last five characters, more where two collide.
pub fn short_ids(ids: &[SessionId]) -> Vec<String> {
    let full: Vec<String> = ids.iter().map(|id| id.to_string().to_ascii_lowercase()).collect();
    let shorten = |(n, id): (usize, &String)| {
        let least = ids[n].short().len();
        let is_unique = |length: &usize| {
            let tail = &id[id.len() - length..];
            full.iter().enumerate().all(|(other, text)| other == n || text == id || !text.ends_with(tail))
        };
        let length = (least..id.len()).find(is_unique).unwrap_or(id.len());
        id[id.len() - length..].to_owned()
    };
    full.iter().enumerate().map(shorten).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Look,
        testing::{self, NOW},
    };

    fn shown(session: &Session) -> String {
        let (_, sign) = sign(session);
        format!("{sign} {}", now(session, NOW).show(&Look::plain(None)))
    }

    #[test]
    fn a_row_says_what_happens_now() {
        insta::assert_snapshot!(testing::fleet().iter().map(shown).collect::<Vec<_>>().join("\n"), @r"
        ! waiting_approval 3m · run: cargo add governor
        ● run: cargo test -p store · 1m 12s
        ○ idle 9m
        ‖ paused 2m · paused by a person
        ◌ starting 2s
        ◌ detached 4s · the keeper is not connected yet
        ✗ oom 55m ago · The kernel ended the agent: its processes used more memory than they may.
        ✓ done 2h ago
        – killed 3h ago
        ");
    }

    #[test]
    fn who_is_held_before_it_was_ready_says_so() {
        let mut session = testing::fleet().remove(4);
        session.attention = Some(Attention::BudgetHold);
        session.evidence = "campaign shop: $3.00 of $1.00 used today (UTC)".to_owned();
        assert_eq!(shown(&session), "! budget_hold 2s · campaign shop: $3.00 of $1.00 used today (UTC)");
    }

    #[test]
    fn what_runs_beside_the_turns_is_named() {
        let mut session = testing::fleet().remove(1);
        session.attention_since = testing::ago(432);
        session.evidence = "in the background: cargo test".to_owned();
        assert_eq!(shown(&session), "● in the background: cargo test · 7m 12s");
        session.doing = None;
        assert_eq!(shown(&session), "● in the background: cargo test · 7m 12s");
    }

    #[test]
    fn of_those_that_wait_to_start_the_first_in_line_comes_first() {
        use ostler_domain::admission::Priority;
        let waiting = |n: u32, name: &str, seconds_ago: i64, priority: Priority| Session {
            status: Status::Created,
            attention: None,
            created_at: testing::ago(seconds_ago),
            priority,
            ..testing::session(n, name)
        };
        // As the daemon lists them: the newest first.
        let mut rows = [
            testing::fleet().remove(2),
            waiting(4, "fourth", 1, Priority::Low),
            waiting(1, "first", 2, Priority::High),
            waiting(3, "third", 3, Priority::Normal),
            waiting(2, "second", 4, Priority::Normal),
        ];
        rows.sort_by(in_order);
        let names: Vec<&str> = rows.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names[..4], ["first", "second", "third", "fourth"]);
    }

    #[test]
    fn who_waits_for_you_longest_comes_first() {
        let asks = |n: u32, name: &str, seconds_ago: i64| Session {
            attention: Some(Attention::WaitingApproval),
            attention_since: testing::ago(seconds_ago),
            ..testing::session(n, name)
        };
        let mut rows =
            [testing::session(5, "newer"), asks(4, "second", 20), asks(3, "first", 180), asks(2, "third", 2)];
        rows.sort_by(in_order);
        let names: Vec<&str> = rows.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["first", "second", "third", "newer"]);
    }

    #[test]
    fn whose_budget_it_is_says_what_cures_it() {
        let mut session = testing::fleet().remove(0);
        session.evidence = "campaign shop: 30000 of 30000 tokens used today (UTC)".to_owned();
        assert_eq!(budget_cure(&session), "ostler campaign set shop budget=AMOUNT/PERIOD");
        let agent = ostler_domain::session::AgentRef {
            id: ostler_domain::AgentId::new(testing::NOW, 1),
            name: "bob".parse().unwrap(),
            role: "worker".parse().unwrap(),
        };
        let of_agent = Session {
            agent: Some(agent),
            evidence: "Stopped because its agent's budget of 100 was used up (104 of 100 tokens used)."
                .to_owned(),
            ..session.clone()
        };
        assert_eq!(shared_budget_cure(&of_agent, "shop"), "ostler agent set shop/bob budget=AMOUNT/PERIOD");
        assert_eq!(shared_budget_cure(&session, "shop"), "ostler campaign set shop budget=AMOUNT/PERIOD");
        session.evidence = "500k of 500k tokens used".to_owned();
        let raise = |amount: &str| format!("ostler resume {} --budget {amount}", session.id.short());
        let twice = ostler_form::held::larger_budget(&session).unwrap().to_string();
        assert_eq!(budget_cure(&session), raise(&twice));
        assert_eq!(budget_cure(&Session { budget: None, ..session.clone() }), raise("AMOUNT"));
    }

    #[test]
    fn a_limit_is_shown_with_its_end_as_reported() {
        let mut session = testing::fleet().remove(2);
        session.attention = Some(Attention::RateLimited);
        session.evidence = "the model's server limits it: 429".to_owned();
        assert_eq!(shown(&session), "○ rate_limited until not said · the model's server limits it: 429");
        session.limited_until = Some(NOW.plus(Duration::from_secs(600)));
        let said = shown(&session);
        assert!(said.contains("(reported) · the model's"), "{said}");
        let until = |seconds| {
            until_when(Time::default().plus(Duration::from_secs(seconds)), Time::default(), &TimeZone::UTC)
        };
        assert_eq!((until(7_320), until(180_000)), ("02:02".to_owned(), "3 Jan 02:00".to_owned()));
        assert_eq!(until_when(Time::default(), NOW, &TimeZone::UTC), "1 Jan 00:00", "it is long over");
    }

    #[test]
    fn who_needs_you_comes_first() {
        let mut fleet = testing::fleet();
        fleet.reverse();
        fleet.sort_by_key(Session::rank);
        let names: Vec<_> = fleet.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(
            names,
            ["api-auth", "docs", "migrate", "adopted", "held", "triage", "flaky-hunt", "old", "login-limit"]
        );
    }

    #[test]
    fn short_ids_grow_where_they_collide() {
        let id = |bits| SessionId::new(NOW, bits);
        let (a, b, c) = (id(0x1f), id((1 << 40) | 0x1f), id(0x2f));
        let short = short_ids(&[a, b, c]);
        assert_eq!(short[2].len(), 5);
        assert!(short[0].len() > 5 && short[0] != short[1], "{short:?}");
        // The same row twice is no collision.
        assert_eq!(short_ids(&[a, a])[0].len(), 5);
    }
}
