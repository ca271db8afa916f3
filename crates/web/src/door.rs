//! The door itself: closed until somebody opens it, then a listener on the machine's own addresses.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_client::{
    Client, Home,
    reply::{HttpToken, NewShare, NewToken, Share, WayIn},
};
use ostler_domain::{
    Reason, Refusal, Time,
    event::is_person,
    http::{self, HttpSettings},
    share::{Access, Scope},
};
use tokio::{
    net::{TcpListener, UnixStream},
    sync::watch,
};

use crate::{
    checkup::Checkup,
    crowd::Crowd,
    feed::Feed,
    ring::{Ring, Shared},
    serve,
    uplink::Uplink,
};

/// How what is done by somebody who has not said their name is recorded.
const NAMELESS: &str = "web";
/// How long whoever closes the door waits for those who are inside to be gone.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// By whom, what, and about what.
pub type Audit = Box<dyn Fn(&str, &'static str, &str) + Send + Sync>;
type Connected = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>>;

/// What the door needs of the daemon that it is a part of.
pub struct Household {
    pub home: Home,
    /// Ostler's own program.
    pub program: PathBuf,
    /// Makes a connection to the daemon's own services, on which everything is asked for this person.
    pub connect: Box<dyn Fn(String) -> Connected + Send + Sync>,
    /// What is said of the door by now.
    pub settings: Box<dyn Fn() -> Result<HttpSettings, Refusal> + Send + Sync>,
    /// Writes down who was let in, and who was not: by whom, what, and about what.
    pub audit: Audit,
}

/// The HTTP door. Clones are the same one.
#[derive(Clone)]
pub struct Door {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) household: Household,
    pub(crate) ring: Ring,
    open: Mutex<Option<Open>>,
    pub(crate) uplink: Uplink,
    pub(crate) checkup: Checkup,
    pub(crate) feed: Feed,
    pub(crate) crowd: Arc<Crowd>,
    /// Connections to the daemon's services, by the person that they are for.
    clients: Mutex<HashMap<String, Client>>,
}

/// A door that is open.
struct Open {
    address: SocketAddr,
    /// Told, or dropped, it ends the listeners and everybody who is served.
    end: watch::Sender<()>,
}

impl Door {
    /// A door that is closed, unless the settings or the daemon before say that it is open.
    pub async fn new(household: Household) -> Result<Door, Refusal> {
        let file: PathBuf = household.home.state().join("http.json");
        let ring = Ring::read(file)?;
        let checkup = Checkup::new(household.program.clone());
        let inner = Inner {
            household,
            checkup,
            ring,
            open: Mutex::default(),
            uplink: Uplink::default(),
            feed: Feed::default(),
            crowd: Arc::default(),
            clients: Mutex::default(),
        };
        let door = Door { inner: Arc::new(inner) };
        let settings = (door.inner.household.settings)()?;
        let before = door.inner.ring.open_at();
        // Any port means that of the daemon before: browsers come back to it.
        let said = settings.listen.map(|said| if said.port() == 0 { before.unwrap_or(said) } else { said });
        if let Some(address) = said.or(before) {
            // A daemon is of use without it; whoever opens it hears why it stays closed.
            if let Err(refusal) = door.listen(address).await {
                tracing::error!(%refusal, "the HTTP door stays closed");
            }
        }
        Ok(door)
    }

    /// Opens it, if it is closed, and makes a link that lets one browser in.
    pub async fn open(&self, by: &str, person: Option<&str>, path: &str) -> Result<WayIn, Refusal> {
        let settings = (self.inner.household.settings)()?;
        let address = match self.address() {
            Some(address) => address,
            None => self.listen_somewhere(&settings).await?,
        };
        self.inner.ring.set_open_at(Some(address))?;
        let person = person.filter(|person| is_person(person)).unwrap_or(NAMELESS);
        let (secret, expires) = self.inner.ring.link(person, http::page(path));
        (self.inner.household.audit)(by, "http_link", person);
        let own = format!("http://{address}");
        Ok(WayIn {
            link: format!("{own}/open/{secret}"),
            address: own,
            expires,
            allowed_hosts: settings.allowed_hosts,
        })
    }

    /// A link that lets whoever follows it first see and answer one approval, until its deadline. None where nobody could
    /// follow it.
    pub fn approval_link(&self, channel: &str, approval: &str, page: &str, until: Time) -> Option<String> {
        let base = self.base()?;
        let person = Some(channel).filter(|channel| is_person(channel)).unwrap_or(NAMELESS);
        let secret = match self.inner.ring.approval_link(person, approval, page, until) {
            Ok(secret) => secret,
            Err(refusal) => {
                tracing::warn!(%refusal, "a notice goes out without its link");
                return None;
            }
        };
        (self.inner.household.audit)(person, "http_link", approval);
        Some(format!("{base}/open/{secret}"))
    }

