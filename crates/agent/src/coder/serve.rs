//! The shell: one thread does what the turn decides, others read standard input, the model's answer and the tools'
//! ends, and everything that may happen meanwhile comes through one channel.

use std::{
    collections::VecDeque,
    env,
    hash::{BuildHasher, RandomState},
    io::{self, BufRead},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ostler_domain::Usage;
use serde_json::{Value, json};

use super::{
    acp::{self, Incoming, Spent, Voice},
    conversation::{Conversation, Entry},
    http::Answer,
    journal::Journal,
    settings::Settings,
    tools::{Job, Outcome, Stop, Work},
    turn::{Act, Happened, Note, Talk, Turn, Words},
    wire::Begun,
};

/// A method of our own: words for the turn that is open.
const STEER: &str = "_ostler/steer";
/// Prompts that wait for the turn to end. Ostler sends one at a time.
const WAITING_PROMPTS: usize = 16;
/// How long a tool that was broken off may take to end before it is left alone.
const STOP_TIME: Duration = Duration::from_secs(5);

/// What may happen at any moment. Numbers tell late news of what was given up.
pub(super) enum Wake {
    Line(String),
    InputEnded,
    Model(u64, Answer),
    Tool(u64, Outcome),
}

/// Why waiting ended before what was waited for.
pub(super) enum Cut {
    Cancelled,
    InputEnded,
    Io(io::Error),
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Cut::Io(error)
    }
}

/// What was heard, beyond what is dealt with at once.
pub(super) enum Heard {
    Nothing,
    TimeIsUp,
    Model(u64, Answer),
    Tool(u64, Outcome),
    Answered { id: u64, allow: bool, must_ask: bool, message: String },
}

pub(super) struct Agent {
    pub(super) settings: Settings,
    wake: Receiver<Wake>,
    pub(super) wakes: Sender<Wake>,
    home: PathBuf,
    session: Option<Session>,
    prompts: VecDeque<(Value, String)>,
    /// Said into the turn that is open.
    words: Vec<Words>,
    /// Counts model calls, tools and questions, so that each has a number of its own in this process.
    numbers: u64,
    is_working: bool,
    /// The model of the next turn, where it was changed within one.
    next_model: Option<String>,
}

/// The conversation that is open.
struct Session {
    voice: Voice,
    root: PathBuf,
    journal: Journal,
    talk: Talk,
}

pub(super) fn serve(settings: Settings) -> io::Result<()> {
    let (wakes, wake) = mpsc::channel();
    let reader = wakes.clone();
    thread::spawn(move || read_input(&reader));
    let home = env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let mut agent = Agent {
        settings,
        wake,
        wakes,
        home,
        session: None,
        prompts: VecDeque::new(),
        words: Vec::new(),
        numbers: 0,
        is_working: false,
        next_model: None,
    };
    loop {
        let next = match agent.prompts.pop_front() {
            Some((id, text)) => agent.turn(&id, text),
            None => agent.wait(None).map(|_| ()),
        };
        match next {
            Ok(()) | Err(Cut::Cancelled) => {}
            Err(Cut::InputEnded) => return Ok(()),
            Err(Cut::Io(error)) => return Err(error),
        }
    }
}

fn read_input(wakes: &Sender<Wake>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if wakes.send(Wake::Line(line)).is_err() {
            return;
        }
    }
    let _ = wakes.send(Wake::InputEnded);
}

impl Agent {
    fn turn(&mut self, id: &Value, text: String) -> Result<(), Cut> {
        let Some(mut session) = self.session.take() else {
            acp::refuse(id, acp::INVALID_PARAMS, "no session is open")?;
            return Ok(());
        };
        self.is_working = true;
        let played = self.play(&mut session, id, text);
        self.is_working = false;
        let kept = self.next_model.take().map_or(Ok(()), |model| session.keep_model(model));
        self.session = Some(session);
        played.and_then(|()| Ok(kept?))
    }

