//! A dialogue without an agent: lines as the tape would have them.

use std::time::Duration;

use ostler_domain::session::{AgentRequest, Approve, Begin, Report};
use ostler_providers::{Dialogue, Heard, Terms, registry};
use ostler_tape::{InputMark, Line, LineBody, Stream};
use serde_json::Value;

/// Lines as the tape would have them, and what comes of them.
pub(crate) struct Scene {
    dialogue: Box<dyn Dialogue>,
    heard: Vec<Heard>,
    at: u64,
    inputs: u64,
}

impl Scene {
    pub(crate) fn of(provider: &str, begin: Begin) -> Self {
        Self::with(provider, begin, &[])
    }

    /// The same with settings of the session.
    pub(crate) fn with(provider: &str, begin: Begin, config: &[(&str, &str)]) -> Self {
        let provider = registry::find(provider).unwrap();
        let terms = Terms {
            session: "ses_00000000000000000000000001".parse().unwrap(),
            working_dir: "/campaign".into(),
            model: None,
            begin,
            approve: Approve::Ask,
            instructions: None,
            mcp: None,
            config: config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            no_tools: false,
        };
        let mut scene = Self { dialogue: provider.dialogue(None).unwrap(), heard: vec![], at: 0, inputs: 0 };
        for say in provider.opening(&terms) {
            scene.told(&say.tag, &say.bytes);
        }
        scene
    }

    fn line(&mut self, stream: Stream, bytes: &[u8], input: Option<InputMark>) {
        self.at += 100;
        let body = LineBody::Whole(bytes.to_vec().into());
        let line = Line { stream, start: self.at, end: self.at + 1, time_us: 0, body, input };
        self.dialogue.on_line(&line, &mut self.heard);
    }

    fn told(&mut self, tag: &str, bytes: &[u8]) {
        self.inputs += 1;
        let mark = InputMark { input_no: self.inputs, tag: tag.to_owned() };
        self.line(Stream::In, bytes, Some(mark));
    }

    /// Asks something of the agent; gives the first line of it.
    pub(crate) fn ask(&mut self, request: &AgentRequest) -> Option<Value> {
        self.ask_all(request).into_iter().next()
    }

    /// The same, with all its lines.
    pub(crate) fn ask_all(&mut self, request: &AgentRequest) -> Vec<Value> {
        let Some(bytes) = self.dialogue.on_request(request, self.inputs + 1) else { return Vec::new() };
        self.told(&request.tag(), &bytes);
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// The agent prints something; what the dialogue answers by itself is written, and given.
    pub(crate) fn said(&mut self, message: &Value) -> Vec<Value> {
        let before = self.heard.len();
        self.line(Stream::Out, message.to_string().as_bytes(), None);
        let says = self.heard[before..].iter().filter_map(|heard| match heard {
            Heard::Say(say) => Some(say.clone()),
            _ => None,
        });
        let says: Vec<_> = says.collect();
        says.iter().for_each(|say| self.told(&say.tag, &say.bytes));
        says.iter().map(|say| serde_json::from_slice(&say.bytes).unwrap()).collect()
    }

    pub(crate) fn ends_within(&self) -> Duration {
        self.dialogue.ends_within()
    }

    pub(crate) fn reports(&self) -> Vec<&Report> {
        let reports = self.heard.iter().filter_map(|heard| match heard {
            Heard::Report(report) => Some(report),
            _ => None,
        });
        reports.collect()
    }
}
