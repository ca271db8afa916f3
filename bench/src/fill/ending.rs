//! How made-up sessions end.

use std::time::Duration;

use ostler_domain::{
    event::By,
    session::{How, Outcome, Request, StopRule},
};

use super::life::Life;

/// How many sessions end in which way, of a thousand.
pub(super) const OUTCOMES: &[(Outcome, u64)] = &[
    (Outcome::Done, 520),
    (Outcome::Stopped, 180),
    (Outcome::Killed, 60),
    (Outcome::Crashed, 90),
    (Outcome::FailedStart, 40),
    (Outcome::Timeout, 30),
    (Outcome::Budget, 25),
    (Outcome::Lost, 20),
    (Outcome::Handoff, 20),
    (Outcome::Oom, 10),
    (Outcome::Reset, 5),
];

pub(super) fn end(life: &mut Life, outcome: Outcome, by: &By) {
    life.pass(Duration::from_secs(2));
    let asked = |life: &mut Life, rule, how| {
        life.ask(Request::Stop(rule), by);
        life.pass(Duration::from_millis(300));
        life.exit(how, false);
    };
    match outcome {
        Outcome::Done | Outcome::FailedStart | Outcome::Budget => life.exit(How::Exited { code: 0 }, false),
        Outcome::Stopped => asked(life, StopRule::Stop, How::Exited { code: 0 }),
        Outcome::Killed => asked(life, StopRule::Kill, How::Signaled { signal: 9 }),
        Outcome::Crashed => life.exit(How::Exited { code: 101 }, false),
        Outcome::Lost => {
            let reason = "the machine restarted while it ran".to_owned();
            life.exit(How::Lost { reason }, false);
        }
        Outcome::Oom => life.exit(How::Signaled { signal: 9 }, true),
        Outcome::Timeout => {
            life.hear(ostler_domain::session::Input::TimedOut);
            life.exit(How::Signaled { signal: 15 }, false);
        }
        Outcome::Handoff => life.end_as(outcome, "Handed its work on."),
        Outcome::Reset => life.end_as(outcome, "Reset by a person."),
        Outcome::TurnFailed => life.end_as(outcome, "Its turn failed."),
    }
}
