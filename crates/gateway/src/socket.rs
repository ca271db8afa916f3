//! A WebSocket without a runtime, with TLS where it is wanted: one thread carries it both ways. Nobody who says something
//! waits; whoever says much looks first how much waits.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    ops::ControlFlow,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    time::Instant,
};

use ostler_domain::{
    gateway::Upstream,
    limits::{HUB_CONNECT_TIME, HUB_FRAME_BYTES, HUB_PING, HUB_SILENCE},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use tungstenite::{
    Message, WebSocket,
    handshake::derive_accept_key,
    http,
    protocol::{Role, WebSocketConfig},
};

use crate::{
    model::{Trust, dial, greet},
    timed::Timed,
    untrusted,
};

/// A connection, whether with TLS or without, of either side.
pub enum Stream {
    Plain(Timed),
    Client(Box<StreamOwned<ClientConnection, Timed>>),
    Server(Box<StreamOwned<ServerConnection, Timed>>),
}

impl Stream {
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(timed) => timed.tcp(),
            Stream::Client(tls) => tls.sock.tcp(),
            Stream::Server(tls) => tls.sock.tcp(),
        }
    }

    /// Until when it is waited for, whatever is said by then; none, and for as long as it likes.
    pub fn set_until(&mut self, until: Option<Instant>) {
        match self {
            Stream::Plain(timed) => timed.set_until(until),
            Stream::Client(tls) => tls.sock.set_until(until),
            Stream::Server(tls) => tls.sock.set_until(until),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.read(bytes),
            Stream::Client(tls) => tls.read(bytes),
            Stream::Server(tls) => tls.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.write(bytes),
            Stream::Client(tls) => tls.write(bytes),
            Stream::Server(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(timed) => timed.flush(),
            Stream::Client(tls) => tls.flush(),
            Stream::Server(tls) => tls.flush(),
        }
    }
}

/// A WebSocket that has shaken hands.
pub struct Socket(WebSocket<Stream>);

/// Says something on a socket, from any thread.
#[derive(Clone)]
pub struct Sayer {
    to: Sender<String>,
    waiting: Arc<AtomicUsize>,
    wake: Arc<UnixStream>,
}

/// What a socket is to say, and how it hears that there is something.
pub struct Said {
    from: Receiver<String>,
    waiting: Arc<AtomicUsize>,
    woken: UnixStream,
}

/// A queue of what a socket is to say.
pub fn queue() -> io::Result<(Sayer, Said)> {
    let (to, from) = mpsc::channel();
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let waiting = Arc::new(AtomicUsize::new(0));
    Ok((Sayer { to, waiting: Arc::clone(&waiting), wake: Arc::new(wake) }, Said { from, waiting, woken }))
}

impl Sayer {
    /// False when the socket is gone.
    pub fn say(&self, text: String) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let said = self.to.send(text).is_ok();
        // A pipe that is full has woken it already.
        let _ = (&*self.wake).write(&[0]);
        said
    }

    /// Frames that were said and not yet written.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(HUB_FRAME_BYTES)).max_frame_size(Some(HUB_FRAME_BYTES))
}

/// Connects to `ws://…` or `wss://…`, with a token.
pub fn connect(url: &str, token: &str) -> Result<Socket, String> {
    let http_url = match (url.strip_prefix("ws://"), url.strip_prefix("wss://")) {
        (Some(rest), _) => format!("http://{rest}"),
        (_, Some(rest)) => format!("https://{rest}"),
        _ => url.to_owned(),
    };
    let upstream = Upstream::parse(&http_url)?;
    let in_words = |error: io::Error| error.to_string();
    let tcp = dial(&upstream).map_err(in_words)?;
    tcp.set_nodelay(true).map_err(in_words)?;
    let timed = |tcp| Timed::until(Arc::new(tcp), Instant::now() + HUB_CONNECT_TIME);
    let stream = if upstream.tls {
        let trust = Trust::default().config(None).map_err(in_words)?;
        let tls = greet(&tcp, &upstream, trust).map_err(untrusted::in_words)?;
        Stream::Client(Box::new(StreamOwned::new(*tls, timed(tcp))))
    } else {
        Stream::Plain(timed(tcp))
    };
    let path = if upstream.prefix.is_empty() { "/" } else { &upstream.prefix };
    let request = http::Request::builder()
        .uri(format!("ws://{}{path}", upstream.authority()))
        .header("host", upstream.authority())
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", tungstenite::handshake::client::generate_key())
        .header("authorization", format!("Bearer {token}"))
        .body(())
        .map_err(|error| error.to_string())?;
    let shaken = tungstenite::client::client_with_config(request, stream, Some(config()));
    let (socket, _) = shaken.map_err(|error| error.to_string())?;
    Ok(Socket(socket))
}

