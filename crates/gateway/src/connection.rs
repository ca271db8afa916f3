//! One connection: hear what is wanted, ask the rules, look the host up once, connect to what was found, carry, and tell
//! the keeper. What is denied is told before it is answered.

use std::{
    io::{self, ErrorKind, PipeReader, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket},
    time::Instant,
};

use ostler_domain::{
    gateway::{GatewayOrder, NetDecision, Network},
    limits::{GATEWAY_CONNECT_TIME, GATEWAY_CUT_TIME, GATEWAY_HEAD_BYTES, GATEWAY_HEAD_TIME},
};
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::set_socket_keepalive;

use crate::{
    hello::{self, Hello},
    log,
    model::{self, Trust},
    purse::Purse,
    report::Reporter,
    request::{self, Request},
    rules::{self, Denial, Target, Way},
    tunnel::{self, Counts, carry},
};

/// What all connections share.
pub(crate) struct Gateway {
    pub(crate) order: GatewayOrder,
    /// Of our own address, inside.
    pub(crate) port: u16,
    pub(crate) trust: Trust,
    pub(crate) purse: Purse,
    pub(crate) reporter: Reporter,
    /// Hangs up when the session ends.
    pub(crate) stop: PipeReader,
}

impl Gateway {
    /// Serves one client to its end. A client that goes away is no error.
    pub(crate) fn serve(&self, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut heard = Vec::new();
        let Some(end) = self.hear(client, &mut heard, request::head_end)? else {
            let status = if heard.len() >= GATEWAY_HEAD_BYTES { "431 Too Large" } else { "408 Timeout" };
            return self.answer(client, status, "no whole request in time");
        };
        let rest = heard.split_off(end);
        if let Some(order) = self.order.model.as_ref().filter(|_| model::is_ours(&heard, self.port)) {
            return self.call_model(client, order, &heard, &rest);
        }
        match request::parse(&heard) {
            Ok(request) => self.fulfil(client, request, rest),
            Err(fault) => self.answer(client, "400 Bad Request", fault),
        }
    }

    fn fulfil(&self, client: &TcpStream, request: Request, rest: Vec<u8>) -> io::Result<()> {
        let target = &request.target;
        let rule = match rules::permit(&self.order, target) {
            Ok(rule) => rule,
            Err(denial) => return self.deny(client, target, denial),
        };
        let server = match reach(target) {
            Ok(server) => server,
            Err(Unreached::Denied(denial)) => return self.deny(client, target, denial),
            Err(Unreached::Failed(error)) => {
                self.tell(target, NetDecision::Allowed, rule, None, Counts::default(), &error.to_string());
                return self.answer(client, "502 Bad Gateway", "the host cannot be reached");
            }
        };
        let (first, left) = match target.way {
            Way::Tunnel => {
                (&*client).write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
                let mut heard = rest;
                let done = |bytes: &[u8]| (hello::read(bytes) != Hello::Incomplete).then_some(());
                self.hear(client, &mut heard, done)?;
                if heard.is_empty() {
                    // It has thought better of it.
                    self.tell(
                        target,
                        NetDecision::Allowed,
                        rule,
                        None,
                        Counts::default(),
                        "nothing was said",
                    );
                    return Ok(());
                }
                if let Err(Denial { rule, grant }) = rules::greeting(&target.host, &hello::read(&heard)) {
                    self.tell(target, NetDecision::Denied, rule, grant, Counts::default(), "");
                    return Ok(());
                }
                (heard, u64::MAX)
            }
            Way::Plain => {
                let mut first = request.head;
                let belongs = usize::try_from(request.body_bytes).unwrap_or(usize::MAX).min(rest.len());
                first.extend_from_slice(&rest[..belongs]);
                (first, request.body_bytes - belongs as u64)
            }
        };
        let counts = carry(client, &server, first, left, &self.stop);
        self.tell(target, NetDecision::Allowed, rule, None, counts, "");
        Ok(())
    }

