//! What is there, what is not, and what may be written.

use std::fs;

use ostler_domain::confinement::{Protect, SESSION_SOCKET};

use crate::support::{Campaign, each_way};

#[test]
fn the_campaign_is_there_and_can_be_written() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("src/old.txt", "old");
        assert_eq!(campaign.run("pwd; cat src/old.txt"), format!("{}\nold", campaign.root().display()));
        campaign.run(
            "echo new >src/new.txt; mv src/old.txt src/moved; rm src/moved; mkdir -p a/b; ln -s x a/link",
        );
        assert_eq!(fs::read_to_string(campaign.path("src/new.txt")).unwrap(), "new\n");
        assert!(campaign.path("a/b").is_dir() && !campaign.path("src/moved").exists());
    });
}

#[test]
fn a_campaign_that_is_only_looked_at_cannot_be_changed() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.root.read_only = true);
        campaign.write("old.txt", "old");
        campaign.write(".env", "secret");
        assert_eq!(campaign.run("cat old.txt"), "old");
        campaign.all_fail(&[
            "echo x >old.txt",
            "echo x >new",
            "rm old.txt",
            "mkdir d",
            "mv old.txt a",
            "cat .env",
        ]);
        assert_eq!(fs::read_to_string(campaign.path("old.txt")).unwrap(), "old");
    });
}

#[test]
fn of_a_campaign_only_what_is_leased_can_be_changed() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| {
            confinement.root.read_only = true;
            confinement.root.leased = vec!["src/api".into(), "notes.txt".into()];
            confinement.tooling.protect = Protect::Always;
        });
        campaign.write("src/api/old.rs", "old");
        campaign.write("src/api/.env", "secret");
        campaign.write("src/ui.rs", "ui");
        campaign.write("notes.txt", "notes");
        campaign.run("echo new >src/api/new.rs; rm src/api/old.rs; mkdir src/api/d; echo more >>notes.txt");
        campaign.all_fail(&[
            "echo x >src/ui.rs",
            "echo x >src/new",
            "rm src/ui.rs",
            "chmod 600 src/ui.rs",
            "mv src/api src/moved",
            "mv src/api/new.rs src/new.rs",
            "ln src/api/new.rs src/linked",
            "rm notes.txt",
            "mkdir d",
            "cat src/api/.env",
        ]);
        assert_eq!(fs::read_to_string(campaign.path("src/ui.rs")).unwrap(), "ui");
        assert_eq!(fs::read_to_string(campaign.path("src/api/new.rs")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(campaign.path("notes.txt")).unwrap(), "notesmore\n");
        assert!(!campaign.path("src/api/old.rs").exists() && !campaign.path("src/new.rs").exists());
    });
}

#[test]
fn the_rest_of_the_machine_is_not_there() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        fs::write(campaign.outside().join("canary"), "canary").unwrap();
        let outside = campaign.outside().display();
        assert_eq!(
            campaign.run("ls -A /"),
            campaign.run("for n in .masks bin dev etc home lib lib32 lib64 libx32 proc run sbin tmp usr var; do test -e /$n && echo $n; done; true")
        );
        for path in ["/root", "/sys", "/boot", "/opt", "/mnt", "/srv", "/.host"] {
            assert_eq!(campaign.run(&format!("test -e {path} || echo absent")), "absent", "{path}");
        }
        assert_eq!(
            campaign.run("ls -A /home /var /run /run/ostler"),
            "/home:\nagent\n\n/run:\nostler\n\n/run/ostler:\n\n/var:\ntmp"
        );
        assert_eq!(campaign.run(&format!("ls -A {outside}")), "camp");
        campaign.all_fail(&[
            &format!("cat {outside}/canary"),
            "cat /etc/shadow",
            "ls /etc/ssh",
            "echo x >/etc/passwd",
            "echo x >/usr/x",
            "mkdir /x",
            "echo x >/bin/x",
            "ls /proc/1/root/",
            "cat /proc/1/environ",
            "ls /.masks/directory",
            "cat /.masks/file",
            "chmod 755 /.masks/file",
        ]);
        assert_eq!(fs::read_to_string(campaign.outside().join("canary")).unwrap(), "canary");
    });
}

#[test]
fn the_kernels_switches_and_memory_are_closed() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.all_fail(&[
            "echo h >/proc/sysrq-trigger",
            "echo x >/proc/sys/kernel/hostname",
            "cat /proc/kcore",
            "grep . /proc/keys",
            "grep . /proc/kallsyms",
            "echo 0 >/proc/self/oom_score_adj",
            "echo x >/proc/self/uid_map",
        ]);
        assert_eq!(campaign.run("set -- /proc/[0-9]*; echo $#"), "2", "init and the shell");
    });
}

