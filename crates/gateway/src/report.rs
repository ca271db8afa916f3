//! What the keeper is told of each connection. An agent cannot fill the tape with it: who asks too fast waits.

use std::{
    io::{self, Write},
    os::unix::net::UnixStream,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    gateway::{GatewayLine, ModelCall, Network, Spent},
    limits::{GATEWAY_RECORDS_BURST, GATEWAY_RECORDS_PER_SECOND},
};
use serde::Serialize;

pub(crate) struct Reporter(Mutex<Pace>);

struct Pace {
    keeper: UnixStream,
    /// When the next record would be due if they came at the steady rate. It may lie a burst in the past.
    due: Instant,
    hurried: bool,
}

impl Reporter {
    pub(crate) fn new(keeper: UnixStream) -> Reporter {
        let due = long_ago(Instant::now());
        Reporter(Mutex::new(Pace { keeper, due, hurried: false }))
    }

    pub(crate) fn connection(&self, network: &Network) -> io::Result<()> {
        let line = line(GatewayLine::Net, network)?;
        self.tell(|| Ok(line.clone()))
    }

    /// A call, and with it what all calls have taken: the keeper hears of both or of neither.
    pub(crate) fn call(&self, call: &ModelCall, spent: impl Fn() -> Spent) -> io::Result<()> {
        let wire = line(GatewayLine::Wire, call)?;
        self.tell(|| Ok([line(GatewayLine::Spent, &spent())?, wire.clone()].concat()))
    }

    /// Another allowance holds from now on, and so much was taken before. Waits for nobody.
    pub(crate) fn heeded(&self, spent: impl Fn() -> Spent) -> io::Result<()> {
        let mut pace = self.pace();
        let line = line(GatewayLine::Spent, &spent())?;
        pace.keeper.write_all(&line)
    }

    /// Writes what is whole lines; waits its turn first.
    fn tell(&self, lines: impl Fn() -> io::Result<Vec<u8>>) -> io::Result<()> {
        loop {
            let mut pace = self.pace();
            let now = Instant::now();
            let due = pace.due.max(long_ago(now));
            if due <= now || pace.hurried {
                pace.due = due + interval();
                // Under the lock, so that lines stay whole, and no sum is followed by an older one.
                let lines = lines()?;
                return pace.keeper.write_all(&lines);
            }
            drop(pace);
            thread::sleep((due - now).min(interval()));
        }
    }

    /// The end has come: nobody waits any more.
    pub(crate) fn hurry(&self) {
        self.pace().hurried = true;
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(kind: GatewayLine, record: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = kind.sign().as_bytes().to_vec();
    serde_json::to_writer(&mut line, record)?;
    line.push(b'\n');
    Ok(line)
}

const fn interval() -> Duration {
    Duration::from_millis(1_000 / GATEWAY_RECORDS_PER_SECOND as u64)
}

/// A whole burst before.
fn long_ago(now: Instant) -> Instant {
    now.checked_sub(interval() * GATEWAY_RECORDS_BURST).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use ostler_domain::gateway::NetDecision;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_waits() {
        let (ours, keepers) = UnixStream::pair().unwrap();
        let lines = thread::spawn(move || BufReader::new(keepers).lines().map_while(Result::ok).count());
        let reporter = Reporter::new(ours);
        let record = Network {
            host: "a.example".to_owned(),
            port: 443,
            decision: NetDecision::Denied,
            rule: "net=provider".to_owned(),
            grant: None,
            bytes_in: 0,
            bytes_out: 0,
            failure: String::new(),
        };
        let began = Instant::now();
        for _ in 0..GATEWAY_RECORDS_BURST {
            reporter.connection(&record).unwrap();
        }
        let burst = began.elapsed();
        for _ in 0..4 {
            reporter.connection(&record).unwrap();
        }
        assert!(began.elapsed() >= burst + interval() * 2, "{:?}", began.elapsed());
        reporter.hurry();
        (0..100).for_each(|_| reporter.connection(&record).unwrap());
        drop(reporter);
        assert_eq!(lines.join().unwrap(), GATEWAY_RECORDS_BURST as usize + 104);
    }
}
