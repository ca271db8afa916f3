//! `campaign add` and `campaign set`: what nobody is to be given is refused when it is said, with the reason.

use std::{fs, os::unix::net::UnixListener, process::Output};

use ostler_testkit::TestHome;

use crate::OSTLER;

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why) && said.contains("try: "), "{said}");
}

#[test]
fn what_belongs_to_others_is_refused_when_it_is_said() {
    let home = shop();
    let base = home.path().canonicalize().unwrap();
    let (other, sockets, plain) = (base.join("other"), base.join("sockets"), base.join("plain"));
    for dir in [&other.join("deep"), &sockets, &plain] {
        fs::create_dir_all(dir).unwrap();
    }
    let _listener = UnixListener::bind(sockets.join("x.sock")).unwrap();
    assert!(home.run(&["campaign", "add", other.to_str().unwrap()]).status.success());
    let set = |setting: String| home.run(&["campaign", "set", "shop", &setting]);
    for path in ["/", "/etc", "/usr", "/usr/local", "/proc", "/sys", "/dev", "/run", "/home", "/tmp"] {
        refused(&set(format!("write+={path}")), "cannot be granted");
    }
    for path in ["/", "/proc", "/proc/1", "/run", "/dev"] {
        refused(&set(format!("read+={path}")), "it is a part of the system");
    }
    for key in ["read", "write"] {
        let set = |path: &std::path::Path| set(format!("{key}+={}", path.display()));
        refused(&set(&other), "holds another campaign");
        refused(&set(&other.join("deep")), "lies in another campaign");
        refused(&set(&sockets), "somebody may be listening there");
        refused(&set(&base.join("nowhere")), "it does not exist");
        refused(&set(&home.home.state().join("sessions")), "cannot be granted");
        refused(&set(&home.campaign_dir()), "lies in the campaign");
        assert!(set(&plain).status.success());
    }
    refused(&set("limits.memory=1B".to_owned()), "at least 64MiB");
    refused(&set("limits.pids=99999999999".to_owned()), "8 to 100000");
    refused(&set("env+=PATH".to_owned()), "Ostler sets it itself");
    // What has gone since is no reason to refuse something else.
    fs::remove_dir(&plain).unwrap();
    assert!(set("limits.memory=1GiB".to_owned()).status.success());
}

#[test]
fn campaigns_do_not_lie_within_each_other() {
    let home = shop();
    let inner = home.campaign_dir().join("packages/a");
    fs::create_dir_all(&inner).unwrap();
    refused(&home.run(&["campaign", "add", inner.to_str().unwrap()]), "lies in the campaign shop");
    let around = home.campaign_dir().canonicalize().unwrap().parent().unwrap().to_owned();
    let around = home.run(&["campaign", "add", around.to_str().unwrap()]);
    assert_eq!(around.status.code(), Some(2), "{}", String::from_utf8_lossy(&around.stderr));
    // It is a directory of that campaign, and works as one.
    let inside = home.command(&["exec", "--unlisted", "--", "pwd"]).current_dir(&inner).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&inside.stdout).trim_end(),
        inner.canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn who_registered_and_forgot_a_campaign_is_kept() {
    let home = shop();
    assert!(home.run(&["campaign", "rm", "shop"]).status.success());
    let audit = fs::read_to_string(home.home.state().join("audit.jsonl")).unwrap();
    let said = |action: &str| {
        let fits = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["action"] == action
                && line["object"].as_str().is_some_and(|object| object.starts_with("shop: /"))
        };
        audit.lines().any(fits)
    };
    assert!(said("campaign.add") && said("campaign.rm"), "{audit}");
}

#[test]
fn a_link_that_an_agent_made_leads_to_nothing() {
    let home = shop();
    let base = home.path().canonicalize().unwrap();
    for dir in ["w/d/x", "victim/x"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    fs::write(base.join("victim/x/f"), "theirs").unwrap();
    let at = |path: &str| base.join(path).display().to_string();
    let grants = [format!("write+={}", at("w")), format!("read+={}", at("w/d/x"))];
    assert!(home.run(&["campaign", "set", "shop", &grants[0], &grants[1]]).status.success());
    let swap = format!("mv {0} {0}2 && ln -s {1} {0}", at("w/d"), at("victim"));
    assert!(home.run(&["exec", "--unlisted", "--", "sh", "-c", &swap]).status.success());
    let output = home.run(&["exec", "--unlisted", "--", "cat", &at("w/d/x/f")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(said.contains("is a link that an agent may have made"), "{said}");
}
