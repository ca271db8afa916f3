//! What the gRPC door knows of the HTTP one: that it can be opened, and who may come in by it. And the way from that
//! door to this one.

use std::{future::Future, io, pin::Pin, time::Duration};

use ostler_domain::{
    Reason, Refusal,
    event::By,
    hub::Listed,
    share::{Access, Scope},
};
use ostler_wire::reply::{HttpToken, NewShare, NewToken, Share, WayIn};
use tokio::{net::UnixStream, sync::mpsc};

use crate::{peer::Peer, socket::Connection};

/// Connections that wait to be taken; they are taken at once.
const WAITING: usize = 16;

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// The HTTP door, as it is asked for by the control socket.
pub trait HttpDoor: Send + Sync {
    /// Opens it, if it is closed, and makes a link.
    fn open<'a>(&'a self, by: &'a By, person: Option<&'a str>, path: &'a str) -> Answer<'a, WayIn>;
    /// Closes it, and says whether it was open.
    fn close<'a>(&'a self, by: &'a By) -> Answer<'a, bool>;
    fn create_token<'a>(&'a self, by: &'a By, name: &'a str, read_only: bool) -> Answer<'a, NewToken>;
    fn tokens(&self) -> Answer<'_, Vec<HttpToken>>;
    fn revoke_token<'a>(&'a self, by: &'a By, token: &'a str) -> Answer<'a, HttpToken>;
    fn create_share<'a>(
        &'a self,
        by: &'a By,
        name: &'a str,
        access: Access,
        scope: Scope,
        lives: Duration,
    ) -> Answer<'a, NewShare>;
    fn shares(&self) -> Answer<'_, Vec<Share>>;
    fn revoke_share<'a>(&'a self, by: &'a By, share: &'a str) -> Answer<'a, Share>;
    /// What all machines of the hub list.
    fn hub_lists(&self) -> Answer<'_, Vec<Listed>>;
}

/// Makes connections from within the daemon: they are the HTTP door's, and each is somebody's by name.
#[derive(Debug, Clone)]
pub struct Indoors {
    taken: mpsc::Sender<io::Result<Connection>>,
}

/// Where they arrive.
#[derive(Debug)]
pub struct Arrivals {
    pub(crate) connections: mpsc::Receiver<io::Result<Connection>>,
}

impl Indoors {
    pub fn new() -> (Indoors, Arrivals) {
        let (taken, connections) = mpsc::channel(WAITING);
        (Indoors { taken }, Arrivals { connections })
    }

    /// A connection on which everything is asked for this person.
    pub async fn connect(&self, person: &str) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        let connection = Connection { peer: Peer::within(&far, person), stream: far };
        self.taken.send(Ok(connection)).await.map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(near)
    }
}

/// For whoever serves without one.
#[derive(Debug)]
pub struct NoDoor;

fn no_door<'a, T>() -> Answer<'a, T> {
    Box::pin(async { Err(Refusal::new(Reason::WrongState, "there is no HTTP door here")) })
}

impl HttpDoor for NoDoor {
    fn open<'a>(&'a self, _: &'a By, _: Option<&'a str>, _: &'a str) -> Answer<'a, WayIn> {
        no_door()
    }

    fn close<'a>(&'a self, _: &'a By) -> Answer<'a, bool> {
        no_door()
    }

    fn create_token<'a>(&'a self, _: &'a By, _: &'a str, _: bool) -> Answer<'a, NewToken> {
        no_door()
    }

    fn tokens(&self) -> Answer<'_, Vec<HttpToken>> {
        no_door()
    }

    fn revoke_token<'a>(&'a self, _: &'a By, _: &'a str) -> Answer<'a, HttpToken> {
        no_door()
    }

    fn create_share<'a>(
        &'a self,
        _: &'a By,
        _: &'a str,
        _: Access,
        _: Scope,
        _: Duration,
    ) -> Answer<'a, NewShare> {
        no_door()
    }

    fn shares(&self) -> Answer<'_, Vec<Share>> {
        no_door()
    }

    fn revoke_share<'a>(&'a self, _: &'a By, _: &'a str) -> Answer<'a, Share> {
        no_door()
    }

    fn hub_lists(&self) -> Answer<'_, Vec<Listed>> {
        no_door()
    }
}
