//! Everything that reaches the terminal or a pipe goes through here: [`Ui`] writes, [`Line`] makes text safe,
//! [`Table`] lays it out, [`Look`] knows what the other side can show.

mod pager;
mod rows;
mod ui;

pub(crate) use ostler_form::to_json;
pub(crate) use ostler_screen::{Column, FIELD, Line, Look, Table, Terminals, Tone};
pub(crate) use rows::Rows;
pub(crate) use ui::{Format, Ui, UiOptions};
