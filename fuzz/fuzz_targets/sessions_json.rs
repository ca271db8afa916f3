#![no_main]

#[path = "../src/sessions_json.rs"]
mod sessions_json;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessions_json::holds(bytes));
