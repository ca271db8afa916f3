//! Sections of which there may be several, one at a time: `[[notify]]`. What stands in the file beside them stays.

use ostler_domain::Refusal;
use toml_edit::{Array, InlineTable, Item};

use super::{change::Wish, file};
use crate::{app::App, failure::Failure, held_file::hold};

/// What one of them says.
#[derive(Debug, Default)]
pub(crate) struct Entry(InlineTable);

impl Entry {
    pub(crate) fn text(&mut self, key: &str, text: Option<String>) {
        if let Some(text) = text {
            self.0.insert(key, text.into());
        }
    }

    pub(crate) fn list(&mut self, key: &str, list: Vec<String>) {
        if !list.is_empty() {
            self.0.insert(key, list.into_iter().collect::<Array>().into());
        }
    }

    pub(crate) fn switch(&mut self, key: &str, is_on: bool) {
        if is_on {
            self.0.insert(key, true.into());
        }
    }
}

/// Adds one behind those that are there.
pub(crate) fn add_entry(app: &App, section: &str, entry: Entry) -> Result<(), Failure> {
    change(app, &format!("{section}+={}", entry.0))
}

/// Takes back whoever is told by this name, wherever the file has it.
pub(crate) fn remove_channel(app: &App, name: &str) -> Result<(), Failure> {
    let document = file::read(&app.home()?.config_toml())?;
    let sections = document.get("notify").and_then(Item::as_array_of_tables);
    let is_it = |table: &toml_edit::Table| table.get("name").and_then(Item::as_str) == Some(name);
    let place = sections.and_then(|sections| sections.iter().position(is_it));
    match (place, name.strip_prefix("hook-")) {
        (Some(place), _) => change(app, &format!("notify-={}", place + 1)),
        (None, Some(number)) => change(app, &format!("hooks-={number}")),
        (None, None) => super::unset(app, name),
    }
}

fn change(app: &App, setting: &str) -> Result<(), Failure> {
    let path = app.home()?.config_toml();
    let _held = hold(&path)?;
    let mut document = file::read(&path)?;
    let wishes = super::change::typed(vec![setting.to_owned()])?;
    wishes.iter().try_for_each(|wish: &Wish| -> Result<(), Refusal> { wish.make(&mut document) })?;
    Ok(file::keep(&path, &document)?)
}
