#![no_main]

#[path = "../src/transcript.rs"]
mod transcript;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| transcript::holds(bytes));
