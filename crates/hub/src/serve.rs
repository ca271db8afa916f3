//! The listener: who comes, what they want, and whether they may.

use std::{
    fs, io,
    io::Write,
    net::{TcpListener, TcpStream},
    os::unix::fs::OpenOptionsExt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    Reason, Refusal,
    hub::{Forwarded, Listed},
};
use ostler_gateway::{
    MADE_WITH, Timed, is_an_authority,
    socket::{self, Stream},
};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    Options, Sort,
    house::{self, House, PAGE},
    http::{self, HEARD_WITHIN, Reply, Request, Unread, WITHIN},
    keys::{Key, make_private},
    node, page,
    places::{Place, Places, Shown},
    relay,
};

/// How often a silent stream says that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const COOKIE: &str = "ostler_hub";

struct Hub {
    house: Arc<House>,
    tls: Option<Arc<ServerConfig>>,
    port: u16,
    own: String,
    hosts: Vec<String>,
    places: Arc<Places>,
}

/// Serves until the process ends.
pub fn run(options: &Options) -> Result<(), Refusal> {
    let refused = |what: &str, error: &dyn std::fmt::Display| {
        Refusal::invalid(format!("the hub cannot {what}")).because(error.to_string())
    };
    make_private(&options.dir).map_err(|error| refused("use its directory", &error))?;
    let lock = options.dir.join("hub.lock");
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock);
    let lock = lock.map_err(|error| refused("use its directory", &error))?;
    if lock.try_lock().is_err() {
        return Err(Refusal::invalid("a hub runs in this directory already"));
    }
    let tls = options.tls.as_ref().map(|(certificate, key)| server_config(certificate, key)).transpose();
    let tls = tls.map_err(|error| refused("use its certificate", &error))?;
    let house = House::open(&options.dir).map_err(|error| refused("read what it has", &error))?;
    let listener = TcpListener::bind(options.listen).map_err(|error| refused("listen there", &error))?;
    let address = listener.local_addr().map_err(|error| refused("listen there", &error))?;
    let hub = Arc::new(Hub {
        house: Arc::new(house),
        port: address.port(),
        own: address.to_string(),
        hosts: options.hosts.clone(),
        places: Arc::default(),
        tls,
    });
    raise_descriptor_limit();
    let scheme = if hub.tls.is_some() { "https" } else { "http" };
    let mut out = io::stdout();
    let _ = writeln!(out, "{scheme}://{address}").and_then(|()| out.flush());
    for stream in listener.incoming() {
        let Ok(tcp) = stream else {
            // As when descriptors have run out.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let (hub, tcp) = (Arc::clone(&hub), Arc::new(tcp));
        let place = hub.places.enter(&tcp);
        // Whoever breaks off is not worth a word; and for whom there is no thread, there is no room.
        let _ = thread::Builder::new().spawn(move || hub.connection(tcp, place));
    }
    drop(lock);
    Ok(())
}

/// Each connection takes one or a few, and the usual soft limit of 1024 is less than there are places.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it there is room for fewer.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn server_config(certificate: &std::path::Path, key: &std::path::Path) -> Result<Arc<ServerConfig>, String> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).map_err(|error| error.to_string())?.collect();
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_no_client_auth();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.first().is_some_and(is_an_authority) {
        return Err(format!(
            "it is an authority's own (CA:TRUE), and no machine takes that for a hub's: {MADE_WITH} makes one that is taken"
        ));
    }
    Ok(Arc::new(config.with_single_cert(certificates, key).map_err(|error| error.to_string())?))
}

impl Hub {
    fn connection(&self, tcp: Arc<TcpStream>, mut place: Place) -> io::Result<()> {
        tcp.set_nodelay(true)?;
        let timed = Timed::until(tcp, Instant::now() + WITHIN);
        let mut stream = match &self.tls {
            Some(config) => {
                let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                Stream::Server(Box::new(StreamOwned::new(tls, timed)))
            }
            None => Stream::Plain(timed),
        };
        let (request, beyond) = match http::read(&mut stream) {
            Ok(read) => read,
            Err(Unread::Gone(error)) => return Err(error),
            Err(Unread::Refused(reply)) => return reply.interrupt(&mut stream),
        };
        let Some(own) = self.own_origin(request.header("host").unwrap_or_default()) else {
            let refusal = Refusal::new(Reason::PermissionDenied, "this hub is not reached by that name")
                .because("its own names are localhost, 127.0.0.1, its address, and those given with --host")
                .hint("ostler hub run --host NAME", "adds that of a proxy or a tunnel");
            return Reply::refused(421, &refusal).write(&mut stream);
        };
        if request.path == "/v1/node" {
            return self.node(stream, &request, beyond, &mut place);
        }
        // Whoever asks may have a key; a page of somebody else's has no business with what it opens.
        if let Err(foreign) = request.check_origin(&own) {
            return Reply::foreign(foreign).write(&mut stream);
        }
        let is_viewer = self.viewer(&request).is_some();
        let shown = match is_viewer {
            true => Some(Shown::Key),
            false => request.path.starts_with("/n/").then_some(Shown::Share),
        };
        if shown.is_some_and(|shown| !place.has_shown(shown)) {
            return full().write(&mut stream);
        }
        if is_viewer && request.path == "/v1/events" && request.accepts_events() {
            return self.stream(stream, &request);
        }
        self.reply(&own, &request, is_viewer).write(&mut stream)
    }

