//! Compresses tape segments that were taken in whole. Nothing is deleted: that needs a rule of a person's.

use std::path::PathBuf;

use ostler_domain::limits::SEGMENT_BYTES;
use ostler_tape::{compress_segment, segment::list_segments};
use tokio::sync::Semaphore;

/// A tape smaller than this is not worth a file of another kind.
const WORTH_IT: u64 = 64 * 1024;
/// One compression at a time: agents and commits come first.
static AT_WORK: Semaphore = Semaphore::const_new(1);

/// Which segments nobody writes to any more.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Closed {
    /// The session has ended: all of them.
    All,
    /// Those that lie wholly before this committed place.
    Before(u64),
}

/// Says whether so much was committed since the last time that a segment may have been closed.
pub(crate) fn is_due(last: u64, committed: u64) -> bool {
    committed.saturating_sub(last) >= SEGMENT_BYTES
}

/// Compresses in the background. A failure leaves the plain segment, which is as good.
pub(crate) fn compress(dir: PathBuf, closed: Closed) {
    tokio::spawn(async move {
        let Ok(_turn) = AT_WORK.acquire().await else { return };
        let done = tokio::task::spawn_blocking(move || compress_closed(&dir, closed)).await;
        if let Ok(Err(error)) = done {
            tracing::debug!(%error, "a tape segment stays as it is");
        }
    });
}

fn compress_closed(dir: &std::path::Path, closed: Closed) -> std::io::Result<()> {
    let segments = list_segments(dir)?;
    for (place, segment) in segments.iter().enumerate() {
        let ends_before = |committed| segments.get(place + 1).is_some_and(|next| next.base <= committed);
        let is_closed = match closed {
            Closed::All => true,
            Closed::Before(committed) => ends_before(committed),
        };
        let bytes = std::fs::metadata(segment.path(dir)).map_or(0, |found| found.len());
        if is_closed && !segment.compressed && bytes >= WORTH_IT {
            compress_segment(dir, segment.base)?;
        }
    }
    Ok(())
}
