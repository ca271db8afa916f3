//! Connections: each has a time for its first words, and there is room for so many.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

use crate::{Door, routes};

/// Connections at once. A browser keeps about six; a page that follows the log keeps one open.
const CONNECTIONS: usize = 1_024;
/// How long the head of a request may take: who sends it letter by letter would hold a place for ever.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
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
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::select! {
        // Whoever breaks off is not worth a word.
        _ = serving => {}
        _ = ended.changed() => {}
    }
}
