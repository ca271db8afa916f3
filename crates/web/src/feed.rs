//! The log for everybody who follows it by HTTP: read once and written as JSON once, however many listen. Whoever keeps up
//! is handed the same bytes; whoever does not, or comes from an earlier place, reads the log itself until it is there.

use std::{
    future::poll_fn,
    ops::Range,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use bytes::{Bytes, BytesMut};
use ostler_client::{Error, Received, Watch, Watched};
use ostler_domain::{Kind, SessionId, Time, query::EventFilter};
use ostler_form::{EventForm, to_json};
use tokio::sync::{Mutex, broadcast};

use crate::Door;

/// Batches that are kept for those who are a little late.
const BATCHES: usize = 128;
/// What goes into one batch, and into one piece of an answer; an event that is longer is one of its own.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Where to listen, while somebody does.
#[derive(Default)]
pub(crate) struct Feed(Mutex<Option<Source>>);

struct Source {
    batches: broadcast::WeakSender<Arc<Batch>>,
    end: Arc<AtomicU64>,
}

/// Somebody's place among those who listen.
pub(crate) struct Tap {
    pub(crate) batches: broadcast::Receiver<Arc<Batch>>,
    end: Arc<AtomicU64>,
}

impl Tap {
    /// How far the log was when the last batch was handed out.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }
}

/// Events that follow each other in the log, as they are sent.
pub(crate) struct Batch {
    /// Everything behind this place, up to the last, is in it.
    pub(crate) after: u64,
    pub(crate) last: u64,
    sent: Bytes,
    marks: Vec<Mark>,
}

/// Where an event is in a batch, and what filters ask of it.
struct Mark {
    seq: u64,
    /// None: of a kind that this version does not know.
    kind: Option<Kind>,
    session: Option<SessionId>,
    time: Time,
    bytes: Range<usize>,
}

impl Mark {
    fn fits(&self, filter: &EventFilter) -> bool {
        match self.kind {
            Some(kind) => filter.fits(kind, self.session, self.time),
            None => filter.kinds.is_empty() && filter.session.is_none_or(|id| self.session == Some(id)),
        }
    }
}

impl Batch {
    fn behind(after: u64) -> Batch {
        Batch { after, last: after, sent: Bytes::new(), marks: Vec::new() }
    }

    /// Of what a watch saw, which is all of the log.
    fn take(&mut self, to: &mut BytesMut, watched: Watched) {
        let received = match watched {
            Watched::Event(event) => Received::Known(event),
            Watched::Unknown(event) => Received::Unknown(event),
            Watched::Reconnected => return,
        };
        let from = to.len();
        write(to, &received);
        let (kind, session, time) = match &received {
            Received::Known(event) => (Some(event.event.kind()), event.session, event.time),
            Received::Unknown(event) => (None, event.session, event.time),
        };
        self.last = received.seq();
        self.marks.push(Mark { seq: self.last, kind, session, time, bytes: from..to.len() });
    }

    /// What of it somebody wants who is at this place. Without a copy where it lies together.
    pub(crate) fn wanted(&self, filter: &EventFilter, cursor: u64) -> Bytes {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for mark in self.marks.iter().filter(|mark| mark.seq > cursor && mark.fits(filter)) {
            match runs.last_mut() {
                Some(run) if run.end == mark.bytes.start => run.end = mark.bytes.end,
                _ => runs.push(mark.bytes.clone()),
            }
        }
        match runs.as_slice() {
            [] => Bytes::new(),
            [run] => self.sent.slice(run.clone()),
            runs => {
                let mut wanted = BytesMut::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
                runs.iter().for_each(|run| wanted.extend_from_slice(&self.sent[run.clone()]));
                wanted.freeze()
            }
        }
    }
}

/// Writes an event as a stream has it: its place is its id.
pub(crate) fn write(to: &mut BytesMut, received: &Received) {
    let json = to_json(&EventForm::new(received));
    to.extend_from_slice(format!("id: {}\ndata: {json}\n\n", received.seq()).as_bytes());
}

impl Door {
    /// Listens from now on.
    pub(crate) async fn tap(&self) -> Result<Tap, Error> {
        let mut source = self.inner.feed.0.lock().await;
        if let Some(Source { batches, end }) = &*source
            && let Some(batches) = batches.upgrade()
        {
            return Ok(Tap { batches: batches.subscribe(), end: Arc::clone(end) });
        }
        let watch = self.own_client().watch(EventFilter::default(), None).await?;
        let end = Arc::new(AtomicU64::new(watch.cursor().unwrap_or(0)));
        let (to, batches) = broadcast::channel(BATCHES);
        *source = Some(Source { batches: to.downgrade(), end: Arc::clone(&end) });
        tokio::spawn(self.clone().hand_out(watch, to, Arc::clone(&end)));
        Ok(Tap { batches, end })
    }

    /// Until nobody listens any more, or the log cannot be read: then those who listen come back.
    async fn hand_out(self, mut watch: Watch, to: broadcast::Sender<Arc<Batch>>, end: Arc<AtomicU64>) {
        loop {
            let watched = tokio::select! {
                watched = watch.next() => watched,
                () = to.closed() => {
                    let mut source = self.inner.feed.0.lock().await;
                    // Somebody may have come at the last moment.
                    if to.receiver_count() > 0 {
                        continue;
                    }
                    *source = None;
                    return;
                }
            };
            let Some(Ok(mut watched)) = watched else { return };
            let (mut batch, mut sent) = (Batch::behind(end.load(Ordering::Acquire)), BytesMut::new());
            loop {
                batch.take(&mut sent, watched);
                if sent.len() >= PIECE_BYTES {
                    break;
                }
                watched = match at_once(&mut watch).await {
                    Some(Ok(next)) => next,
                    // What is wrong is heard again, and ends it.
                    Some(Err(_)) | None => break,
                };
            }
            if batch.marks.is_empty() {
                continue;
            }
            batch.sent = sent.freeze();
            // Before it is handed out: who reads the log meanwhile has all of it.
            end.store(batch.last, Ordering::Release);
            // Whether anybody is left is noticed above.
            let _ = to.send(Arc::new(batch));
        }
    }
}

/// What has come already. A watch that is not waited for to the end loses nothing.
async fn at_once(watch: &mut Watch) -> Option<Result<Watched, Error>> {
    let mut next = pin!(watch.next());
    poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(watched) => Poll::Ready(watched),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(events: &[(u64, Option<Kind>)]) -> Batch {
        let mut batch = Batch::behind(0);
        let mut sent = BytesMut::new();
        for (seq, kind) in events {
            let from = sent.len();
            sent.extend_from_slice(format!("{seq},").as_bytes());
            let bytes = from..sent.len();
            batch.marks.push(Mark { seq: *seq, kind: *kind, session: None, time: Time::default(), bytes });
            batch.last = *seq;
        }
        batch.sent = sent.freeze();
        batch
    }

    #[test]
    fn each_has_what_it_wants_and_shares_the_bytes_where_they_lie_together() {
        let (one, other) = (Some(Kind::TurnStarted), Some(Kind::TurnEnded));
        let batch = batch(&[(1, one), (2, one), (3, other), (4, one), (5, None)]);
        let of = |kinds: &[Kind]| EventFilter { kinds: kinds.to_vec(), ..EventFilter::default() };
        let all = batch.wanted(&of(&[]), 0);
        assert_eq!((all.as_ptr(), all.as_ref()), (batch.sent.as_ptr(), b"1,2,3,4,5,".as_ref()));
        let late = batch.wanted(&of(&[]), 3);
        assert_eq!((late.as_ptr(), late.as_ref()), (batch.sent[6..].as_ptr(), b"4,5,".as_ref()), "no copy");
        assert_eq!(batch.wanted(&of(&[Kind::TurnStarted]), 1).as_ref(), b"2,4,");
        assert_eq!(batch.wanted(&of(&[Kind::Halted]), 0).as_ref(), b"");
        let session = SessionId::new(Time::default(), 7);
        let of_one = EventFilter { session: Some(session), ..EventFilter::default() };
        assert!(batch.wanted(&of_one, 0).is_empty(), "what belongs to no session is in nobody's share");
    }
}
