//! How much of the door each guest has at once: one who had all of it would keep everybody else out.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as Pieces, Frame, SizeHint};
use ostler_domain::{Reason, Refusal};

use crate::ring::Guest;

/// Requests at once of one guest, of one share, and of all shares: half of the connections are for those who live here.
const OF_ONE: usize = 512;
const OF_A_SHARE: usize = 64;
const OF_SHARES: usize = 512;

/// Who is served.
#[derive(Default)]
pub(crate) struct Crowd(Mutex<Served>);

#[derive(Default)]
struct Served {
    /// Requests, by the guest's key.
    of: HashMap<String, usize>,
    of_shares: usize,
}

/// A request that is served, until this is dropped.
pub(crate) struct Seat {
    crowd: Arc<Crowd>,
    whose: String,
    is_share: bool,
}

impl Crowd {
    fn served(&self) -> MutexGuard<'_, Served> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seat(self: &Arc<Crowd>, guest: &Guest) -> Result<Seat, Refusal> {
        let is_share = guest.share.is_some();
        let mut served = self.served();
        let (has, most) =
            (served.of.get(guest.whose()).copied().unwrap_or(0), if is_share { OF_A_SHARE } else { OF_ONE });
        if has >= most {
            let refusal = Refusal::new(Reason::Busy, "too much is asked for at once");
            return Err(
                refusal.because(format!("{} has {most} requests open: the most there may be", guest.name))
            );
        }
        if is_share && served.of_shares >= OF_SHARES {
            let refusal = Refusal::new(Reason::Busy, "too much is asked for at once");
            return Err(
                refusal.because(format!("shares have {OF_SHARES} requests open: the most there may be"))
            );
        }
        *served.of.entry(guest.whose().to_owned()).or_default() += 1;
        served.of_shares += usize::from(is_share);
        Ok(Seat { crowd: Arc::clone(self), whose: guest.whose().to_owned(), is_share })
    }
}

impl Seat {
    /// Keeps it until the answer was sent, or nobody waits for it any more.
    pub(crate) fn until_sent(self, body: Body) -> Body {
        Body::new(Sent { body, _seat: self })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut served = self.crowd.served();
        served.of_shares -= usize::from(self.is_share);
        if let Some(has) = served.of.get_mut(&self.whose) {
            *has -= 1;
            if *has == 0 {
                served.of.remove(&self.whose);
            }
        }
    }
}

/// An answer that takes a seat.
struct Sent {
    body: Body,
    _seat: Seat,
}

impl Pieces for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
