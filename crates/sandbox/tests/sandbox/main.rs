//! Real sandboxes with real programs in them, as root and as an ordinary user.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "helpers of tests say what they skip")]

mod basics;
mod files;
mod hidden;
mod identity;
mod life;
mod network;
mod privileges;
mod races;
mod refusals;
mod support;
mod tooling;
mod tools;
mod work_trees;
