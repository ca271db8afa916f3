//! What is measured: gauges of how things are now, and counters since this daemon started.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use ostler_domain::{
    Refusal, Time,
    metrics::{Named, Page, Sort},
    query::{self, Scope, SessionFilter},
};
use ostler_store::{Counts, Spent};

use crate::{Engine, VERSION};

/// Sessions read in one go.
const SESSIONS: u32 = 500;

impl Engine {
    /// A page of measurements in the text format of Prometheus.
    pub async fn metrics(&self, started: Time) -> Result<String, Refusal> {
        let status = self.status().await?;
        let sessions = self.sessions_by_state().await?;
        let approvals = self.shared.store.open_approvals().await?.len();
        let store = &self.shared.store;
        let counts = store.counts();
        let mut page = Page::default();
        let mut gauge = |name, help: &str, value: u64| page.single(name, Sort::Gauge, help, value as f64);
        let up = self.shared.clock.now().wall.since(started).as_secs();
        gauge("ostler_up_seconds", "Seconds since this daemon started.", up);
        gauge(
            "ostler_start_time_seconds",
            "When this daemon started, in seconds since 1970.",
            u64::try_from(started.micros()).unwrap_or(0) / 1_000_000,
        );
        gauge("ostler_epoch", "Starts of daemons on this node so far.", status.epoch);
        gauge("ostler_halted", "1 while all agents are halted or frozen.", u64::from(status.halt.is_some()));
        gauge(
            "ostler_approvals_waiting",
            "Agents' questions that nobody has answered yet.",
            approvals as u64,
        );
        gauge("ostler_keepers", "Keepers that this daemon is connected to.", status.keepers);
        gauge("ostler_sessions_waiting", "Sessions that wait to start.", status.waiting);
        gauge("ostler_writer_queue", "Commits that wait for the writer.", store.writer_queue() as u64);
        gauge(
            "ostler_watchers",
            "Who follows the log: clients, hooks, the webhook, the export.",
            store.followers() as u64,
        );
        let exported = &self.shared.exported;
        gauge(
            "ostler_export_waiting_spans",
            "Spans that the collector has not taken yet.",
            exported.waiting.load(Ordering::Relaxed),
        );
        gauge("ostler_disk_free_bytes", "Bytes that are free on the disk of the state.", status.disk.free);
        page.family("ostler_build_info", Sort::Gauge, "Always 1; the version of the daemon is its label.")
            .sample(&[("version", VERSION)], 1.0);
        let mut family = page.family(
            "ostler_sessions",
            Sort::Gauge,
            "Sessions that have not ended, by what they are about.",
        );
        for ((status, attention), providers) in &sessions {
            for (provider, count) in providers.iter() {
                let labels = [("status", *status), ("attention", *attention), ("provider", provider)];
                family.sample(&labels, *count as f64);
            }
        }
        let stats = &status.stats;
        let mut family = page.family("ostler_store_bytes", Sort::Gauge, "Size of the record, by file.");
        for (part, bytes) in
            [("database", stats.db_bytes), ("wal", stats.wal_bytes), ("search", stats.search_bytes)]
        {
            family.sample(&[("part", part)], bytes as f64);
        }
        page.single("ostler_log_events", Sort::Gauge, "Events that the log has.", stats.events as f64);
        page.single(
            "ostler_export_spans_total",
            Sort::Counter,
            "Spans that the collector has taken.",
            exported.taken.load(Ordering::Relaxed) as f64,
        );
        counters(&mut page, &counts);
        Ok(page.into_text())
    }

    async fn sessions_by_state(&self) -> Result<BTreeMap<State, Named<u64>>, Refusal> {
        let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
        let mut by_state: BTreeMap<State, Named<u64>> = BTreeMap::new();
        let mut cursor = None;
        loop {
            let listed = self.shared.store.list_sessions(&filter, query::Page::of(SESSIONS, cursor)).await?;
            for mut view in listed.rows {
                self.overlay(&mut view);
                let attention = view.attention.map_or("none", ostler_domain::session::Attention::as_str);
                let state = by_state.entry((view.status.as_str(), attention)).or_default();
                *state.of(&view.provider) += 1;
            }
            cursor = listed.next_cursor;
            if cursor.is_none() {
                return Ok(by_state);
            }
        }
    }
}

/// Status and attention.
type State = (&'static str, &'static str);

fn counters(page: &mut Page, counts: &Counts) {
    let mut family = page.family("ostler_events_total", Sort::Counter, "Events recorded, by kind.");
    for (kind, count) in &counts.events {
        family.sample(&[("kind", kind.name())], *count as f64);
    }
    let mut family = page.family("ostler_sessions_ended_total", Sort::Counter, "Sessions ended, by outcome.");
    for (outcome, count) in &counts.ended {
        family.sample(&[("outcome", outcome)], *count as f64);
    }
    page.family(
        "ostler_commit_seconds",
        Sort::Histogram,
        "Time from handing in a commit until it is durable, the wait for others included.",
    )
    .histogram(&counts.commits);
    page.family("ostler_transaction_seconds", Sort::Histogram, "Time that a durable transaction takes.")
        .histogram(&counts.transactions);
    page.single(
        "ostler_transactions_failed_total",
        Sort::Counter,
        "Transactions that were not committed.",
        counts.failed_transactions as f64,
    );
    let mut family = page.family("ostler_model_calls_total", Sort::Counter, "Model calls, by model.");
    for (model, spent) in counts.models.iter() {
        family.sample(&[("model", model)], spent.calls as f64);
    }
    let mut family =
        page.family("ostler_tokens_total", Sort::Counter, "Tokens, by model and bucket; no token is in two.");
    for (model, Spent { usage, .. }) in counts.models.iter() {
        for (bucket, tokens) in [
            ("input", usage.input),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
        ] {
            family.sample(&[("model", model), ("bucket", bucket)], tokens as f64);
        }
    }
    let mut family = page.family(
        "ostler_cost_dollars_total",
        Sort::Counter,
        "Cost of calls whose model has a price; what a subscription covers is on no bill.",
    );
    for (model, Spent { paid, plan, .. }) in counts.models.iter() {
        // A 0 would say that it cost nothing.
        for (billing, micro) in [("call", *paid), ("plan", *plan)] {
            let Some(micro) = micro else { continue };
            family.sample(&[("model", model), ("billing", billing)], micro as f64 / 1e6);
        }
    }
    let mut family = page.family(
        "ostler_unpriced_tokens_total",
        Sort::Counter,
        "Tokens of calls whose model had no price; what they cost is in no other number.",
    );
    for (model, Spent { unpriced, .. }) in counts.models.iter().filter(|(_, spent)| spent.unpriced > 0) {
        family.sample(&[("model", model)], *unpriced as f64);
    }
}