    /// The origin by which it was reached, if that is one of its own: a name that leads here without being ours is
    /// somebody's who plays tricks (DNS rebinding).
    fn own_origin(&self, host: &str) -> Option<String> {
        let named = ostler_domain::http::origin(host, self.port, &self.hosts);
        let origin = named.or_else(|| (host == self.own).then(|| format!("http://{host}")))?;
        // With a certificate of its own there is no other way in.
        Some(match origin.strip_prefix("http://") {
            Some(host) if self.tls.is_some() => format!("https://{host}"),
            _ => origin,
        })
    }

    fn node(
        &self,
        mut stream: Stream,
        request: &Request,
        beyond: Vec<u8>,
        place: &mut Place,
    ) -> io::Result<()> {
        // Browsers say where a page comes from, and no page is a node.
        if request.has("origin") {
            let refusal =
                Refusal::new(Reason::PermissionDenied, "no page is a node").because("it has an Origin");
            return Reply::refused(403, &refusal).write(&mut stream);
        }
        let key = request.bearer().and_then(|token| self.house.keys.of(token));
        let Some(key) = key.filter(|key| key.sort == Sort::Node) else { return unknown().write(&mut stream) };
        if !place.has_shown(Shown::Key) {
            return full().write(&mut stream);
        }
        let is_upgrade = request.header("upgrade").is_some_and(|word| word.eq_ignore_ascii_case("websocket"));
        match request.header("sec-websocket-key").filter(|_| is_upgrade && request.method == "GET") {
            Some(shaken) => {
                let socket = socket::accept(stream, shaken, beyond)?;
                node::serve(&self.house, &key, socket);
                Ok(())
            }
            None => {
                let refusal = Refusal::invalid("this is a WebSocket").because("GET with Upgrade: websocket");
                Reply::refused(400, &refusal).write(&mut stream)
            }
        }
    }

    /// Somebody who looks: with a token, or as a browser that has one.
    fn viewer(&self, request: &Request) -> Option<Key> {
        let secret = request.bearer().or_else(|| request.cookie(COOKIE))?;
        self.house.keys.of(secret).filter(|key| key.sort == Sort::Viewer)
    }

    fn reply(&self, own: &str, request: &Request, is_viewer: bool) -> Reply {
        let path = request.path.as_str();
        if path == "/healthz" {
            return Reply { status: 200, headers: Vec::new(), body: b"ok\n".to_vec() };
        }
        if path.starts_with("/n/") {
            return relay::relay(&self.house, own, request);
        }
        if request.method != "GET" {
            let refusal = Refusal::invalid("this cannot be done here").because("a hub is looked at");
            return Reply::refused(405, &refusal);
        }
        if let Some(secret) = path.strip_prefix("/open/") {
            return self.let_in(own, secret);
        }
        if path == "/page.js" {
            return Reply::text("text/javascript; charset=utf-8", page::SCRIPT);
        }
        if !is_viewer {
            return unknown();
        }
        match path {
            "/" => Reply::html(page::page(&self.house.listed(), house::now())),
            "/v1/nodes" => Reply::json(
                200,
                json!({"nodes": self.house.listed().iter().map(node_form).collect::<Vec<_>>()}).to_string(),
            ),
            "/v1/sessions" => {
                let rows: Vec<Value> = self.house.listed().iter().flat_map(session_forms).collect();
                Reply::json(200, json!({"sessions": rows, "next_cursor": null}).to_string())
            }
            "/v1/events" => self.events(request),
            _ => Reply::nowhere("/, /v1/nodes, /v1/sessions, /v1/events"),
        }
    }

    /// Takes a viewer's token for a cookie, and the token out of the address.
    fn let_in(&self, own: &str, secret: &str) -> Reply {
        if self.house.keys.of(secret).is_none_or(|key| key.sort != Sort::Viewer) {
            return unknown();
        }
        // Who comes by another name than the machine's own comes through something that speaks TLS.
        let secure = if own.starts_with("https:") { "; Secure" } else { "" };
        let cookie = format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000{secure}");
        // A page that goes on by itself, and no redirect: who clicks the link on somebody else's page would be sent on
        // without the cookie.
        let mut page = Reply::html(page::come_in());
        page.headers.push(("set-cookie", cookie));
        page
    }

