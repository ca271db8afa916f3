//! Asking, and asking again when the connection breaks. Reads are harmless to repeat; changes carry an id by which
//! the daemon knows that it has done them.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use ostler_domain::{RequestId, Time};
use tonic::{Response, Status, transport::Channel};

use crate::{
    Client, Error,
    error::{Failure, given_up},
    socket, start,
};

/// Longest wait for an answer. A restart waits for an orderly stop, which has rungs of several seconds.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Waits before each further try, in milliseconds. A daemon that restarts is back in a tenth of a second.
const WAITS_MS: [u64; 7] = [10, 20, 50, 100, 200, 500, 1_000];

impl Client {
    /// Asks until there is an answer, a refusal, or nobody to ask.
    pub(crate) async fn ask<T, F>(&self, call: impl Fn(Channel) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut waits = WAITS_MS.iter();
        loop {
            let status = match call(self.channel.clone()).await {
                Ok(answer) => {
                    if let Some(starter) = &self.starter {
                        starter.answered.store(true, Ordering::Relaxed);
                    }
                    return Ok(answer.into_inner());
                }
                Err(status) => status,
            };
            match (Failure::of(status), waits.next()) {
                (Failure::Final(error), _) => return Err(error),
                (Failure::Lost(_), Some(wait)) => {
                    self.start_again().await;
                    tokio::time::sleep(Duration::from_millis(*wait)).await;
                }
                (Failure::Lost(status), None) => return Err(given_up(&status, socket::path(&self.home))),
            }
        }
    }

    /// The same for a change, whose name a refusal then has.
    pub(crate) async fn ask_as<T, F>(&self, id: &str, call: impl Fn(Channel) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.ask(call).await.map_err(|error| error.of_request(id))
    }

    /// A daemon can die between being connected to and being asked: then it is as if none had been there.
    async fn start_again(&self) {
        if let Some(starter) =
            self.starter.as_ref().filter(|starter| !starter.answered.load(Ordering::Relaxed))
            && Client::connect(&self.home).await.is_err()
        {
            // Whether it came up is seen by the next try.
            let _ = start::start(&self.home, &starter.program).await;
        }
    }

    /// The name of the change that is asked for next.
    pub(crate) fn request_id(&self) -> RequestId {
        self.request.unwrap_or_else(request_id)
    }

    /// Asks once: for what must not be asked of the daemon that comes after.
    pub(crate) async fn ask_once<T, F>(&self, call: impl FnOnce(Channel) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        match call(self.channel.clone()).await.map_err(Failure::of) {
            Ok(answer) => Ok(answer.into_inner()),
            Err(Failure::Final(error)) => Err(error),
            Err(Failure::Lost(status)) => Err(given_up(&status, socket::path(&self.home))),
        }
    }
}

/// A name for one change.
fn request_id() -> RequestId {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX));
    let mut entropy = [0; 16];
    // The ids of one caller must differ, no more. Should the kernel have no randomness (before 3.17, or by a filter),
    // the process and the clock's nanoseconds do.
    if rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()).is_err() {
        let here = (u128::from(std::process::id()) << 64) | u128::from(since_1970.subsec_nanos());
        entropy = here.to_ne_bytes();
    }
    RequestId::new(now, u128::from_ne_bytes(entropy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_changes_share_an_id() {
        let (a, b) = (request_id(), request_id());
        assert_ne!(a, b);
        assert_eq!(a.to_string().parse::<RequestId>().unwrap(), a);
    }
}
