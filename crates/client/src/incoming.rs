//! Answers that come one after another.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use ostler_wire::InvalidField;
use tokio_stream::{Stream, StreamExt};
use tonic::Streaming;

use crate::{
    Error,
    error::{Failure, given_up},
};

/// Answers as they come. Ends with `None` when the daemon has no more to say, or after an error.
///
/// Not resumed when the connection breaks: what comes this way is fleeting, or work that would have to begin anew.
pub struct Incoming<T>(Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>);

impl<T: Send + 'static> Incoming<T> {
    pub(crate) fn new<P: Send + 'static>(
        answers: Streaming<P>,
        read: impl Fn(P) -> Result<T, InvalidField> + Send + 'static,
        socket: std::path::PathBuf,
    ) -> Self {
        Self(Box::pin(answers.map(move |answer| match answer.map_err(Failure::of) {
            Ok(answer) => Ok(read(answer)?),
            Err(Failure::Final(error)) => Err(error),
            Err(Failure::Lost(status)) => Err(given_up(&status, socket.clone())),
        })))
    }

    /// Waits for the next answer. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        StreamExt::next(&mut self.0).await
    }
}

impl<T> Stream for Incoming<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<T> std::fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Incoming")
    }
}
