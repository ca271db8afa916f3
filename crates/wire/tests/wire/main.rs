//! What goes over the wire comes back the same, today and from every version before.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod dice;
mod golden;
mod missing;
mod round_trip;
