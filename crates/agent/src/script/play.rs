//! Playing scenarios: one thread plays, one reads standard input, and everything that may happen meanwhile comes
//! through one channel.

use std::{
    collections::VecDeque,
    io::{self, BufRead, Write},
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use ostler_domain::event::StopReason;

use super::{
    Scenario,
    protocol::{Said, Told, raw, say},
    scenario::Step,
    tool::{self, Outcome, Running},
};

/// What may happen while a step is played.
pub(super) enum Wake {
    Line(String),
    /// Standard input ended: the orderly way to be stopped.
    InputEnded,
    /// The command that was started as this call ended.
    Tool {
        call: u64,
        outcome: Outcome,
    },
}

/// Why playing stops early.
enum Cut {
    Interrupted,
    InputEnded,
    Exit(u8),
    Io(io::Error),
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Cut::Io(error)
    }
}

struct Player {
    wake: Receiver<Wake>,
    wakes: Sender<Wake>,
    /// Prompts that came while one was played.
    prompts: VecDeque<(String, String)>,
    /// Counts tool calls and questions, so that each has a name of its own in this process.
    calls: u64,
    ended: bool,
}

pub(super) fn serve() -> io::Result<u8> {
    let (wakes, wake) = mpsc::channel();
    let reader = wakes.clone();
    thread::spawn(move || read_input(&reader));
    let mut player = Player { wake, wakes, prompts: VecDeque::new(), calls: 0, ended: false };
    say(&Said::Ready {})?;
    loop {
        while let Some((id, text)) = player.prompts.pop_front() {
            match player.turn(&id, &text) {
                Ok(()) | Err(Cut::Interrupted) => {}
                Err(Cut::InputEnded) => return Ok(0),
                Err(Cut::Exit(code)) => return Ok(code),
                Err(Cut::Io(error)) => return Err(error),
            }
        }
        if player.ended {
            return Ok(0);
        }
        match player.wake.recv() {
            Ok(wake) => match player.hear(wake) {
                Ok(_) | Err(Cut::Interrupted) => {}
                Err(Cut::InputEnded) => return Ok(0),
                Err(Cut::Exit(code)) => return Ok(code),
                Err(Cut::Io(error)) => return Err(error),
            },
            Err(_) => return Ok(0),
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

/// What was heard, beyond what the player deals with itself.
enum Heard {
    Nothing,
    Tool { call: u64, outcome: Outcome },
    Answer { id: String, allow: bool, message: String },
}

impl Player {
    fn turn(&mut self, id: &str, prompt: &str) -> Result<(), Cut> {
        say(&Said::TurnStarted { prompt: id })?;
        let scenario = match Scenario::meant(prompt) {
            Some(text) => Scenario::parse(text),
            None => Ok(Scenario::for_prompt(prompt)),
        };
        let played = match scenario {
            Ok(scenario) => self.play(&scenario.steps, None),
            Err(error) => {
                say(&Said::Error { text: &error.to_string() })?;
                say(&Said::TurnEnded { reason: StopReason::Error })?;
                return Ok(());
            }
        };
        let reason = match played {
            Ok(()) => StopReason::Completed,
            Err(Cut::Interrupted) => StopReason::Interrupted,
            Err(cut) => return Err(cut),
        };
        say(&Said::TurnEnded { reason })?;
        Ok(())
    }

    fn play(&mut self, steps: &[Step], i: Option<u64>) -> Result<(), Cut> {
        for step in steps {
            // A sign of life or an interrupt is heard between any two steps.
            self.wait(Some(Instant::now()))?;
            self.step(step, i)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, i: Option<u64>) -> Result<(), Cut> {
        let fill = |text: &str| match i {
            Some(i) => text.replace("{i}", &i.to_string()),
            None => text.to_owned(),
        };
        match step {
            Step::Think(text) => say(&Said::Think { text: &fill(text) })?,
            Step::Say(text) => say(&Said::Say { text: &fill(text) })?,
            Step::Delta(text) => say(&Said::Delta { text: &fill(text) })?,
            Step::Usage(usage) => say(&Said::Usage(*usage))?,
            Step::Run(argv) => {
                let argv: Vec<String> = argv.iter().map(|arg| fill(arg)).collect();
                self.run(&argv)?;
            }
            Step::Write { path, text } => {
                let (path, text) = (fill(path), fill(text));
                self.tool("write", &path, |_| Ok(tool::write(&path, &text)))?;
            }
            Step::Read(path) => {
                let path = fill(path);
                self.tool("read", &path, |_| Ok(tool::read(&path)))?;
            }
            Step::SleepMs(ms) => self.sleep(*ms)?,
            Step::Repeat { times, every_ms, steps } => {
                for i in 1..=*times {
                    self.play(steps, Some(i))?;
                    self.sleep(*every_ms)?;
                }
            }
            Step::Unless { path, steps } => {
                if !Path::new(&fill(path)).exists() {
                    self.play(steps, i)?;
                }
            }
            Step::Ask { tool, input } => self.ask(tool, &fill(input))?,
            Step::StdoutRaw(text) => raw(fill(text).as_bytes())?,
            Step::Stderr(text) => writeln!(io::stderr(), "{}", fill(text))?,
            Step::FloodBytes(bytes) => self.flood(*bytes)?,
            Step::Hang => loop {
                thread::park();
            },
            Step::Exit(code) => return Err(Cut::Exit(*code)),
        }
        Ok(())
    }

    fn tool(
        &mut self,
        name: &str,
        summary: &str,
        act: impl FnOnce(&mut Self) -> Result<Outcome, Cut>,
    ) -> Result<(), Cut> {
        let id = self.next_call("call");
        say(&Said::ToolCall { id: &id, tool: name, summary, input: summary })?;
        let (outcome, cut) = match act(self) {
            Ok(outcome) => (outcome, None),
            // A call never stays without a result, whatever cut it short.
            Err(cut) => (Outcome { ok: false, exit: None, output: "cut short".to_owned() }, Some(cut)),
        };
        say(&Said::ToolResult { id: &id, ok: outcome.ok, exit: outcome.exit, output: &outcome.output })?;
        cut.map_or(Ok(()), Err)
    }

    fn run(&mut self, argv: &[String]) -> Result<(), Cut> {
        let summary = argv.join(" ");
        self.tool("run", &summary, |player| {
            let this = player.calls;
            let running = match Running::start(argv, this, player.wakes.clone()) {
                Ok(running) => running,
                Err(outcome) => return Ok(outcome),
            };
            loop {
                match player.wait(None) {
                    Ok(Heard::Tool { call, outcome }) if call == this => return Ok(outcome),
                    // Also the late end of a command that an interrupt had killed.
                    Ok(_) => {}
                    Err(cut) => {
                        running.kill();
                        return Err(cut);
                    }
                }
            }
        })
    }

    fn ask(&mut self, tool: &str, input: &str) -> Result<(), Cut> {
        let id = self.next_call("ask");
        say(&Said::Ask { id: &id, tool, input })?;
        loop {
            if let Heard::Answer { id: answered, allow, message } = self.wait(None)?
                && answered == id
            {
                let word = if allow { "allowed" } else { "denied" };
                say(&Said::Think { text: format!("{tool} was {word}. {message}").trim_end() })?;
                return Ok(());
            }
        }
    }

    fn flood(&mut self, bytes: u64) -> io::Result<()> {
        const LINE: usize = 1024;
        let mut line = [b'~'; LINE];
        line[LINE - 1] = b'\n';
        let block = line.repeat(64);
        let mut left = bytes;
        while left > 0 {
            let portion = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            raw(&block[block.len() - portion..])?;
            left -= portion as u64;
        }
        Ok(())
    }

    fn sleep(&mut self, ms: u64) -> Result<(), Cut> {
        let until = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < until {
            self.wait(Some(until))?;
        }
        Ok(())
    }

    fn next_call(&mut self, what: &str) -> String {
        self.calls += 1;
        format!("{what}-{}", self.calls)
    }

    /// Waits for one thing to happen, until the given moment or for ever.
    fn wait(&mut self, until: Option<Instant>) -> Result<Heard, Cut> {
        let wake = match until {
            None => self.wake.recv().map_err(|_| Cut::InputEnded)?,
            Some(until) => match self.wake.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(wake) => wake,
                Err(RecvTimeoutError::Timeout) => return Ok(Heard::Nothing),
                Err(RecvTimeoutError::Disconnected) => return Err(Cut::InputEnded),
            },
        };
        self.hear(wake)
    }

    fn hear(&mut self, wake: Wake) -> Result<Heard, Cut> {
        match wake {
            Wake::Tool { call, outcome } => Ok(Heard::Tool { call, outcome }),
            Wake::InputEnded => {
                self.ended = true;
                Err(Cut::InputEnded)
            }
            Wake::Line(line) => match serde_json::from_str(&line) {
                Ok(Told::Prompt { id, text }) => {
                    self.prompts.push_back((id, text));
                    Ok(Heard::Nothing)
                }
                Ok(Told::Interrupt {}) => Err(Cut::Interrupted),
                Ok(Told::Answer { id, allow, message }) => Ok(Heard::Answer { id, allow, message }),
                Ok(Told::Ping {}) => {
                    say(&Said::Pong {})?;
                    Ok(Heard::Nothing)
                }
                Err(error) => {
                    say(&Said::Error {
                        text: &format!("a line on standard input is not understood: {error}"),
                    })?;
                    Ok(Heard::Nothing)
                }
            },
        }
    }
}
