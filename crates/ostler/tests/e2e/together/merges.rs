//! The merge with its gate, and the checks: what a crash, a pause, a cancel, a limit or a halt makes of them.

use std::{fs, path::Path, process::Command};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use crate::missions::{
    SOON, agent, assignment, commits, json_of, ok, plan, refused, shell, until, with_campaign,
    with_repository,
};

use super::shared;

/// A gate or a check that says that it began, waits to be let through, and leaves a line at its end.
fn waits(name: &str, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "echo {name} >> {dir}/began; until test -e {dir}/go; do sleep 0.02; done; echo {name} >> {dir}/ended"
    )
}

fn lines(home: &TestHome, file: &str) -> usize {
    fs::read_to_string(home.campaign_dir().join(file)).unwrap_or_default().lines().count()
}

fn begins(home: &TestHome, times: usize) {
    wait::until(&format!("it has begun {times} times"), SOON, || lines(home, "began") == times);
}

fn let_go(home: &TestHome) {
    fs::write(home.campaign_dir().join("go"), "").unwrap();
}

/// How a process that lives stands.
struct Standing {
    parent: String,
    /// It has stopped, or does before it does anything else.
    frozen: bool,
}

impl Standing {
    fn read(status: &str) -> Option<Self> {
        const SIGSTOP: u64 = 1 << 18;
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line?.split_whitespace().next().map(str::to_owned)
        };
        let is_pending =
            |name: &str| u64::from_str_radix(&of(name)?, 16).ok().map(|mask| mask & SIGSTOP != 0);
        let state = of("State").filter(|state| !matches!(state.as_str(), "Z" | "X"))?;
        let frozen = state == "T" || is_pending("SigPnd")? || is_pending("ShdPnd")?;
        Some(Self { parent: of("PPid")?, frozen })
    }
}

/// The processes of a gate or a check that live anywhere on this machine, and are not frozen; and those that are.
fn alive(home: &TestHome) -> (usize, usize) {
    let mark = format!("{}/began", home.campaign_dir().display());
    let mut shells = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        // The shell that runs the gate itself, and nobody who only speaks of it.
        if !line.starts_with("sh\0-c\0echo ") && !line.starts_with("/bin/sh\0-c\0exec 2>&1\necho ")
            || !line.contains(&mark)
        {
            continue;
        }
        let look = || Standing::read(&String::from_utf8_lossy(&read("status")));
        // It may have stopped between the first line of what was read and the last.
        let standing = look().and_then(|seen| if seen.frozen { Some(seen) } else { look() });
        if let Some(Standing { parent, frozen }) = standing {
            shells.push((entry.file_name().to_string_lossy().into_owned(), parent, frozen));
        }
    }
    // A child that the shell has forked bears its command line until it has become its own program.
    let gates = shells.iter().filter(|(_, parent, _)| shells.iter().all(|(shell, ..)| shell != parent));
    let (frozen, running): (Vec<_>, Vec<_>) = gates.partition(|(.., frozen)| *frozen);
    (running.len(), frozen.len())
}

fn merged(home: &TestHome) -> usize {
    let log = Command::new("git")
        .args(["log", "--merges", "--format=%H", "main"])
        .current_dir(home.campaign_dir())
        .output()
        .unwrap();
    String::from_utf8_lossy(&log.stdout).lines().count()
}

