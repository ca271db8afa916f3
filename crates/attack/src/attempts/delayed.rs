//! Doing it later, when nobody looks any more.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::{any, program, way};
use crate::attempt::{Attempt, Said, Setting, usual, within};

fn leave(script: &str) -> Said {
    let child = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    match child {
        Ok(_) => Said::Tried("what was left behind ended with the sandbox".to_owned()),
        Err(error) => Said::Untried(error.to_string()),
    }
}

const LATE: &str = "sleep 3; echo late > ../late.txt";

pub(super) const ALL: &[Attempt] = &[
    within(Setting::Lingers, "delayed/child", "leave a child behind", |_| leave(LATE)),
    within(Setting::Lingers, "delayed/grandchild", "leave a child's child behind", |_| {
        leave(&format!("({LATE}) & exit 0"))
    }),
    within(Setting::Lingers, "delayed/session", "leave a process in a session of its own", |_| {
        leave(&format!("setsid sh -c '{LATE}' & exit 0"))
    }),
    within(Setting::Lingers, "delayed/deaf", "leave a process that ignores signals", |_| {
        leave(&format!("trap '' HUP INT TERM QUIT USR1; {LATE}"))
    }),
    within(Setting::Lingers, "delayed/many", "leave many processes", |_| {
        leave("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 5 & done; exit 0")
    }),
    usual("delayed/schedulers", "have cron, at or systemd run something", |scene| {
        let at = scene.scratch("");
        any([
            way("cron", program("crontab", &["-l"], &at)),
            way("at", program("at", &["-l"], &at)),
            way("systemd", program("systemd-run", &["--user", "--wait", "true"], &at)),
            way("systemctl", program("systemctl", &["list-units"], &at)),
        ])
    }),
];
