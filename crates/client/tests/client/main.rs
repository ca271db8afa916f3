//! The client against a daemon that is a real server on a real socket, and can be made to crash.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod connect;
mod fake;
mod retry;
mod start;
mod watch;
