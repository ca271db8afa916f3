//! What the fuzz targets of policies and transcripts look for, on bytes of our own making.

#[path = "../../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../../fuzz/src/policy.rs"]
mod policy;
#[path = "../../../../fuzz/src/transcript.rs"]
mod transcript;

use ostler_domain::confinement::{CampaignRoot, Confinement};

#[test]
fn any_policy_is_one_or_is_refused() {
    let root = CampaignRoot { path: "/srv/shop".into(), device: 1, inode: 2, read_only: false };
    let document = serde_json::to_vec(&Confinement::new(root)).unwrap();
    let good: [&[u8]; 5] = [
        b"read+=@rust\nread+=/opt/my sdk\nwrite+=/srv/data\nhide+=*.tfstate\nenv+=LANG\ncommands+=make\n",
        b"net.mode=open\nnet.allow+=*.example\nnet.allow+=files.example\nlimits.memory=8GiB\nlimits.pids=77\n",
        b"ptrace=on\nprotect_tooling=always\nlimits.tmp=512MiB\nlimits.shm=\nread-=@rust\nread=\n",
        br#"{"read":["/opt"],"net_mode":"provider","limits":{"memory":5},"ptrace":true}"#,
        &document,
    ];
    changed::changed(&good, 0x0511_2026, 20_000, policy::holds);
}

#[test]
fn any_line_of_a_transcript_is_one_or_is_refused() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/transcript.jsonl");
    let golden = std::fs::read(golden).unwrap();
    let lines: Vec<&[u8]> = golden.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    changed::changed(&lines, 0x0511_2026, 20_000, transcript::holds);
}
