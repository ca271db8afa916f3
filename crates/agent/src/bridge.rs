//! `ostler internal bridge -- PROGRAM ARGS…`: starts a program that serves a WebSocket, and makes it one that speaks on its
//! standard streams: a text frame is a line, both ways. Runs inside the sandbox, beside what it starts.
//!
//! The first line on standard input says where the program listens: `{"bridge":"ws://127.0.0.1:PORT"}`. What the program
//! prints goes to standard error. End of input ends the program; its exit code is ours.

use std::{
    ffi::OsString,
    io::{self, BufRead, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tungstenite::{
    Message, WebSocket,
    protocol::{Role, WebSocketConfig, frame::coding::CloseCode},
};

/// How often a program that does not listen yet is tried again, and for how long: it loads hundreds of modules.
const AGAIN: Duration = Duration::from_millis(200);
const LISTENS_WITHIN: Duration = Duration::from_secs(180);
/// How long one try may take, and the first words of a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The largest frame; a line above it is not read by anybody.
const FRAME_BYTES: usize = 32 * 1024 * 1024;
/// Lines that wait: whoever writes faster waits too.
const WAITING: usize = 256;
/// How long a program is given to end by itself when nobody speaks to it any more.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const FAILED: u8 = 1;

#[derive(Deserialize)]
struct Opening {
    bridge: String,
}

/// What can happen to a bridge.
enum News {
    /// A line of standard input.
    Line(String),
    EndOfInput,
    /// The connection of this number ended; whether the program wants to be tried again.
    Closed {
        connection: u32,
        again: bool,
    },
    Ended(ExitStatus),
}

/// Runs the program that the words after `--` name.
pub fn run(words: &[OsString]) -> ExitCode {
    match carry(words) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

fn carry(words: &[OsString]) -> io::Result<ExitCode> {
    let words = words.strip_prefix(&[OsString::from("--")]).unwrap_or(words);
    let Some((program, args)) = words.split_first() else {
        return Err(io::Error::other("no program is named"));
    };
    let mut input = io::stdin().lock();
    let mut first = String::new();
    if input.read_line(&mut first)? == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let opening: Opening = serde_json::from_str(&first)
        .map_err(|error| io::Error::other(format!("the first line does not say where to go: {error}")))?;
    let address = address(&opening.bridge)?;
    drop(input);
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stderr()))
        .spawn()
        .map_err(|error| io::Error::other(format!("{} cannot be started: {error}", program.display())))?;
    Bridge::new(address, opening.bridge, child).carry()
}

fn address(url: &str) -> io::Result<SocketAddr> {
    let wrong = || io::Error::other(format!("{url} is no address that a bridge leads to"));
    url.strip_prefix("ws://").and_then(|rest| rest.trim_end_matches('/').parse().ok()).ok_or_else(wrong)
}

struct Bridge {
    address: SocketAddr,
    url: String,
    news: Sender<News>,
    heard: Receiver<News>,
    child: u32,
    /// Connections made so far: what an older one still says is no news.
    connection: u32,
    way_in: Option<WebSocket<Shared>>,
}

impl Bridge {
    fn new(address: SocketAddr, url: String, child: Child) -> Self {
        let (news, heard) = mpsc::channel();
        let bridge = Self { address, url, child: child.id(), heard, connection: 0, way_in: None, news };
        bridge.watch(child);
        bridge.listen();
        bridge
    }

    fn watch(&self, mut child: Child) {
        let news = self.news.clone();
        thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = news.send(News::Ended(status));
            }
        });
    }

    /// Reads our own input. At most some lines are ahead of the connection.
    fn listen(&self) {
        let news = self.news.clone();
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                match line {
                    Ok(line) if line.is_empty() => {}
                    Ok(line) => drop(news.send(News::Line(line))),
                    Err(_) => break,
                }
            }
            let _ = news.send(News::EndOfInput);
        });
    }

    fn carry(mut self) -> io::Result<ExitCode> {
        self.connect()?;
        loop {
            match self.heard.recv() {
                Ok(News::Line(line)) => self.pass_on(line)?,
                Ok(News::Closed { connection, again }) if connection == self.connection => {
                    if !again {
                        complain(&"the connection was closed");
                        let _ = self.end();
                        return Ok(ExitCode::from(FAILED));
                    }
                    thread::sleep(AGAIN);
                    self.connect()?;
                }
                Ok(News::Closed { .. }) => {}
                Ok(News::Ended(status)) => return Ok(code(status)),
                Ok(News::EndOfInput) | Err(_) => return Ok(self.end()),
            }
        }
    }

    /// Tries until somebody listens, or the program has ended.
    fn connect(&mut self) -> io::Result<()> {
        self.way_in = None;
        let until = Instant::now() + LISTENS_WITHIN;
        let mut waiting = Vec::new();
        loop {
            match self.try_once() {
                Ok(()) => break,
                Err(error) if Instant::now() > until => {
                    let _ = self.end();
                    return Err(io::Error::other(format!("nobody listens at {}: {error}", self.url)));
                }
                Err(_) => {}
            }
            match self.heard.recv_timeout(AGAIN) {
                Ok(News::Line(line)) if waiting.len() < WAITING => waiting.push(line),
                Ok(News::Ended(status)) => {
                    return Err(io::Error::other(format!("the program ended before it listened: {status}")));
                }
                Ok(News::EndOfInput) => {
                    let _ = self.end();
                    return Err(io::Error::other("the input ended before the program listened"));
                }
                Ok(News::Line(_) | News::Closed { .. }) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("nobody is left")),
            }
        }
        waiting.into_iter().try_for_each(|line| self.pass_on(line))
    }

    fn try_once(&mut self) -> io::Result<()> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_WITHIN)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONNECT_WITHIN))?;
        let limits =
            WebSocketConfig::default().max_message_size(Some(FRAME_BYTES)).max_frame_size(Some(FRAME_BYTES));
        // One socket, read here and written there: each frame goes out whole, whoever writes it.
        let shared = Shared { read: stream.try_clone()?, write: Arc::new(Mutex::new(stream)) };
        let writing = shared.another()?;
        // The side that shook hands is the one that reads: the first frame may have come with the handshake.
        let (reading, _) = tungstenite::client::client_with_config(&self.url, shared, Some(limits))
            .map_err(|error| io::Error::other(error.to_string()))?;
        reading.get_ref().read.set_read_timeout(None)?;
        self.way_in = Some(WebSocket::from_raw_socket(writing, Role::Client, Some(limits)));
        self.connection += 1;
        let (connection, news) = (self.connection, self.news.clone());
        thread::spawn(move || {
            let again = print_frames(reading);
            let _ = news.send(News::Closed { connection, again });
        });
        Ok(())
    }

    fn pass_on(&mut self, line: String) -> io::Result<()> {
        let Some(way_in) = &mut self.way_in else { return Ok(()) };
        // A connection that is gone says so by itself.
        if let Err(error) = way_in.send(Message::text(line)) {
            complain(&format_args!("a line was not taken: {error}"));
        }
        Ok(())
    }

    /// Lets go of the program: it is told, and then not waited for for ever.
    fn end(&mut self) -> ExitCode {
        if let Some(mut way_in) = self.way_in.take() {
            let _ = way_in.close(None);
            let _ = way_in.flush();
        }
        // No unsafe, no dependency: every shell has `kill`.
        let kill = format!("kill {}", self.child);
        let _ = Command::new("/bin/sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            match self.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(News::Ended(_)) => return ExitCode::SUCCESS,
                Ok(_) => {}
                // Whoever asked for the end has harder means.
                Err(_) => return ExitCode::from(FAILED),
            }
        }
    }
}

/// Prints text frames as lines until the connection ends. Says whether the other side wants to be tried again.
fn print_frames(mut socket: WebSocket<Shared>) -> bool {
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => {
                // Between the words of JSON a line break is a space, and inside of them there is none.
                let line = text.replace(['\n', '\r'], " ");
                let mut out = io::stdout().lock();
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    return false;
                }
            }
            Ok(Message::Close(frame)) => {
                let again = frame.as_ref().is_some_and(|frame| frame.code == CloseCode::Again);
                let _ = socket.flush();
                return again;
            }
            Ok(_) => {}
            Err(error) => {
                complain(&error);
                return false;
            }
        }
    }
}

/// To the tape, as what the agent itself complains of.
fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "bridge: {what}");
}

fn code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
        None => ExitCode::from(FAILED),
    }
}

/// A socket with two ends for reading and writing, whose writes do not mix.
struct Shared {
    read: TcpStream,
    write: Arc<Mutex<TcpStream>>,
}

impl Shared {
    fn another(&self) -> io::Result<Self> {
        Ok(Self { read: self.read.try_clone()?, write: Arc::clone(&self.write) })
    }
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read.read(buffer)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // All of it or an error: half a frame of one writer must not be followed by another's.
        self.write.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