    /// The address of a page, for whoever is let in already.
    pub fn page_link(&self, page: &str) -> Option<String> {
        Some(format!("{}{}", self.base()?, http::page(page)))
    }

    /// How the door is reached from elsewhere; else from this machine; not at all while it is closed.
    fn base(&self) -> Option<String> {
        let address = self.address()?;
        let allowed = self.allowed_hosts();
        Some(allowed.first().map_or_else(|| format!("http://{address}"), |host| format!("https://{host}")))
    }

    /// Closes it, and says whether it was open. By then nobody gets in by it any more.
    pub async fn close(&self, by: &str) -> Result<bool, Refusal> {
        let open = self.state().take();
        self.inner.ring.set_open_at(None)?;
        (self.inner.household.audit)(by, "http_close", "");
        let Some(Open { end, .. }) = open else { return Ok(false) };
        end.send_replace(());
        // Whoever is served leaves at once; nobody is waited for who does not.
        let _ = tokio::time::timeout(CLOSED_WITHIN, end.closed()).await;
        Ok(true)
    }

    pub fn create_token(&self, by: &str, name: &str, read_only: bool) -> Result<NewToken, Refusal> {
        let (token, secret) = self.inner.ring.create_token(name, read_only)?;
        (self.inner.household.audit)(by, "token_create", name);
        Ok(NewToken { token, secret })
    }

    pub fn tokens(&self) -> Vec<HttpToken> {
        self.inner.ring.tokens()
    }

    pub fn revoke_token(&self, by: &str, named: &str) -> Result<HttpToken, Refusal> {
        let token = self.inner.ring.revoke(named)?;
        (self.inner.household.audit)(by, "token_revoke", &token.name);
        Ok(token)
    }

    /// Shares a part of this machine for a while.
    pub fn create_share(
        &self,
        by: &str,
        name: &str,
        access: Access,
        scope: Scope,
        lives: Duration,
    ) -> Result<NewShare, Refusal> {
        let made = self.inner.ring.create_share(name, Shared { access, scope }, lives)?;
        (self.inner.household.audit)(by, "share_create", &format!("{name} {} {scope}", access.as_str()));
        Ok(made)
    }

    pub fn shares(&self) -> Vec<Share> {
        self.inner.ring.shares()
    }

    pub fn revoke_share(&self, by: &str, named: &str) -> Result<Share, Refusal> {
        let share = self.inner.ring.revoke_share(named)?;
        (self.inner.household.audit)(by, "share_revoke", &share.name);
        Ok(share)
    }

    /// Where it is, while it is open.
    pub fn address(&self) -> Option<SocketAddr> {
        self.state().as_ref().map(|open| open.address)
    }

    /// Whoever is asked for this person.
    pub(crate) fn client(&self, person: &str) -> Client {
        let mut clients = self.inner.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(person) {
            return client.clone();
        }
        let (door, name) = (self.clone(), person.to_owned());
        let connect = move || (door.inner.household.connect)(name.clone());
        let client = Client::within(&self.inner.household.home, connect);
        clients.insert(person.to_owned(), client.clone());
        client
    }

    /// For what is read for everybody.
    pub(crate) fn own_client(&self) -> Client {
        self.client(NAMELESS)
    }

    pub(crate) fn allowed_hosts(&self) -> Vec<String> {
        (self.inner.household.settings)().map(|settings| settings.allowed_hosts).unwrap_or_default()
    }

    pub(crate) fn let_in(&self, person: &str) {
        (self.inner.household.audit)(person, "http_login", person);
    }

    /// Where the settings say; else where it was before, or usually is, or wherever there is room: other people of this
    /// machine may have a door too.
    async fn listen_somewhere(&self, settings: &HttpSettings) -> Result<SocketAddr, Refusal> {
        if let Some(address) = settings.listen {
            return self.listen(address).await;
        }
        let usual = self.inner.ring.open_at().unwrap_or_else(http::usual_address);
        match self.listen(usual).await {
            Err(_) => self.listen(SocketAddr::new(usual.ip(), 0)).await,
            opened => opened,
        }
    }

    async fn listen(&self, address: SocketAddr) -> Result<SocketAddr, Refusal> {
        let refused = |error: io::Error| {
            Refusal::new(Reason::InvalidArgument, format!("the HTTP door cannot listen on {address}"))
                .because(error.to_string())
                .hint("ostler config set http.listen 127.0.0.1:PORT", "says where it listens")
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let mut listeners = vec![listener];
        if address.ip().is_ipv4() {
            // `localhost` may mean either of the two.
            let other = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), address.port());
            listeners.extend(TcpListener::bind(other).await.ok());
        }
        let (end, ended) = watch::channel(());
        for listener in listeners {
            tokio::spawn(serve::serve(self.clone(), listener, address.port(), ended.clone()));
        }
        tracing::info!(%address, "the HTTP door is open");
        *self.state() = Some(Open { address, end });
        Ok(address)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Option<Open>> {
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