/// Answers a request for an upgrade whose head was read.
pub fn accept(mut stream: Stream, key: &str, read_beyond: Vec<u8>) -> io::Result<Socket> {
    let accepted = derive_accept_key(key.as_bytes());
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accepted}\r\n\r\n"
    )?;
    stream.flush()?;
    Ok(Socket(WebSocket::from_partially_read(stream, read_beyond, Role::Server, Some(config()))))
}

impl Socket {
    /// Carries it until either side ends it, or `heard` does, which else says what is replied. Says why it ended.
    pub fn carry(
        mut self,
        said: &Said,
        mut heard: impl FnMut(String) -> ControlFlow<(), Vec<String>>,
    ) -> String {
        match self.carry_on(said, &mut heard) {
            Ok(()) => "it was closed".to_owned(),
            Err(why) => why,
        }
    }

    fn carry_on(
        &mut self,
        said: &Said,
        heard: &mut impl FnMut(String) -> ControlFlow<(), Vec<String>>,
    ) -> Result<(), String> {
        let in_words = |error: io::Error| error.to_string();
        self.0.get_mut().set_until(None);
        self.0.get_ref().tcp().set_nonblocking(true).map_err(in_words)?;
        let (mut last_heard, mut last_ping) = (Instant::now(), Instant::now());
        loop {
            loop {
                match self.0.read() {
                    Ok(Message::Text(text)) => {
                        last_heard = Instant::now();
                        match heard(text.to_string()) {
                            ControlFlow::Continue(replies) => {
                                replies.into_iter().try_for_each(|reply| self.write(Message::text(reply)))?;
                            }
                            ControlFlow::Break(()) => {
                                let _ = self.0.close(None);
                                let _ = self.0.flush();
                                return Ok(());
                            }
                        }
                    }
                    Ok(Message::Close(_)) => {
                        let _ = self.0.flush();
                        return Ok(());
                    }
                    Ok(_) => last_heard = Instant::now(),
                    Err(error) if is_wait(&error) => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
            if last_heard.elapsed() > HUB_SILENCE {
                return Err("the other side is silent".to_owned());
            }
            if last_ping.elapsed() > HUB_PING {
                last_ping = Instant::now();
                self.write(Message::Ping(Vec::new().into()))?;
            }
            let is_full = self.say_all(said)?;
            let Some(is_full) = is_full else {
                let _ = self.0.close(None);
                let _ = self.0.flush();
                return Ok(());
            };
            self.rest(said, is_full).map_err(in_words)?;
        }
    }

    /// Writes what waits, as far as the other side takes it. None when nobody will say anything any more.
    fn say_all(&mut self, said: &Said) -> Result<Option<bool>, String> {
        loop {
            match self.0.flush() {
                Ok(()) => {}
                Err(error) if is_wait(&error) => return Ok(Some(true)),
                Err(error) => return Err(error.to_string()),
            }
            match said.from.try_recv() {
                Ok(text) => {
                    said.waiting.fetch_sub(1, Ordering::Relaxed);
                    self.write(Message::text(text))?;
                }
                Err(TryRecvError::Empty) => return Ok(Some(false)),
                Err(TryRecvError::Disconnected) => return Ok(None),
            }
        }
    }

    fn write(&mut self, message: Message) -> Result<(), String> {
        match self.0.write(message) {
            Ok(()) => Ok(()),
            // It is taken, and goes when there is room.
            Err(error) if is_wait(&error) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits until there is something to do.
    fn rest(&mut self, said: &Said, is_full: bool) -> io::Result<()> {
        let wanted = if is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let tcp = self.0.get_ref().tcp();
        let mut awaited = [PollFd::new(tcp, wanted), PollFd::new(&said.woken, PollFlags::IN)];
        let most = Timespec { tv_sec: HUB_PING.as_secs().cast_signed(), tv_nsec: 0 };
        match poll(&mut awaited, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut wakings = [0; 64];
        while matches!((&said.woken).read(&mut wakings), Ok(read) if read > 0) {}
        Ok(())
    }
}

fn is_wait(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Io(error) if error.kind() == ErrorKind::WouldBlock)
}
