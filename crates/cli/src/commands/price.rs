//! `ostler price`: what models cost. Nothing here asks the daemon: prices are a file beside `config.toml`.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use ostler_domain::{
    Refusal,
    price::{Dollars, Price, PriceBook, Prices, is_model},
};
use serde::Serialize;

use super::with_runtime;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    held_file::{hold, make_dir, unwritable},
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone, to_json},
    words,
};

/// A table of a thousand models has a tenth of it.
const BOOK_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct PriceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The prices that hold, in dollars for a million tokens
    #[command(alias = "list")]
    Ls {
        /// Only models whose name has this in it
        #[arg(value_name = "MODEL")]
        models: Vec<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Set the price of a model: input=3 output=15 cache_read=0.3 cache_write=3.75
    Set {
        /// The model's name, as its calls have it
        model: String,
        /// Dollars for a million tokens; caches cost what input does if nothing is said
        #[arg(value_name = "BUCKET=DOLLARS", required_unless_present = "remove", value_parser = bucket)]
        buckets: Vec<(Bucket, Dollars)>,
        /// Forget the price that was set; the table's holds again
        #[arg(long, conflicts_with = "buckets")]
        remove: bool,
    },
    /// Replace the table that is built in by a newer one
    Update {
        /// A file of the form that `ostler price ls -o json` prints
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    Input,
    CacheRead,
    CacheWrite,
    Output,
}

fn bucket(text: &str) -> Result<(Bucket, Dollars), String> {
    let wrong = || format!("\"{text}\" is no price; examples: input=3, cache_read=0.30, output=15");
    let (name, amount) = text.split_once('=').ok_or_else(wrong)?;
    let bucket = match name {
        "input" => Bucket::Input,
        "cache_read" => Bucket::CacheRead,
        "cache_write" => Bucket::CacheWrite,
        "output" => Bucket::Output,
        _ => return Err(wrong()),
    };
    Ok((bucket, Dollars::parse(amount).ok_or_else(wrong)?))
}

pub(crate) fn run(app: &App, args: PriceArgs) -> Result<u8, Failure> {
    let path = path(app)?;
    if let Verb::Ls { models, list: args } = args.verb {
        let list = ModelPrices { path, wanted: models, most: args.most(None) };
        return with_runtime(listing::run(app, None, &args, &list));
    }
    let _held = hold(&path)?;
    let mut book = read(&path)?;
    match args.verb {
        Verb::Ls { .. } => {}
        Verb::Set { model, remove: true, .. } => {
            if book.own.remove(&model).is_none() {
                return Err(Refusal::invalid(format!("no price of \"{model}\" was set"))
                    .hint("ostler price ls", "shows those that hold")
                    .into());
            }
        }
        Verb::Set { model, buckets, .. } => {
            if !is_model(&model) {
                return Err(Failure::usage("that is no name of a model"));
            }
            let price = price(&buckets)?;
            book.own.insert(model, price);
        }
        Verb::Update { from } => book
            .replace(table(&from)?)
            .map_err(|why| Refusal::invalid(format!("{} is not taken", from.display())).because(why))?,
    }
    write(&path, &book).map_err(|error| unwritable(&path, &error))?;
    if app.ui.is_json() {
        app.ui.json(&book.prices())?;
        return Ok(exit_code::OK);
    }
    app.ui.say(&Line::toned(Tone::Good, "✓ ").plain(format!(
        "prices of {}, {} set by hand; they hold for calls from now on, and for those of the past that had none",
        book.table().date,
        book.own.len()
    )));
    Ok(exit_code::OK)
}

fn price(buckets: &[(Bucket, Dollars)]) -> Result<Price, Failure> {
    let said = |wanted| buckets.iter().rev().find(|(bucket, _)| *bucket == wanted).map(|(_, amount)| *amount);
    let (Some(input), Some(output)) = (said(Bucket::Input), said(Bucket::Output)) else {
        return Err(Failure::usage("a price needs input=… and output=…"));
    };
    let cache = |bucket| said(bucket).unwrap_or(input);
    Ok(Price { input, cache_read: cache(Bucket::CacheRead), cache_write: cache(Bucket::CacheWrite), output })
}

fn path(app: &App) -> Result<PathBuf, Failure> {
    Ok(app.home()?.config().join("prices.json"))
}

/// What holds now.
pub(crate) fn prices(app: &App) -> Result<Prices, Failure> {
    Ok(read(&path(app)?)?.prices())
}

fn read(path: &Path) -> Result<PriceBook, Failure> {
    match text(path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| {
            let mistake = Refusal::invalid(format!("{} has a mistake", path.display()));
            mistake
                .because(error.to_string())
                .hint(format!("rm {}", path.display()), "goes back to the built-in prices")
                .into()
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PriceBook::default()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn table(path: &Path) -> Result<Prices, Failure> {
    let text = text(path).map_err(|error| unreadable(path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        Refusal::invalid(format!("{} is no table of prices", path.display()))
            .because(error.to_string())
            .into()
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Refusal::invalid(format!("{} cannot be read", path.display())).because(error.to_string()).into()
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(fs::File::open(path)?, BOOK_BYTES), &mut text)?;
    Ok(text)
}

/// Beside it and then in its place: who reads meanwhile has the one or the other.
fn write(path: &Path, book: &PriceBook) -> io::Result<()> {
    make_dir(path)?;
    let beside = path.with_extension(format!("json.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let mut text = serde_json::to_vec_pretty(book)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

struct ModelPrices {
    path: PathBuf,
    wanted: Vec<String>,
    most: Option<u32>,
}

#[derive(Serialize)]
struct ModelPrice {
    model: String,
    #[serde(flatten)]
    price: Price,
    from: String,
}

impl List for ModelPrices {
    type Row = ModelPrice;
    const ROWS: &'static str = "models";

    async fn find(&self) -> Result<Found<ModelPrice>, Failure> {
        let book = read(&self.path)?;
        let is_wanted = |model: &str| {
            self.wanted.is_empty() || self.wanted.iter().any(|part| model.contains(part.as_str()))
        };
        let from = |model: &str| match book.own.contains_key(model) {
            true => "set by hand".to_owned(),
            false => book.table().date.clone(),
        };
        let models = book.prices().models.into_iter().filter(|(model, _)| is_wanted(model));
        let rows = models.map(|(model, price)| ModelPrice { from: from(&model), model, price });
        Ok(Found::whole(rows.collect(), self.most))
    }

    fn id(&self, row: &ModelPrice) -> String {
        row.model.clone()
    }

    fn form(&self, row: &ModelPrice) -> impl Serialize {
        ModelPrice { model: row.model.clone(), price: row.price, from: row.from.clone() }
    }

    /// A table of prices, as `price update` takes it.
    fn object(&self, found: &Found<ModelPrice>) -> Option<String> {
        let models = found.rows.iter().map(|row| (row.model.clone(), row.price)).collect();
        Some(to_json(&Prices { models, ..read(&self.path).ok()?.prices() }))
    }

    async fn screen(&self, found: &Found<ModelPrice>) -> Result<Screen, Failure> {
        let table = listed(&found.rows);
        let count = words::plural(found.rows.len() as u64, "model", "models");
        let remark = format!(
            "dollars for a million tokens; {count}. A model that is not here costs an unknown amount"
        );
        Ok(Screen { table: Some(table), remarks: vec![Line::new().faint(remark)], ..Screen::default() })
    }
}

/// With nothing in it yet.
pub(super) fn empty_table() -> Table {
    listed(&[])
}

fn listed(rows: &[ModelPrice]) -> Table {
    let number = |head| Column::new(head).right();
    let mut table = Table::new([
        Column::new("MODEL"),
        number("INPUT"),
        number("CACHE READ").goes(1),
        number("CACHE WRITE").goes(2),
        number("OUTPUT"),
        Column::new("FROM"),
    ]);
    for row in rows {
        let amount = |amount: Dollars| Line::of(amount.decimal());
        table.row(vec![
            Line::new().strong(&row.model),
            amount(row.price.input),
            amount(row.price.cache_read),
            amount(row.price.cache_write),
            amount(row.price.output),
            Line::new().faint(&row.from),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_said_bucket_by_bucket() {
        let said = |texts: &[&str]| texts.iter().map(|text| bucket(text)).collect::<Result<Vec<_>, _>>();
        let whole = price(&said(&["input=3", "output=15", "cache_read=0.30"]).unwrap()).unwrap();
        assert_eq!((whole.cache_read, whole.cache_write), (Dollars(300_000), Dollars(3_000_000)));
        assert!(price(&said(&["input=3"]).unwrap()).is_err());
        for wrong in ["input", "input=", "input=-1", "inptu=3", "=3", "output=three"] {
            assert!(bucket(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_book_is_written_whole_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config/prices.json");
        assert_eq!(read(&path).unwrap(), PriceBook::default());
        let mut book = PriceBook::default();
        book.own.insert("m".to_owned(), Price { input: Dollars(1), ..Price::default() });
        for _ in 0..2 {
            write(&path, &book).unwrap();
            assert_eq!(read(&path).unwrap(), book);
        }
        fs::write(&path, "{").unwrap();
        assert!(read(&path).is_err());
    }
}
