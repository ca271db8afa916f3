//! The hub: two machines' logs in one place, however the way breaks; and shares, which the machine itself decides.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use ostler_client::{Client, CreateSession, ListEvents, Place};
use ostler_domain::{
    query::EventFilter,
    session::{Approve, View},
};
use ostler_testkit::{Seed, TestHome, private::open_to_others, scenario, wait};
use serde_json::{Value, json};

use crate::{
    OSTLER,
    dashboard::{Browser, pictures},
    http::{Answer, ask},
    missions::{json_of, ok},
};

/// A hub, as a process of its own.
struct Hub {
    dir: tempfile::TempDir,
    address: SocketAddr,
    process: Child,
    viewer: String,
    /// Names by which it is reached.
    hosts: Vec<String>,
}

impl Hub {
    fn new() -> Hub {
        Hub::at(free_address(), Vec::new())
    }

    fn at(address: SocketAddr, hosts: Vec<String>) -> Hub {
        let dir = tempfile::tempdir().unwrap();
        let process = Hub::start(&dir, address, &hosts);
        let viewer = key(&dir, &["viewer", "add", "ann"]);
        Hub { dir, address, process, viewer, hosts }
    }

    fn start(dir: &tempfile::TempDir, address: SocketAddr, hosts: &[String]) -> Child {
        let hosts: Vec<&str> = hosts.iter().flat_map(|host| ["--host", host]).collect();
        Hub::spawn(dir, address, &hosts, "http")
    }

    fn spawn(dir: &tempfile::TempDir, address: SocketAddr, more: &[&str], scheme: &str) -> Child {
        let mut process = command(dir, &["run", "--listen", &address.to_string()])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), format!("{scheme}://{address}"));
        process
    }

    /// One with a certificate of its own, for localhost.
    fn with_tls() -> Hub {
        let (dir, address) = (tempfile::tempdir().unwrap(), free_address());
        let [cert, key_file] = ["server.pem", "server.key"].map(tls);
        let more = ["--cert", cert.to_str().unwrap(), "--key", key_file.to_str().unwrap()];
        let process = Hub::spawn(&dir, address, &more, "https");
        let viewer = key(&dir, &["viewer", "add", "ann"]);
        Hub { dir, address, process, viewer, hosts: Vec::new() }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn restart(&mut self) {
        self.kill();
        self.process = Hub::start(&self.dir, self.address, &self.hosts);
    }

    fn node(&self, name: &str, more: &[&str]) -> String {
        key(&self.dir, &[&["node", "add", name], more].concat())
    }

    fn host(&self) -> String {
        self.address.to_string()
    }

    fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", self.viewer);
        ask(&self.host(), &format!("GET {path}"), &[("host", &self.host()), ("authorization", &bearer)], "")
    }

    /// The places of a node's events that it has.
    fn seqs(&self, node: &str) -> Vec<u64> {
        let (mut seqs, mut after) = (Vec::new(), 0);
        loop {
            let page = self.get(&format!("/v1/events?node={node}&after={after}"));
            if page.status == 404 {
                return seqs;
            }
            let page = page.json();
            seqs.extend(
                page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => after = next.parse().unwrap(),
                None => return seqs,
            }
        }
    }

    /// What somebody with a share asks of a node.
    fn asked(&self, method: &str, path: &str, token: &str, body: &str, more: &[(&str, &str)]) -> Answer {
        let (host, bearer) = (self.host(), format!("Bearer {token}"));
        let headers =
            [("host", host.as_str()), ("authorization", &bearer), ("content-type", "application/json")];
        ask(&host, &format!("{method} {path}"), &[&headers, more].concat(), body)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody has, and that a hub has again after it was killed.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn command(dir: &tempfile::TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(OSTLER);
    command.args(["hub", "--dir"]).arg(dir.path().join("hub")).args(args).env("OSTLER_HOME", dir.path());
    command
}

fn key(dir: &tempfile::TempDir, args: &[&str]) -> String {
    let made = command(dir, args).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// A certificate for localhost, its key, and the authority that nobody trusts by itself.
fn tls(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/tests/gateway/tls").join(file)
}

/// A machine that is connected to a hub.
async fn node(hub: SocketAddr, token: &str, more: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    let file: PathBuf = home.path().join("hub-token");
    fs::write(&file, token).unwrap();
    home.configure(&format!("{more}[hub]\nurl = \"http://{hub}\"\ntoken_file = \"{}\"\n", file.display()));
    home.begin().await;
    home
}

/// A way that breaks after so many bytes, again and again, until it is told to hold.
struct Breaking {
    address: SocketAddr,
    broken: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
}

impl Breaking {
    fn to(hub: SocketAddr, mut seed: Seed, times: u64) -> Breaking {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (broken, left) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(times)));
        let (counted, allowed) = (Arc::clone(&broken), Arc::clone(&left));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(hub) else { continue };
                let room =
                    if allowed.load(Ordering::SeqCst) > 0 { 600 + seed.below(30_000) } else { u64::MAX };
                let room = Arc::new(Mutex::new(room));
                let ends = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
                for (from, to) in ends {
                    let (room, counted, allowed) =
                        (Arc::clone(&room), Arc::clone(&counted), Arc::clone(&allowed));
                    thread::spawn(move || carry(from, to, &room, &counted, &allowed));
                }
            }
        });
        Breaking { address, broken, left }
    }
}

