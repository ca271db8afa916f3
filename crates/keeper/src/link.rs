//! The link to the daemon: there, lost, or gone on purpose; and when to start a daemon or give up on one.
//!
//! Pure: it is told the time and random numbers, and says what to do.

use std::time::{Duration, Instant};

use ostler_domain::limits::{DAEMON_RESPAWN_FIRST, DAEMON_RESPAWN_LONGEST};

/// The daemon that started this keeper connects as soon as it has read the status line. It may be busy.
const FIRST_CONNECTION: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Link {
    orphan_grace: Option<Duration>,
    state: State,
}

#[derive(Debug)]
enum State {
    Connected,
    Missing {
        since: Instant,
        /// Nothing after a `bye`: whoever stopped the daemon meant it.
        respawn: Option<Respawn>,
        orphaned: bool,
    },
}

#[derive(Debug)]
struct Respawn {
    at: Instant,
    pause: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    StartDaemon,
    /// No daemon for as long as an agent may live without one.
    Orphaned,
}

impl Link {
    pub(crate) fn new(orphan_grace: Option<Duration>, now: Instant) -> Link {
        let respawn = Some(Respawn { at: now + FIRST_CONNECTION, pause: DAEMON_RESPAWN_FIRST });
        Link { orphan_grace, state: State::Missing { since: now, respawn, orphaned: false } }
    }

    pub(crate) fn connected(&mut self) {
        self.state = State::Connected;
    }

    /// The daemon's connection ended. `jitter` is between 0 and 1.
    pub(crate) fn lost(&mut self, said_bye: bool, now: Instant, jitter: f64) {
        let pause = DAEMON_RESPAWN_FIRST;
        let respawn = (!said_bye).then(|| Respawn { at: now + spread(pause, jitter), pause });
        self.state = State::Missing { since: now, respawn, orphaned: false };
    }

    pub(crate) fn due(&mut self, now: Instant, jitter: impl FnOnce() -> f64) -> Option<Due> {
        let State::Missing { since, respawn, orphaned } = &mut self.state else { return None };
        if !*orphaned && self.orphan_grace.is_some_and(|grace| now >= *since + grace) {
            *orphaned = true;
            return Some(Due::Orphaned);
        }
        let respawn = respawn.as_mut().filter(|respawn| now >= respawn.at)?;
        respawn.pause = (respawn.pause * 2).min(DAEMON_RESPAWN_LONGEST);
        respawn.at = now + spread(respawn.pause, jitter());
        Some(Due::StartDaemon)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let State::Missing { since, respawn, orphaned } = &self.state else { return None };
        let orphaned_at = self.orphan_grace.filter(|_| !orphaned).map(|grace| *since + grace);
        let respawn_at = respawn.as_ref().map(|respawn| respawn.at);
        orphaned_at.into_iter().chain(respawn_at).min()
    }
}

/// Between half and one and a half times the pause.
fn spread(pause: Duration, jitter: f64) -> Duration {
    pause.mul_f64(0.5 + jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_daemon_is_started_again_and_again_ever_more_slowly() {
        let mut now = Instant::now();
        let mut link = Link::new(None, now);
        link.connected();
        assert_eq!(link.wake_at(), None);
        link.lost(false, now, 0.5);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let at = link.wake_at().unwrap();
            assert_eq!(link.due(at - Duration::from_millis(1), || 0.5), None);
            assert_eq!(link.due(at, || 0.5), Some(Due::StartDaemon));
            pauses.push(at - now);
            now = at;
        }
        assert_eq!(pauses[0], DAEMON_RESPAWN_FIRST);
        assert_eq!(pauses[1], DAEMON_RESPAWN_FIRST * 2);
        assert_eq!(pauses[11], DAEMON_RESPAWN_LONGEST);
    }

    #[test]
    fn after_a_bye_nobody_is_started_but_the_grace_runs() {
        let now = Instant::now();
        let mut link = Link::new(Some(Duration::from_secs(60)), now);
        link.connected();
        link.lost(true, now, 0.5);
        assert_eq!(link.wake_at(), Some(now + Duration::from_secs(60)));
        assert_eq!(link.due(now + Duration::from_secs(61), || 0.5), Some(Due::Orphaned));
        assert_eq!(link.due(now + Duration::from_secs(62), || 0.5), None, "said once");
        assert_eq!(link.wake_at(), None);
    }
}
