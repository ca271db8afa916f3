//! The way to a hub: the node connects out, forwards its log from where the hub ends, says what it lists, and does what the
//! holders of its share tokens ask for by it. However often the connection breaks, nothing is lost and nothing doubled.

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, OpenOptions},
    io::{self, Write},
    ops::ControlFlow,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use ostler_client::{Client, Received, Watched};
use ostler_domain::{
    Reason, Refusal,
    hub::{self, Answer, Command, Forwarded, Hello, Listed, Row, SCHEMA, ToHub, ToNode, Window},
    limits::{HUB_COMMAND_TIME, HUB_COMMANDS_KEPT, HUB_CONNECT_TIME, HUB_ROWS, HUB_ROWS_EVERY},
    query::{EventFilter, Page, Scope, SessionFilter},
    redact::blot_out,
    text::one_line,
};
use ostler_form::{ErrorForm, EventForm, SessionForm, to_json};
use ostler_gateway::socket::{self, Sayer, Socket};
use tokio::{
    sync::{OnceCell, mpsc, oneshot},
    task::AbortHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use crate::{Door, api::names, clock, ring};

/// As whom the node itself looks at what it forwards.
const PERSON: &str = "hub";
/// How often the settings are looked at while no hub is named.
const LOOK: Duration = Duration::from_secs(5);
/// A connection that held for this long was a good one: the next try comes soon.
const HELD: Duration = Duration::from_secs(30);
/// Events read from the log and not yet sent.
const READ_AHEAD: usize = 64;
/// Frames that may wait to be written before a list is said anew.
const FRAMES_WAITING: usize = 4;

/// Where the hub is, with what the node is let in there; none, and there is no hub.
pub type HubSettings = Box<dyn Fn() -> Result<Option<(String, String)>, Refusal> + Send + Sync>;

/// What is asked of the hub by this machine.
#[derive(Default)]
pub(crate) struct Uplink(Mutex<Asking>);

#[derive(Default)]
struct Asking {
    sayer: Option<Sayer>,
    /// Why the hub was not reached, or how the way to it ended; none before the first try and while it is there.
    why: Option<String>,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Vec<Listed>>>,
}

/// The answers that were given, by the command's id: one that comes again has the same.
type Done = Arc<Mutex<VecDeque<Given>>>;

struct Given {
    id: String,
    /// Of what was asked for.
    hash: String,
    answer: Arc<OnceCell<Answer>>,
}

/// Dropped, it ends the task.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Door {
    /// Keeps the way to the hub open, for as long as one is named.
    pub fn begin_uplink(&self, settings: HubSettings) {
        let door = self.clone();
        tokio::spawn(async move {
            let (mut tries, done) = (0_u32, Done::default());
            loop {
                let (url, token) = match settings() {
                    Ok(Some(hub)) => hub,
                    Ok(None) => {
                        tries = 0;
                        door.uplink().unnamed();
                        tokio::time::sleep(LOOK).await;
                        continue;
                    }
                    Err(refusal) => {
                        tracing::warn!(%refusal, "the hub's settings cannot be used");
                        door.uplink().lost(&refusal.message);
                        tokio::time::sleep(HELD).await;
                        continue;
                    }
                };
                let begun = Instant::now();
                let mut was_heard = false;
                let frame = hub::frame_events(tries);
                let why = door.talk(&url, token, &done, &settings, frame, &mut was_heard).await;
                door.uplink().lost(&why);
                // Somebody who takes what is sent is there; somebody who only hangs up may be overloaded.
                tries = if was_heard || begun.elapsed() >= HELD { 0 } else { tries.saturating_add(1) };
                let pause = hub::again(tries, clock::chance());
                tracing::warn!(url, why, seconds = pause.as_secs(), "the hub is not reached; trying again");
                tokio::time::sleep(pause).await;
            }
        });
    }

    fn uplink(&self) -> &Uplink {
        &self.inner.uplink
    }

    /// What all nodes of the hub list.
    pub async fn hub_lists(&self) -> Result<Vec<Listed>, Refusal> {
        let no_hub = || self.uplink().none();
        let answer = self.uplink().ask().ok_or_else(no_hub)?;
        timeout(HUB_COMMAND_TIME, answer).await.ok().and_then(Result::ok).ok_or_else(no_hub)
    }

    fn cursor_file(&self) -> PathBuf {
        self.inner.household.home.state().join("hub-cursor")
    }

    fn note_cursor(&self, place: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(self.cursor_file());
        file?.write_all(place.to_string().as_bytes())
    }

    /// One connection, to its end. Says why it ended.
    async fn talk(
        &self,
        url: &str,
        token: String,
        done: &Done,
        settings: &HubSettings,
        frame: usize,
        was_heard: &mut bool,
    ) -> String {
        let address = format!("{}/v1/node", url.trim_end_matches('/'));
        let connected = tokio::task::spawn_blocking(move || socket::connect(&address, &token));
        let socket = match connected.await {
            Ok(Ok(socket)) => socket,
            Ok(Err(why)) => return why,
            Err(error) => return error.to_string(),
        };
        let (to_us, mut heard) = mpsc::channel(READ_AHEAD);
        let sayer = match carried(socket, to_us) {
            Ok(sayer) => sayer,
            Err(error) => return error.to_string(),
        };
        let client = self.client(PERSON);
        let after = match self.greet(&client, &sayer, &mut heard).await {
            Ok(after) => after,
            Err(why) => return why,
        };
        tracing::info!(url, after, "the hub is reached");
        self.uplink().found(sayer.clone());
        let (events, mut coming) = mpsc::channel(READ_AHEAD);
        let _reading = Task(tokio::spawn(read(client.clone(), after, events)).abort_handle());
        let (mut window, mut batch) = (Window::new(after), Vec::new());
        let (mut lists, mut is_stale) = (interval(HUB_ROWS_EVERY), true);
        lists.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let most = window.room().min(frame);
            tokio::select! {
                read = coming.recv_many(&mut batch, most), if most > 0 => {
                    if read == 0 {
                        return "the log is not read any more".to_owned();
                    }
                    batch.iter().for_each(|event: &Forwarded| window.sent(event.seq));
                    is_stale = true;
                    say(&sayer, &ToHub::Events { events: std::mem::take(&mut batch) });
                }
                frame = heard.recv() => match frame {
                    Some(ToNode::Ack { seq }) => {
                        window.acked(seq);
                        *was_heard = true;
                        // A convenience for a hub that loses what it has.
                        let _ = self.note_cursor(window.place());
                    }
                    Some(ToNode::Command(command)) => {
                        let (door, sayer, done) = (self.clone(), sayer.clone(), Arc::clone(done));
                        tokio::spawn(async move {
                            say(&sayer, &ToHub::Answer(door.done_once(command, &done).await));
                        });
                    }
                    Some(ToNode::Listed { id, nodes }) => self.uplink().answered(id, nodes),
                    Some(ToNode::Refused { why }) => return why,
                    Some(ToNode::Resume { .. }) => {}
                    None => return "the connection broke".to_owned(),
                },
                _ = lists.tick() => {
                    if !matches!(settings(), Ok(Some((named, _))) if named == url) {
                        return "another hub is named".to_owned();
                    }
                    if is_stale && sayer.waiting() < FRAMES_WAITING {
                        is_stale = false;
                        match rows(&client).await {
                            Ok(rows) => say(&sayer, &ToHub::Rows { rows }),
                            Err(refusal) => tracing::warn!(%refusal, "what is listed cannot be told to the hub"),
                        }
                    }
                }
            }
        }
    }

    /// Says who this is, and hears how far the hub has the log.
    async fn greet(
        &self,
        client: &Client,
        sayer: &Sayer,
        heard: &mut mpsc::Receiver<ToNode>,
    ) -> Result<u64, String> {
        let status = client.status().await.map_err(|error| error.to_string())?;
        say(
            sayer,
            &ToHub::Hello(Hello {
                schema: SCHEMA.to_owned(),
                node: status.node.to_string(),
                version: status.version.clone(),
                epoch: status.epoch.to_string(),
                last: status.last_seq,
            }),
        );
        match timeout(HUB_CONNECT_TIME, heard.recv()).await {
            Ok(Some(ToNode::Resume { after })) => {
                let once = fs::read_to_string(self.cursor_file()).ok();
                let once = once.and_then(|text| text.trim().parse().ok());
                let begin = hub::begin(after, once, status.last_seq);
                if once.is_none() {
                    // Noted before anything is sent: whoever comes back before the first of it was heard begins here too.
                    self.note_cursor(begin).map_err(|error| error.to_string())?;
                }
                Ok(begin)
            }
            Ok(Some(ToNode::Refused { why })) => Err(why),
            Ok(Some(_)) => Err("it does not say how far it has the log".to_owned()),
            Ok(None) => Err("the connection broke".to_owned()),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    /// Does a command, unless it was done: then it is answered as it was.
    async fn done_once(&self, command: Command, done: &Done) -> Answer {
        // Whoever looks again sees what is there by then; and whose share is none any more hears so, whatever they were
        // answered once.
        if command.method == "GET" || self.inner.ring.guest(&command.token, false).is_none() {
            return self.by_hub(&command).await;
        }
        let cell = {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            let hash =
                ring::hash(&[&*command.token, &command.method, &command.path, &command.body].join("\n"));
            match done.iter().find(|given| given.id == command.id) {
                Some(given) if given.hash == hash => Arc::clone(&given.answer),
                Some(_) => return Answer { id: command.id, ..used_for_another() },
                None => {
                    if done.len() >= HUB_COMMANDS_KEPT {
                        done.pop_front();
                    }
                    let cell = Arc::new(OnceCell::new());
                    done.push_back(Given { id: command.id.clone(), hash, answer: Arc::clone(&cell) });
                    cell
                }
            }
        };
        cell.get_or_init(|| self.by_hub(&command)).await.clone()
    }
}

impl Uplink {
    fn asking(&self) -> std::sync::MutexGuard<'_, Asking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, sayer: Sayer) {
        let mut asking = self.asking();
        (asking.sayer, asking.why) = (Some(sayer), None);
    }

    fn lost(&self, why: &str) {
        *self.asking() = Asking { why: Some(why.to_owned()), ..Asking::default() };
    }

    fn unnamed(&self) {
        *self.asking() = Asking::default();
    }

    /// For whoever asks where no hub is connected.
    fn none(&self) -> Refusal {
        let refusal = Refusal::new(Reason::WrongState, "no hub is connected");
        match &self.asking().why {
            Some(why) => {
                refusal.because(one_line(why, 200)).hint("ostler daemon logs", "says how it was tried")
            }
            None => refusal.hint(
                "ostler config set hub.url=https://HUB hub.token_file=PATH",
                "names one; it holds at once",
            ),
        }
    }

    fn ask(&self) -> Option<oneshot::Receiver<Vec<Listed>>> {
        let mut asking = self.asking();
        let (to, answer) = oneshot::channel();
        asking.next += 1;
        let id = asking.next;
        say(asking.sayer.as_ref()?, &ToHub::List { id });
        asking.waiting.insert(id, to);
        Some(answer)
    }

    fn answered(&self, id: u64, nodes: Vec<Listed>) {
        // Whoever asked may have gone.
        let _ = self.asking().waiting.remove(&id).map(|to| to.send(nodes));
    }
}

