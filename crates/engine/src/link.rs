//! The connection to one keeper: frames in and out, nothing decided.

use std::{io, path::Path, sync::LazyLock, time::Duration};

use ostler_domain::limits::FRAME_BYTES;
use ostler_tape::{
    Decoder, FromKeeper, ToKeeper, environ,
    frame::{self, KeeperState, PROTOCOL},
    socket,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

/// A keeper answers at once or is not there.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// A keeper that reads no more is given up and connected to again.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// An accepted connection.
pub(crate) struct Link {
    stream: UnixStream,
    decoder: Decoder<FromKeeper>,
    buffer: Vec<u8>,
}

/// Why a keeper could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
    /// It serves a daemon of this higher epoch.
    #[error("the keeper has seen epoch {0}")]
    HigherEpoch(u64),
    #[error("the keeper did not answer")]
    Silent,
}

/// A keeper that was had, and what it said of itself.
pub(crate) struct Opened {
    pub(crate) link: Link,
    pub(crate) state: KeeperState,
    pub(crate) keeper_version: String,
}

/// This daemon's environment, for the one that a keeper starts after it: secrets that are only there are on no disk, and the
/// next daemon does as this one.
fn environment() -> &'static [u8] {
    static WRITTEN: LazyLock<Vec<u8>> = LazyLock::new(|| environ::write(std::env::vars_os()));
    // No kernel gives a process as much; without it a keeper has that of the daemon which started it.
    if WRITTEN.len() <= FRAME_BYTES / 2 { &WRITTEN } else { &[] }
}

impl Link {
    /// Connects and says hello.
    pub(crate) async fn open(dir: &Path, epoch: u64, version: &str) -> Result<Opened, LinkError> {
        let stream = socket::connect(dir)?;
        stream.set_nonblocking(true)?;
        let mut link =
            Self { stream: UnixStream::from_std(stream)?, decoder: Decoder::new(), buffer: Vec::new() };
        let hello = ToKeeper::Hello { protocol: PROTOCOL, epoch, daemon_version: version.to_owned() };
        link.send(&hello, environment()).await?;
        match timeout(HELLO_WITHIN, link.next()).await {
            Ok(Ok(Some(FromKeeper::Hello { accepted: true, state, keeper_version, .. }))) => {
                Ok(Opened { link, state, keeper_version })
            }
            Ok(Ok(Some(FromKeeper::Hello { epoch, .. }))) => Err(LinkError::HigherEpoch(epoch)),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Err(LinkError::Silent),
        }
    }

    pub(crate) async fn send(&mut self, verb: &ToKeeper, body: &[u8]) -> Result<(), LinkError> {
        let bytes = frame::encode(verb, body)?;
        timeout(WRITE_WITHIN, self.stream.write_all(&bytes)).await.map_err(|_| LinkError::Silent)??;
        Ok(())
    }

    /// The next frame; none when the keeper closed the connection. Safe to drop half way.
    pub(crate) async fn next(&mut self) -> Result<Option<FromKeeper>, LinkError> {
        const PORTION: usize = 4 * 1024;
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame.verb));
            }
            self.buffer.clear();
            self.buffer.reserve(PORTION);
            match self.stream.read_buf(&mut self.buffer).await? {
                0 => return Ok(None),
                _ => self.decoder.push(&self.buffer),
            }
        }
    }
}