/// A mission whose gate has begun, and waits.
fn at_the_gate(more: &str) -> TestHome {
    let home = with_repository();
    let gate = waits("gate", &home.campaign_dir());
    let head = format!(
        "objective = \"Merge\"\nstrategy = \"parallel\"\nname = \"merge\"\n{more}\n[merge]\ninto = \"main\"\ngate = '''{gate}'''"
    );
    let work = vec![commits("one"), scenario::say("a")];
    plan(&home, "plan.toml", &head, &[agent("a", "worktree = true", work)]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    begins(&home, 1);
    home
}

/// The same with a check.
fn at_the_check() -> TestHome {
    let home = with_campaign();
    let check = waits("check", &home.campaign_dir());
    let head = "objective = \"Check\"\nstrategy = \"parallel\"\nname = \"check\"";
    let more = format!("complete_when = {{ check = '''{check}''' }}");
    plan(&home, "plan.toml", head, &[agent("a", &more, vec![scenario::say("a")])]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    begins(&home, 1);
    home
}

#[test]
fn a_collision_says_where_it_is_resolved_and_is_merged_then() {
    let home = with_repository();
    let head = "objective = \"Merge\"\nstrategy = \"parallel\"\nname = \"collide\"\n[defaults]\nworktree = true\n\
                [merge]\ninto = \"main\"";
    let work = |name: &str| {
        let same = format!(
            "echo {name} > same && git add same && git -c user.name=A -c user.email=a@shop.example commit -q -m {name}"
        );
        agent(name, "", vec![shell(&same), scenario::say(name)])
    };
    plan(&home, "plan.toml", head, &[work("a"), work("b")]);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let report = ok(&home, &["mission", "report", "collide"]);
    assert!(report.contains("agent/collide-b does not merge; these files collide:"), "{report}");
    assert!(report.contains("then: ostler mission retry collide"), "{report}");
    let cure = report.lines().find_map(|line| line.split_once("in its work tree: ")).unwrap().1;
    assert!(cure.ends_with(" merge agent/collide-a"), "{cure}");
    let tree = cure.strip_prefix("git -C ").unwrap().split(' ').next().unwrap();
    let own = "git -c user.name=Ann -c user.email=ann@shop.example";
    let by_hand = format!("{cure}; cd {tree} && echo both > same && git add same && {own} commit -qm both");
    assert!(Command::new("sh").args(["-c", &by_hand]).status().unwrap().success());
    ok(&home, &["mission", "retry", "collide", "-y"]);
    until(&home, "collide", "completed");
    let same =
        Command::new("git").args(["show", "main:same"]).current_dir(home.campaign_dir()).output().unwrap();
    assert_eq!(same.stdout, b"both\n");
}

#[test]
fn what_fails_without_a_collision_is_called_what_it_is() {
    let home = with_repository();
    let head = "objective = \"Merge\"\nstrategy = \"parallel\"\nname = \"alone\"\n[merge]\ninto = \"main\"";
    let own = "git -c user.name=A -c user.email=a@shop.example";
    let alone = format!("git update-ref HEAD $({own} commit-tree -m alone 'HEAD^{{tree}}')");
    plan(&home, "plan.toml", head, &[agent("a", "worktree = true", vec![shell(&alone), scenario::say("a")])]);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let report = ok(&home, &["mission", "report", "alone"]);
    assert!(report.contains("agent/alone-a was not merged, and no file collides;"), "{report}");
    assert!(report.contains("refusing to merge unrelated histories"), "{report}");
}

#[test]
fn a_gate_that_takes_long_writes_git_to_its_end_and_leaves_nothing_in_it() {
    let home = with_repository();
    let dir = home.campaign_dir();
    let trees = || {
        let listed = Command::new("git").args(["worktree", "list"]).current_dir(&dir).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).into_owned()
    };
    // Those who look after sandboxes close the trees of others at their next look.
    let other = format!("{}/.git/worktrees/other", dir.display());
    let gate = format!(
        "echo gate >> {}/began; until test -d {other}; do sleep 0.02; done; while touch {other}/probe; do sleep 0.02; done 2>/dev/null
         touch built && git add built && git stash && git status",
        dir.display()
    );
    let head =
        format!("objective = \"Merge\"\nname = \"long\"\n[merge]\ninto = \"main\"\ngate = '''{gate}'''");
    let work = vec![commits("one"), scenario::say("a")];
    plan(&home, "plan.toml", &head, &[agent("a", "worktree = true", work)]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    begins(&home, 1);
    assert!(!trees().contains("ostler-merge"), "{}", trees());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("other");
    let added = Command::new("git")
        .args(["worktree", "add", "-q", "--detach"])
        .arg(&other)
        .current_dir(&dir)
        .status()
        .unwrap();
    assert!(added.success());
    until(&home, "long", "completed");
    assert_eq!(merged(&home), 1);
    assert!(!trees().contains("ostler-merge"), "{}", trees());
}

#[test]
fn a_daemon_killed_at_the_gate_leaves_one_gate_one_merge_and_the_truth() {
    let home = at_the_gate("");
    for times in 2..=3 {
        home.kill_daemon();
        ok(&home, &["mission", "ls", "-a"]);
        begins(&home, times);
        assert_eq!(alive(&home), (1, 0), "the one before it is dead before another begins");
    }
    let_go(&home);
    until(&home, "merge", "completed");
    assert_eq!((merged(&home), lines(&home, "ended")), (1, 1));
    let report = ok(&home, &["mission", "report", "merge"]);
    assert!(report.contains("merged: ") && !report.contains("failed;"), "{report}");
    let trees =
        Command::new("git").args(["worktree", "list"]).current_dir(home.campaign_dir()).output().unwrap();
    let trees = String::from_utf8_lossy(&trees.stdout).into_owned();
    assert!(!trees.contains("ostler-merge"), "{trees}");
}

#[test]
fn a_cancelled_mission_has_no_gate_left_and_moves_no_branch() {
    let home = at_the_gate("");
    ok(&home, &["mission", "cancel", "merge"]);
    until(&home, "merge", "cancelled");
    assert_eq!((alive(&home), merged(&home)), ((0, 0), 0));
    // What is left to do is said before it is done.
    let announced = json_of(&home, &["mission", "retry", "merge", "--dry-run"]);
    assert_eq!((&announced["runs"], &announced["merges_into"]), (&json!([]), &json!("main")));
    let announced = ok(&home, &["mission", "retry", "merge", "--dry-run"]);
    assert!(announced.contains("into main") && !announced.contains("nothing"), "{announced}");
    let (code, words) = refused(&home, &["mission", "retry", "merge"]);
    assert!(code == Some(2) && words.contains("-y"), "{code:?} {words}");
    let_go(&home);
    ok(&home, &["mission", "retry", "merge", "-y"]);
    until(&home, "merge", "completed");
    assert_eq!(merged(&home), 1);
}

#[test]
fn a_mission_whose_time_is_used_up_has_no_gate_left_and_moves_no_branch() {
    let home = at_the_gate("when_used_up = \"stop\"");
    ok(&home, &["mission", "resume", "merge", "--time", "1s", "-y"]);
    until(&home, "merge", "partial");
    assert_eq!((alive(&home), merged(&home)), ((0, 0), 0));
    assert!(ok(&home, &["mission", "report", "merge"]).contains("the branch is as it was"));
}

#[test]
fn a_paused_mission_has_its_gate_frozen_and_moves_its_branch_later() {
    let home = at_the_gate("");
    ok(&home, &["mission", "pause", "merge"]);
    assert_eq!(alive(&home), (0, 1), "it is frozen when that is said");
    let_go(&home);
    home.kill_daemon();
    ok(&home, &["mission", "ls", "-a"]);
    wait::until("the gate is gone with its daemon", SOON, || alive(&home) == (0, 0));
    assert_eq!(json_of(&home, &["mission", "show", "merge"])["status"], "paused");
    assert_eq!((lines(&home, "began"), lines(&home, "ended"), merged(&home)), (1, 0, 0));
    ok(&home, &["mission", "resume", "merge", "-y"]);
    until(&home, "merge", "completed");
    assert_eq!((lines(&home, "ended"), merged(&home)), (1, 1));
}

#[test]
fn a_paused_gate_goes_on_where_it_was() {
    let home = at_the_gate("");
    ok(&home, &["mission", "pause", "merge"]);
    let_go(&home);
    ok(&home, &["mission", "resume", "merge", "-y"]);
    until(&home, "merge", "completed");
    assert_eq!((lines(&home, "began"), lines(&home, "ended"), merged(&home)), (1, 1, 1));
}

#[test]
fn an_emergency_stop_reaches_gates() {
    let home = at_the_gate("");
    ok(&home, &["halt"]);
    wait::until("the gate is dead", SOON, || alive(&home) == (0, 0));
    let_go(&home);
    assert_eq!((lines(&home, "began"), merged(&home)), (1, 0), "nothing begins while all is halted");
    ok(&home, &["halt", "--release"]);
    until(&home, "merge", "completed");
    assert_eq!((lines(&home, "began"), merged(&home)), (2, 1));
    let home = at_the_gate("");
    ok(&home, &["halt", "--mission", "merge"]);
    until(&home, "merge", "cancelled");
    assert_eq!((alive(&home), merged(&home)), ((0, 0), 0));
}

#[test]
fn a_check_stands_still_and_ends_with_its_mission() {
    let home = at_the_check();
    ok(&home, &["mission", "pause", "check"]);
    assert_eq!(alive(&home), (0, 1), "it is frozen when that is said");
    let whole = json_of(&home, &["mission", "show", "check"]);
    assert_eq!(assignment(&whole, "a")["status"], "paused", "{whole}");
    ok(&home, &["mission", "resume", "check", "-y"]);
    wait::until("it goes on", SOON, || alive(&home) == (1, 0));
    ok(&home, &["mission", "cancel", "check"]);
    let whole = until(&home, "check", "cancelled");
    assert_eq!(assignment(&whole, "a")["status"], "cancelled", "{whole}");
    let_go(&home);
    assert_eq!((alive(&home), lines(&home, "ended")), ((0, 0), 0));
}

#[test]
fn a_check_of_a_killed_daemon_is_dead_before_it_is_run_again() {
    let home = at_the_check();
    home.kill_daemon();
    ok(&home, &["mission", "ls", "-a"]);
    begins(&home, 2);
    assert_eq!(alive(&home), (1, 0));
    let_go(&home);
    until(&home, "check", "completed");
    assert_eq!(lines(&home, "ended"), 1, "one of them came to its end");
}

#[test]
fn a_check_sees_what_the_members_share() {
    let home = with_campaign();
    let check = "test -n \"$OSTLER_MISSION\" && grep -q done \"$OSTLER_MISSION_DIR/agents/a/note\" && \
        echo checked > \"$OSTLER_MISSION_DIR/agents/a/checked\"";
    let more = format!("complete_when = {{ check = '''{check}''' }}\nretries = 0");
    let leaves = shell("echo done > \"$OSTLER_MISSION_DIR/agents/a/note\"");
    let head = "objective = \"Check\"\nname = \"check\"";
    plan(&home, "plan.toml", head, &[agent("a", &more, vec![leaves, scenario::say("a")])]);
    ok(&home, &["mission", "start", "plan.toml"]);
    assert!(shared(&home, "check").join("agents/a/checked").exists());
}

#[test]
fn a_check_passes_only_as_a_whole_and_all_that_it_said_is_told() {
    let home = with_campaign();
    let head = "objective = \"Check\"\nname = \"whole\"\n[defaults]\nretries = 0";
    let member = |name: &str, check: &str| {
        agent(name, &format!("complete_when = {{ check = '{check}' }}"), vec![scenario::say(name)])
    };
    plan(&home, "plan.toml", head, &[member("a", "false;"), member("b", "echo BROKEN >&2; exit 1")]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let whole = until(&home, "whole", "failed");
    assert_eq!(assignment(&whole, "a")["status"], "failed", "{whole}");
    assert!(assignment(&whole, "b")["why"].as_str().unwrap().contains("BROKEN"), "{whole}");
}
