//! Whose files are, to the agent and on the disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use crate::support::{Campaign, USER, Way, each_way, we_are_root};

#[test]
fn new_files_belong_to_whom_the_campaign_belongs() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let owner = fs::metadata(campaign.root()).unwrap().uid();
        campaign.write("old", "old");
        let ids = campaign.run("touch new; stat -c %u old new .; id -u");
        let mut ids: Vec<&str> = ids.lines().collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "inside, everything is the agent's: {ids:?}");
        assert_ne!(ids, ["0"]);
        let new = fs::metadata(campaign.path("new")).unwrap();
        assert_eq!(new.uid(), owner);
        if way == Way::RootOnRoots {
            assert_eq!((new.uid(), new.gid(), ids[0]), (0, 0, "1000"));
        }
    });
}

#[test]
fn the_kernel_does_not_take_the_agent_for_root() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let mut inside = campaign.start("echo ready; read forever");
        assert_eq!(inside.line(), "ready");
        let uid = fs::metadata(format!("/proc/{}", inside.agent_pid())).unwrap().uid();
        assert_ne!(uid, 0);
        match way {
            Way::RootOnRoots => assert!(uid > 1_000_000_000, "thrown away afterwards: {uid}"),
            Way::RootOnUsers => assert_eq!(uid, USER),
            Way::User if we_are_root() => assert_eq!(uid, USER),
            Way::User => assert_eq!(uid, rustix::process::geteuid().as_raw()),
        }
    });
}

#[test]
fn files_of_others_keep_their_owners() {
    if !we_are_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let campaign = Campaign::new(Way::RootOnRoots);
    let path = campaign.write("others", "text");
    chown(&path, Some(4711), Some(4711)).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    campaign.all_fail(&["cat others", "echo x >others", "chmod 644 others"]);
    // It is in the agent's directory.
    campaign.run("rm -f others");
    assert!(!path.exists());
}

#[test]
fn what_may_be_written_beside_a_campaign_of_root_s_is_root_s_too() {
    if !we_are_root() {
        eprintln!("skipped: only root has files of root's");
        return;
    }
    let mut campaign = Campaign::new(Way::RootOnRoots);
    let store = campaign.outside().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("old"), "old").unwrap();
    campaign.confinement.writable = vec![store.clone()];
    campaign.run(&format!("cd {}; echo more >>old; echo new >new; mkdir below", store.display()));
    assert_eq!(fs::read_to_string(store.join("old")).unwrap(), "oldmore\n");
    assert_eq!(fs::metadata(store.join("new")).unwrap().uid(), 0);
}

#[test]
fn two_sessions_of_a_root_daemon_are_two_users() {
    if !we_are_root() {
        eprintln!("skipped: only a root daemon throws uids away");
        return;
    }
    let campaign = Campaign::new(Way::RootOnRoots);
    let mut both = [0; 2].map(|_| campaign.start("echo ready; read forever"));
    let uids = both.each_mut().map(|inside| {
        assert_eq!(inside.line(), "ready");
        fs::metadata(format!("/proc/{}", inside.agent_pid())).unwrap().uid()
    });
    assert_ne!(uids[0], uids[1]);
}
