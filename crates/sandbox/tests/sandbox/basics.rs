//! A program runs, is where it should be, and has what it was given.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use crate::support::{Campaign, Way, each_way, we_are_root};

#[test]
fn a_program_runs_and_its_end_is_told() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let ended = campaign.start("echo hello; echo there >&2").end();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("hello\n", "there\n"));
        assert!(ended.warden.success());
        assert_eq!(campaign.start("exit 42").end().status.code(), Some(42));
        assert_eq!(campaign.start("kill -TERM $$").end().status.signal(), Some(15));
    });
}

#[test]
fn the_environment_is_what_was_ordered() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        campaign.env = vec![("B".into(), "2 3".into()), ("A".into(), "1".into())];
        let ended = campaign.start_program("/usr/bin/env", &[]).end();
        let mut lines: Vec<&str> = ended.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["A=1", "B=2 3"], "{ended:?}");
    });
}

#[test]
fn there_are_three_descriptors_and_no_terminal() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        // The fourth is the listing itself.
        assert_eq!(campaign.run("ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3");
        assert_eq!(campaign.run("echo x 2>/dev/null >/dev/tty || echo none"), "none");
    });
}

#[test]
fn a_programs_own_streams_can_be_opened_by_name() {
    each_way(|way| {
        if way == Way::User && we_are_root() {
            // The streams are made by this test: they are root's, as no user's keeper would make them.
            return;
        }
        let campaign = Campaign::new(way);
        assert_eq!(campaign.run("echo out >/dev/stdout; echo err | tee /dev/stderr >/dev/null"), "out");
    });
}

#[test]
fn limits_hold() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| {
            confinement.limits.open_files = 100;
            confinement.limits.processes = 20;
            confinement.limits.file_bytes = 1 << 20;
            confinement.limits.tmp_bytes = 1 << 20;
        });
        assert_eq!(campaign.run("ulimit -n; ulimit -Hn; ulimit -c"), "100\n100\n0");
        let much = "head -c 3000000 /dev/zero >big 2>/dev/null; stat -c %s big";
        assert_eq!(campaign.run(&format!("(trap '' XFSZ; {much})")), "1048576");
        assert_eq!(
            campaign.run("cd /tmp; head -c 3000000 /dev/zero >big 2>/dev/null; stat -c %s big"),
            "1048576"
        );
        let bomb = "for n in $(seq 50); do sleep 5 & done 2>/dev/null; echo";
        let ended = campaign.start(bomb).end();
        assert!(!ended.status.success(), "fifty processes where twenty may be: {ended:?}");
    });
}

#[test]
fn the_host_name_and_the_user_are_the_sandboxs() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.hostname = "paddock".into());
        assert_eq!(campaign.run("uname -n; cat /etc/hostname; id -un"), "paddock\npaddock\nagent");
        assert_ne!(campaign.run("id -u"), "0");
        assert_ne!(campaign.run("id -g"), "0");
    });
}

#[test]
fn terminals_of_its_own_work() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run("command -v script || true").is_empty() {
            eprintln!("skipped: there is no script(1)");
            return;
        }
        assert_eq!(campaign.run("script -qc 'tty' /dev/null | tr -d '\\r'"), "/dev/pts/0");
    });
}

#[test]
fn a_sandboxed_true_really_starts() {
    let dir = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_warden-under-test"))
        .arg("check")
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    let offer = ostler_sandbox::probe();
    assert!(offer.landlock.is_some() && offer.seccomp, "{offer:?}");
    assert!(offer.namespaces.contains(&"user".to_owned()), "{offer:?}");
}
