//! The connection: one channel, made on an open socket, that opens itself again when the daemon comes back.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper_util::rt::TokioIo;
use ostler_domain::{RequestId, home::Home, provider::CallerKeys};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::{Error, call::CALL_LIMIT, error::is_nobody, relay, socket, start};

/// A connection to the daemon. Clones share it.
///
/// Every method asks one thing of the daemon; those that change something happen once, however often the
/// connection breaks in between.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) channel: Channel,
    pub(crate) home: Arc<Home>,
    /// Set while a daemon may be started in place of one that died before it answered anything.
    pub(crate) starter: Option<Arc<Starter>>,
    /// What goes along with whatever starts an agent.
    pub(crate) keys: Arc<CallerKeys>,
    /// The name of the change that is asked for; none, and each has a fresh one.
    pub(crate) request: Option<RequestId>,
}

/// What starts a daemon, until one has answered. Later a daemon that is gone was stopped by somebody, and stays so.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) program: PathBuf,
    pub(crate) answered: AtomicBool,
}

impl Client {
    /// Connects to the daemon of this home. Fails at once with [`Error::Unreachable`] when none is there.
    pub async fn connect(home: &Home) -> Result<Client, Error> {
        let path = socket::path(home);
        match socket::connect(&path).await {
            Ok(stream) => {
                let here = Arc::new(home.clone());
                // A new daemon may listen elsewhere.
                let again = move || {
                    let home = Arc::clone(&here);
                    async move { socket::connect(&socket::path(&home)).await }
                };
                Ok(Client::over(Arc::new(Mutex::new(Some(stream))), home, again))
            }
            Err(source) => Err(Error::Unreachable { socket: path, source }),
        }
    }

    /// Connects, and starts a daemon first when none is there: `<program> daemon run --background`, detached.
    /// Waits until it answers, ten seconds at most. With `OSTLER_NO_AUTOSTART` in the environment it starts none.
    pub async fn connect_or_start(home: &Home, program: &Path) -> Result<Client, Error> {
        let no = std::env::var_os("OSTLER_NO_AUTOSTART");
        if !start::is_allowed(no.as_deref()) {
            return Client::connect(home).await;
        }
        let client = match Client::connect(home).await {
            Err(Error::Unreachable { source, .. }) if is_nobody(&source) => {
                start::start(home, program).await?
            }
            outcome => outcome?,
        };
        let starter = Starter { program: program.to_owned(), answered: AtomicBool::new(false) };
        Ok(Client { starter: Some(Arc::new(starter)), ..client })
    }

    /// A client within the daemon itself, on what `connect` opens.
    pub fn within<F>(home: &Home, connect: impl Fn() -> F + Clone + Send + Sync + 'static) -> Client
    where
        F: Future<Output = io::Result<UnixStream>> + Send + 'static,
    {
        Client::over(Arc::default(), home, connect)
    }

    /// Brings keys of models along with everything that starts an agent: values of variables of this process's
    /// environment, by their names. The daemon takes the one that the provider is configured to need, and keeps it in
    /// memory only.
    #[must_use]
    pub fn with_keys(self, keys: CallerKeys) -> Client {
        Client { keys: Arc::new(keys), ..self }
    }

    /// For one change, by a name of the caller's: asked for again by the same name, by whatever client, it is answered and
    /// not done again; another change by this name is refused.
    #[must_use]
    pub fn as_request(self, id: RequestId) -> Client {
        Client { request: Some(id), ..self }
    }

    /// The directories of the daemon that this is connected to.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Whether the daemon has answered anything yet. Only known of a client that may start one.
    pub fn has_answered(&self) -> bool {
        self.starter.as_ref().is_none_or(|starter| starter.answered.load(Ordering::Relaxed))
    }

    /// On an open stream first, and on what `again` opens whenever that one has broken.
    pub(crate) fn over<F>(
        first: Arc<Mutex<Option<UnixStream>>>,
        home: &Home,
        again: impl Fn() -> F + Clone + Send + Sync + 'static,
    ) -> Client
    where
        F: Future<Output = io::Result<UnixStream>> + Send + 'static,
    {
        let home = Arc::new(home.clone());
        let connector = tower::service_fn(move |_: Uri| {
            let (open, again) = (relay::take(&first), again.clone());
            async move {
                let stream = match open {
                    Some(stream) => stream,
                    None => again().await?,
                };
                Ok::<_, io::Error>(TokioIo::new(stream))
            }
        });
        // The address is for HTTP's sake: the connector knows the way.
        let endpoint = Endpoint::from_static("http://ostler").timeout(CALL_LIMIT);
        Client {
            channel: endpoint.connect_with_connector_lazy(connector),
            home,
            starter: None,
            keys: Arc::default(),
            request: None,
        }
    }
}
