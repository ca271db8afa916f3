//! Hidden files can be neither read, renamed, linked nor deleted, whatever they are called and whoever replaces them.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::time::Instant;

use ostler_domain::limits::{MASKS, RESCAN};
use ostler_sandbox::channel::{InitReport, send_remask};

use crate::support::{Campaign, USER, Way, each_way, we_are_root};

const SECRET: &str = "hunter2";

#[test]
fn a_hidden_file_is_out_of_reach() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        for name in [".env", "deep/er/.env.production", "tls/server.KEY", "id_ed25519"] {
            campaign.write(name, SECRET);
            campaign.all_fail(&[
                &format!("cat {name}"),
                &format!("echo x >{name}"),
                &format!("mv {name} open"),
                &format!("ln {name} open"),
                &format!("rm -f {name}"),
                &format!("chmod 644 {name}"),
                &format!("echo x >new; mv -f new {name}"),
                &format!("umount {name}"),
            ]);
            assert_eq!(fs::read_to_string(campaign.path(name)).unwrap(), SECRET);
        }
        campaign.all_fail(&[
            "mv deep/er/.env.production x",
            "rm -rf deep",
            "tar -cf - deep | grep -a hunter2",
        ]);
        // A directory can be moved, and what is hidden in it stays so.
        campaign.all_fail(&["mv deep depth; cat depth/er/.env.production"]);
    });
}

#[test]
fn samples_public_keys_and_others_are_readable() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        for name in [".env.example", ".env.sample", ".env.template", "id_rsa.pub", "environment"] {
            campaign.write(name, name);
            assert_eq!(campaign.run(&format!("cat {name}")), name);
        }
    });
}

#[test]
fn a_directory_and_a_campaigns_own_patterns_are_hidden() {
    each_way(|way| {
        let campaign = Campaign::new(way)
            .with(|confinement| confinement.hidden = vec!["*.secret".into(), "conf/prod*".into()]);
        for name in ["vault.key/inner", "a.secret", "conf/prod.yml"] {
            campaign.write(name, SECRET);
        }
        campaign.write("conf/dev.yml", "open");
        campaign.all_fail(&[
            "ls vault.key",
            "cat vault.key/inner",
            "cat a.secret",
            "cat conf/prod.yml",
            "rmdir vault.key",
        ]);
        assert_eq!(campaign.run("cat conf/dev.yml"), "open");
    });
}

#[test]
fn what_a_hidden_link_leads_to_is_hidden() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("real/settings.txt", SECRET);
        campaign.write("other.txt", SECRET);
        symlink("real/settings.txt", campaign.path(".env")).unwrap();
        symlink(campaign.path("other.txt"), campaign.path("tls.pem")).unwrap();
        symlink("/etc/hostname", campaign.path("away.key")).unwrap();
        campaign.all_fail(&["cat .env", "cat real/settings.txt", "cat other.txt", "cat tls.pem"]);
        assert_eq!(campaign.run("cat away.key"), "sandbox", "what is outside is not the campaign's");
    });
}

#[test]
fn other_names_of_a_hidden_file_are_hidden() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write(".env", SECRET);
        fs::create_dir(campaign.path("sub")).unwrap();
        campaign.give(&campaign.path("sub"));
        fs::hard_link(campaign.path(".env"), campaign.path("sub/innocent.txt")).unwrap();
        campaign.all_fail(&["cat .env", "cat sub/innocent.txt", "mv sub/innocent.txt x"]);
    });
}

/// Changes something outside while a program inside reads `name`, and waits until it no longer can.
fn covered_after(campaign: &Campaign, name: &str, change: impl FnOnce(&OwnedFd)) {
    let script =
        format!("echo ready; read go; while cat {name} >/dev/null 2>&1; do sleep 0.01; done; echo covered");
    let mut inside = campaign.start(&script);
    assert_eq!(inside.line(), "ready");
    change(inside.channel.as_ref().unwrap());
    inside.say("go");
    assert_eq!(inside.line(), "covered");
    assert!(inside.end().status.success());
}

#[test]
fn a_file_that_is_replaced_outside_is_covered_again() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write(".env", "old");
        covered_after(&campaign, ".env", |_| campaign.replace(".env", SECRET));
        campaign.all_fail(&["cat .env"]);
    });
}

#[test]
fn a_warden_that_is_told_covers_at_once() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("sub/.env", "old");
        for told in ["sub/.env", "sub"] {
            let began = Instant::now();
            covered_after(&campaign, "sub/.env", |warden| {
                campaign.replace("sub/.env", SECRET);
                send_remask(warden, &[told.into()]).unwrap();
            });
            assert!(began.elapsed() < RESCAN, "{told}");
        }
    });
}

