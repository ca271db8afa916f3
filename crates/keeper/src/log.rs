//! The keeper's log: plain lines on descriptor 2, which its daemon pointed at a file.

use std::io::Write;

pub(crate) fn line(arguments: std::fmt::Arguments<'_>) {
    // A log that cannot be written must not stop the recording it is about.
    let _ = writeln!(std::io::stderr(), "{arguments}");
}

macro_rules! log {
    ($($arguments:tt)*) => { $crate::log::line(format_args!($($arguments)*)) };
}
pub(crate) use log;
