//! The tape through its public face: what is written is read, whatever happens in between.

mod append;
mod damage;
mod golden;
mod lines;
mod support;
