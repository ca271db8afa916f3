//! A daemon of one's own: a private home, the real binary, real processes and sockets, and ways to hurt them.
//!
//! Everything that a test starts ends with it: dropping a [`TestHome`] kills its daemon, its keepers and with
//! them its agents, by pid and start time, and nothing else.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test may panic, and says so by panicking"
)]

pub mod collector;
pub mod fake_oauth;
pub mod fake_openai;
pub mod home;
pub mod numbers;
pub mod private;
pub mod process;
pub mod programs;
pub mod scenario;
pub mod seed;
pub mod skip;
pub mod torture;
pub mod wait;

pub use collector::Collector;
pub use fake_oauth::FakeOauth;
pub use fake_openai::FakeOpenai;
pub use home::TestHome;
pub use process::Proc;
pub use seed::Seed;