/// A directory of the campaign's owner, with a group of which the sandbox knows nothing: there a warden's capabilities
/// count for nothing.
fn shared(campaign: &Campaign, mode: u32) -> bool {
    if !we_are_root() {
        eprintln!("skipped: only root can give a directory to another group");
        return false;
    }
    campaign.write("shared/.env", SECRET);
    let (dir, owner) = (campaign.path("shared"), fs::metadata(campaign.root()).unwrap());
    let uid = std::os::unix::fs::MetadataExt::uid(&owner);
    chown(&dir, Some(uid), Some(USER + 7)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    true
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_covered_as_a_whole() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if !shared(&campaign, 0o311) {
            return;
        }
        campaign.all_fail(&[
            "cat shared/.env",
            "chmod 700 shared && cat shared/.env",
            "cd shared && cat .env",
        ]);
        assert_eq!(fs::read_to_string(campaign.path("shared/.env")).unwrap(), SECRET);
    });
}

#[test]
fn who_closes_a_directory_to_the_warden_is_ended() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if !shared(&campaign, 0o775) {
            return;
        }
        let mut inside =
            campaign.start("cat shared/.env 2>/dev/null; cd shared; chmod 311 . && echo closed; sleep 60");
        assert_eq!(inside.line(), "closed");
        let is_breach = |report: &InitReport| matches!(report, InitReport::Breached { .. }).then_some(());
        inside.report("the breach to be told of", is_breach);
        assert!(!inside.end().status.success());
    });
}

#[test]
fn a_tree_too_deep_to_look_through_is_covered_and_hides_nothing() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("sub/.env", "old");
        let deeper = "d=$(printf %0200d 1); i=0; while [ $i -lt 30 ]; do mkdir $d && cd $d || exit 1; i=$((i+1)); done";
        let script = format!(
            "({deeper}); echo ready; read go; while cat sub/.env >/dev/null 2>&1; do sleep 0.01; done; echo covered"
        );
        let mut inside = campaign.start(&script);
        assert_eq!(inside.line(), "ready");
        campaign.replace("sub/.env", SECRET);
        inside.say("go");
        assert_eq!(inside.line(), "covered");
        assert!(inside.end().status.success());
        // And the next session starts.
        campaign.all_fail(&["cat sub/.env"]);
    });
}

#[test]
fn who_makes_more_hidden_files_than_can_be_covered_is_ended() {
    let campaign = Campaign::new(Way::User);
    let flood = format!("seq {} | sed 's/$/.pem/' | xargs touch; echo done; sleep 60", MASKS + 1);
    let mut inside = campaign.start(&flood);
    assert_eq!(inside.line(), "done");
    inside.report("the breach to be told of", |report| {
        matches!(report, InitReport::Breached { .. }).then_some(())
    });
    assert!(!inside.end().status.success());
    // And the next session says why it does not start.
    let refused = campaign.start("true").end();
    assert!(!refused.status.success(), "{refused:?}");
}

#[test]
fn what_is_hidden_for_its_place_stays_there_also_for_the_next_session() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.hidden = vec!["conf/prod*".into()]);
        for name in ["conf/prod.yml", "real/settings.txt", "linked/x"] {
            campaign.write(name, SECRET);
        }
        symlink("by/settings.txt", campaign.path(".env")).unwrap();
        symlink("real", campaign.path("by")).unwrap();
        campaign.write("sub/plain", "");
        symlink("../linked/x", campaign.path("sub/id_rsa")).unwrap();
        campaign.all_fail(&["mv conf c", "mv real r", "mv linked l", "mv sub s", "rm -r conf"]);
        let ended = campaign.start("rm .env by sub/id_rsa; ln -s ../sub sub/id_rsa; echo other >.env").end();
        let mut names = ended.tampered;
        names.sort_unstable();
        assert_eq!(names, [".env", "by", "sub/id_rsa"]);
        campaign.all_fail(&["cat conf/prod.yml", "cat real/settings.txt", "cat linked/x"]);
        assert_eq!(fs::read_to_string(campaign.path(".env")).unwrap(), SECRET, "outside it is as it was");
        assert_eq!(fs::read_to_string(campaign.path(".env-put-aside-0")).unwrap(), "other\n");
    });
}

#[test]
fn a_hidden_file_is_found_behind_the_name_of_a_repository() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write("conf/.env", SECRET);
        campaign.write("conf/objects/deep/server.pem", SECRET);
        campaign.run("mkdir x; mv conf x/.git; ln -s x/.git conf");
        campaign.all_fail(&["cat conf/.env", "cat x/.git/.env", "cat x/.git/objects/deep/server.pem"]);
    });
}

#[test]
fn a_branch_may_be_called_like_a_hidden_file() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let git = "git -c user.name=a -c user.email=a@b";
        if campaign.run("command -v git || true").is_empty() {
            eprintln!("skipped: there is no git");
            return;
        }
        let commit = format!("{git} commit -q --allow-empty -m one");
        campaign.run_outside(&format!("{git} init -q; {commit}; {git} checkout -qb server.key; {commit}"));
        assert_eq!(campaign.run(&format!("{commit} && {git} log --format=%s server.key | wc -l")), "3");
        campaign.write(".git/refs/heads/other.key", SECRET);
        campaign.all_fail(&["cat .git/refs/heads/other.key"]);
    });
}
