//! The process: takes over what the keeper gave it, accepts, and ends when it is not needed.

use std::{
    io::{self, ErrorKind, Read},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    gateway::{GATEWAY_VERSION, GatewayOrder},
    limits::{GATEWAY_CONNECTIONS, GATEWAY_CUT_TIME},
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fs::{Mode, OFlags};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use crate::{connection::Gateway, log, model::Trust, purse::Purse, report::Reporter, tunnel::wait};

/// Longest order: a few hundred hosts.
const ORDER_BYTES: usize = 1024 * 1024;
/// A resolver and the check of a certificate need more than the rest; pages that are not used are not there.
const STACK_BYTES: usize = 512 * 1024;

pub(crate) fn run() -> io::Result<()> {
    let (listener, keeper) = take_over()?;
    let mut words = Words::new(keeper.try_clone()?);
    let order = read_order(&mut words)?;
    let idle = Duration::from_millis(order.idle_ms);
    listener.set_nonblocking(true)?;
    let (stop, stopper) = io::pipe()?;
    let gateway = Arc::new(Gateway {
        port: listener.local_addr()?.port(),
        trust: Trust::default(),
        purse: Purse::new(order.model.as_ref()),
        order,
        reporter: Reporter::new(keeper.try_clone()?),
        stop,
    });
    // What came together with the order makes no further sound.
    heed(&mut words, &gateway);
    let active = Arc::new(Active { count: AtomicUsize::new(0), ended: eventfd(0, flags())? });
    let mut idle_at = Instant::now() + idle;
    loop {
        let count = active.count();
        if count == 0 && Instant::now() >= idle_at {
            // The keeper still has the listener: who connects from now on waits for the next gateway.
            return Ok(());
        }
        let mut fds = vec![PollFd::new(&keeper, PollFlags::IN), PollFd::new(&active.ended, PollFlags::IN)];
        if count < GATEWAY_CONNECTIONS {
            fds.push(PollFd::new(&listener, PollFlags::IN));
        }
        wait(&mut fds, (count == 0).then_some(idle_at))?;
        let heard = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if heard(0) && !listen(&mut words, &gateway)? {
            break;
        }
        if heard(1) {
            let _ = rustix::io::read(&active.ended, &mut [0; 8]);
            idle_at = Instant::now() + idle;
        }
        if heard(2)
            && let Some(client) = accept(&listener)?
        {
            idle_at = Instant::now() + idle;
            Active::serve(&active, &gateway, client);
        }
    }
    // The session has ended, or its keeper has: what is open is cut, and counted.
    drop(listener);
    gateway.reporter.hurry();
    drop(stopper);
    let deadline = Instant::now() + GATEWAY_CUT_TIME;
    while active.count() > 0 && Instant::now() < deadline {
        wait(&mut [PollFd::new(&active.ended, PollFlags::IN)], Some(deadline))?;
        let _ = rustix::io::read(&active.ended, &mut [0; 8]);
    }
    Ok(())
}

/// Descriptors 0 and 1, which nobody else is to have.
fn take_over() -> io::Result<(TcpListener, UnixStream)> {
    let listener: OwnedFd = stdin().try_clone_to_owned()?;
    let keeper: OwnedFd = stdout().try_clone_to_owned()?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    Ok((listener.into(), keeper.into()))
}

/// What the keeper says, line by line. Its end is the order to end.
struct Words {
    keeper: UnixStream,
    text: Vec<u8>,
}

impl Words {
    fn new(keeper: UnixStream) -> Words {
        Words { keeper, text: Vec::new() }
    }

    /// Takes a line that is there.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.text.iter().position(|&byte| byte == b'\n')?;
        let line = self.text.drain(..=end).collect();
        Some(line)
    }

    /// Reads what there is, or waits for something. False at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let count = self.keeper.read(&mut bytes)?;
        self.text.extend_from_slice(&bytes[..count]);
        if self.text.len() > ORDER_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "the keeper says too much in one line"));
        }
        Ok(count > 0)
    }
}

fn read_order(words: &mut Words) -> io::Result<GatewayOrder> {
    let line = loop {
        match words.line() {
            Some(line) => break line,
            None if !words.read()? => return Err(ErrorKind::UnexpectedEof.into()),
            None => {}
        }
    };
    let order: GatewayOrder = serde_json::from_slice(&line)?;
    if order.version != GATEWAY_VERSION {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("order has version {}", order.version)));
    }
    Ok(order)
}

/// The keeper says something: how much is allowed from now on, or, by its end, that this is the end.
fn listen(words: &mut Words, gateway: &Gateway) -> io::Result<bool> {
    let goes_on = words.read()?;
    heed(words, gateway);
    Ok(goes_on)
}

fn heed(words: &mut Words, gateway: &Gateway) {
    while let Some(line) = words.line() {
        match serde_json::from_slice(&line) {
            Ok(allowance) => {
                gateway.purse.allow(allowance);
                // Whoever lends the rest to others wants to know how far this one has come.
                if let Err(error) = gateway.reporter.heeded(|| gateway.purse.spent()) {
                    log(format_args!("the keeper does not hear that it was heard: {error}"));
                }
            }
            Err(error) => log(format_args!("the keeper says what is no allowance: {error}")),
        }
    }
}

fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((client, _)) => Ok(Some(client)),
        // It went away before it was accepted, or another was quicker.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

const fn flags() -> EventfdFlags {
    EventfdFlags::CLOEXEC.union(EventfdFlags::NONBLOCK)
}

/// The connections that are being served, and a sign whenever one has ended.
struct Active {
    count: AtomicUsize,
    ended: OwnedFd,
}

/// One of them. Dropped even by a thread that panics.
struct Place(Arc<Active>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        let _ = rustix::io::write(self.0.ended.as_fd(), &1_u64.to_ne_bytes());
    }
}

impl Active {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn serve(active: &Arc<Active>, gateway: &Arc<Gateway>, client: TcpStream) {
        active.count.fetch_add(1, Ordering::SeqCst);
        let place = Place(Arc::clone(active));
        let gateway = Arc::clone(gateway);
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let _place = place;
            // A client that went away is nobody's concern.
            let _ = gateway.serve(&client);
        });
        if let Err(error) = started {
            log(format_args!("a connection could not be served: {error}"));
        }
    }
}
