//! A TCP connection whose every wait ends with one deadline: no byte that comes or goes puts it off.

use std::{
    borrow::Borrow,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

/// A connection, and until when it is waited for; none, and for as long as it likes.
pub struct Timed<T = Arc<TcpStream>> {
    tcp: T,
    until: Option<Instant>,
}

impl<T: Borrow<TcpStream>> Timed<T> {
    pub fn until(tcp: T, until: Instant) -> Timed<T> {
        Timed { tcp, until: Some(until) }
    }

    pub fn tcp(&self) -> &TcpStream {
        self.tcp.borrow()
    }

    pub fn set_until(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => Err(ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }

    /// A wait that ended for the time, as such: whoever does not wait at all hears of it by another name.
    fn late(&self, error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::WouldBlock if self.until.is_some() => ErrorKind::TimedOut.into(),
            _ => error,
        }
    }
}

impl<T: Borrow<TcpStream>> Read for Timed<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.tcp().set_read_timeout(Some(left))?;
        }
        self.tcp().read(bytes).map_err(|error| self.late(error))
    }
}

impl<T: Borrow<TcpStream>> Write for Timed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.tcp().set_write_timeout(Some(left))?;
        }
        self.tcp().write(bytes).map_err(|error| self.late(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn no_byte_puts_the_deadline_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, _) = listener.accept().unwrap();
        thread::spawn(move || {
            while far.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let begun = Instant::now();
        let mut timed = Timed::until(near, begun + Duration::from_millis(300));
        let ended = loop {
            if let Err(error) = timed.read(&mut [0; 16]) {
                break error;
            }
        };
        assert_eq!(ended.kind(), ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