    fn events(&self, request: &Request) -> Reply {
        let place = match request.place("after", request.asked("after")) {
            Ok(place) => place,
            Err(refusal) => return Reply::refused(400, &refusal),
        };
        match self.events_of(request, place.unwrap_or(0)) {
            Ok(events) => {
                let next = events.last().filter(|_| events.len() == PAGE).map(|event| event.seq);
                let rows: Vec<&Value> = events.iter().map(|event| &event.event).collect();
                Reply::json(
                    200,
                    json!({"events": rows, "next_cursor": next.map(|next| next.to_string())}).to_string(),
                )
            }
            Err(reply) => reply,
        }
    }

    fn events_of(&self, request: &Request, after: u64) -> Result<Vec<Forwarded>, Reply> {
        let Some(name) = request.asked("node") else {
            let refusal = Refusal::invalid("whose events?").because("node=NAME: each has a log of its own");
            return Err(Reply::refused(400, &refusal));
        };
        match self.house.events(name, after) {
            Some(Ok(events)) => Ok(events),
            Some(Err(refusal)) => {
                let status = if refusal.reason == Reason::CursorUnknown { 400 } else { 500 };
                Err(Reply::refused(status, &refusal))
            }
            None => {
                let refusal = Refusal::new(Reason::NodeUnknown, "there is no such node");
                Err(Reply::refused(404, &refusal.because("/v1/nodes lists them")))
            }
        }
    }

    /// The log of a node as it grows; the id of each message is its place there.
    fn stream(&self, mut stream: Stream, request: &Request) -> io::Result<()> {
        let seen = request.place("Last-Event-ID", request.header("last-event-id"));
        let asked = request.place("after", request.asked("after"));
        let (seen, asked) = match (seen, asked) {
            (Ok(seen), Ok(asked)) => (seen, asked),
            (Err(refusal), _) | (_, Err(refusal)) => {
                return Reply::refused(400, &refusal).write(&mut stream);
            }
        };
        let mut after = seen.or(asked).unwrap_or(0);
        // Who lost the stream hears of a place that is gone by an event of it: a browser takes nothing else for an answer,
        // and would never come again. Who asks for a place hears that there is none.
        match self.events_of(request, if seen.is_some() { 0 } else { after }) {
            Ok(_) => {}
            Err(reply) => return reply.write(&mut stream),
        }
        let name = request.asked("node").unwrap_or_default();
        let headers = [("content-type", "text/event-stream".to_owned())];
        stream.set_until(Some(Instant::now() + HEARD_WITHIN));
        stream.write_all(http::head(200, &headers, None).as_bytes())?;
        stream.flush()?;
        loop {
            let events = self.house.await_events(name, after, SIGN_OF_LIFE);
            // Whose key was taken back hears nothing more, and nobody of a machine whose was.
            let (Some(events), Some(_)) = (events, self.viewer(request)) else { return Ok(()) };
            stream.set_until(Some(Instant::now() + HEARD_WITHIN));
            let events = match events {
                Ok(events) => events,
                // With the empty id a browser forgets the place it was at, and comes again as it came first.
                Err(refusal) => {
                    write!(stream, "event: reset\nid:\ndata: {}\n\n", http::error(&refusal))?;
                    return stream.flush();
                }
            };
            if events.is_empty() {
                stream.write_all(b":\n\n")?;
            }
            for event in &events {
                write!(stream, "id: {}\ndata: {}\n\n", event.seq, event.event)?;
                after = event.seq;
            }
            stream.flush()?;
        }
    }
}

/// Nobody else can be served now, whoever they are.
fn full() -> Reply {
    let refusal = Refusal::new(Reason::Busy, "this hub has no room for one more")
        .because("it serves as many at once as it can: somebody has to go first");
    Reply::refused(503, &refusal)
}

fn unknown() -> Reply {
    let refusal = Refusal::new(Reason::PermissionDenied, "nobody knows who asks")
        .because("there is neither a key nor a cookie, or it is none that is known")
        .hint("ostler hub viewer add NAME", "makes a key for somebody who looks")
        .hint("ostler hub node add NAME", "makes one for a machine");
    Reply::refused(401, &refusal)
}

fn node_form(node: &Listed) -> Value {
    json!({"name": node.name, "node": node.node, "stale_since": node.stale_since, "sessions": node.rows.len()})
}

fn session_forms(node: &Listed) -> Vec<Value> {
    let with_node = |session: &Value| {
        let mut session = session.clone();
        if let Some(fields) = session.as_object_mut() {
            fields.insert("node".to_owned(), json!(node.name));
            if let Some(since) = &node.stale_since {
                fields.insert("stale_since".to_owned(), json!(since));
            }
        }
        session
    };
    node.rows.iter().map(|row| with_node(&row.session)).collect()
}
