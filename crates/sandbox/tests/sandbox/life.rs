//! Who dies with whom.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Campaign, each_way, eventually};

/// Detached as far as a process can be.
const DETACHED: &str =
    "(setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 &) ; echo ready; read forever";

/// Init and everything below it, by their numbers outside.
fn inhabitants(init: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let below = |pid: &u32| std::iter::successors(Some(*pid), |&pid| parent(pid)).any(|above| above == init);
    pids.filter(below).collect()
}

fn gone(pids: &[u32]) {
    eventually("all are gone", || {
        pids.iter()
            .all(|pid| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !Path::new(&format!("/proc/{pid}")).exists() || stat.contains(") Z ")
            })
            .then_some(())
    });
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn killing_pid_one_ends_everything() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start(DETACHED);
        assert_eq!(inside.line(), "ready");
        let pids =
            eventually("sleep runs", || Some(inhabitants(inside.init_pid())).filter(|pids| pids.len() >= 3));
        inside.kill_init();
        gone(&pids);
        let ended = inside.end();
        assert_eq!(ended.status.signal(), Some(9));
    });
}

#[test]
fn a_warden_that_dies_takes_everything_along() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start(DETACHED);
        assert_eq!(inside.line(), "ready");
        let pids = inhabitants(inside.init_pid());
        assert!(pids.len() >= 2);
        kill(inside.warden.id());
        gone(&pids);
    });
}

#[test]
fn a_keeper_that_lets_go_ends_everything() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start(DETACHED);
        assert_eq!(inside.line(), "ready");
        let pids = inhabitants(inside.init_pid());
        drop(inside.channel.take());
        gone(&pids);
        assert!(inside.warden.wait().unwrap().success());
    });
}

#[test]
fn the_agents_number_is_the_hosts() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start("echo $$; read forever");
        assert_eq!(inside.line(), "2");
        let (init, agent) = (inside.init_pid(), inside.agent_pid());
        let status = std::fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(field("PPid:"), [init.to_string()]);
        assert_eq!(field("NSpid:").last().unwrap(), "2");
    });
}

#[test]
fn orphans_are_reaped() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let script = "for n in 1 2 3 4 5; do (sh -c 'exit 0' &); done; sleep 0.2; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l";
        assert_eq!(campaign.run(script), "0");
    });
}

#[test]
fn the_warden_keeps_only_what_masks_are_made_with() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start("echo ready; read forever");
        assert_eq!(inside.line(), "ready");
        inside.init_pid();
        let (warden, init) = (inside.warden.id(), inside.init_pid());
        let capabilities = |pid: u32, set: &str| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap().trim().to_owned();
            u64::from_str_radix(&line, 16).unwrap()
        };
        // CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN
        let expected = 1 << 1 | 1 << 2 | 1 << 21;
        for set in ["CapEff:", "CapPrm:"] {
            eventually(set, || (capabilities(warden, set) == expected).then_some(()));
            assert_eq!(capabilities(init, set), 0);
        }
    });
}
