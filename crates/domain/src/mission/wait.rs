//! What an assignment, or the whole mission, waits for. Nothing waits without a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Asked, Hold, Merging, Spent, State,
    decide::{can_merge, hindrance, taken},
    plan::CompleteWhen,
    state::Step,
};
use crate::{
    Deadline, Name, Now, SessionId,
    event::{Asks, AsksAbout},
    text::one_line,
    time::span_text,
};

/// What is known of a mission that its own events do not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside {
    /// Everything on this machine is halted.
    pub halted: bool,
    /// Why members' sessions that are created have not been started.
    pub in_line: BTreeMap<SessionId, String>,
    /// Those that are in the line for a place: their agents have not begun.
    pub waiting: BTreeSet<SessionId>,
    /// What members' sessions ask of people.
    pub asked: BTreeMap<SessionId, Vec<Asked>>,
    /// What the attempts that run have used so far, by the session that works on them.
    pub live: BTreeMap<SessionId, Spent>,
}

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
    /// A person to answer its agent.
    Answer(Vec<Asked>),
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
    /// The one at this place to be over, which has leased what it would write, or may write what it has leased.
    Lease {
        path: String,
        by: usize,
    },
    /// The moment at which it is tried again.
    Again {
        after: Deadline,
        failures: u32,
        why: String,
    },
    /// The end of a session that has its conversation, and for which somebody else asked.
    Conversation {
        session: SessionId,
    },
    /// The command that says whether its work is done.
    Check {
        command: String,
    },
    /// What runs to end, because the mission does.
    Stop,
    /// The end of the halt of everything on this machine.
    Halt,
    /// A place on this machine: its session is in the line of those that are to start.
    Line {
        why: String,
    },
    /// The branches to be merged.
    Merge {
        into: String,
    },
    /// Nothing: it starts with the next decision.
    Next,
}

impl State {
    /// What each assignment that is neither over nor at work waits for, by place.
    pub fn waits(&self, now: &Now, beside: &Beside) -> Vec<(usize, Wait)> {
        if self.is_over() {
            return Vec::new();
        }
        let taken = taken(self);
        let of = |place: usize| {
            let slot = &self.slots[place];
            let still = || self.wait(beside.halted).filter(|_| self.is_still());
            let halted = || beside.halted.then_some(Wait::Halt);
            let in_line = || {
                let why = beside.in_line.get(&slot.session()?)?;
                Some(Wait::Line { why: why.clone() })
            };
            let answer = || {
                let asked = beside.asked.get(&slot.session()?)?;
                Some(Wait::Answer(asked.clone()))
            };
            let person = || {
                let held = slot.held.as_ref()?;
                Some(Wait::Person { hold: held.hold, why: held.why.clone() })
            };
            let wait = match &slot.step {
                Step::Over(_) => return None,
                Step::Running { .. } if self.stop.is_some() => Wait::Stop,
                Step::Running { .. } => person()
                    .or_else(|| still().filter(|_| self.is_frozen(place)))
                    .or_else(halted)
                    .or_else(answer)
                    .or_else(in_line)?,
                Step::Checking { .. } if self.stop.is_some() => Wait::Stop,
                Step::Checking { .. } => {
                    still().or_else(halted).unwrap_or_else(|| Wait::Check { command: self.command(place) })
                }
                _ if self.started_at.is_none() => Wait::Start,
                Step::Pending => person().unwrap_or_else(|| Wait::Needs(self.unmet(place))),
                Step::Ready { awaits: Some(session), .. } => {
                    still().unwrap_or(Wait::Conversation { session: *session })
                }
                Step::Ready { after, .. } => {
                    let after = after.as_ref().filter(|after| !after.has_passed(now));
                    let again = after.map(|after| Wait::Again {
                        after: after.clone(),
                        failures: slot.failures.max(slot.refused),
                        why: slot.trouble.as_deref().unwrap_or_default().to_owned(),
                    });
                    let hindered = || hindrance(self, &taken, place);
                    still().or(again).or_else(hindered).or_else(halted).unwrap_or(Wait::Next)
                }
            };
            Some((place, wait))
        };
        (0..self.slots.len()).filter_map(of).collect()
    }

