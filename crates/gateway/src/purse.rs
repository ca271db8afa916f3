//! The allowance of a session and what its calls have taken of it. When it is used up, the next call waits: so calls that
//! are under way are all that can go beyond it, whether there is a daemon or not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ostler_domain::{
    Usage,
    gateway::{Allowance, ModelCall, ModelOrder, Spent},
    limits::METER_BYTES_PER_TOKEN,
    price::Prices,
};

pub(crate) struct Purse {
    prices: Prices,
    contents: Mutex<Contents>,
}

struct Contents {
    allowance: Allowance,
    spent: Spent,
}

impl Purse {
    pub(crate) fn new(order: Option<&ModelOrder>) -> Purse {
        let own = order.map(|order| order.prices.clone()).unwrap_or_default();
        let (allowance, spent) = order.map(|order| (order.allowance, order.spent)).unwrap_or_default();
        Purse { prices: Prices::built_in().with(&own), contents: Mutex::new(Contents { allowance, spent }) }
    }

    /// Why no call may begin now; none if one may.
    pub(crate) fn end(&self) -> Option<String> {
        let contents = self.contents();
        contents.allowance.end(&contents.spent)
    }

    pub(crate) fn allow(&self, allowance: Allowance) {
        self.contents().allowance = allowance;
    }

    /// Takes out what a call took, and says what was taken in all. An answer that did not say what it took is estimated,
    /// here and nowhere else: to count it as nothing would be the way around every allowance.
    pub(crate) fn spend(&self, call: &ModelCall, content: Content) -> Spent {
        let usage = call.usage.unwrap_or_else(|| content.estimate());
        let price = call.model.as_deref().and_then(|model| self.prices.find(model));
        let mut contents = self.contents();
        contents.spent.add(&usage, price.map(|price| price.of(&usage)));
        contents.spent
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much was said in a call that was answered, without heads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content {
    pub(crate) asked: u64,
    pub(crate) answered: u64,
}

impl Content {
    fn estimate(self) -> Usage {
        Usage {
            input: self.asked / METER_BYTES_PER_TOKEN,
            output: self.answered / METER_BYTES_PER_TOKEN,
            ..Usage::default()
        }
    }
}
