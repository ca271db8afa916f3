//! The connection to the model's host: TCP, and TLS on it where the order says so. Reads and writes never wait.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Arc, OnceLock},
    time::Instant,
};

use ostler_domain::{
    gateway::{ModelOrder, Upstream},
    limits::{GATEWAY_CONNECT_TIME, MODEL_PROBE, MODEL_PROBES, MODEL_TLS_TIME},
};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use crate::timed::Timed;

/// Whom to believe, found once and kept: reading a machine's certificates takes some milliseconds.
#[derive(Default)]
pub(crate) struct Trust(OnceLock<Result<Arc<ClientConfig>, String>>);

impl Trust {
    pub(crate) fn config(&self, authorities: Option<&str>) -> io::Result<Arc<ClientConfig>> {
        let found = self.0.get_or_init(|| trust(authorities).map(Arc::new));
        found.clone().map_err(|fault| io::Error::new(ErrorKind::InvalidInput, fault))
    }
}

/// The machine's own certificates, so that a company's count; the well-known ones where a machine has none.
fn trust(authorities: Option<&str>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for certificate in CertificateDer::pem_slice_iter(authorities.unwrap_or_default().as_bytes()) {
        let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("a certificate cannot be used: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

pub(crate) struct Connection {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Connection {
    pub(crate) fn open(order: &ModelOrder, trust: &Trust) -> io::Result<Connection> {
        let tcp = dial(&order.upstream)?;
        tcp.set_nodelay(true)?;
        probe(&tcp)?;
        let tls = match order.upstream.tls {
            true => Some(greet(&tcp, &order.upstream, trust.config(order.authorities.as_deref())?)?),
            false => None,
        };
        tcp.set_nonblocking(true)?;
        Ok(Connection { tcp, tls })
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Whether what was read of the network may hold more than was asked for, so that polling would not show it.
    pub(crate) fn may_hold_more(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether something is still to be written, whoever wrote it.
    pub(crate) fn wants_to_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&self.tcp).read(bytes) };
        loop {
            match tls.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            // At the end of the stream it is the next look that says whether the end was announced.
            tls.read_tls(&mut &self.tcp)?;
            tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let Some(tls) = &mut self.tls else { return (&self.tcp).write(bytes) };
        let written = tls.writer().write(bytes)?;
        match self.flush() {
            // It is taken; the rest goes when there is room.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(written),
            flushed => flushed.map(|()| written),
        }
    }

    /// Writes what TLS still has to say.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut &self.tcp)?;
        }
        Ok(())
    }
}

/// Connects to the first of the host's addresses that answers.
pub(crate) fn dial(upstream: &Upstream) -> io::Result<TcpStream> {
    let found: Vec<SocketAddr> = (upstream.host.as_str(), upstream.port).to_socket_addrs()?.collect();
    let deadline = Instant::now() + GATEWAY_CONNECT_TIME;
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in found {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn probe(tcp: &TcpStream) -> io::Result<()> {
    set_socket_keepalive(tcp, true)?;
    set_tcp_keepidle(tcp, MODEL_PROBE)?;
    set_tcp_keepintvl(tcp, MODEL_PROBE)?;
    set_tcp_keepcnt(tcp, MODEL_PROBES)?;
    Ok(())
}

pub(crate) fn greet(
    tcp: &TcpStream,
    upstream: &Upstream,
    config: Arc<ClientConfig>,
) -> io::Result<Box<ClientConnection>> {
    let invalid = |error: &dyn std::fmt::Display| io::Error::new(ErrorKind::InvalidInput, error.to_string());
    let name = ServerName::try_from(upstream.host.clone()).map_err(|error| invalid(&error))?;
    let mut tls = Box::new(ClientConnection::new(config, name).map_err(|error| invalid(&error))?);
    let mut timed = Timed::until(tcp, Instant::now() + MODEL_TLS_TIME);
    while tls.is_handshaking() {
        tls.complete_io(&mut timed).map_err(|error| match error.kind() {
            ErrorKind::TimedOut => io::Error::new(ErrorKind::TimedOut, "no agreement on TLS in time"),
            _ => error,
        })?;
    }
    Ok(tls)
}
