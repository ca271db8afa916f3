//! Compiles the protocol with a compiler written in Rust: building Ostler needs no `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

const FILES: &[&str] = &[
    "ostler/v1/admin_service.proto",
    "ostler/v1/campaign_service.proto",
    "ostler/v1/command_service.proto",
    "ostler/v1/event_service.proto",
    "ostler/v1/provider_service.proto",
    "ostler/v1/session_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    // Maps in key order: the same message is always the same bytes.
    tonic_prost_build::configure().btree_map(".").out_dir(&out).compile_fds(descriptors)?;
    Ok(())
}
