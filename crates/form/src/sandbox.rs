//! What a sandbox shows those in it, in plain words.

use ostler_domain::{Policy, confinement::Protect, policy::NetMode, text::bytes};

/// A policy in plain words: what, and where or how. `root` is the campaign's directory as it is to be named.
pub fn described(policy: &Policy, root: &str) -> Vec<(&'static str, String)> {
    let with = |base: &str, more: &[String]| {
        if more.is_empty() { base.to_owned() } else { format!("{base}, {}", more.join(", ")) }
    };
    let network = match policy.net_mode {
        None => "through the gateway: the hosts of net.allow, ports 443 and 80; scripts and exec: none",
        Some(NetMode::None) => "none but their own loopback",
        Some(NetMode::Provider) => {
            "through the gateway: the hosts of net.allow, ports 443 and 80; exec: none"
        }
        Some(NetMode::Open) => {
            "through the gateway: every public host, port 443; those of net.allow, port 80 too; exec: none"
        }
        Some(NetMode::Host) => "THE HOST'S OWN, to TCP ports 22, 53, 80 and 443; no datagrams, no servers",
    };
    let tooling = match policy.protect_tooling.unwrap_or(Protect::Existing) {
        Protect::Existing => {
            "git's configuration and hooks, editors' and agents' settings: readable, and told of when changed"
        }
        Protect::Always => "the same, and those that are not there cannot be made",
        Protect::Off => "git's configuration and hooks and editors' settings are theirs to change",
    };
    let limit = |value: Option<u64>, usual: &str| value.map_or_else(|| usual.to_owned(), bytes);
    let limits = format!(
        "{} processes · memory {} · /tmp {} · /dev/shm {}",
        policy.limits.pids.unwrap_or(512),
        limit(policy.limits.memory, "the machine's"),
        limit(policy.limits.tmp, "512 MiB"),
        limit(policy.limits.shm, "64 MiB"),
    );
    let ptrace = if policy.ptrace == Some(true) { "on: among their own processes" } else { "off" };
    let never =
        "other campaigns, your home, Ostler's own files, other processes, mounts, set-id files, new rights";
    vec![
        ("write", with(&format!("{root}, a home of their own, /tmp"), &policy.write)),
        ("read", with("the system's programs and libraries", &policy.read)),
        ("hidden", with(".env, keys, certificates, credentials", &policy.hide)),
        ("guarded", tooling.to_owned()),
        ("network", network.to_owned()),
        ("env", with("a fresh one", &policy.env)),
        ("limits", limits),
        ("never", never.to_owned()),
        ("ptrace", ptrace.to_owned()),
    ]
}
