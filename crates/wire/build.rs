//! Compiles the protocol with a compiler written in Rust: building Ostler needs no `protoc`.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message;

const FILES: &[&str] = &[
    "ostler/v1/admin_service.proto",
    "ostler/v1/agent_service.proto",
    "ostler/v1/campaign_service.proto",
    "ostler/v1/command_service.proto",
    "ostler/v1/conversation_service.proto",
    "ostler/v1/event_service.proto",
    "ostler/v1/history_service.proto",
    "ostler/v1/http_service.proto",
    "ostler/v1/mission_service.proto",
    "ostler/v1/notice_service.proto",
    "ostler/v1/provider_service.proto",
    "ostler/v1/retention_service.proto",
    "ostler/v1/session_service.proto",
    "ostler/v1/share_service.proto",
    "ostler/v1/tape_service.proto",
    "ostler/v1/sql_service.proto",
    "ostler/v1/ticket_service.proto",
    "ostler/v1/tree_service.proto",
    "ostler/v1/transcript_service.proto",
];

/// The files themselves as a list of names and texts, in the order of their names.
fn file_list(root: &Path) -> Result<String, Box<dyn Error>> {
    let package = "ostler/v1";
    let entries = fs::read_dir(root.join(package))?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<_> = entries.iter().map(|entry| entry.file_name().into_string()).collect();
    names.sort();
    let mut list = String::from("&[");
    for name in names {
        let name = name.map_err(|name| format!("{} is no name", name.display()))?;
        let path = root.join(package).join(&name).canonicalize()?;
        list += &format!("({:?}, include_str!({path:?})),", format!("{package}/{name}"));
    }
    Ok(list + "]")
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    fs::write(out.join("files.rs"), file_list(&root)?)?;

    // Maps in key order: the same message is always the same bytes.
    tonic_prost_build::configure()
        .btree_map(".")
        .extern_path(".ostler.v1.WatchEventsResponse", "crate::watched::WatchEventsResponse")
        .out_dir(&out)
        .compile_fds(descriptors)?;
    Ok(())
}
