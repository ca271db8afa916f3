//! Tokens. A model call of the main loop is known when its stream ends; those of sub-agents, compactions and repeats show
//! only in the sum at the end of a turn, which is exact. What the sum has beyond the calls is booked without a name.

use std::collections::BTreeMap;

use ostler_domain::{Usage, event::ContextMeasured, session::CallUsage};
use serde::{Deserialize, Serialize};

use super::said::{MessageStart, Tokens, TurnResult};

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Meter {
    /// The call whose stream is open.
    open: Option<OpenCall>,
    /// Booked since the last result, by model.
    booked: BTreeMap<String, Usage>,
    /// The running totals of the last result; a resumed dialogue begins with those of its earlier lives.
    totals: Option<BTreeMap<String, Usage>>,
    last_model: Option<String>,
    /// Tokens that the last call of the main loop took in and gave back.
    #[serde(default)]
    used: u64,
    /// What the model of the main loop can take in.
    #[serde(default)]
    window: Option<u64>,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct OpenCall {
    id: String,
    model: String,
    usage: Usage,
}

impl Meter {
    pub(super) fn start(&mut self, message: MessageStart) -> Option<CallUsage> {
        let cut_short = self.book();
        let model = plain(&message.model.unwrap_or_default());
        self.last_model = Some(model.clone());
        self.open = Some(OpenCall { id: message.id, model, usage: message.usage.over(Usage::default()) });
        cut_short
    }

    pub(super) fn update(&mut self, tokens: Tokens) {
        if let Some(open) = &mut self.open {
            open.usage = tokens.over(open.usage);
        }
    }

    /// The open call is over.
    pub(super) fn book(&mut self) -> Option<CallUsage> {
        let OpenCall { id, model, usage } = self.open.take()?;
        if usage.total() > 0 {
            self.used = usage.total();
        }
        *self.booked.entry(model.clone()).or_default() += usage;
        Some(CallUsage { usage, model: Some(model), call: Some(id) })
    }

    /// How full the context is after the last call of the main loop.
    pub(super) fn context(&self) -> Option<ContextMeasured> {
        (self.used > 0).then_some(ContextMeasured { used: self.used, window: self.window })
    }

    /// The dialogue begins anew, and its totals with it.
    pub(super) fn forget_totals(&mut self) {
        self.used = 0;
        self.totals = Some(BTreeMap::new());
    }

    /// What the end of a turn says beyond the calls that were seen.
    pub(super) fn settle(&mut self, result: &TurnResult, is_resumed: bool) -> Vec<CallUsage> {
        let cut_short = self.book();
        let window_of = |last: &String| {
            let of_last = result.totals.iter().find(|(model, _)| plain(model) == *last);
            of_last.and_then(|(_, tokens)| tokens.context_window)
        };
        self.window = self.last_model.as_ref().and_then(window_of).or(self.window);
        let totals: BTreeMap<String, Usage> =
            result.totals.iter().map(|(model, tokens)| (plain(model), (*tokens).into())).collect();
        let since: BTreeMap<String, Usage> = match (&result.since_last, &self.totals) {
            (Some(since), _) => {
                since.iter().map(|(model, tokens)| (plain(model), (*tokens).into())).collect()
            }
            (None, Some(before)) => difference(&totals, before),
            (None, None) if !is_resumed => totals.clone(),
            // Older versions: the totals are of other lives too, so only the turn's own main loop is known.
            (None, None) => {
                let model = self.last_model.clone().or_else(|| totals.keys().next().cloned());
                model.map(|model| (model, result.usage.over(Usage::default()))).into_iter().collect()
            }
        };
        if !totals.is_empty() {
            self.totals = Some(totals);
        }
        let booked = std::mem::take(&mut self.booked);
        let rest = difference(&since, &booked).into_iter().filter(|(_, usage)| usage.total() > 0);
        let rest = rest.map(|(model, usage)| CallUsage { usage, model: Some(model), call: None });
        cut_short.into_iter().chain(rest).collect()
    }
}

/// Older versions name a model's long context with it in their sums, and not in their calls.
fn plain(model: &str) -> String {
    model.split('[').next().unwrap_or(model).to_owned()
}

fn difference(more: &BTreeMap<String, Usage>, less: &BTreeMap<String, Usage>) -> BTreeMap<String, Usage> {
    let of = |model: &String| less.get(model).copied().unwrap_or_default();
    more.iter().map(|(model, usage)| (model.clone(), usage.less(&of(model)))).collect()
}
