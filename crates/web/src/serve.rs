//! Connections: each has a time for its first words, and for hearing what is answered, and there is room for so many.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::{Sleep, sleep},
};

use crate::{Door, routes};

/// Connections at once. A browser keeps about six; a page that follows the log keeps one open.
const CONNECTIONS: usize = 1_024;
/// How long the head of a request may take: who sends it letter by letter would hold a place for ever.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long what waits for a connection may wait: a browser that has gone to sleep comes back by itself.
const HEARD_WITHIN: Duration = Duration::from_secs(60);
/// What waits for a connection to take it, and the longest head: a browser that does not read holds no more.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long is waited when nobody can be taken in, as when descriptors have run out.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Serves until the sender of `ended` says so, or is gone.
pub(crate) async fn serve(door: Door, listener: TcpListener, port: u16, ended: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let router = routes::router(door, port);
    let mut end = ended.clone();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = end.changed() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(TRY_AGAIN).await;
            continue;
        };
        let (router, ended) = (router.clone(), ended.clone());
        tokio::spawn(async move {
            connection(stream, router, ended).await;
            drop(place);
        });
    }
    // Whoever closed the door waits for the last of these: nobody is let in once that is gone.
    drop(listener);
    drop((end, ended));
}

async fn connection(stream: TcpStream, router: Router, mut ended: watch::Receiver<()>) {
    // What is written is wanted now: an event is a small write.
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(
            TokioIo::new(Heard::within(HEARD_WITHIN, stream)),
            TowerToHyperService::new(router),
        );
    tokio::select! {
        // Whoever breaks off is not worth a word.
        _ = serving => {}
        _ = ended.changed() => {}
    }
}

/// A connection that breaks when what is said on it is not heard.
struct Heard {
    stream: TcpStream,
    within: Duration,
    /// Since something waits.
    late: Option<Pin<Box<Sleep>>>,
}

impl Heard {
    fn within(within: Duration, stream: TcpStream) -> Heard {
        Heard { stream, within, late: None }
    }

    /// What was not taken has until a moment that no byte of it puts off.
    fn or_late(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            return written;
        }
        let within = self.within;
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(within)));
        late.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_late(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.or_late(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Hyper comes here when everything was taken.
        self.late = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn who_does_not_hear_what_is_said_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut heard = Heard::within(Duration::from_millis(100), stream);
        let said = tokio::time::timeout(HEARD_WITHIN, heard.write_all(&vec![0; 64 << 20])).await;
        assert_eq!(said.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
