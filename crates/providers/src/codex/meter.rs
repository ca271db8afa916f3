//! Tokens of a thread, from updates of which none can be believed alone: compaction repeats an old `last` and then
//! estimates, a resume replays old values, a fork begins with its parent's total.

use ostler_domain::{Usage, event::ContextMeasured};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a thread has used in all, as it last said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Total {
    input: u64,
    cached: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Total {
    pub(super) fn read(said: &Value) -> Self {
        let of = |name: &str| said[name].as_u64().unwrap_or(0);
        Self {
            input: of("inputTokens"),
            cached: of("cachedInputTokens"),
            written: of("cacheWriteInputTokens"),
            output: of("outputTokens"),
            reasoning: of("reasoningOutputTokens"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }

    /// Four buckets that do not overlap: the cached part is in the input.
    fn usage(self) -> Usage {
        Usage {
            input: self.input.saturating_sub(self.cached).saturating_sub(self.written),
            cache_read: self.cached,
            cache_write: self.written,
            output: self.output,
            reasoning: self.reasoning,
        }
    }
}

/// How full the thread's context is.
pub(super) fn context(said: &Value) -> Option<ContextMeasured> {
    let used = said["last"]["totalTokens"].as_u64().filter(|used| *used > 0)?;
    Some(ContextMeasured { used, window: said["modelContextWindow"].as_u64().filter(|window| *window > 0) })
}

/// What an update adds. `is_ours` says whether it speaks of a turn that began in this process.
pub(super) fn added(before: Option<Total>, said: &Value, is_ours: bool) -> (Total, Option<Usage>) {
    let total = Total::read(&said["total"]);
    let spent = match before {
        Some(before) => total.since(before),
        None if is_ours => Total::read(&said["last"]),
        None => Total::default(),
    };
    let usage = spent.usage();
    (total, (!usage.is_zero()).then_some(usage))
}
