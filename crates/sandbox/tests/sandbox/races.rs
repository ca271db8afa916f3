//! A campaign that others are changing while the sandbox is being made.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ostler_sandbox::channel::ExecReport;

use crate::support::{Campaign, each_way};

const ROUNDS: usize = 15;

/// Starts sandboxes while `disturb` goes on; each may refuse, but none may see the secret.
fn nothing_shows(campaign: &Campaign, script: &str, disturb: impl Fn() + Sync) {
    let over = AtomicBool::new(false);
    let mut started = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                disturb();
                // About as long as a look takes: some meet a change, and some do not.
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        for _ in 0..ROUNDS {
            let ended = campaign.start(script).end();
            let refused_for_moving =
                matches!(&ended.refusals[..], [ExecReport::Failed { stage, .. }] if stage == "hidden");
            if !ended.stdout.is_empty() || !(ended.status.success() || refused_for_moving) {
                over.store(true, Ordering::Relaxed);
                panic!("{ended:?}");
            }
            started += usize::from(ended.status.success());
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(started > 0, "at least one sandbox was made");
}

#[test]
fn swapped_directories_hide_what_is_in_them() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        for dir in ["a", "b"] {
            campaign.write(&format!("{dir}/.env"), "secret");
        }
        let paths = ["a", "b", "t"].map(|name| campaign.path(name));
        let [a, b, t] = &paths;
        nothing_shows(&campaign, "cat a/.env b/.env t/.env 2>/dev/null; true", || {
            fs::rename(a, t).unwrap();
            fs::rename(b, a).unwrap();
            fs::rename(t, b).unwrap();
        });
    });
}

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("dir/.env", "secret");
        fs::create_dir(campaign.outside().join("elsewhere")).unwrap();
        fs::write(campaign.outside().join("elsewhere/.env"), "canary").unwrap();
        let (dir, away, link) =
            (campaign.path("dir"), campaign.path("away"), campaign.outside().join("elsewhere"));
        nothing_shows(&campaign, "cat dir/.env away/.env 2>/dev/null; true", || {
            fs::rename(&dir, &away).unwrap();
            std::os::unix::fs::symlink(&link, &dir).unwrap();
            fs::remove_file(&dir).unwrap();
            fs::rename(&away, &dir).unwrap();
        });
        assert_eq!(fs::read_to_string(campaign.outside().join("elsewhere/.env")).unwrap(), "canary");
    });
}
