//! What calls without a price cost at the prices that hold now, as a function of SQL: lists are filtered by the costs
//! that screens show.

use std::sync::{Arc, OnceLock};

use ostler_domain::{
    Usage,
    price::{Dollars, PriceBook},
};
use rusqlite::{
    Connection,
    functions::{Context, FunctionFlags},
};

use crate::{
    convert::{signed, unsigned},
    error::{Doing, Fault},
    store::Store,
};

type Current = dyn Fn() -> Arc<PriceBook> + Send + Sync;

/// Where the prices are asked for; until somebody says so, those that are built in hold.
#[derive(Clone, Default)]
pub(crate) struct Prices(Arc<OnceLock<Box<Current>>>);

impl Store {
    /// Has lists ask here what holds. The first who says so is believed.
    pub fn take_prices_from(&self, current: impl Fn() -> Arc<PriceBook> + Send + Sync + 'static) {
        // A store has one daemon.
        let _ = self.prices().0.set(Box::new(current));
    }
}

impl Prices {
    fn current(&self) -> Arc<PriceBook> {
        self.0.get().map_or_else(Arc::default, |current| current())
    }

    /// Makes `cost_now(model, input, cache_read, cache_write, output)` known: nothing where there is no price.
    pub(crate) fn taught(&self, connection: Connection) -> Result<Connection, Fault> {
        let prices = self.clone();
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
        connection
            .create_scalar_function("cost_now", 5, flags, move |call| cost_now(&prices.current(), call))
            .doing("open the database for reading")?;
        Ok(connection)
    }
}

fn cost_now(prices: &PriceBook, call: &Context<'_>) -> rusqlite::Result<Option<i64>> {
    let model = call.get_raw(0).as_str().unwrap_or_default();
    let Some(quote) = prices.quote(model) else { return Ok(None) };
    let usage = Usage {
        input: unsigned(call.get(1)?),
        cache_read: unsigned(call.get(2)?),
        cache_write: unsigned(call.get(3)?),
        output: unsigned(call.get(4)?),
        ..Usage::default()
    };
    let Dollars(micros) = quote.price.of(&usage);
    Ok(Some(signed(micros)))
}
