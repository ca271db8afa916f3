//! What became durable since this daemon started, counted where it does: by the writer, after each transaction.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_domain::{
    Event, Kind, Usage,
    metrics::{Named, Spans},
};

use crate::published::Published;

/// Where calls are counted that name no model.
const UNNAMED: &str = "unknown";

/// Tokens and money of one model.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    pub calls: u64,
    pub usage: Usage,
    /// Millionths of a dollar: of calls that are paid for one by one, and of those that a subscription covers. None where no
    /// such call had a price.
    pub paid: Option<u64>,
    pub plan: Option<u64>,
    /// Tokens of calls without a price.
    pub unpriced: u64,
}

/// All counts at one moment.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub events: BTreeMap<Kind, u64>,
    pub ended: BTreeMap<&'static str, u64>,
    pub models: Named<Spent>,
    /// Transactions, each with the commits of many sessions.
    pub transactions: Spans,
    /// From when a commit is handed in until it is durable.
    pub commits: Spans,
    pub failed_transactions: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Counts>>);

impl Meter {
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    pub(crate) fn failed(&self) {
        self.lock().failed_transactions += 1;
    }

    /// A transaction is durable that had these events, and commits that waited so long.
    pub(crate) fn committed(&self, recorded: &[Arc<Published>], took: Duration, waited: &[Duration]) {
        let mut counts = self.lock();
        counts.transactions.add(took);
        waited.iter().for_each(|waited| counts.commits.add(*waited));
        for recorded in recorded {
            *counts.events.entry(recorded.event.kind()).or_default() += 1;
            match &recorded.event {
                Event::SessionStopped(ended) | Event::SessionFailed(ended) => {
                    *counts.ended.entry(ended.outcome.as_str()).or_default() += 1;
                }
                Event::UsageRecorded(used) => {
                    let spent = counts.models.of(used.model.as_deref().unwrap_or(UNNAMED));
                    spent.calls += u64::from(!used.usage.is_zero());
                    spent.usage += used.usage;
                    let sum = if used.plan { &mut spent.plan } else { &mut spent.paid };
                    match used.cost {
                        Some(cost) => *sum = Some(sum.unwrap_or_default().saturating_add(cost.0)),
                        None => spent.unpriced = spent.unpriced.saturating_add(used.usage.total()),
                    }
                }
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