    /// What the whole mission waits for beside its assignments.
    pub fn wait(&self, halted: bool) -> Option<Wait> {
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
        if halted {
            return Some(Wait::Halt);
        }
        match (&self.merge, &self.plan.merge) {
            (Merging::NotBegun, Some(merge)) if can_merge(self) => {
                Some(Wait::Merge { into: merge.into.clone() })
            }
            (Merging::Running { .. } | Merging::Checked { .. } | Merging::Moving { .. }, Some(merge)) => {
                Some(Wait::Merge { into: merge.into.clone() })
            }
            _ => None,
        }
    }

    /// What the merge waits for: those at the end of what is not over.
    pub fn merge_wait(&self) -> Option<Wait> {
        let is_open = |place: usize| !self.slots[place].is_over();
        let is_awaited = self.plan.merge.is_some()
            && self.merge == Merging::NotBegun
            && self.started_at.is_some()
            && self.stop.is_none()
            && !self.is_over();
        let is_last = |place: &usize| {
            is_open(*place) && !self.graph.feeds(*place).iter().any(|next| is_open(*next as usize))
        };
        let last: Vec<usize> = (0..self.slots.len()).filter(is_last).collect();
        (is_awaited && !last.is_empty()).then_some(Wait::Needs(last))
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

impl State {
    /// What a person is asked by a member's session that the mission keeps frozen.
    pub fn asks(&self, session: SessionId) -> Option<Asks> {
        let slot = &self.slots[self.of_session(session)?];
        let held = slot.held.as_ref().or(self.hold.as_ref())?;
        let about = match held.hold {
            Hold::Budget | Hold::Time => AsksAbout::Budget,
            Hold::Loop | Hold::NoProgress | Hold::Dependency => AsksAbout::Progress,
        };
        // The cure first: a line of a list may end before the reason does.
        let words = format!("{}: {}", cure(held.hold, &self.name), held.why);
        Some(Asks { about, words })
    }
}

/// The command that lets go on what is held.
fn cure(hold: Hold, mission: &Name) -> String {
    match hold {
        Hold::Budget => format!("ostler mission resume {mission} --budget AMOUNT"),
        Hold::Time => format!("ostler mission resume {mission} --time 30m"),
        Hold::Loop | Hold::NoProgress => format!("ostler mission resume {mission}"),
        Hold::Dependency => format!("ostler mission retry {mission}, or rm what waits"),
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
                format!("for you: {}: {}", one_line(why, 160), cure(*hold, state.name()))
            }
            Wait::Answer(asked) => {
                let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
                format!("for you: {}", asked.join("; "))
            }
            Wait::Pause { by, why } if why.is_empty() => format!("paused by {by}"),
            Wait::Pause { by, why } => format!("paused by {by}: {}", one_line(why, 120)),
            Wait::Place { most } => of("", *most),
            Wait::PlaceOfRole { role, most } => of(&format!(" of the role {role}"), *most),
            Wait::PlaceOfProvider { provider, most } => of(&format!(" of {provider}"), *most),
            Wait::PlaceOfAccount { account, most } => of(&format!(" of the account {account}"), *most),
            Wait::Lease { path, by } => {
                let has = if state.work(*by).paths.is_empty() { "may write" } else { "has leased" };
                format!("{}, which {has} what is in {path}", needs_words(&[*by], state, now))
            }
            Wait::Again { after, failures, why } => {
                let left = span_text(std::time::Duration::from_secs(after.remaining(now).as_secs().max(1)));
                format!("for its next try in {left}, after {failures}: {}", one_line(why, 100))
            }
            Wait::Conversation { session } => {
                let short = session.short();
                format!("for session {short}, which has its conversation: ostler stop {short}")
            }
            Wait::Check { command } => format!("for its check: {}", one_line(command, 80)),
            Wait::Stop => "for what runs to end".to_owned(),
            Wait::Halt => "for the end of the halt: ostler halt --release".to_owned(),
            Wait::Line { why } => format!("to be started: {}", one_line(why, 160)),
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
