//! The control socket: 0600 in a 0700 directory, from the first byte.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt},
        net::UnixListener as StdListener,
    },
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::process::umask;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use crate::peer::Peer;

/// Why the socket could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{} is there and is no socket", .0.display())]
    NoSocket(PathBuf),
    #[error("failed to listen on {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A listening control socket.
pub struct ControlSocket {
    listener: UnixListener,
    /// Its file, which goes with it; none where somebody else holds the socket.
    path: Option<PathBuf>,
}

impl ControlSocket {
    /// Listens. The caller holds the daemon's lock, so a socket that is there is a dead one's and is removed.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let fail = |source| SocketError::Io { path: path.to_owned(), source };
        let dir = path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
        // It may have been there before, and open to others.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path).map_err(fail)?,
            Ok(_) => return Err(SocketError::NoSocket(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        let listener = bind_private(dir, path).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { listener: UnixListener::from_std(listener).map_err(fail)?, path: Some(path.to_owned()) })
    }

    /// Takes over a socket that a service manager made, and keeps when this process has ended.
    pub fn inherited(listener: StdListener, path: &Path) -> Result<Self, SocketError> {
        let fail = |source| SocketError::Io { path: path.to_owned(), source };
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { listener: UnixListener::from_std(listener).map_err(fail)?, path: None })
    }

    pub(crate) fn incoming(self) -> impl Stream<Item = io::Result<Connection>> {
        Incoming { socket: self }
    }
}

/// Binds through the directory's descriptor, because a socket address holds only 107 bytes, and under a umask,
/// because a mode set afterwards would come too late.
fn bind_private(dir: &Path, path: &Path) -> io::Result<StdListener> {
    use std::os::fd::AsRawFd;
    let handle = fs::OpenOptions::new().read(true).custom_flags(libc_directory()).open(dir)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let near = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(name);
    let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = StdListener::bind(near);
    umask(before);
    let listener = bound?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn libc_directory() -> i32 {
    i32::try_from(rustix::fs::OFlags::DIRECTORY.bits()).unwrap_or(0)
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

struct Incoming {
    socket: ControlSocket,
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(self.socket.listener.poll_accept(context));
        Poll::Ready(Some(accepted.map(|(stream, _)| Connection { peer: Peer::of(&stream), stream })))
    }
}

/// A connection that knows who is at its other end.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    pub(crate) peer: Peer,
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl tokio::io::AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl tokio::io::AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
