//! Tells a collector of OpenTelemetry what sessions did, with a place of its own in the log.
//!
//! The log is the queue: spans are made from it again after a restart, and the place moves on only when they were taken.
//! A collector that does not answer is asked again, later and later; nobody waits for it but this.

use std::{
    collections::HashMap,
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use ostler_domain::{
    Recorded, Refusal, SessionId,
    limits::{TELEMETRY_BATCH, TELEMETRY_GATHER, WEBHOOK_FIRST, WEBHOOK_LONGEST, WEBHOOK_TIME},
    notice::SecretPlace,
    query::EventFilter,
    telemetry::{self, Export, KINDS, Sender, SessionTrace, Span},
};
use tokio::time::{Instant, timeout_at};

use crate::{
    Engine, Post, Poster, VERSION, Watch,
    notices::{Tried, judged},
};

/// Under which the place in the log is remembered.
const NAME: &str = "otel";
/// Pause before the log is looked at again when it could not be.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Events read in one go when a session's beginning is looked for.
const PAGE: u32 = 512;

/// Who is told, and how it is reached.
#[derive(Debug, Clone)]
pub struct ExportSettings {
    pub export: Export,
    pub post: Poster,
}

/// How far it has come, for whoever measures.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    pub(crate) waiting: AtomicU64,
    pub(crate) taken: AtomicU64,
}

/// What is open in each session that has not ended.
type Traces = HashMap<SessionId, SessionTrace>;

impl Engine {
    /// Begins to export, if that is wanted.
    pub async fn begin_export(&self) -> Result<(), Refusal> {
        let Some(settings) = self.shared.options.export.clone() else { return Ok(()) };
        // Who begins hears of what is to come, not of years.
        let place = match self.shared.store.cursor(NAME).await? {
            Some(place) => place,
            None => {
                let end = *self.shared.store.published().borrow();
                self.shared.store.set_cursor(NAME, end).await.map_err(Refusal::from)?;
                end
            }
        };
        let engine = self.clone();
        self.shared.tasks.spawn(async move {
            let shutdown = engine.shared.shutdown.clone();
            tokio::select! {
                () = engine.export_from(place, &settings) => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(())
    }

    async fn export_from(&self, mut place: u64, settings: &ExportSettings) {
        loop {
            if let Err(refusal) = self.export_on(&mut place, settings).await {
                tracing::warn!(%refusal, "spans cannot be made; trying again");
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    /// Exports what the log has behind a place, and goes on with what comes. Ends only with a failure of our own.
    async fn export_on(&self, place: &mut u64, settings: &ExportSettings) -> Result<(), Refusal> {
        let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
        let mut watch = self.watch(filter, Some(*place));
        let mut traces = Traces::new();
        loop {
            let (spans, up_to) = self.gather(&mut watch, &mut traces, settings.export.content).await?;
            let exported = &self.shared.exported;
            exported.waiting.store(spans.len() as u64, Ordering::Relaxed);
            for batch in spans.chunks(TELEMETRY_BATCH) {
                self.deliver(batch, settings).await;
            }
            self.shared.store.set_cursor(NAME, up_to).await.map_err(Refusal::from)?;
            *place = up_to;
            exported.waiting.store(0, Ordering::Relaxed);
        }
    }

    /// Waits for events, and a moment longer for more of them. The spans that they end, and the place behind them.
    async fn gather(
        &self,
        watch: &mut Watch,
        traces: &mut Traces,
        with_content: bool,
    ) -> Result<(Vec<Span>, u64), Refusal> {
        let mut spans = Vec::new();
        let mut events = watch.next().await?;
        let until = Instant::now() + TELEMETRY_GATHER;
        let mut up_to = 0;
        loop {
            for recorded in &events {
                spans.extend(self.spans_of(recorded, traces, with_content).await?);
                up_to = recorded.seq;
            }
            if spans.len() >= TELEMETRY_BATCH {
                return Ok((spans, up_to));
            }
            // A watch that is given up in between finds its place again by its cursor.
            match timeout_at(until, watch.next()).await {
                Ok(more) => events = more?,
                Err(_) => return Ok((spans, up_to)),
            }
        }
    }

    async fn spans_of(
        &self,
        recorded: &Recorded,
        traces: &mut Traces,
        with_content: bool,
    ) -> Result<Vec<Span>, Refusal> {
        let Some(session) = recorded.session else { return Ok(Vec::new()) };
        let mut trace = match traces.remove(&session) {
            Some(trace) => trace,
            None => match SessionTrace::begin(recorded, with_content) {
                Some(trace) => trace,
                None => match self.trace_before(session, recorded.seq, with_content).await? {
                    Some(trace) => trace,
                    None => return Ok(Vec::new()),
                },
            },
        };
        let spans = trace.apply(recorded);
        if !trace.has_ended() {
            traces.insert(session, trace);
        }
        Ok(spans)
    }

    /// What is open in a session that began before this daemon looked: its events are folded again, and what they say was
    /// said.
    async fn trace_before(
        &self,
        session: SessionId,
        before: u64,
        with_content: bool,
    ) -> Result<Option<SessionTrace>, Refusal> {
        let filter = EventFilter { session: Some(session), kinds: KINDS.to_vec(), ..EventFilter::default() };
        let mut trace: Option<SessionTrace> = None;
        let mut after = 0;
        loop {
            let page = self.shared.store.events_after(after, &filter, PAGE).await?;
            for recorded in page.rows.iter().take_while(|recorded| recorded.seq < before) {
                match &mut trace {
                    Some(trace) => drop(trace.apply(recorded)),
                    None => trace = SessionTrace::begin(recorded, with_content),
                }
            }
            match page.next_cursor {
                Some(next) if next < before => after = next,
                _ => return Ok(trace),
            }
        }
    }

    /// Returns when it was taken, or never will be.
    async fn deliver(&self, spans: &[Span], settings: &ExportSettings) {
        let sender = Sender { version: VERSION, node: self.shared.store.node_id().to_string() };
        let body = telemetry::request(&sender, spans);
        let mut pause = WEBHOOK_FIRST;
        loop {
            let (settings, body) = (settings.clone(), body.clone());
            let tried =
                tokio::task::spawn_blocking(move || settings.post.send(&post(&settings.export, body)?));
            let tried = tried.await.map_or_else(|error| Tried::Again(error.to_string()), judged);
            match tried {
                Tried::Heard => {
                    self.shared.exported.taken.fetch_add(spans.len() as u64, Ordering::Relaxed);
                    return tracing::debug!(spans = spans.len(), "spans were exported");
                }
                Tried::Refused(why) => {
                    return tracing::warn!(
                        why,
                        spans = spans.len(),
                        "the collector does not want these spans"
                    );
                }
                Tried::Again(why) => {
                    let seconds = pause.as_secs();
                    tracing::warn!(why, seconds, "the collector did not take spans; trying again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(WEBHOOK_LONGEST);
        }
    }
}

/// The headers are read anew each time: a key in them may be changed while a daemon runs.
fn post(export: &Export, body: Vec<u8>) -> Result<Post, String> {
    let said = match &export.headers {
        Some(SecretPlace::File(file)) => {
            fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?
        }
        Some(SecretPlace::Variable(name)) => std::env::var(name).map_err(|_| format!("{name} is not set"))?,
        None => String::new(),
    };
    let mut headers = telemetry::headers(&said)?;
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    Ok(Post { url: export.url.clone(), headers, body, within: WEBHOOK_TIME })
}
