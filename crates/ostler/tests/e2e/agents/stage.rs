//! A home with one agent program and its model, and what is asked of both.

use std::{fs, time::Duration};

use ostler_client::{AnswerApproval, Client, CreateSession, SendMessage};
use ostler_domain::{
    Event, Recorded, SessionId, Usage,
    event::ToolResult,
    query::Page,
    session::{Approve, Attention, View},
};
use ostler_testkit::{FakeOpenai, Proc, TestHome, process::command_line};
use serde_json::Value;

use crate::OSTLER;

/// Real programs start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The key that the model wants, and no agent ever sees.
pub(super) const KEY: &str = "sk-dummy-of-a-test";

/// One kind of agent.
pub(super) struct Agent {
    pub(super) provider: &'static str,
    pub(super) model: Option<&'static str>,
    /// Its section of `config.toml`, without where the model is.
    pub(super) config: String,
    /// The session's own settings of it.
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// Whether it adds the version to the path of its base URL by itself.
    pub(super) adds_version: bool,
    /// Whether its reports name all tokens that its model calls took.
    pub(super) reports_all: bool,
    /// Whether it tells how full its context is.
    pub(super) says_context: bool,
    /// Whether it tells what its commands printed.
    pub(super) shows_output: bool,
    /// How the command line of its process begins, without directories.
    pub(super) process: &'static str,
    /// Whether it always finds again what it has written down. Who does not is told by us what was said.
    pub(super) finds_itself: bool,
}

pub(super) struct Stage {
    pub(super) home: TestHome,
    pub(super) model: FakeOpenai,
    pub(super) agent: Agent,
}

impl Stage {
    pub(super) async fn new(agent: Agent) -> Self {
        Self::with(agent, "").await
    }

    /// With more in the machine's configuration.
    pub(super) async fn with(agent: Agent, more: &str) -> Self {
        let (home, model) = (TestHome::new(OSTLER), FakeOpenai::start());
        fs::create_dir_all(home.home.config()).unwrap();
        let key = home.path().join("key");
        fs::write(&key, format!("{KEY}\n")).unwrap();
        let config = format!(
            "{more}[providers.\"{}\"]\nbase_url = \"{}\"\napi_key_file = \"{}\"\n{}\n",
            agent.provider,
            if agent.adds_version { model.origin() } else { model.base_url() },
            key.display(),
            agent.config
        );
        fs::write(home.home.config_toml(), config).unwrap();
        home.begin().await;
        Self { home, model, agent }
    }

    pub(super) async fn begin(&self, approve: Approve, steps: &Value) -> SessionId {
        self.begin_with(approve, steps, |_| {}).await
    }

    pub(super) async fn begin_with(
        &self,
        approve: Approve,
        steps: &Value,
        more: impl FnOnce(&mut CreateSession),
    ) -> SessionId {
        let mut wanted = CreateSession::new("shop", self.agent.provider);
        wanted.model = self.agent.model.map(str::to_owned);
        wanted.approve = approve;
        let settings = self.agent.settings.iter();
        wanted.provider_config =
            settings.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        wanted.initial_message = Some(script(steps));
        more(&mut wanted);
        self.client().await.create_session(wanted).await.unwrap().id
    }

    pub(super) async fn client(&self) -> Client {
        self.home.start().await
    }

    pub(super) async fn say(&self, session: SessionId, steps: &Value) -> View {
        let message = SendMessage { who: session.to_string(), text: script(steps), ..SendMessage::default() };
        self.client().await.send_message(message).await.unwrap().sent().unwrap().session
    }

    /// Waits until so many turns have ended.
    pub(super) async fn turns(&self, session: SessionId, turns: u32) -> View {
        self.reaches(session, &format!("turn {turns} to end"), |view| {
            view.turns == turns && view.attention == Some(Attention::Idle)
        })
        .await
    }

