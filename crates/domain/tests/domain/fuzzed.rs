//! What the fuzz targets of policies, transcripts and OpenClaw's index look for, on bytes of our own making.

#[path = "../../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../../fuzz/src/policy.rs"]
mod policy;
#[path = "../../../../fuzz/src/sessions_json.rs"]
mod sessions_json;
#[path = "../../../../fuzz/src/transcript.rs"]
mod transcript;

use ostler_domain::confinement::{CampaignRoot, Confinement};

#[test]
fn any_policy_is_one_or_is_refused() {
    let root =
        CampaignRoot { path: "/srv/shop".into(), device: 1, inode: 2, read_only: false, leased: Vec::new() };
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
fn any_index_of_openclaw_s_is_read_or_left_as_it_is() {
    let good: [&[u8]; 4] = [
        br##"{"agent:main:discord:group:1":{"sessionId":"a","updatedAt":1,"channel":" Discord ","lastTo":"c1","lastThreadId":7,"deliveryContext":{"channel":"discord","threadId":"9"}}}"##,
        br##"{"agent:main:main":{"sessionId":"b","updatedAt":2,"queueMode":"steer-backlog","sendPolicy":"deny","origin":{"provider":"slack"},"acp":{"a":[1,null]}},"x":"no row"}"##,
        br##"{
  "agent:api:subagent:x": {"sessionId": "c", "updatedAt": 3, "spawnedBy": "agent:api:main", "compactionCount": 4, "cliSessionIds": {"codex": "t"}}
}
"##,
        b"{}",
    ];
    changed::changed(&good, 0x0511_2026, 20_000, sessions_json::holds);
}

#[test]
fn any_line_of_a_transcript_is_one_or_is_refused() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/transcript.jsonl");
    let golden = std::fs::read(golden).unwrap();
    let lines: Vec<&[u8]> = golden.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    changed::changed(&lines, 0x0511_2026, 20_000, transcript::holds);
}
