use proptest::prelude::*;

use super::*;

fn change(policy: &Policy, text: &str) -> Result<Policy, String> {
    let setting = Setting::parse(text).map_err(|fault| fault.to_string())?;
    policy.clone().changed(&setting).map_err(|fault| fault.to_string())
}

#[test]
fn lists_grow_and_shrink() {
    let policy = change(&Policy::default(), "read+=@rust").unwrap();
    let policy = change(&policy, "read+=/opt/my sdk").unwrap();
    assert_eq!(policy.read, ["@rust", "/opt/my sdk"]);
    assert_eq!(Policy::default().changed_by(&policy.settings()).unwrap(), policy);
    let policy = change(&policy, "read-=@rust").unwrap();
    assert_eq!(policy.read, ["/opt/my sdk"]);
    assert_eq!(change(&policy, "read=@go /opt/x").unwrap().read, ["@go", "/opt/x"]);
    assert_eq!(change(&policy, "read=").unwrap(), Policy::default());
    assert!(change(&policy, "read-=@rust").unwrap_err().contains("does not have"));
}

#[test]
fn values_are_checked() {
    for wrong in [
        "read+=relative",
        "read+=@cobol",
        "write+=/a/../etc",
        "hide+=a/b",
        "hide+=**",
        "env+=LD_PRELOAD",
        "env+=OSTLER_TOKEN",
        "env+=A-B",
        "net.mode=everything",
        "net.mode+=open",
        "net.allow+=http://x",
        "net.allow+=a..b",
        "net.allow+=127.0.0.1",
        "net.allow+=localhost",
        "net.allow+=169.254.169.254",
        "commands+=a\tb",
        "limits.memory=lots",
        "limits.memory=0",
        "limits.memory=1B",
        "limits.memory=63MiB",
        "limits.tmp=1KiB",
        "limits.shm=2TiB",
        "limits.pids=1",
        "limits.pids=99999999999",
        "env+=PATH",
        "env+=HOME",
        "limits.pids=-1",
        "ptrace=maybe",
        "protect_tooling=never",
        "compat=everything",
        "budget=lots",
        "provider=nope",
        "provider+=codex",
        "model=two words",
        "budget=5usd/week",
        "budget+=5usd/day",
        "limits.sessions=0",
        "idle_stop=soon",
        "idle_stop=0s",
        "env+=HTTPS_PROXY",
        "commands+=/bin/sh",
        "colour=red",
        "read",
        "read+=",
    ] {
        assert!(change(&Policy::default(), wrong).is_err(), "{wrong}");
    }
    let right = [
        "net.allow=*.example @node",
        "limits.memory=8GiB",
        "ptrace=on",
        "compat=gastown",
        "budget=25usd/day",
        "provider=acp:opencode",
        "model=anthropic/claude-sonnet-5",
        "limits.sessions=4",
        "idle_stop=2h",
        "idle_stop=never",
        "resume_after_rate_limit=off",
        "hide+=*.tfstate",
        "env+=EDITOR",
    ];
    for right in right {
        change(&Policy::default(), right).unwrap();
    }
}

#[test]
fn rules_keep_their_order_and_go_by_their_place() {
    let policy = change(&Policy::default(), "approve.rule+=ask run git push *").unwrap();
    let policy = change(&policy, "approve.rule+=allow run cargo test *").unwrap();
    let policy = change(&policy, "approve.rule+=1 allow run git push origin main").unwrap();
    let rules = ["allow run git push origin main", "ask run git push *", "allow run cargo test *"];
    assert_eq!(policy.approve_rule, rules);
    assert_eq!(Policy::default().changed_by(&policy.settings()).unwrap(), policy);
    assert_eq!(change(&policy, "approve.rule+=allow run cargo test *").unwrap(), policy);
    let moved = change(&policy, "approve.rule+=1 allow run cargo test *").unwrap();
    assert_eq!(moved.approve_rule[0], "allow run cargo test *");
    assert_eq!(moved.approve_rule.len(), 3);
    assert_eq!(change(&policy, "approve.rule-=2").unwrap().approve_rule, [rules[0], rules[2]]);
    assert_eq!(change(&policy, "approve.rule-=ask run git push *").unwrap().approve_rule.len(), 2);
    assert_eq!(change(&policy, "approve.rule=deny fetch x.example").unwrap().approve_rule.len(), 1);
    assert_eq!(change(&policy, "approve.rule=").unwrap(), Policy::default());
    for wrong in
        ["approve.rule-=4", "approve.rule-=0", "approve.rule+=9 ask run x", "approve.rule+=may run x"]
    {
        assert!(change(&policy, wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes_are_shown_as_they_are_typed() {
    for text in ["8GiB", "512MiB", "3KiB", "1023B"] {
        assert_eq!(size_text(size(text).unwrap()), text);
    }
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_taken_can_be_typed_again(text in ".{0,40}", policy_text in "[a-z.]{0,16}[+-]?=.{0,20}") {
        for text in [text, policy_text] {
            if let Ok(setting) = Setting::parse(&text) {
                prop_assert_eq!(Setting::parse(&setting.text()).unwrap(), setting.clone());
                let _ = Policy::default().changed(&setting);
            }
        }
    }
}