    pub(super) async fn reaches(
        &self,
        session: SessionId,
        what: &str,
        looks: impl Fn(&View) -> bool,
    ) -> View {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let view = self.client().await.session(&session.to_string()).await.unwrap();
            if looks(&view) {
                return view;
            }
            let is_over = view.outcome.is_some() || tokio::time::Instant::now() > deadline;
            if is_over {
                let events = self.events(session).await;
                let last: Vec<_> = events.iter().rev().take(12).map(|recorded| &recorded.event).collect();
                panic!("no {what}; last seen: {view:#?}\nlast events: {last:#?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a session has ended that may still have to start.
    pub(super) async fn ended(&self, session: SessionId) -> View {
        let is_over = |event: &Event| matches!(event, Event::SessionStopped(_) | Event::SessionFailed(_));
        self.sees(session, "the end of the session", is_over).await;
        self.home.ended(&session.to_string()).await
    }

    /// Waits until something is recorded.
    pub(super) async fn sees(&self, session: SessionId, what: &str, is_it: impl Fn(&Event) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let events = self.events(session).await;
            if events.iter().any(|recorded| is_it(&recorded.event)) {
                return;
            }
            let last: Vec<_> =
                events.iter().rev().take(24).map(|recorded| (recorded.time, &recorded.event)).collect();
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited too long for {what}; last events: {last:#?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn events(&self, session: SessionId) -> Vec<Recorded> {
        self.home.events(&self.client().await, session).await
    }

    /// Waits for the agent's question and answers it.
    pub(super) async fn answer(&self, session: SessionId, allow: bool) {
        self.reaches(session, "question", |view| view.attention == Some(Attention::WaitingApproval)).await;
        let client = self.client().await;
        let open = client.approvals(true, Page::of(10, None)).await.unwrap().rows.pop().unwrap();
        let message = if allow { "" } else { "not this" }.to_owned();
        client
            .answer_approval(AnswerApproval { approval: open.id.to_string(), allow, always: false, message })
            .await
            .unwrap();
    }

    /// The command lines of all processes of a session.
    pub(super) fn commands(&self, session: SessionId) -> Vec<String> {
        let processes = self.home.session_processes(session);
        processes.iter().map(|process| command_line(process.pid).join(" ")).collect()
    }

    /// The agent's own process, not what it started.
    pub(super) fn process(&self, session: SessionId) -> Option<Proc> {
        self.home.session_processes(session).into_iter().find(|process| {
            let words = command_line(process.pid);
            let named = words.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
            named.take(3).collect::<Vec<_>>().join(" ").contains(self.agent.process)
        })
    }

    /// Whether a text stands in some file of an agent's home.
    pub(super) fn remembers(&self, text: &str) -> bool {
        let mut open = vec![self.home.home.state().join("homes")];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let has = |bytes: Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
                if kind.is_dir() {
                    open.push(entry.path());
                } else if kind.is_file() && fs::read(entry.path()).is_ok_and(has) {
                    return true;
                }
            }
        }
        false
    }

    pub(super) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.home.campaign_dir().join(name)).ok()
    }
}

/// A prompt that carries what the model is to answer.
pub(super) fn script(steps: &Value) -> String {
    format!("@@fake {steps}")
}

pub(super) fn completions(events: &[Recorded]) -> Vec<String> {
    let texts = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AgentCompletion(text) => Some(text.text.clone()),
        _ => None,
    });
    texts.collect()
}

pub(super) fn results(events: &[Recorded]) -> Vec<ToolResult> {
    let results = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AgentToolResult(result) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

/// What a source said, added up.
pub(super) fn said(events: &[Recorded], source: ostler_domain::event::UsageSource) -> Usage {
    let said = events.iter().filter_map(|recorded| match &recorded.event {
        Event::UsageRecorded(used) if used.source == source => Some(used.said()),
        _ => None,
    });
    said.fold(Usage::default(), |sum, usage| sum + usage)
}
