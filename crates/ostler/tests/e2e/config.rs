//! `ostler config`: the file by name, and in an editor.

use std::{fs, process::Output};

use ostler_testkit::TestHome;
use serde_json::Value;

use crate::OSTLER;

fn edit(home: &TestHome, editor: &str) -> Output {
    home.command(&["config", "edit", "-o", "json"])
        .env_remove("VISUAL")
        .env("EDITOR", editor)
        .output()
        .unwrap()
}

#[test]
fn what_an_editor_leaves_is_taken_if_the_daemon_would_understand_it() {
    let home = TestHome::new(OSTLER);
    home.configure("# mine\n");
    let text = || fs::read_to_string(home.home.config_toml()).unwrap();
    let before = text();
    // An editor may have arguments.
    let output = edit(&home, "sh -c 'printf \"[watchdog]\\nsilnet = \\\"5m\\\"\\n\" >> \"$0\"'");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(err.contains("silnet") && err.contains("config.toml.draft"), "{err}");
    assert_eq!(text(), before, "the file is as it was");
    // The next one goes on with the draft.
    let output = edit(&home, "sed -i s/silnet/silent/");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(), format!("{before}[watchdog]\nsilent = \"5m\"\n"));
    assert!(!home.home.config_toml().with_extension("toml.draft").exists());
    let same: Value = serde_json::from_slice(&edit(&home, "true").stdout).unwrap();
    assert_eq!(same["changed"], false);
}

