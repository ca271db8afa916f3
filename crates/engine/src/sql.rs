//! Questions in SQL, beside everything else: on threads of their own, few at a time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ostler_domain::{
    Reason, Refusal,
    sql::{Answer, Question},
};
use tokio::sync::mpsc;

use crate::Engine;

/// Pieces that wait for whoever asked; beyond them the answering waits.
const WAITING: usize = 4;
/// Questions at a time: each has a processor for itself.
pub(crate) const AT_ONCE: usize = 2;

/// An answer as it comes. Dropped, nobody waits for it, and it is not gone on with.
pub struct SqlAnswer {
    pieces: mpsc::Receiver<Result<Answer, Refusal>>,
    stop: Arc<AtomicBool>,
}

impl SqlAnswer {
    /// The next piece; none when there are no more.
    pub async fn next(&mut self) -> Option<Result<Answer, Refusal>> {
        self.pieces.recv().await
    }
}

impl Drop for SqlAnswer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Engine {
    /// Asks the views of the record.
    pub async fn sql(&self, question: Question) -> Result<SqlAnswer, Refusal> {
        let question = question.bounded();
        let closing = |_| Refusal::new(Reason::ShuttingDown, "the daemon is going away");
        let place = Arc::clone(&self.shared.questions).acquire_owned().await.map_err(closing)?;
        let (news, pieces) = mpsc::channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let (store, stopped) = (self.shared.store.clone(), Arc::clone(&stop));
        tokio::task::spawn_blocking(move || {
            let asked = store.ask_sql(&question, &stopped, |piece| news.blocking_send(Ok(piece)).is_ok());
            if let Err(refusal) = asked {
                let _ = news.blocking_send(Err(refusal));
            }
            drop(place);
        });
        Ok(SqlAnswer { pieces, stop })
    }
}