    /// Does what the turn decides until it ends.
    fn play(&mut self, session: &mut Session, id: &Value, text: String) -> Result<(), Cut> {
        let settings = self.settings.clone();
        let system = system_prompt(&session.root, settings.instructions.as_deref());
        let (voice, journal, root) = (&session.voice, &mut session.journal, &session.root);
        let model = session.talk.conversation.model.clone().unwrap_or_else(|| settings.model.clone());
        let mut turn = Turn::new(&settings, &system, &mut session.talk);
        let mut happened = Happened::Begun(text);
        let mut spent = Usage::default();
        let mut message = String::new();
        // What ended the wait for good, if something did: the turn is still brought to its end first.
        let mut over = None;
        loop {
            turn.hear(self.words.drain(..));
            let act = turn.on(happened);
            for note in turn.notes() {
                self.note(voice, journal, &note, &message, &model, &mut spent)?;
            }
            let mut begun = Begun::default();
            let done = match act {
                Act::End(end) => {
                    voice.ended(id, &end, &spent)?;
                    return over.map_or(Ok(()), Err);
                }
                Act::Call { body, shown } => {
                    message = format!("msg-{}", self.next_number());
                    self.call_model(voice, &message, &body, shown, &mut begun)
                }
                Act::Wait(time) => self.pause(time),
                Act::Ask(asked) => self.ask(voice, &asked),
                Act::Announce(asked) => self.announce(voice, &asked),
                Act::Run(work) => self.run_tool(root, work),
            };
            happened = match done {
                Ok(happened) => happened,
                Err(Cut::Io(error)) => return Err(Cut::Io(error)),
                Err(cut) => {
                    if matches!(cut, Cut::InputEnded) {
                        over = Some(cut);
                    }
                    Happened::Cancelled { begun }
                }
            };
        }
    }

    fn note(
        &self,
        voice: &Voice,
        journal: &mut Journal,
        note: &Note,
        message: &str,
        model: &str,
        spent: &mut Usage,
    ) -> io::Result<()> {
        match note {
            Note::Save(entry) => journal.add(entry),
            Note::Heard { id } => acp::answer(id, json!({})),
            Note::Unread { id } => {
                acp::refuse(id, acp::INTERNAL, "the turn ended before the model read this")
            }
            Note::Usage { usage, estimated, input_tokens, call } => {
                *spent += *usage;
                voice.usage(
                    &Spent { usage: *usage, estimated: *estimated, model, call: call.as_deref() },
                    *input_tokens,
                    self.settings.context_window,
                )
            }
            Note::ToolStarted { number, name, title, kind, input } => {
                voice.tool_started(*number, name, title, *kind, input)
            }
            Note::ToolRuns { number } => voice.tool_runs(*number),
            Note::ToolEnded { number, outcome } => voice.tool_ended(*number, outcome),
            Note::Withdraw => voice.withdraw(message),
            Note::Waiting { why, rate_limit, after, attempt } => {
                voice.waiting(why, *rate_limit, *after, *attempt)
            }
            Note::Compacted { how } => voice.compacted(how),
        }
    }

    fn pause(&mut self, time: Duration) -> Result<Happened, Cut> {
        let until = Instant::now() + time;
        while !matches!(self.wait(Some(until))?, Heard::TimeIsUp) {}
        Ok(Happened::Waited)
    }

    fn ask(&mut self, voice: &Voice, asked: &super::turn::Asked) -> Result<Happened, Cut> {
        let number = self.next_number();
        voice.ask(number, asked)?;
        loop {
            if let Heard::Answered { id, allow, message, .. } = self.wait(None)?
                && id == number
            {
                return Ok(Happened::Answered { allow, message });
            }
        }
    }

    fn announce(&mut self, voice: &Voice, asked: &super::turn::Asked) -> Result<Happened, Cut> {
        let number = self.next_number();
        voice.announce(number, asked)?;
        loop {
            if let Heard::Answered { id, must_ask, .. } = self.wait(None)?
                && id == number
            {
                return Ok(Happened::Announced { must_ask });
            }
        }
    }

