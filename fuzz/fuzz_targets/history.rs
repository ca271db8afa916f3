#![no_main]

#[path = "../src/history.rs"]
mod history;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| history::holds(bytes));
