//! Plain lines on descriptor 2, which leads into the keeper's log.

use std::io::Write;

pub(crate) fn line(arguments: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{arguments}");
}

macro_rules! log {
    ($($arguments:tt)*) => { $crate::log::line(format_args!($($arguments)*)) };
}
pub(crate) use log;