    fn run_tool(&mut self, root: &std::path::Path, work: Box<dyn Work>) -> Result<Happened, Cut> {
        let number = self.next_number();
        let stop = Arc::new(Stop::default());
        let hidden = self.settings.key_env.iter().cloned().collect();
        let job = Job { root: root.to_owned(), hidden, stop: Arc::clone(&stop) };
        let wakes = self.wakes.clone();
        thread::spawn(move || {
            let _ = wakes.send(Wake::Tool(number, work.run(&job)));
        });
        loop {
            match self.wait(None) {
                Ok(Heard::Tool(of, outcome)) if of == number => return Ok(Happened::Ran(outcome)),
                Ok(_) => {}
                Err(cut) => {
                    stop.stop();
                    self.let_end(number);
                    return Err(cut);
                }
            }
        }
    }

    /// Waits for a tool that was broken off, so that nothing of it happens after the turn.
    fn let_end(&mut self, number: u64) {
        let until = Instant::now() + STOP_TIME;
        loop {
            match self.wait(Some(until)) {
                Ok(Heard::Tool(of, _)) if of == number => return,
                Ok(Heard::TimeIsUp) | Err(Cut::InputEnded | Cut::Io(_)) => return,
                Ok(_) | Err(Cut::Cancelled) => {}
            }
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Waits for one thing to happen, until the given moment or for ever.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> Result<Heard, Cut> {
        let wake = match until {
            None => self.wake.recv().map_err(|_| Cut::InputEnded)?,
            Some(until) => match self.wake.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(wake) => wake,
                Err(RecvTimeoutError::Timeout) => return Ok(Heard::TimeIsUp),
                Err(RecvTimeoutError::Disconnected) => return Err(Cut::InputEnded),
            },
        };
        match wake {
            Wake::InputEnded => Err(Cut::InputEnded),
            Wake::Model(number, answer) => Ok(Heard::Model(number, answer)),
            Wake::Tool(number, outcome) => Ok(Heard::Tool(number, outcome)),
            Wake::Line(line) => match serde_json::from_str::<Incoming>(&line) {
                Ok(incoming) => self.hear(incoming),
                Err(error) => {
                    acp::refuse(&Value::Null, -32700, &format!("a line is not understood: {error}"))?;
                    Ok(Heard::Nothing)
                }
            },
        }
    }

    fn hear(&mut self, incoming: Incoming) -> Result<Heard, Cut> {
        let Incoming { id, method, params, result, error } = incoming;
        match (method.as_deref(), id) {
            (Some("session/cancel"), _) if self.is_working => return Err(Cut::Cancelled),
            (Some(_), None) => {}
            (Some(method), Some(id)) => self.request(&id, method, &params)?,
            (None, Some(id)) => {
                let Some(id) = id.as_u64() else { return Ok(Heard::Nothing) };
                let result = result.unwrap_or_default();
                let outcome = &result["outcome"];
                // Anything but leave is no leave, an error too.
                let allow = error.is_none() && outcome["optionId"] == "allow";
                let must_ask = result["mustAsk"] != false;
                let message = outcome["_meta"]["message"].as_str().unwrap_or_default().to_owned();
                return Ok(Heard::Answered { id, allow, must_ask, message });
            }
            (None, None) => {}
        }
        Ok(Heard::Nothing)
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> io::Result<()> {
        match method {
            "initialize" => acp::answer(id, acp::initialized(env!("CARGO_PKG_VERSION"))),
            "session/prompt" if self.prompts.len() >= WAITING_PROMPTS => {
                acp::refuse(id, acp::INTERNAL, "too many prompts are waiting")
            }
            "session/prompt" => {
                self.prompts.push_back((id.clone(), said(params)));
                Ok(())
            }
            STEER if !self.is_working => acp::refuse(id, acp::INTERNAL, "no turn is open"),
            STEER if self.words.len() >= WAITING_PROMPTS => {
                acp::refuse(id, acp::INTERNAL, "too many words are waiting")
            }
            STEER => {
                self.words.push(Words { id: id.clone(), text: said(params) });
                Ok(())
            }
            "session/new" | "session/load" | "session/resume" | "session/fork" if self.is_working => {
                acp::refuse(id, acp::INTERNAL, "a turn is running")
            }
            "session/new" => self.open(id, params, Origin::Nothing),
            "session/load" => self.open(id, params, Origin::Before { tell: true }),
            "session/resume" => self.open(id, params, Origin::Before { tell: false }),
            "session/fork" => self.open(id, params, Origin::Copy),
            "session/set_model" => self.set_model(id, params),
            _ => acp::refuse(id, acp::METHOD_NOT_FOUND, &format!("{method} is not known")),
        }
    }

    /// Opens a conversation.
    fn open(&mut self, id: &Value, params: &Value, from: Origin) -> io::Result<()> {
        let Some(root) = params["cwd"].as_str().and_then(|cwd| PathBuf::from(cwd).canonicalize().ok()) else {
            return acp::refuse(id, acp::INVALID_PARAMS, "cwd is not a directory");
        };
        let dir = Journal::dir(&self.home);
        let wanted = params["sessionId"].as_str().unwrap_or_default();
        let opened = match from {
            Origin::Nothing => {
                let name = new_id();
                Journal::create(&dir, &name).map(|journal| (name, journal, Vec::new()))
            }
            Origin::Before { .. } => {
                Journal::open(&dir, wanted).map(|(journal, entries)| (wanted.to_owned(), journal, entries))
            }
            Origin::Copy => {
                let name = new_id();
                Journal::copy(&dir, wanted, &name).map(|(journal, entries)| (name, journal, entries))
            }
        };
        let (name, mut journal, entries) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return acp::refuse(id, acp::NOT_FOUND, &format!("there is no session {wanted}"));
            }
            Err(error) => {
                return acp::refuse(id, acp::INTERNAL, &format!("the session cannot be opened: {error}"));
            }
        };
        let mut conversation = Conversation::fold(entries);
        for entry in conversation.fill_in("interrupted: the agent was ended") {
            journal.add(&entry)?;
            conversation.apply(entry);
        }
        let voice = Voice { session: name.clone() };
        if from == (Origin::Before { tell: true }) {
            voice.replay(&conversation)?;
        }
        let model = conversation.model.clone().unwrap_or_else(|| self.settings.model.clone());
        let is_new = !matches!(from, Origin::Before { .. });
        acp::answer(id, acp::opened(is_new.then_some(name.as_str()), &model, &self.settings.model))?;
        let talk = Talk { conversation, ..Talk::default() };
        self.session = Some(Session { voice, root, journal, talk });
        Ok(())
    }