/// Carries bytes until there is no room, and then cuts both ways, in the middle of whatever it was.
fn carry(mut from: TcpStream, mut to: TcpStream, room: &Mutex<u64>, broken: &AtomicU64, left: &AtomicU64) {
    let mut buffer = [0; 512];
    while let Ok(read) = from.read(&mut buffer) {
        let mut room = room.lock().unwrap();
        let pass = usize::try_from((*room).min(read as u64)).unwrap();
        if read == 0 || to.write_all(&buffer[..pass]).is_err() {
            break;
        }
        *room = room.saturating_sub(read as u64);
        if *room == 0 {
            broken.fetch_add(1, Ordering::SeqCst);
            let _ = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

async fn work(home: &TestHome, client: &Client) -> View {
    let steps = (0..40).map(|n| scenario::say(&format!("line {n} {}", "x".repeat(200)))).collect();
    let session = home.session(client, &scenario::of(steps)).await;
    home.reaches(&session.id.to_string(), "its end", |view| view.turns > 0).await
}

/// The places of all events that a node has.
async fn log(client: &Client) -> Vec<u64> {
    let (mut seqs, mut after) = (Vec::new(), 0);
    loop {
        let request = ListEvents { filter: EventFilter::default(), from: Place::After(after), limit: 500 };
        let page = client.events(&request).await.unwrap();
        seqs.extend(page.events.iter().map(ostler_client::Received::seq));
        match page.next {
            Some(next) => after = next,
            None => return seqs,
        }
    }
}

/// How often each way breaks at least.
const BREAKS: u64 = 3;

#[tokio::test]
async fn nothing_is_lost_or_doubled_however_often_the_way_breaks() {
    let mut seed = Seed::announced("hub");
    let address = free_address();
    let ways = [0, 1].map(|_| Breaking::to(address, Seed::of(seed.draw()), 2 * BREAKS));
    let mut hub = Hub::at(address, ways.iter().map(|way| way.address.to_string()).collect());
    let mut homes = Vec::new();
    for (name, way) in ["one", "other"].iter().zip(&ways) {
        let token = hub.node(name, &[]);
        homes.push(node(way.address, &token, "").await);
    }
    let mut clients = Vec::new();
    for home in &homes {
        clients.push(home.client().await);
    }
    wait::until("both to be known", wait::PATIENCE, || {
        hub.get("/v1/nodes").json()["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
    });
    // Nothing breaks where nothing is said: there is work until each way has broken a few times.
    let is_broken = || ways.iter().all(|way| way.broken.load(Ordering::SeqCst) >= BREAKS);
    let deadline = Instant::now() + wait::PATIENCE * 4;
    for round in 0.. {
        if round >= 3 && is_broken() {
            break;
        }
        assert!(Instant::now() < deadline, "the ways do not break");
        for (home, client) in homes.iter().zip(&clients) {
            work(home, client).await;
        }
        match round {
            0 => hub.restart(),
            1 => homes[0].kill_daemon(),
            _ => {}
        }
        clients[0] = homes[0].start().await;
    }
    ways.iter().for_each(|way| way.left.store(0, Ordering::SeqCst));
    for (name, client) in ["one", "other"].iter().zip(&clients) {
        let wanted = log(client).await;
        let last = *wanted.last().unwrap();
        // A way that breaks six times in vain makes a node wait for up to two minutes in all.
        wait::until("the hub to have it all", wait::PATIENCE * 5, || hub.seqs(name).last() >= Some(&last));
        let has: Vec<u64> = hub.seqs(name).into_iter().filter(|seq| *seq <= last).collect();
        let begun = has[0];
        let wanted: Vec<u64> = wanted.into_iter().filter(|seq| *seq >= begun).collect();
        assert_eq!(has, wanted, "{name}");
        assert!(has.len() > 100, "{name} has only {}", has.len());
    }
}

#[tokio::test]
async fn what_people_said_leaves_the_machine_without_secrets() {
    let hub = Hub::new();
    let token = hub.node("build", &[]);
    let home = node(hub.address, &token, "[http]\nlisten = \"127.0.0.1:0\"\n").await;
    let client = home.client().await;
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let session = home.session(&client, &format!("my key is {secret} use it")).await;
    let who = session.id.to_string();
    home.reaches(&who, "its turn to end", |view| view.turns > 0).await;
    let last = *log(&client).await.last().unwrap();
    wait::until("the hub to have it all", wait::PATIENCE, || hub.seqs("build").last() >= Some(&last));
    let copied = hub.get("/v1/events?node=build&after=0").body;
    assert!(copied.contains("my key is ghp_[redacted] use it") && !copied.contains(secret), "{copied}");
    let looks = ok(&home, &["share", &who, "--name", "looks"]);
    let path = format!("/n/build/v1/sessions/{who}/messages");
    let seen = hub.asked("GET", &path, &looks, "", &[]);
    assert_eq!(seen.status, 200, "{seen:?}");
    assert!(!seen.body.contains(secret), "{seen:?}");
    for form in ["jsonl", "markdown", "html"] {
        let exported = ok(&home, &["transcript", "export", &who, "--format", form]);
        assert!(exported.contains("ghp_[redacted]") && !exported.contains(secret), "{exported}");
    }
    // What is said to an agent is what somebody said.
    let told = ok(&home, &["events", "--session", &who, "--kind", "MESSAGE_ACCEPTED", "-o", "jsonl"]);
    assert!(told.contains(secret), "{told}");
}

#[tokio::test]
async fn a_share_allows_what_it_says_and_the_machine_decides() {
    let hub = Hub::new();
    let token = hub.node("build", &[]);
    let home = node(hub.address, &token, "[http]\nlisten = \"127.0.0.1:0\"\n").await;
    let client = home.client().await;
    let (mine, other) = (work(&home, &client).await, work(&home, &client).await);
    let share = |args: &[&str]| ok(&home, &[&["share", &mine.id.to_string()], args].concat());
    let (looks, speaks) = (share(&["--name", "looks"]), share(&["--name", "speaks", "--access", "interact"]));
    let shares = ok(&home, &["share", "ls"]);
    assert_eq!(shares.matches("1h 59m").count(), 2, "what is left is said to the minute: {shares}");
    wait::until("the machine to be connected", wait::PATIENCE, || {
        hub.asked("GET", &format!("/n/build/v1/sessions/{}", mine.id), &looks, "", &[]).status == 200
    });
    let at = |path: &str| format!("/n/build/v1/sessions/{}{path}", mine.id);
    let text = json!({"text": scenario::of(vec![scenario::say("from afar")])}).to_string();

    let seen = hub.asked("GET", &at(""), &looks, "", &[]).json();
    assert_eq!(seen["id"], mine.id.to_string());
    let events = hub.asked("GET", "/n/build/v1/events?session=other", &looks, "", &[]).json();
    let of = |event: &Value| event["session"].as_str() == Some(&mine.id.to_string());
    assert!(events["events"].as_array().unwrap().iter().all(of), "{events}");
    let refused = |token: &str, method: &str, path: &str, body: &str| {
        let answer = hub.asked(method, path, token, body, &[]);
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
        answer.body
    };
    let why = refused(&looks, "POST", &at("/messages"), &text);
    assert!(why.contains("--access interact"), "{why}");
    let elsewhere = refused(&looks, "GET", &format!("/n/build/v1/sessions/{}", other.id), "");
    let nowhere = refused(&looks, "GET", "/n/build/v1/sessions/nobody", "");
    assert_eq!(elsewhere, nowhere, "who is elsewhere and who is nowhere look the same");
    for path in ["/n/build/v1/sessions", "/n/build/v1/cost", "/n/build/v1/status", "/n/build/metrics"] {
        refused(&looks, "GET", path, "");
    }
    refused(&speaks, "POST", &at("/stop"), "{}");
    refused(&speaks, "POST", "/n/build/v1/halt", "{}");

    // Who steers lets it go on, and does not say what it may use.
    let steers = share(&["--name", "steers", "--access", "manage"]);
    let why = refused(&steers, "POST", &at("/resume"), r#"{"budget":"5usd"}"#);
    assert!(why.contains("PERMISSION_DENIED") && why.contains("limits"), "{why}");
    ok(&home, &["share", "rm", "steers"]);

    // Said twice, done once.
    for _ in 0..2 {
        let said = hub.asked("POST", &at("/messages"), &speaks, &text, &[("idempotency-key", "1")]);
        assert_eq!(said.status, 200, "{said:?}");
    }
    home.reaches(&mine.id.to_string(), "an answer", |view| view.turns > mine.turns).await;
    let messages = hub.asked("GET", &at("/messages"), &looks, "", &[]).json();
    let from_afar = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["text"].as_str().is_some_and(|text| text.contains("from afar")));
    let by: Vec<&str> = from_afar.map(|message| message["by"].as_str().unwrap()).collect();
    assert!(by.len() == 1 && by[0].ends_with("(share.speaks)"), "{by:?}");

    // Taken back, it is dead at once: also for what was answered before.
    let spoken = share(&["--name", "spoken", "--access", "interact"]);
    let interrupt =
        || hub.asked("POST", &at("/interrupt"), &spoken, "{}", &[("idempotency-key", "2")]).status;
    assert_eq!((interrupt(), interrupt()), (200, 200));
    ok(&home, &["share", "rm", "spoken"]);
    assert_eq!(interrupt(), 401);

    // The same at the machine's own door.
    let door = client.open_http("").await.unwrap().address;
    let host = door.strip_prefix("http://").unwrap();
    let bearer = format!("Bearer {looks}");
    let headers = [("host", host), ("authorization", bearer.as_str())];
    assert_eq!(ask(host, &format!("GET /v1/sessions/{}", mine.id), &headers, "").status, 200);
    assert_eq!(ask(host, &format!("GET /v1/sessions/{}", other.id), &headers, "").status, 403);
    assert_eq!(ask(host, "GET /sessions", &headers, "").status, 403, "no pages");
    // The scheme's case is nobody's business, here and at the hub.
    let (at_hub, bearer) = (hub.host(), format!("bearer {looks}"));
    for (host, path) in [(host, format!("/v1/sessions/{}", mine.id)), (at_hub.as_str(), at(""))] {
        let headers = [("host", host), ("authorization", bearer.as_str())];
        assert_eq!(ask(host, &format!("GET {path}"), &headers, "").status, 200, "{host}{path}");
    }

    let rows = json_of(&home, &["share", "ls"]);
    assert_eq!(rows["shares"].as_array().unwrap().len(), 2, "{rows}");
    ok(&home, &["share", "rm", "looks"]);
    assert_eq!(hub.asked("GET", &at(""), &looks, "", &[]).status, 401, "it was taken back");
    let short = share(&["--name", "short", "--for", "1s"]);
    wait::until("the share to end", wait::PATIENCE, || {
        hub.asked("GET", &at(""), &short, "", &[]).status == 401
    });

    // A hub passes nothing on but shares, and says when nobody is there.
    let api = ok(&home, &["api", "token", "add", "ci", "-q"]);
    assert_eq!(hub.asked("GET", &at(""), api.trim(), "", &[]).status, 401);
    assert_eq!(hub.asked("GET", "/n/nobody/v1/sessions/x", &speaks, "", &[]).status, 503);

    // A whole campaign, and no other; a stream is not passed on, which is said.
    let whole = ok(&home, &["share", "shop", "--name", "whole"]);
    let named = |campaign: &str| format!("/n/build/v1/sessions?campaign={campaign}");
    let rows = hub.asked("GET", &named("shop"), &whole, "", &[]).json();
    assert!(!rows["sessions"].as_array().unwrap().is_empty(), "{rows}");
    let why = refused(&whole, "GET", &named("site"), "");
    assert!(why.contains("another campaign"), "{why}");
    let follow = hub.asked("GET", "/n/build/v1/events", &speaks, "", &[("accept", "text/event-stream")]);
    assert!(follow.status == 400 && follow.body.contains("no streams"), "{follow:?}");
    let listed = ok(&home, &["share", "ls"]);
    assert!(
        listed.contains("campaign shop") && listed.contains(&format!("session {}", mine.id.short())),
        "{listed}"
    );
}

#[tokio::test]
async fn a_hub_that_is_named_and_away_is_said_to_be() {
    let home = TestHome::new(OSTLER);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file: PathBuf = home.path().join("hub-token");
    fs::write(&file, "key").unwrap();
    home.configure(&format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[hub]\nurl = \"http://{closed}\"\ntoken_file = \"{}\"\n",
        file.display()
    ));
    home.begin().await;
    let doctor = || String::from_utf8(home.run(&["doctor", "--quick"]).stdout).unwrap();
    wait::until("the first try", wait::PATIENCE, || doctor().contains("is not reached: "));
    let (host, cookie) = crate::http::let_in(&home.client().await).await;
    let machine = ask(&host, "GET /machine", &[("host", &host), ("cookie", &cookie)], "").body;
    assert!(machine.contains("not reached: ") && !machine.contains("there is no hub"), "{machine}");
}

#[tokio::test]
async fn all_machines_are_in_one_list_and_who_is_away_is_said_to_be() {
    let mut hub = Hub::new();
    let (a, b) = (hub.node("a", &["--sees-all"]), hub.node("b", &[]));
    let (here, there) = (node(hub.address, &a, "").await, node(hub.address, &b, "").await);
    let calm = node(hub.address, &hub.node("calm", &[]), "").await;
    // One that failed: it is listed for a day, and leaves no keeper that would start the daemon again.
    let client = there.client().await;
    let far = there.session(&client, &scenario::of(vec![json!({"exit": 3})])).await;
    there.ended(&far.id.to_string()).await;
    let listed = || {
        let listed = json_of(&here, &["ls", "--node", "all"]);
        listed["sessions"].as_array().unwrap().iter().find(|row| row["node"] == "b").cloned()
    };
    wait::until("the other's session", wait::PATIENCE, || listed().is_some());
    let row = listed().unwrap();
    assert_eq!((row["id"].as_str(), row.get("stale_since")), (Some(&*far.id.to_string()), None));
    // Also one that has no session at all.
    let calm_is = || {
        let listed = json_of(&here, &["ls", "--node", "all"]);
        let nodes = listed["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["node"] == "calm").map(|node| node["state"].clone())
    };
    wait::until("the one without sessions", wait::PATIENCE, || calm_is() == Some(json!("answers")));
    calm.kill_daemon();
    wait::until("it to be away", wait::PATIENCE, || calm_is() == Some(json!("offline")));
    there.kill_daemon();
    wait::until("it to be stale", wait::PATIENCE, || {
        listed().is_some_and(|row| row.get("stale_since").is_some())
    });
    let sessions = hub.get("/v1/sessions").json();
    assert!(sessions["sessions"][0]["stale_since"].is_string(), "{sessions}");
    let page = hub.get("/");
    assert!(page.body.contains(">away for ") && page.body.contains(far.name.as_str()), "{}", page.body);

    // What was listed is listed by the next hub.
    hub.restart();
    let sessions = hub.get("/v1/sessions").json();
    assert_eq!(sessions["sessions"][0]["node"], "b", "{sessions}");
    // A machine that may not see the others does not.
    let listed = json_of(&there, &["ls", "--node", "all"]);
    assert!(listed["sessions"].as_array().unwrap().iter().all(|row| row["node"] != "a"), "{listed}");
    // Nor does one whose key was taken back, although it was connected.
    let seen = || json_of(&here, &["ls", "--node", "all"]);
    let sees = |listed: &Value| listed["sessions"].as_array().unwrap().iter().any(|row| row["node"] == "b");
    wait::until("it to be back at the next hub", wait::PATIENCE, || sees(&seen()));
    assert!(command(&hub.dir, &["node", "rm", "a"]).status().unwrap().success());
    assert!(!sees(&seen()));
}

#[tokio::test]
async fn a_hub_with_a_certificate_is_reached_where_that_is_trusted_and_said_to_be_where_not() {
    let hub = Hub::with_tls();
    let token = hub.node("a", &["--sees-all"]);
    let home = TestHome::new(OSTLER);
    let file: PathBuf = home.path().join("hub-token");
    fs::write(&file, token).unwrap();
    let (port, file) = (hub.address.port(), file.display());
    home.configure(&format!("[hub]\nurl = \"https://localhost:{port}\"\ntoken_file = \"{file}\"\n"));
    home.begin().await;
    let listed = || {
        let listed = home.run(&["ls", "--node", "all"]);
        String::from_utf8(listed.stderr).unwrap()
    };
    wait::until("whoever asks to hear why", wait::PATIENCE, || {
        listed().contains("its certificate is not trusted here (UnknownIssuer)")
    });
    home.kill_daemon();
    let started =
        home.command(&["daemon", "start"]).env("SSL_CERT_FILE", tls("authority.pem")).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    wait::until("the hub to be reached", wait::PATIENCE, || !listed().contains("the hub does not answer"));
    wait::until("its place to be noted", wait::PATIENCE, || home.home.state().join("hub-cursor").exists());
    assert_eq!(open_to_others(home.home.state()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(open_to_others(&hub.dir.path().join("hub")).unwrap(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_page_of_a_hub_fits_a_phone() {
    let Some(browser) = Browser::new("the page of a hub in a browser") else { return };
    let hub = Hub::new();
    let token = hub.node("build-machine-of-the-north-wing", &[]);
    let home = node(hub.address, &token, "").await;
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some("a-name-that-goes-on-without-a-place-to-break-it".parse().unwrap());
    wanted.approve = Approve::Ask;
    wanted.initial_message = Some(scenario::of(vec![json!({"ask": {"tool": "run", "input": "make all"}})]));
    client.create_session(wanted).await.unwrap();
    work(&home, &client).await;
    wait::until("both to be listed", wait::PATIENCE, || {
        hub.get("/").body.contains("waiting_approval") && hub.get("/").body.matches("<tr").count() > 2
    });
    let link = format!("http://{}/open/{}", hub.host(), hub.viewer);
    browser.run("hub.mjs", &[&link, pictures("hub").to_str().unwrap()]);
}

#[test]
fn no_page_and_no_foreign_name_reaches_a_hub() {
    let hub = Hub::new();
    let node = hub.node("build", &[]);
    let (host, bearer) = (hub.host(), format!("Bearer {node}"));
    let upgrade = [
        ("authorization", bearer.as_str()),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let try_it = |host_said: &str, more: &[(&str, &str)]| {
        ask(&host, "GET /v1/node", &[&[("host", host_said)], &upgrade[..], more].concat(), "").status
    };
    assert_eq!(try_it(&host, &[("origin", "https://evil.example")]), 403);
    assert_eq!(try_it(&host, &[("origin", &format!("http://{host}"))]), 403, "not even a page of its own");
    assert_eq!(try_it("evil.example", &[]), 421);
    let asked = |path: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        ask(&host, &format!("GET {path}"), &[("host", &host), ("authorization", &bearer)], "").status
    };
    assert_eq!(asked("/v1/node", &node), 400, "a machine that wants no WebSocket");
    assert_eq!(asked("/v1/node", &hub.viewer), 401, "a viewer is no machine");
    for path in ["/", "/v1/sessions", "/v1/nodes", "/v1/events?node=build"] {
        assert_eq!(asked(path, "hub_wrong"), 401, "{path}");
        assert_eq!(asked(path, &node), 401, "a machine is no viewer: {path}");
    }
    assert_eq!(asked("/v1/sessions", &hub.viewer), 200);
    let follow =
        |path: &str| hub.asked("GET", path, &hub.viewer, "", &[("accept", "text/event-stream")]).status;
    assert_eq!(
        (follow("/v1/events"), follow("/v1/events?node=nobody")),
        (400, 404),
        "there is nothing to follow"
    );
    let opened = ask(&host, &format!("GET /open/{}", hub.viewer), &[("host", &host)], "");
    // No redirect: of one that began on another site's page, the browser would not send the cookie along.
    assert_eq!((opened.status, opened.header("location")), (200, None));
    assert!(opened.body.contains("http-equiv=\"refresh\" content=\"0;url=/\""), "{opened:?}");
    let cookie = opened.header("set-cookie").unwrap();
    assert!(!cookie.contains("Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(ask(&host, "GET /", &[("host", &host), ("cookie", &cookie)], "").status, 200);
    assert_eq!(ask(&host, "POST /", &[("host", &host), ("cookie", &cookie)], "x").status, 405);
    // Behind a proxy that speaks TLS the cookie is for TLS alone.
    let named = Hub::at(free_address(), vec!["hub.example".to_owned()]);
    let opened = ask(&named.host(), &format!("GET /open/{}", named.viewer), &[("host", "hub.example")], "");
    assert!(opened.header("set-cookie").unwrap().ends_with("; Secure"), "{opened:?}");
    let state = fs::read_to_string(hub.dir.path().join("hub/keys.json")).unwrap();
    assert!(!state.contains(&node) && !state.contains(&hub.viewer), "secrets are kept as hashes");
}

#[test]
fn a_page_of_another_origin_has_nothing_of_a_hub_even_with_a_key() {
    let hub = Hub::new();
    let (host, viewer) = (hub.host(), format!("Bearer {}", hub.viewer));
    let own = format!("http://{host}");
    let asked = |first: &str, bearer: &str, more: &[(&str, &str)]| {
        ask(&host, first, &[&[("host", host.as_str()), ("authorization", bearer)], more].concat(), "")
    };
    let open = format!("/open/{}", hub.viewer);
    for path in ["/", "/v1/nodes", "/v1/sessions", "/v1/events?node=build", "/healthz", &open] {
        let first = format!("GET {path}");
        let tls = format!("https://{host}");
        for origin in ["https://evil.example", "null", &tls, "http://localhost"] {
            let answer = asked(&first, &viewer, &[("origin", origin)]);
            assert_eq!(answer.status, 403, "{path} from {origin}: {answer:?}");
            assert_eq!(answer.json()["error"]["reason"], "PERMISSION_DENIED", "{answer:?}");
            assert_eq!(answer.header("set-cookie"), None, "{answer:?}");
        }
        let twice = asked(&first, &viewer, &[("origin", &own), ("origin", "https://evil.example")]);
        assert_eq!(twice.status, 403, "{path}: {twice:?}");
        assert_ne!(asked(&first, &viewer, &[("origin", &own)]).status, 403, "{path} from its own page");
    }
    let follow = [("accept", "text/event-stream"), ("origin", "https://evil.example")];
    assert_eq!(asked("GET /v1/events?node=build", &viewer, &follow).status, 403);
    // What is passed on to a machine, too: whatever has a token there changes something.
    let stop = |more: &[(&str, &str)]| asked("POST /n/build/v1/sessions/x/stop", "Bearer shr_x", more).status;
    let json = ("content-type", "application/json");
    assert_eq!(stop(&[json, ("origin", "https://evil.example")]), 403);
    assert_eq!(stop(&[("content-type", "text/plain")]), 403, "a form of any page could send it");
    assert_eq!(stop(&[json]), 503, "it would be passed on");
}

#[test]
fn no_hub_starts_with_a_certificate_that_no_machine_takes() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (tls("authority.pem"), tls("server.key"));
    let run =
        ["run", "--listen", "127.0.0.1:0", "--cert", cert.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let run = command(&dir, &run).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("CA:TRUE") && said.contains("basicConstraints=critical,CA:FALSE"), "{said}");
    assert_eq!(run.status.code(), Some(2), "{said}");
}

/// More connections than there are places for those who have not said who they are.
const TOO_MANY: usize = 300;

#[test]
fn whoever_says_nothing_keeps_nobody_out_of_a_hub() {
    let hub = Hub::new();
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..TOO_MANY {
        let mut tcp = TcpStream::connect(hub.address).unwrap();
        tcp.write_all(b"GET /v1/nodes HTTP/1.1\r\n").unwrap();
        silent.push(tcp);
    }
    assert_eq!(hub.get("/v1/nodes").status, 200);
    let is_gone = |tcp: &mut TcpStream| {
        tcp.set_read_timeout(Some(wait::PATIENCE)).unwrap();
        matches!(tcp.read(&mut [0; 64]), Ok(0))
    };
    assert!(is_gone(&mut silent[0]), "whoever has stood there longest had to go");
}

#[test]
fn no_byte_of_a_greeting_puts_its_time_off() {
    let hub = Hub::with_tls();
    let mut tcp = TcpStream::connect(hub.address).unwrap();
    // The first words of TLS, of a record that is long.
    tcp.write_all(&[0x16, 0x03, 0x01, 0x40, 0x00]).unwrap();
    tcp.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    wait::until("it to be sent away", wait::PATIENCE, || {
        let is_silent = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        tcp.write_all(&[0x00]).is_err()
            || tcp.read(&mut [0; 64]).map_or_else(|error| !is_silent(error), |_| true)
    });
}

#[test]
fn a_hub_says_why_it_does_not_take_what_it_does_not_take() {
    let hub = Hub::new();
    hub.node("build", &[]);
    let (host, viewer) = (hub.host(), format!("Bearer {}", hub.viewer));
    let asked = |first: &str, more: &[(&str, &str)], body: &str| {
        ask(&host, first, &[&[("host", host.as_str()), ("authorization", &viewer)], more].concat(), body)
    };
    let relayed = "POST /n/build/v1/sessions/x/stop";
    let lines: Vec<(String, String)> = (0..80).map(|n| (format!("x-{n}"), "x".to_owned())).collect();
    let lines: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (&**name, &**value)).collect();
    let long = "x".repeat(20_000);
    let json = ("content-type", "application/json");
    let key = ("idempotency-key", "a");
    let share = ("authorization", "Bearer shr_x");
    let twice = ask(&host, relayed, &[("host", &host), share, json, key, key], "{}");
    for (answer, status, reason) in [
        (asked(relayed, &[], &"x".repeat(2 << 20)), 413, "TOO_LARGE"),
        (asked(relayed, &[("transfer-encoding", "chunked")], ""), 411, "INVALID_ARGUMENT"),
        (asked("GET /", &lines, ""), 431, "INVALID_ARGUMENT"),
        (asked("GET /", &[("x", &long)], ""), 431, "INVALID_ARGUMENT"),
        (asked("GET /", &[("content-length", "two")], ""), 400, "INVALID_ARGUMENT"),
        (asked("GET /v1/events?node=build&after=abc", &[], ""), 400, "INVALID_ARGUMENT"),
        (twice, 400, "INVALID_ARGUMENT"),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.json()["error"]["reason"], reason, "{answer:?}");
    }
}

#[tokio::test]
async fn what_a_hub_has_no_more_of_is_said_to_be_gone() {
    let mut hub = Hub::new();
    let home = node(hub.address, &hub.node("build", &[]), "").await;
    let client = home.client().await;
    work(&home, &client).await;
    let last = *log(&client).await.last().unwrap();
    wait::until("the hub to have it", wait::PATIENCE, || hub.seqs("build").last() >= Some(&last));
    home.kill_daemon();
    // Its file begins later by now.
    hub.kill();
    let newer = hub.dir.path().join("hub/nodes/build/newer.jsonl");
    let lines = fs::read_to_string(&newer).unwrap();
    let kept: Vec<&str> = lines.lines().skip(50).collect();
    fs::write(&newer, kept.join("\n") + "\n").unwrap();
    hub.process = Hub::start(&hub.dir, hub.address, &hub.hosts);
    let first = hub.seqs("build")[0];
    let gone = (first - 10).to_string();
    let follow = |more: &[(&str, &str)], path: &str| {
        let more = [&[("accept", "text/event-stream")], more].concat();
        hub.asked("GET", path, &hub.viewer, "", &more)
    };
    let reset = follow(&[("last-event-id", &gone)], "/v1/events?node=build");
    assert!(reset.status == 200 && reset.body.starts_with("event: reset\nid:\n"), "{reset:?}");
    assert!(reset.body.contains("CURSOR_UNKNOWN"), "{reset:?}");
    for answer in [
        hub.get(&format!("/v1/events?node=build&after={gone}")),
        follow(&[], &format!("/v1/events?node=build&after={gone}")),
        hub.get(&format!("/v1/events?node=build&after={}", last + 1_000)),
    ] {
        assert_eq!((answer.status, &answer.json()["error"]["reason"]), (400, &json!("CURSOR_UNKNOWN")));
    }
    assert_eq!(hub.get(&format!("/v1/events?node=build&after={}", first - 1)).status, 200, "nothing between");
    // Whose key was taken back is no machine here, and nobody sees its log.
    assert!(command(&hub.dir, &["node", "rm", "build"]).status().unwrap().success());
    assert_eq!(hub.get("/v1/events?node=build").status, 404);
    assert_eq!(follow(&[], "/v1/events?node=build").status, 404);
}
