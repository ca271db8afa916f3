//! NATS: a server of its own, and the least that a client of it is.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinHandle,
    time::sleep,
};

use crate::{
    Outcome,
    rig::{fan::Seen, line_text, wall_us},
};

const PATIENCE: Duration = Duration::from_secs(10);
const SUBJECT: &str = "events";
/// What it may hold for a subscriber: enough that none is ever dropped for being slow.
const PENDING: u64 = 4 << 30;

pub(crate) struct Nats {
    pub(crate) version: String,
    server: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Nats {
    /// A server that keeps nothing; the reason where there is none.
    pub(crate) async fn serving(dir: &Path) -> Outcome<Result<Self, String>> {
        let version = match super::version("nats-server", "--version") {
            Ok(version) => version,
            Err(why) => return Ok(Err(why)),
        };
        let dir = tempfile::Builder::new().prefix("nats-").tempdir_in(dir)?;
        let settings = dir.path().join("nats.conf");
        std::fs::write(&settings, format!("max_pending: {PENDING}\nwrite_deadline: \"60s\"\n"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = Command::new("nats-server");
        server.args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--config"]).arg(&settings);
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let nats = Self { version, server, port, _dir: dir };
        let began = Instant::now();
        while let Err(why) = nats.connect().await {
            if began.elapsed() > PATIENCE {
                return Err(why);
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(Ok(nats))
    }

    /// A connection whose server has answered everything so far.
    async fn connect(&self) -> Outcome<BufReader<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::with_capacity(64 * 1024, stream);
        stream.read_line(&mut String::new()).await?;
        stream.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n").await?;
        settle(&mut stream).await?;
        Ok(stream)
    }

    pub(crate) async fn publisher(&self) -> Outcome<Publisher> {
        Ok(Publisher { stream: self.connect().await?, text: line_text(0), buffer: Vec::new() })
    }

    /// Somebody who takes every message and notes it.
    pub(crate) async fn subscriber(&self, seen: Arc<Seen>) -> Outcome<JoinHandle<()>> {
        let mut stream = self.connect().await?;
        stream.write_all(format!("SUB {SUBJECT} 1\r\n").as_bytes()).await?;
        settle(&mut stream).await?;
        Ok(tokio::spawn(async move {
            let _ = take(&mut stream, &seen).await;
        }))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Waits until the server has done what it was told.
async fn settle(stream: &mut BufReader<TcpStream>) -> Outcome<()> {
    stream.write_all(b"PING\r\n").await?;
    let mut word = String::new();
    while stream.read_line(&mut word).await? > 0 {
        if word.starts_with("PONG") {
            return Ok(());
        }
        word.clear();
    }
    Err("nats-server hung up".into())
}

/// Reads messages: `MSG subject sid bytes`, and that many bytes, which begin with when they were sent.
async fn take(stream: &mut BufReader<TcpStream>, seen: &Seen) -> Outcome<()> {
    let mut head = String::new();
    let mut body = Vec::new();
    loop {
        head.clear();
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
        let Some(rest) = head.strip_prefix("MSG ") else {
            if head.starts_with("PING") {
                stream.write_all(b"PONG\r\n").await?;
            }
            continue;
        };
        let bytes: usize = rest.split_whitespace().last().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        body.resize(bytes + 2, 0);
        stream.read_exact(&mut body).await?;
        let sent = body.get(..16).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        seen.one(sent.unwrap_or(0));
    }
}

pub(crate) struct Publisher {
    stream: BufReader<TcpStream>,
    text: String,
    buffer: Vec<u8>,
}

impl Publisher {
    /// Publishes so many messages of the size of an event, in one write.
    pub(crate) async fn publish(&mut self, count: u64) -> Outcome<()> {
        self.buffer.clear();
        for _ in 0..count {
            let payload = format!("{:016} {}", wall_us(), self.text);
            self.buffer
                .extend_from_slice(format!("PUB {SUBJECT} {}\r\n{payload}\r\n", payload.len()).as_bytes());
        }
        Ok(self.stream.write_all(&self.buffer).await?)
    }
}
