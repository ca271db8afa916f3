//! The promises of the pure core, tried with random histories.

mod any;
mod life;
mod promises;