#[test]
fn settings_are_shown_with_who_says_so_and_wrong_ones_are_refused_with_what_is_near() {
    let home = TestHome::new(OSTLER);
    let set = |args: &[&str]| home.run(&[&["config", "set"], args].concat());
    assert!(set(&["watchdog.silent", "5m"]).status.success());
    assert!(set(&["webhook.url=https://hooks.example/x", "webhook.secret_env=SECRET"]).status.success());
    let shown = home.run(&["config", "show", "-o", "json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let row = |key: &str| {
        let rows = shown["settings"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    assert_eq!(
        (row("watchdog.silent")["value"].as_str(), &row("watchdog.silent")["origin"]),
        (Some("5m"), &"file".into())
    );
    assert_eq!(row("watchdog.tool")["origin"], "default");
    assert_eq!(row("OSTLER_HOME")["origin"], "env");
    for (setting, meant) in [
        (["providers.nope.x", "1"], "claude-code"),
        (["providers.claude.model", "x"], "providers.claude-code"),
        (["watchdog.silnet", "1m"], "watchdog.silent"),
        (["watchdog.silent", "soon"], "span of time"),
        (["limits.tape", "lots"], "a size such as"),
    ] {
        let output = set(&setting);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && err.contains(meant), "{setting:?}: {err}");
    }
    let path = home.run(&["config", "path"]);
    assert_eq!(String::from_utf8_lossy(&path.stdout).trim(), home.home.config_toml().to_string_lossy());
}

#[test]
fn a_provider_that_is_configured_is_not_overwritten_by_the_way() {
    let home = TestHome::new(OSTLER);
    let add =
        |more: &[&str]| home.run(&[&["provider", "add", "acp:mine", "--program", "mine"], more].concat());
    assert!(add(&["-m", "small"]).status.success());
    let refused = add(&[]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--replace"));
    let model = || home.run(&["config", "get", "providers.acp:mine.model"]);
    assert_eq!(model().stdout, b"small\n");
    assert!(add(&["--replace"]).status.success());
    assert_eq!(model().status.code(), Some(2), "nothing of the first is left");
}

#[test]
fn a_draft_undoes_nothing_that_was_set_since() {
    let home = TestHome::new(OSTLER);
    let draft = home.home.config_toml().with_extension("toml.draft");
    assert_eq!(edit(&home, "false").status.code(), Some(2));
    assert!(!draft.exists(), "nothing was written");
    assert!(!edit(&home, "sh -c 'echo nonsense >> \"$0\"'").status.success());
    assert!(draft.exists());
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(home.run(&["config", "set", "idle_stop", "7m"]).status.success());
    let output = edit(&home, "true");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(home.home.config_toml()).unwrap();
    assert!(text.contains("idle_stop = \"7m\"") && !text.contains("nonsense"), "{text}");
    assert!(draft.with_extension("draft.old").exists(), "and what was written is not thrown away");
}

#[tokio::test]
async fn a_daemon_that_would_not_start_does_not_take_the_place_of_one_that_runs() {
    let home = TestHome::started(OSTLER).await;
    let pid = home.client().await.status().await.unwrap().pid;
    std::fs::write(home.home.config_toml(), "broken = [").unwrap();
    let refused = home.run(&["daemon", "restart"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("ostler config edit"), "{said}");
    assert_eq!(home.client().await.status().await.unwrap().pid, pid, "it is still there");
}

#[test]
fn whoever_meets_a_broken_file_is_told_which_line_and_what_opens_it() {
    for broken in ["idle_stop = \"1h\"\n[limits\n", "[limits]\nsesions = 3\n", "idle_stop = \"soon\"\n"] {
        let home = TestHome::new(OSTLER);
        home.configure(broken);
        for args in [
            &["config", "show"][..],
            &["config", "set", "watchdog.silent", "5m"],
            &["ls"],
            &["daemon", "start"],
            &["daemon", "restart"],
        ] {
            let output = home.run(args);
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
            assert!(err.contains("config edit") && err.contains("why:"), "{args:?}: {err}");
            assert!(!err.contains("config show"), "{args:?}: {err}");
        }
    }
}

#[test]
fn a_provider_that_is_none_is_told_of_wherever_the_file_is_read_and_keeps_nobody_from_working() {
    let home = TestHome::new(OSTLER);
    let text = "[providers.codexx]\nmodel = \"m\"\n";
    home.configure(text);
    let campaign = home.run(&["campaign", "add", ".", "--name", "shop"]);
    assert!(campaign.status.success(), "{campaign:?}");
    for args in [
        &["daemon", "start"][..],
        &["daemon", "restart"],
        &["config", "show"],
        &["config", "get", "providers"],
        &["config", "set", "watchdog.silent", "5m"],
        &["config", "unset", "watchdog.silent"],
        &["provider", "ls"],
        &["doctor"],
        &["doctor", "--quick"],
        &["run", "-p", "script", "-d", "hi"],
    ] {
        let output = home.run(args);
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned());
        let said = said.concat();
        assert!(output.status.success() || args[0] == "doctor", "{args:?}: {said}");
        assert!(
            said.contains("no such provider") || said.contains("no provider \"codexx\""),
            "{args:?}: {said}"
        );
        assert!(said.contains("providers.codex may be meant"), "{args:?}: {said}");
        assert!(said.contains("ostler config edit"), "{args:?}: {said}");
    }
    let log = home.run(&["daemon", "logs"]);
    assert!(String::from_utf8_lossy(&log.stdout).contains("count for nobody"), "{log:?}");
    // Who has it open in an editor is asked to look again.
    let output = edit(&home, "true");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && err.contains("providers.codex may be meant"), "{err}");
    assert!(edit(&home, "sed -i s/codexx/codex/").status.success());
    let shown = home.run(&["config", "show"]);
    assert!(!String::from_utf8_lossy(&shown.stderr).contains("may be meant"), "{shown:?}");
}

#[test]
fn a_key_that_is_none_comes_with_the_one_that_was_probably_meant() {
    for (broken, meant) in [
        ("[limits]\nsesions = 3\n", "sessions may be meant"),
        ("[providers.codex]\nmodle = \"m\"\n", "model may be meant"),
    ] {
        let home = TestHome::new(OSTLER);
        home.configure(broken);
        for args in [&["config", "show"][..], &["daemon", "start"], &["doctor"]] {
            let output = home.run(args);
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!output.status.success() && said.contains(meant), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_and_a_column_that_is_none_come_with_what_helps() {
    let home = TestHome::new(OSTLER);
    for (args, cure) in [
        (&["run", "--here", "-p", "script", "-f", "nosuchfile"][..], "ostler run -f -"),
        (&["campaign", "apply", "nosuch.toml"], "ostler help campaign apply"),
        (&["provider", "ls", "--columns", "nam"], "--columns name"),
        (&["provider", "ls", "--columns", "quux"], "--columns name,version"),
    ] {
        let output = home.run(args);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains("try:") && err.contains(cure), "{args:?}: {err}");
    }
}

#[test]
fn of_several_that_change_it_at_once_nobody_s_change_is_lost() {
    let home = TestHome::new(OSTLER);
    home.configure("");
    for round in 0..6 {
        let names: Vec<String> = (0..4).map(|n| format!("providers.codex.env.V{round}_{n}=x")).collect();
        let mut all: Vec<_> =
            names.iter().map(|setting| home.command(&["config", "set", setting]).spawn().unwrap()).collect();
        let program = format!("--program=/bin/r{round}");
        let added = home.command(&["provider", "add", &format!("acp:r{round}"), &program]).spawn().unwrap();
        all.push(added);
        for mut one in all {
            assert!(one.wait().unwrap().success());
        }
        let text = fs::read_to_string(home.home.config_toml()).unwrap();
        for n in 0..4 {
            assert!(text.contains(&format!("V{round}_{n}")), "round {round}: {text}");
        }
        assert!(text.contains(&format!("acp:r{round}")), "round {round}: {text}");
    }
}

#[test]
fn a_span_in_which_nothing_can_happen_is_refused() {
    let home = TestHome::new(OSTLER);
    home.configure("");
    for setting in ["watchdog.start=0s", "approvals.limit=0s", "providers.codex.program=   "] {
        let output = home.run(&["config", "set", setting]);
        assert_eq!(output.status.code(), Some(2), "{setting}: {output:?}");
    }
}

#[tokio::test]
async fn the_doctor_sees_a_file_that_the_next_daemon_would_not_read() {
    let home = TestHome::started(OSTLER).await;
    std::fs::write(home.home.config_toml(), "limits = [\n").unwrap();
    for args in [&["doctor", "--quick", "-o", "json"][..], &["doctor", "-o", "json"]] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = said["findings"].as_array().unwrap();
        let config: Vec<_> = findings.iter().filter(|finding| finding["about"] == "config").collect();
        let [config] = &config[..] else { panic!("{said}") };
        assert_eq!((&config["verdict"], &config["fix"]), (&"fail".into(), &"ostler config edit".into()));
        assert!(config["text"].as_str().unwrap().contains("line 1, column 11: unclosed array"), "{config}");
        assert!(findings.iter().any(|finding| finding["about"] == "daemon" && finding["verdict"] == "ok"));
    }
    home.kill_daemon();
    let said: Value = serde_json::from_slice(&home.run(&["doctor", "--quick", "-o", "json"]).stdout).unwrap();
    let about = said["findings"].as_array().unwrap().iter().filter(|finding| finding["verdict"] == "fail");
    assert_eq!(about.count(), 1, "it is said once: {said}");
}