fn say(sayer: &Sayer, frame: &ToHub) {
    // A socket that is gone is noticed by whoever reads.
    sayer.say(serde_json::to_string(frame).unwrap_or_default());
}

/// Has a thread carry the socket; what it hears comes in order.
fn carried(socket: Socket, to: mpsc::Sender<ToNode>) -> std::io::Result<Sayer> {
    let (sayer, said) = socket::queue()?;
    std::thread::spawn(move || {
        let why = socket.carry(&said, |text| match serde_json::from_str(&text) {
            Ok(frame) => match to.blocking_send(frame) {
                Ok(()) => ControlFlow::Continue(Vec::new()),
                Err(_) => ControlFlow::Break(()),
            },
            // A newer hub may say what this node does not know.
            Err(_) => ControlFlow::Continue(Vec::new()),
        });
        tracing::debug!(why, "the connection to the hub ended");
    });
    Ok(sayer)
}

async fn read(client: Client, after: u64, to: mpsc::Sender<Forwarded>) -> Result<(), Refusal> {
    let mut watch =
        client.watch(EventFilter::default(), Some(after)).await.map_err(|error| error.to_refusal())?;
    while let Some(watched) = watch.next().await {
        let received = match watched.map_err(|error| error.to_refusal())? {
            Watched::Event(event) => Received::Known(event),
            Watched::Unknown(event) => Received::Unknown(event),
            Watched::Reconnected => continue,
        };
        let mut event = serde_json::to_value(EventForm::new(&received)).unwrap_or_default();
        // The record has what people said as they said it; a copy elsewhere has not.
        blot_out(&mut event);
        if to.send(Forwarded { seq: received.seq(), event }).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// What is listed now.
async fn rows(client: &Client) -> Result<Vec<Row>, Refusal> {
    let current = Scope::Current { failed_since: clock::now().minus(Duration::from_secs(86_400)) };
    let filter = SessionFilter { scope: current, ..SessionFilter::default() };
    let found =
        client.sessions(&filter, Page::of(HUB_ROWS, None)).await.map_err(|error| error.to_refusal())?;
    let names = names(client).await.map_err(|failure| failure.refusal)?;
    let row = |session: &ostler_client::Session| Row {
        session: serde_json::to_value(SessionForm::new(session, &names.of(&session.campaign)))
            .unwrap_or_default(),
        view: serde_json::to_value(session).unwrap_or_default(),
    };
    Ok(found.rows.iter().map(row).collect())
}

/// For whoever gives one name to two changes.
fn used_for_another() -> Answer {
    let refusal = Refusal::new(Reason::RequestConflict, "this Idempotency-Key was used for something else")
        .because("a key is for one change: make a new one for each other");
    let body = to_json(&ErrorForm::new(&refusal, None));
    Answer { id: String::new(), status: StatusCode::CONFLICT.as_u16(), body }
}