    fn set_model(&mut self, id: &Value, params: &Value) -> io::Result<()> {
        let Some(model) = params["modelId"].as_str().filter(|model| !model.is_empty()) else {
            return acp::refuse(id, acp::INVALID_PARAMS, "modelId is missing");
        };
        match &mut self.session {
            Some(session) => session.keep_model(model.to_owned())?,
            // A turn has one model from its beginning to its end.
            None if self.is_working => self.next_model = Some(model.to_owned()),
            None => return acp::refuse(id, acp::INTERNAL, "no session is open"),
        }
        acp::answer(id, json!({}))
    }
}

impl Session {
    fn keep_model(&mut self, model: String) -> io::Result<()> {
        let entry = Entry::Model { model };
        self.journal.add(&entry)?;
        self.talk.conversation.apply(entry);
        Ok(())
    }
}

/// What a conversation begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Nothing,
    /// One of before, told again or not.
    Before {
        tell: bool,
    },
    /// A copy of one of before, which stays as it is.
    Copy,
}

/// The text of a prompt.
fn said(params: &Value) -> String {
    let blocks = params["prompt"].as_array().map_or(&[][..], Vec::as_slice);
    let text: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    text.join("\n\n")
}

fn system_prompt(root: &std::path::Path, instructions: Option<&str>) -> String {
    let mut prompt = format!(
        "You are a coding agent. You work in the directory {} with the tools you are given. Look before you change \
         something, make small changes, and check what you did by running it. Paths are relative to that directory. \
         When you have finished, say in a few sentences what you did.",
        root.display()
    );
    if let Some(instructions) = instructions {
        prompt.push_str("\n\n");
        prompt.push_str(instructions);
    }
    prompt
}

/// A name that no other conversation has.
fn new_id() -> String {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{micros:x}-{:016x}", RandomState::new().hash_one(micros))
}
