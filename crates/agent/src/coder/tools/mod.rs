//! The tools that the model may use: few, with flat parameters, because small models cope badly with many. Each has
//! its file. They run on a thread of their own and can be broken off.

mod edit;
mod list;
mod ostler;
mod place;
mod read;
mod run;
mod search;
mod write;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool as the model is told of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) parameters: fn() -> Value,
    pub(super) kind: Kind,
    /// Whether it changes things, so that somebody may want to be asked.
    pub(super) needs_leave: bool,
    /// Understands a call by the tool's name and its arguments.
    prepare: fn(&str, &str) -> Prepared,
}

type Prepared = Result<Box<dyn Work>, serde_json::Error>;

/// What a tool does, in the protocol's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Edit,
    Search,
    Execute,
    Other,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Edit => "edit",
            Kind::Search => "search",
            Kind::Execute => "execute",
            Kind::Other => "other",
        }
    }
}

/// Those that every agent of this kind has.
const OWN: &[Tool] = &[run::TOOL, read::TOOL, write::TOOL, edit::TOOL, list::TOOL, search::TOOL];
/// And with Ostler's own.
static ALL: LazyLock<Vec<Tool>> = LazyLock::new(|| OWN.iter().copied().chain(ostler::all()).collect());

/// Which tools a model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// The agent's own.
    Own,
    /// And Ostler's beside them.
    WithOstlers,
    /// None: it only answers.
    Nothing,
}

pub(super) fn offered(offer: Offer) -> &'static [Tool] {
    match offer {
        Offer::Own => OWN,
        Offer::WithOstlers => &ALL,
        Offer::Nothing => &[],
    }
}

/// A call with its arguments understood, ready to be done.
pub(super) trait Work: Send + fmt::Debug {
    /// One line that says what will be done.
    fn title(&self) -> String;
    fn run(&self, job: &Job) -> Outcome;
}

/// What a tool did. A failure is a result like any other: the model reads it and goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) ok: bool,
    pub(super) exit: Option<i32>,
    pub(super) output: String,
}

impl Outcome {
    fn of(result: Result<String, String>) -> Self {
        match result {
            Ok(output) => Self { ok: true, exit: None, output },
            Err(why) => Self { ok: false, exit: None, output: format!("error: {why}") },
        }
    }
}

/// Where and under what conditions a tool works.
#[derive(Clone)]
pub(super) struct Job {
    /// The working directory; paths are relative to it.
    pub(super) root: PathBuf,
    /// Variables that commands do not get to see.
    pub(super) hidden: Vec<String>,
    pub(super) stop: Arc<Stop>,
}

/// The way to break a tool off.
#[derive(Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    kill: Mutex<Option<Kill>>,
}

type Kill = Box<dyn Fn() + Send>;

impl Stop {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends what is running, and all that it started.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(kill) = &*self.kill.lock().unwrap_or_else(PoisonError::into_inner) {
            kill();
        }
    }

    /// Says how to end what was just started. If that is wanted already, it happens at once.
    fn on_stop(&self, kill: impl Fn() + Send + 'static) {
        let mut held = self.kill.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_stopped() {
            kill();
        }
        *held = Some(Box::new(kill));
    }

    fn done(&self) {
        *self.kill.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Finds the tool and understands its arguments; the error is meant for the model.
pub(super) fn prepare(
    offered: &'static [Tool],
    name: &str,
    arguments: &str,
) -> Result<(&'static Tool, Box<dyn Work>), String> {
    let Some(tool) = offered.iter().find(|tool| tool.name == name) else {
        let names: Vec<_> = offered.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no tool {name:?}; the tools are {}", names.join(", ")));
    };
    let work = (tool.prepare)(name, arguments)
        .map_err(|error| format!("the arguments are wrong: {error}; expected {}", (tool.parameters)()))?;
    Ok((tool, work))
}

fn prepared<W: Work + DeserializeOwned + 'static>(
    _: &str,
    arguments: &str,
) -> Result<Box<dyn Work>, serde_json::Error> {
    serde_json::from_str::<W>(arguments).map(|work| Box::new(work) as Box<dyn Work>)
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub(crate) fn job(root: &std::path::Path) -> Job {
        Job { root: root.canonicalize().unwrap(), hidden: vec![], stop: Arc::default() }
    }

    /// Runs a tool as the model would call it.
    pub(crate) fn call(job: &Job, name: &str, arguments: Value) -> Outcome {
        let (_, work) = prepare(OWN, name, &arguments.to_string()).unwrap();
        work.run(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_what_it_takes() {
        for tool in offered(Offer::WithOstlers) {
            let parameters = (tool.parameters)();
            assert_eq!(parameters["type"], "object", "{}", tool.name);
            assert_eq!(parameters["additionalProperties"], false, "{}", tool.name);
            let properties = parameters["properties"].as_object().unwrap();
            for required in parameters["required"].as_array().into_iter().flatten() {
                assert!(properties.contains_key(required.as_str().unwrap()), "{}", tool.name);
            }
        }
    }

    #[test]
    fn mistakes_are_explained_to_the_model() {
        assert!(prepare(OWN, "no_such_tool", "{}").unwrap_err().contains("run_command"));
        assert!(prepare(OWN, "read_file", "{\"path\": ").unwrap_err().contains("arguments are wrong"));
        assert!(prepare(OWN, "read_file", "{\"pth\":\"a\"}").unwrap_err().contains("additionalProperties"));
    }
}
