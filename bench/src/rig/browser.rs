//! Whoever comes by HTTP: a daemon's door, pages taken whole, and streams that are followed.

use std::{path::Path, process::Command, sync::Arc, time::Instant};

use ostler_domain::home::Home;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinHandle,
};

use super::{
    fan::Seen,
    timed::{milliseconds, timed_output},
};
use crate::Outcome;

/// The door of a running daemon, with a token for it.
pub(crate) struct HttpDoor {
    pub(crate) address: String,
    token: String,
}

impl HttpDoor {
    /// Has the daemon of a home open its door.
    pub(crate) fn open(ostler: &Path, home: &Home) -> Outcome<Self> {
        let link = link(ostler, home)?;
        let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.ok_or("a link has an address")?.to_owned();
        let name = format!("bench-{}", std::process::id());
        let said = answer(ostler, home, &["api", "token", "add", &name, "--json"])?;
        let made: serde_json::Value = serde_json::from_str(&said)?;
        let token = made["secret"].as_str().ok_or("a token is told once")?.to_owned();
        Ok(Self { address, token })
    }

    async fn ask(&self, path: &str, accept: &str) -> Outcome<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\naccept: {accept}\r\nconnection: close\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }

    /// Takes a page to its last byte; how long that took, and how many bytes it had.
    pub(crate) async fn page(&self, path: &str) -> Outcome<(f64, usize)> {
        let began = Instant::now();
        let mut answer = Vec::new();
        self.ask(path, "text/html, application/json").await?.read_to_end(&mut answer).await?;
        let took = milliseconds(began.elapsed());
        if !answer.starts_with(b"HTTP/1.1 200") {
            let said = String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
            return Err(format!("{path}: {said}").into());
        }
        Ok((took, answer.len()))
    }

    /// Has a page followed, as a browser does that shows it; what changes on it is read and not looked at.
    pub(crate) async fn followed(&self, page: &str) -> Outcome<JoinHandle<()>> {
        let mut lines = BufReader::new(self.ask(page, "text/event-stream").await?).lines();
        let status = lines.next_line().await?.unwrap_or_default();
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("{page}: {status}").into());
        }
        Ok(tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} }))
    }

    /// Follows a stream, from its first event on; every later one is counted.
    pub(crate) async fn follow(&self, path: &str, seen: Arc<Seen>) -> Outcome<JoinHandle<()>> {
        let mut lines = BufReader::new(self.ask(path, "text/event-stream").await?).lines();
        // The first one says where it begins.
        loop {
            let line = lines.next_line().await?.ok_or_else(|| format!("{path}: no stream"))?;
            if line.starts_with("data:") {
                break;
            }
        }
        Ok(tokio::spawn(async move {
            let mut seq = 0;
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(id) = line.strip_prefix("id:") {
                    seq = id.trim().parse().unwrap_or(0);
                } else if line.starts_with("data:") {
                    seen.one(seq);
                }
            }
        }))
    }
}

/// A link that lets one browser in.
pub(crate) fn link(ostler: &Path, home: &Home) -> Outcome<String> {
    answer(ostler, home, &["open", "--print"])
}

fn answer(ostler: &Path, home: &Home, words: &[&str]) -> Outcome<String> {
    let mut command = Command::new(ostler);
    command.args(words).env_remove("OSTLER_HOME").envs(home.variables());
    Ok(timed_output(&mut command)?.1)
}
