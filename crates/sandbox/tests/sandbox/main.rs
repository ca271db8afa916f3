//! Real sandboxes with real programs in them, as root and as an ordinary user.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod basics;
mod files;
mod hidden;
mod identity;
mod life;
mod network;
mod privileges;
mod refusals;
mod support;
mod tooling;