    /// Reads until `done` finds what it looks for; none if the client ends, is too slow or says too much.
    fn hear<T>(
        &self,
        mut client: &TcpStream,
        heard: &mut Vec<u8>,
        done: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let deadline = Instant::now() + GATEWAY_HEAD_TIME;
        loop {
            if let Some(found) = done(heard) {
                return Ok(Some(found));
            }
            if heard.len() >= GATEWAY_HEAD_BYTES {
                return Ok(None);
            }
            let mut fds = [PollFd::new(client, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            let ready = tunnel::wait(&mut fds, Some(deadline))?;
            if ready == 0 || !fds[1].revents().is_empty() {
                return Ok(None);
            }
            let before = heard.len();
            heard.resize(GATEWAY_HEAD_BYTES, 0);
            let read = client.read(&mut heard[before..]);
            heard.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn deny(&self, client: &TcpStream, target: &Target, denial: Denial) -> io::Result<()> {
        let Denial { rule, grant } = denial;
        let mut text = format!("denied network {}:{} (rule: {rule})", target.host, target.port);
        if let Some(grant) = &grant {
            text.push_str("\na person can allow it to new sessions: ");
            text.push_str(grant);
        }
        self.tell(target, NetDecision::Denied, rule, grant, Counts::default(), "");
        self.answer(client, "403 Forbidden", &text)
    }

    pub(crate) fn tell(
        &self,
        target: &Target,
        decision: NetDecision,
        rule: String,
        grant: Option<String>,
        counts: Counts,
        failure: &str,
    ) {
        let network = Network {
            host: target.host.clone(),
            port: target.port,
            decision,
            rule,
            grant,
            bytes_in: counts.to_client,
            bytes_out: counts.to_server,
            failure: failure.to_owned(),
        };
        if let Err(error) = self.reporter.connection(&network) {
            log(format_args!("the keeper does not hear of a connection: {error}"));
        }
    }

    fn answer(&self, client: &TcpStream, status: &str, text: &str) -> io::Result<()> {
        self.reply(
            client,
            status,
            "Content-Type: text/plain; charset=utf-8\r\n",
            &format!("ostler: {text}\n"),
        )
    }

    pub(crate) fn reply(
        &self,
        mut client: &TcpStream,
        status: &str,
        headers: &str,
        text: &str,
    ) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
            text.len()
        );
        client.write_all(&[head.as_bytes(), text.as_bytes()].concat())?;
        self.part(client)
    }

    /// Ends a connection whose client has been told everything.
    pub(crate) fn part(&self, mut client: &TcpStream) -> io::Result<()> {
        client.shutdown(Shutdown::Write)?;
        // What it was still saying is read: a close with unread bytes would take the answer back.
        let deadline = Instant::now() + GATEWAY_CUT_TIME;
        let mut unread = [0; 4096];
        for _ in 0..64 {
            let mut fds = [PollFd::new(client, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            let ready = tunnel::wait(&mut fds, Some(deadline))?;
            if ready == 0 || !fds[1].revents().is_empty() || client.read(&mut unread)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

enum Unreached {
    Denied(Denial),
    Failed(io::Error),
}

impl From<io::Error> for Unreached {
    fn from(error: io::Error) -> Unreached {
        Unreached::Failed(error)
    }
}

/// Looks a host up, once, and connects to an address that was found and may be.
fn reach(target: &Target) -> Result<TcpStream, Unreached> {
    let found: Vec<IpAddr> = match target.host.parse() {
        Ok(address) => vec![address],
        Err(_) => (target.host.as_str(), target.port).to_socket_addrs()?.map(|found| found.ip()).collect(),
    };
    let public = rules::public(found).map_err(Unreached::Denied)?;
    let deadline = Instant::now() + GATEWAY_CONNECT_TIME;
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in public {
        let address = SocketAddr::new(address, target.port);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            last = ErrorKind::TimedOut.into();
            break;
        }
        if is_this_machine(address) {
            let rule = "it is an address of this machine".to_owned();
            return Err(Unreached::Denied(Denial { rule, grant: None }));
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(server) => {
                server.set_nodelay(true)?;
                set_socket_keepalive(&server, true).map_err(io::Error::from)?;
                return Ok(server);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// A public address may be our own, with services behind it that trust what is local. The kernel says from which address
/// we would speak to it; nothing is sent for that.
fn is_this_machine(address: SocketAddr) -> bool {
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let speak = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        Ok(socket.local_addr()?.ip())
    };
    speak().is_ok_and(|own| own == address.ip())
}
