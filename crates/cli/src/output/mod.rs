//! Everything that reaches the terminal or a pipe goes through here: [`Ui`] writes, [`Line`] makes text safe,
//! [`Table`] lays it out, [`Look`] knows what the other side can show.

mod json;
mod line;
mod look;
mod pager;
mod table;
mod ui;

pub(crate) use json::to_json;
pub(crate) use line::{Line, Tone};
#[cfg(test)]
pub(crate) use look::Letters;
pub(crate) use look::{Look, Terminals};
pub(crate) use table::{Column, Table};
pub(crate) use ui::{FIELD, Format, Ui, UiOptions};