#[test]
fn extras_are_read_only_or_writable_under_their_own_names() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        // Not world-readable above: a toolchain in somebody's home.
        let home = campaign.outside().join("private");
        let (tool, store) = (home.join("tool"), campaign.outside().join("store"));
        fs::create_dir_all(&tool).unwrap();
        fs::create_dir(&store).unwrap();
        fs::write(tool.join("run"), "#!/bin/sh\necho ran\n").unwrap();
        fs::set_permissions(tool.join("run"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        fs::set_permissions(&store, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        campaign.give_to_daemon(&home);
        campaign.confinement.read_only = vec![tool.clone()];
        campaign.confinement.writable = vec![store.clone()];
        let (tool, store) = (tool.display(), store.display());
        assert_eq!(campaign.run(&format!("{tool}/run; echo kept >{store}/file")), "ran");
        campaign.all_fail(&[
            &format!("echo x >{tool}/x"),
            &format!("rm {tool}/run"),
            &format!("touch {tool}/run"),
        ]);
        assert_eq!(fs::read_to_string(campaign.outside().join("store/file")).unwrap(), "kept\n");
    });
}

#[test]
fn what_is_kept_in_a_writable_directory_is_read_and_never_changed() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        let shared = campaign.outside().canonicalize().unwrap().join("shared");
        let kept = shared.join("context");
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("plan"), "as planned\n").unwrap();
        campaign.give(&shared);
        campaign.give(&kept);
        campaign.give(&kept.join("plan"));
        campaign.confinement.writable = vec![shared.clone()];
        campaign.confinement.kept = vec![kept.clone()];
        let dir = shared.display();
        assert_eq!(campaign.run(&format!("echo x >{dir}/own; cat {dir}/context/plan")), "as planned");
        campaign.all_fail(&[
            &format!("echo x >>{dir}/context/plan"),
            &format!("touch {dir}/context/new"),
            &format!("rm {dir}/context/plan"),
            &format!("mv {dir}/context {dir}/away"),
            &format!("rm -rf {dir}/context"),
            &format!("ln {dir}/context/plan {dir}/link && echo x >>{dir}/link"),
        ]);
        assert_eq!(fs::read_to_string(kept.join("plan")).unwrap(), "as planned\n");
        assert!(!kept.join("new").exists() && shared.join("own").exists());
    });
}

#[test]
fn a_home_of_the_daemons_outlives_the_session() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        let state = campaign.outside().join("state");
        let home = state.join("home");
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        campaign.give_to_daemon(&home);
        campaign.give_to_daemon(&state);
        campaign.confinement.home.source = Some(home);
        campaign.run("echo remembered >~/note; chmod 600 ~/note; mkdir ~/.cache");
        assert_eq!(
            campaign.run("cat ~/note; rm ~/note; rmdir ~/.cache; ls -A ~"),
            "remembered",
            "in the next session"
        );
    });
}

#[test]
fn a_home_in_memory_does_not() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        assert_eq!(
            campaign
                .run("echo x >~/note; cat ~/note; echo y >/tmp/t; echo z >/var/tmp/t; echo s >/dev/shm/s"),
            "x"
        );
        assert_eq!(campaign.run("ls -A ~ /tmp /dev/shm | tr -d '\\n'"), "/dev/shm:/home/agent:/tmp:");
    });
}

#[test]
fn the_sessions_socket_can_be_reached_and_no_other() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        let state = campaign.outside().join("state");
        fs::create_dir(&state).unwrap();
        let listen = |name: &str| std::os::unix::net::UnixListener::bind(state.join(name)).unwrap();
        let (ours, other) = (listen("ours"), listen("other"));
        for name in ["ours", "other", ""] {
            campaign.give_to_daemon(&state.join(name));
        }
        campaign.confinement.session_socket = Some(state.join("ours"));
        let connect = "use IO::Socket::UNIX; IO::Socket::UNIX->new(Peer => $ARGV[0]) or die";
        campaign.run(&format!("perl -e '{connect}' {SESSION_SOCKET}"));
        ours.accept().unwrap();
        campaign.all_fail(&[&format!("perl -e '{connect}' {}/other", state.display())]);
        other.set_nonblocking(true).unwrap();
        assert!(other.accept().is_err());
    });
}
