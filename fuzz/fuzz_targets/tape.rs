#![no_main]

#[path = "../src/tape.rs"]
mod tape;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a directory can be made");
    tape::holds(dir.path(), bytes);
});
