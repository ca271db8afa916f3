//! What a person has set about prices: a table in place of the one that is built in, and prices above it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Price, Prices, plain_name};

/// The file `prices.json` beside `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriceBook {
    /// Takes the place of the table that is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Prices>,
    /// One by one, above every table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, Price>,
}

/// A price, and where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote<'a> {
    pub price: Price,
    /// The date of the table; absent for a price that a person has set.
    pub table: Option<&'a str>,
}

impl PriceBook {
    /// The price of a model, by its name or by one that means the same.
    pub fn quote(&self, model: &str) -> Option<Quote<'_>> {
        let table = self.table();
        let find = |name: &str| {
            let own = self.own.get(name).map(|price| Quote { price: *price, table: None });
            let listed = || {
                table.models.get(name).map(|price| Quote { price: *price, table: Some(table.date.as_str()) })
            };
            own.or_else(listed)
        };
        find(model).or_else(|| find(plain_name(model)))
    }

    /// The table under the prices that were set one by one.
    pub fn table(&self) -> &Prices {
        self.table.as_ref().unwrap_or_else(|| Prices::built_in())
    }

    /// What holds, all in all.
    pub fn prices(&self) -> Prices {
        self.table().with(&self.own)
    }

    /// Puts a table in the place of the one that is there. An older one than that is a mistake, and so is one without a day
    /// that others could be compared with, or without any price.
    pub fn replace(&mut self, table: Prices) -> Result<(), String> {
        if !is_day(&table.date) {
            let date = crate::text::one_line(&table.date, 80);
            return Err(format!("its date \"{date}\" is no day such as 2026-11-16"));
        }
        if table.models.is_empty() {
            return Err("it has no prices".to_owned());
        }
        if table.date < self.table().date {
            return Err(format!(
                "it is of {}, and the prices that hold are of {}",
                table.date,
                self.table().date
            ));
        }
        if let Some(model) = table.models.keys().find(|model| !is_model(model)) {
            return Err(format!("\"{}\" is no name of a model", crate::text::one_line(model, 80)));
        }
        self.table = Some(table);
        Ok(())
    }
}

/// `2026-11-16`
fn is_day(text: &str) -> bool {
    let number = |part: &str, digits: usize| {
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|_| is_number)
    };
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    number(year, 4).is_some()
        && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
        && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
}

/// Whether a text can be the name of a model.
pub fn is_model(name: &str) -> bool {
    (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::Dollars;

    #[test]
    fn what_is_set_holds_above_a_table_and_a_table_above_what_is_built_in() {
        let mut book = PriceBook::default();
        assert_eq!(&book.prices(), Prices::built_in());
        let dear = Price { input: Dollars(9), ..Price::default() };
        let models = BTreeMap::from([("new-model".to_owned(), Price::default())]);
        let table = Prices { version: 2, date: "2999-01-01".to_owned(), models };
        book.replace(table.clone()).unwrap();
        book.own.insert("new-model".to_owned(), dear);
        assert_eq!(book.prices().find("new-model"), Some(dear));
        assert_eq!(book.prices().find("gpt-5"), None, "the table is replaced, not added to");
        assert_eq!(book.quote("maker/new-model"), Some(Quote { price: dear, table: None }));
        book.own.clear();
        let listed = Quote { price: Price::default(), table: Some("2999-01-01") };
        assert_eq!((book.quote("new-model"), book.quote("gpt-5")), (Some(listed), None));
        let older = Prices { date: "2998-12-31".to_owned(), ..table };
        assert!(book.replace(older).unwrap_err().contains("2999-01-01"));
        for date in ["zzz", "", "3000", "3000-13-01", "3000-1-1", "3000-01-00", "+300-01-01"] {
            let undated = Prices { date: date.to_owned(), ..book.table().clone() };
            assert!(book.replace(undated).unwrap_err().contains("no day"), "{date}");
        }
        let empty = Prices { date: "3000-01-01".to_owned(), models: BTreeMap::new(), version: 2 };
        assert_eq!(book.replace(empty), Err("it has no prices".to_owned()), "nothing would have a price");
        let json = serde_json::to_string(&book).unwrap();
        assert_eq!(serde_json::from_str::<PriceBook>(&json).unwrap(), book);
    }
}
