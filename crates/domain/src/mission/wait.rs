//! What an assignment, or the whole mission, waits for. Nothing waits without a reason.

use super::{
    Hold, Merging, State,
    decide::{hindrance, taken},
    plan::CompleteWhen,
    state::Step,
};
use crate::{Deadline, Now, text::one_line, time::span_text};

/// What something waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// Somebody to start the mission.
    Start,
    /// These, by place, to be over.
    Needs(Vec<usize>),
    /// A person to decide.
    Person {
        hold: Hold,
        why: String,
    },
    /// Whoever paused the mission.
    Pause {
        by: String,
        why: String,
    },
    Place {
        most: u32,
    },
    PlaceOfRole {
        role: String,
        most: u32,
    },
    PlaceOfProvider {
        provider: String,
        most: u32,
    },
    PlaceOfAccount {
        account: String,
        most: u32,
    },
    /// The moment at which it is tried again.
    Again {
        after: Deadline,
        failures: u32,
        why: String,
    },
    /// The command that says whether its work is done.
    Check {
        command: String,
    },
    /// Its session to end, because the mission does.
    Stop,
    /// The branches to be merged.
    Merge {
        into: String,
    },
    /// Nothing: it starts with the next decision.
    Next,
}

impl State {
    /// What each assignment that is neither over nor at work waits for, by place.
    pub fn waits(&self, now: &Now) -> Vec<(usize, Wait)> {
        if self.is_over() {
            return Vec::new();
        }
        let taken = taken(self);
        let of = |place: usize| {
            let slot = &self.slots[place];
            let still = || self.wait().filter(|_| self.is_still());
            let person = || {
                let held = slot.held.as_ref()?;
                Some(Wait::Person { hold: held.hold, why: held.why.clone() })
            };
            let wait = match &slot.step {
                Step::Over(_) => return None,
                Step::Running { .. } if self.stop.is_some() => Wait::Stop,
                Step::Running { .. } => person().or_else(|| still().filter(|_| self.is_frozen(place)))?,
                Step::Checking { .. } => Wait::Check { command: self.command(place) },
                _ if self.started_at.is_none() => Wait::Start,
                Step::Pending => person().unwrap_or_else(|| Wait::Needs(self.unmet(place))),
                Step::Ready { after, .. } => {
                    let after = after.as_ref().filter(|after| !after.has_passed(now));
                    let again = after.map(|after| Wait::Again {
                        after: after.clone(),
                        failures: slot.failures.max(slot.refused),
                        why: slot.trouble.as_deref().unwrap_or_default().to_owned(),
                    });
                    still().or(again).or_else(|| hindrance(self, &taken, place)).unwrap_or(Wait::Next)
                }
            };
            Some((place, wait))
        };
        (0..self.slots.len()).filter_map(of).collect()
    }

    /// What the whole mission waits for beside its assignments.
    pub fn wait(&self) -> Option<Wait> {
        if self.is_over() {
            return None;
        }
        if self.started_at.is_none() {
            return Some(Wait::Start);
        }
        if let Some(held) = &self.hold {
            return Some(Wait::Person { hold: held.hold, why: held.why.clone() });
        }
        if let Some(pause) = &self.pause {
            return Some(Wait::Pause { by: pause.by.0.clone(), why: pause.why.clone() });
        }
        if self.stop.is_some() {
            return Some(Wait::Stop);
        }
        match (&self.merge, &self.plan.merge) {
            (Merging::Running { .. }, Some(merge)) => Some(Wait::Merge { into: merge.into.clone() }),
            _ => None,
        }
    }

    fn unmet(&self, place: usize) -> Vec<usize> {
        let needs = self.graph.needs(place).iter().map(|need| *need as usize);
        needs.filter(|need| !self.slots[*need].is_over()).collect()
    }

    fn command(&self, place: usize) -> String {
        match &self.work(place).complete_when {
            CompleteWhen::Check(command) => command.clone(),
            CompleteWhen::Turn | CompleteWhen::Done => String::new(),
        }
    }
}

impl Wait {
    /// `for build-ui (running 11m)`, `for a place (4 of 4 run)`: beside the name of who waits.
    pub fn words(&self, state: &State, now: &Now) -> String {
        let of = |what: &str, most: u32| format!("for a place{what} ({most} of {most} run)");
        match self {
            Wait::Start => format!("to be started: ostler mission start {}", state.name()),
            Wait::Needs(needs) => needs_words(needs, state, now),
            Wait::Person { hold, why } => {
                let name = state.name();
                let cure = match hold {
                    Hold::Budget => format!("ostler mission resume {name} --budget AMOUNT"),
                    Hold::Time => format!("ostler mission resume {name} --time 30m"),
                    Hold::Loop | Hold::NoProgress => format!("ostler mission resume {name}"),
                    Hold::Dependency => format!("ostler mission retry {name}, or rm what waits"),
                };
                format!("for you: {}: {cure}", one_line(why, 160))
            }
            Wait::Pause { by, why } if why.is_empty() => format!("paused by {by}"),
            Wait::Pause { by, why } => format!("paused by {by}: {}", one_line(why, 120)),
            Wait::Place { most } => of("", *most),
            Wait::PlaceOfRole { role, most } => of(&format!(" of the role {role}"), *most),
            Wait::PlaceOfProvider { provider, most } => of(&format!(" of {provider}"), *most),
            Wait::PlaceOfAccount { account, most } => of(&format!(" of the account {account}"), *most),
            Wait::Again { after, failures, why } => {
                let left = span_text(std::time::Duration::from_secs(after.remaining(now).as_secs().max(1)));
                format!("for its next try in {left}, after {failures}: {}", one_line(why, 100))
            }
            Wait::Check { command } => format!("for its check: {}", one_line(command, 80)),
            Wait::Stop => "for its session to end".to_owned(),
            Wait::Merge { into } => format!("for the merge into {into}"),
            Wait::Next => "starts next".to_owned(),
        }
    }
}

fn needs_words(needs: &[usize], state: &State, now: &Now) -> String {
    const SHOWN: usize = 3;
    let one = |place: &usize| {
        let slot = &state.slots()[*place];
        let name = &slot.assignment.name;
        let took = slot.took(now.wall).filter(|_| slot.is_active()).map(super::words::short_span);
        match took {
            Some(took) => format!("{name} ({} {took})", state.status_of(*place).as_str()),
            None => name.to_string(),
        }
    };
    let shown: Vec<String> = needs.iter().take(SHOWN).map(one).collect();
    let more = needs.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("for {}{more}", shown.join(", "))
}
