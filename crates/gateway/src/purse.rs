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
    /// The session's own, for answers that name none.
    model: Option<String>,
    contents: Mutex<Contents>,
}

struct Contents {
    prices: Prices,
    allowance: Allowance,
    spent: Spent,
}

impl Purse {
    pub(crate) fn new(order: Option<&ModelOrder>) -> Purse {
        let Some(order) = order else { return Purse::of(Prices::built_in().clone(), None) };
        let mut base = Prices::built_in().clone();
        if order.has_own_table {
            base.models.clear();
        }
        let purse = Purse::of(base.with(&order.prices), order.model.clone());
        purse.contents().spent = order.spent.clone();
        purse.allow(order.allowance.clone());
        purse
    }

    fn of(prices: Prices, model: Option<String>) -> Purse {
        let (allowance, spent) = (Allowance::default(), Spent::default());
        Purse { model, contents: Mutex::new(Contents { prices, allowance, spent }) }
    }

    /// Why no call may begin now; none if one may.
    pub(crate) fn end(&self) -> Option<String> {
        let contents = self.contents();
        contents.allowance.end(&contents.spent)
    }

    /// Whether more may come however long that takes, because a person is asked for it.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.contents().allowance.is_asked_for
    }

    /// What was taken in all, and by which allowance calls are held from now on.
    pub(crate) fn spent(&self) -> Spent {
        self.contents().spent.clone()
    }

    /// Another allowance, and with it what has become known of prices.
    pub(crate) fn allow(&self, allowance: Allowance) {
        let mut contents = self.contents();
        let Contents { prices, spent, .. } = &mut *contents;
        prices.models.extend(allowance.prices.iter().map(|(model, price)| (model.clone(), *price)));
        spent.settle(|model| prices.find(model));
        spent.heeds = allowance.number;
        contents.allowance = allowance;
    }

    /// Takes out what a call took. An answer that did not say what it took is estimated,
    /// here and nowhere else: to count it as nothing would be the way around every allowance.
    pub(crate) fn spend(&self, call: &ModelCall, content: Content) {
        let usage = call.usage.unwrap_or_else(|| content.estimate());
        let model = call.model.as_deref().or(self.model.as_deref());
        let mut contents = self.contents();
        let price = model.and_then(|model| contents.prices.find(model));
        contents.spent.add(&usage, model, price.map(|price| price.of(&usage)));
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
