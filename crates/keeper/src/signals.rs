//! Signals as bytes in a pipe, to be waited for like everything else.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

/// A stream that becomes readable whenever the signal arrives.
pub(crate) fn pipe(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok(read)
}

pub(crate) fn drain(pipe: &mut UnixStream) {
    let mut buffer = [0; 64];
    while matches!(pipe.read(&mut buffer), Ok(1..)) {}
}
