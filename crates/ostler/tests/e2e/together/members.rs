//! What members leave uncommitted, members that go on in another session, templates from end to end, and plans whose agents
//! could not run.

use std::{fs, process::Command};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::missions::{
    SOON, agent, assignment, commits, json_of, ok, plan, refused, said, shell, until, with_campaign,
    with_repository,
};

fn git(home: &TestHome, args: &[&str]) -> String {
    let own = ["-c", "user.name=Ann", "-c", "user.email=ann@shop.example"];
    let done = Command::new("git").args(own).args(args).current_dir(home.campaign_dir()).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A text that every member of a template has in its brief, and plays: in a work tree it commits this file, with a content
/// of its own.
fn played(file: &str) -> String {
    let commit = format!(
        "case $(git rev-parse --git-dir) in */worktrees/*) b=$(git branch --show-current | tr / -); echo $b > {file}; \
         git add -A; git -c user.name=A -c user.email=a@shop.example commit -qm $b;; esac"
    );
    let steps = vec![shell(&commit), shell("ostler done"), scenario::say("it is done")];
    format!("this\n```scenario\n{}\n```\n", scenario::of(steps))
}

#[test]
fn every_template_runs_to_its_end() {
    let home = with_repository();
    let each = [
        // Parts of one work, each in files of its own.
        ("plan-build-review", "goal", played("$b"), 5),
        // Whole works in the same file: they collide, and only the one that was joined from them is merged.
        ("fan-out-and-merge", "goal", played("result"), 4),
        ("research-and-summarise", "question", played("$b"), 5),
        ("bug-hunt-with-verification", "area", played("$b"), 6),
    ];
    for (template, parameter, text, count) in each {
        let set = format!("{parameter}={text}");
        let out = ok(
            &home,
            &["mission", "start", template, "-p", &set, "--provider", "script", "--name", template],
        );
        assert!(out.contains(&format!("{count} of {count} completed")), "{template}: {out}");
    }
    let merged = git(&home, &["log", "--merges", "--format=%s", "main"]);
    let of = |template: &str| merged.lines().filter(|line| line.contains(template)).count();
    assert_eq!((of("plan-build-review"), of("fan-out-and-merge")), (3, 1), "{merged}");
    assert!(git(&home, &["show", "main:result"]).contains("join"));
}

#[test]
fn braces_in_the_value_of_a_parameter_are_its_own() {
    let home = with_repository();
    let goal = "goal=Show {{name}} in the page";
    let planned = ok(&home, &["mission", "plan", "plan-build-review", "--provider", "script", "-p", goal]);
    assert!(planned.contains("Show {{name}} in the page"), "{planned}");
}

#[test]
fn a_budget_said_at_the_start_takes_the_place_of_the_plans() {
    let home = with_repository();
    let head = "objective = \"Spend\"\nname = \"spend\"\nbudget = \"1500\"";
    plan(&home, "plan.toml", head, &[agent("a", "", said("a"))]);
    ok(&home, &["mission", "start", "plan.toml", "--budget", "7usd", "-d"]);
    until(&home, "spend", "completed");
    let plan = fs::read_to_string(super::shared(&home, "spend").join("context/plan.toml")).unwrap();
    assert!(plan.contains("budget = \"7usd\"") && !plan.contains("1500"), "{plan}");
}

#[test]
fn what_was_not_committed_is_never_left_out_of_a_merge_silently() {
    let home = with_repository();
    let head =
        "objective = \"Merge\"\nname = \"left\"\n[defaults]\nworktree = true\n[merge]\ninto = \"main\"";
    let work = vec![shell("echo new > new.txt"), scenario::say("a")];
    plan(&home, "plan.toml", head, &[agent("a", "", work)]);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let screen = ok(&home, &["mission", "show", "left"]);
    assert!(screen.contains("a left uncommitted: new.txt"), "{screen}");
    assert!(screen.contains("ostler mission retry left"), "{screen}");
    let session = assignment(&json_of(&home, &["mission", "show", "left"]), "a")["session"].clone();
    let shown = json_of(&home, &["show", session.as_str().unwrap()]);
    let tree = shown["working_dir"].as_str().unwrap().to_owned();
    git(&home, &["-C", &tree, "add", "-A"]);
    git(&home, &["-C", &tree, "commit", "-qm", "new"]);
    ok(&home, &["mission", "retry", "left", "-y"]);
    let whole = until(&home, "left", "completed");
    assert_eq!(assignment(&whole, "a")["attempt"], 1, "only the merge was done again: {whole}");
    assert_eq!(git(&home, &["show", "main:new.txt"]), "new\n");
}

#[test]
fn what_was_committed_beside_is_named_also_where_its_agent_came_back_to_its_own_branch() {
    let home = with_repository();
    let head = "objective = \"Merge\"\nname = \"back\"\nstrategy = \"sequential\"\n[defaults]\nworktree = true\n\
                [merge]\ninto = \"main\"";
    let back = |name: &str| shell(&format!("git checkout -q agent/back-{name}"));
    let branch = |name: &str| shell(&format!("git checkout -q -b {name}"));
    let agents = [
        agent("a", "", vec![branch("feature"), commits("one"), back("a"), scenario::say("a")]),
        agent(
            "b",
            "",
            vec![
                shell("git checkout -q --detach"),
                commits("two"),
                shell("git tag kept"),
                back("b"),
                scenario::say("b"),
            ],
        ),
        // What came back with it, what was thrown away, and what only others made is not left out.
        agent(
            "c",
            "",
            vec![
                branch("picked"),
                commits("three"),
                back("c"),
                shell(
                    "git merge -q --squash picked && git -c user.name=A -c user.email=a@shop.example commit -q -m it",
                ),
                commits("four"),
                shell("git -c user.name=A -c user.email=a@shop.example commit -q --amend -m 'four again'"),
                shell("git checkout -q --detach feature"),
                back("c"),
                scenario::say("c"),
            ],
        ),
        // What was left on no branch is named; what was amended there was given up.
        agent(
            "d",
            "",
            vec![
                shell("git checkout -q --detach"),
                commits("five"),
                shell("git -c user.name=A -c user.email=a@shop.example commit -q --amend -m 'five again'"),
                back("d"),
                scenario::say("d"),
            ],
        ),
    ];
    plan(&home, "plan.toml", head, &agents);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let report = ok(&home, &["mission", "report", "back"]);
    assert!(report.contains("a has 1 commit on feature, not on agent/back-a"), "{report}");
    assert!(report.contains("b has 1 commit on kept, not on agent/back-b"), "{report}");
    assert!(!report.contains("c has"), "{report}");
    assert!(report.contains("d has 1 commit on no branch, not on agent/back-d"), "{report}");
    let (code, words) = refused(&home, &["mission", "rm", "back"]);
    assert!(code == Some(4), "{code:?} {words}");
    let trees = ok(&home, &["worktree", "ls"]);
    assert!(
        trees.lines().any(|line| line.contains("back-d") && line.contains("unmerged 1 commit")),
        "{trees}"
    );
    let give_up = report.lines().find_map(|line| line.split_once("or give it up: ")).unwrap().1;
    let done = Command::new("sh").args(["-c", give_up.trim_end_matches('`')]).status().unwrap();
    assert!(done.success(), "{give_up}");
    // One is brought along as it says. The other one is on no branch without its tag, and given up as that is said.
    let cure = report.lines().find_map(|line| line.split_once("merge it: ")).unwrap().1;
    let done = Command::new("sh").args(["-c", cure.trim_end_matches('`')]).status().unwrap();
    assert!(done.success(), "{cure}");
    git(&home, &["tag", "-d", "kept"]);
    ok(&home, &["mission", "retry", "back", "-y"]);
    let mut report = String::new();
    wait::until("it to be named again", wait::PATIENCE, || {
        report = ok(&home, &["mission", "report", "back"]);
        report.contains("b has 1 commit on no branch, not on agent/back-b")
    });
    let give_up = report.lines().find_map(|line| line.split_once("or give it up: ")).unwrap().1;
    let done = Command::new("sh").args(["-c", give_up.trim_end_matches('`')]).status().unwrap();
    assert!(done.success(), "{give_up}");
    ok(&home, &["mission", "retry", "back", "-y"]);
    until(&home, "back", "completed");
    let files = git(&home, &["ls-tree", "--name-only", "main"]);
    assert!(files.contains("one") && files.contains("three") && !files.contains("two"), "{files}");
}

#[test]
fn a_price_that_is_set_later_reaches_what_was_done_and_what_is_planned() {
    let home = with_campaign();
    plan(&home, "plan.toml", "objective = \"Spend\"\nname = \"spend\"", &[agent("a", "", said("a"))]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let whole = until(&home, "spend", "completed");
    let cost = |row: &Value| (row["cost_usd"].as_f64(), row["has_unpriced"].as_bool().unwrap());
    assert_eq!((cost(&whole), cost(&assignment(&whole, "a"))), ((None, true), (None, true)), "{whole}");
    assert_eq!(cost(&json_of(&home, &["mission", "ls", "-a"])["missions"][0]), (None, true));
    let price = json_of(&home, &["mission", "plan", "plan.toml"])["price"].clone();
    assert_eq!((&price["known"], &price["likely_usd"]), (&json!(0), &Value::Null), "{price}");
    assert!(price["words"].as_str().unwrap().contains("no price for script"), "{price}");
    assert!(ok(&home, &["mission", "report", "spend"]).contains("unknown (no price for"));
    ok(&home, &["price", "set", "script", "input=2000", "output=10000"]);
    let whole = json_of(&home, &["mission", "show", "spend"]);
    let known = (Some(0.07), false);
    assert_eq!((cost(&whole), cost(&assignment(&whole, "a"))), (known, known), "{whole}");
    assert_eq!(cost(&json_of(&home, &["mission", "ls", "-a"])["missions"][0]), known);
    let price = json_of(&home, &["mission", "plan", "plan.toml"])["price"].clone();
    assert_eq!((&price["known"], price["likely_usd"].as_f64()), (&json!(1), Some(0.07)), "{price}");
    let report = ok(&home, &["mission", "report", "spend"]);
    assert!(report.contains("cost: $0.07") && !report.contains("unknown"), "{report}");
    assert!(ok(&home, &["mission", "graph", "spend"]).contains("$0.07"));
}

#[test]
fn what_was_committed_beside_the_own_branch_is_never_left_out_of_a_merge_silently() {
    let home = with_repository();
    let head = "objective = \"Merge\"\nname = \"beside\"\nstrategy = \"sequential\"\n[defaults]\nworktree = true\n\
                [merge]\ninto = \"main\"";
    let agents = [
        agent("a", "", vec![shell("git checkout -q -b feature"), commits("one"), scenario::say("a")]),
        agent("b", "", vec![shell("git checkout -q --detach"), commits("two"), scenario::say("b")]),
        // Whoever only looks at what is merged anyway leaves nothing out.
        agent("c", "", vec![shell("git checkout -q --detach agent/beside-d"), scenario::say("c")]),
        agent("d", "", vec![commits("four"), scenario::say("d")]),
    ];
    let agents = [&agents[3], &agents[0], &agents[1], &agents[2]].map(String::clone);
    plan(&home, "plan.toml", head, &agents);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let whole = json_of(&home, &["mission", "show", "beside"]);
    let report = ok(&home, &["mission", "report", "beside"]);
    assert!(report.contains("a has 1 commit on feature, not on agent/beside-a"), "{report}");
    assert!(report.contains("b has 1 commit on no branch, not on agent/beside-b"), "{report}");
    assert!(!report.contains("c has") && !report.contains("d has"), "{report}");
    assert!(report.contains("ostler mission retry beside"), "{report}");
    // The one after it is told where the commit is.
    let session = assignment(&whole, "b")["session"].as_str().unwrap().to_owned();
    let log = ok(&home, &["events", "--session", &session, "-o", "jsonl"]);
    assert!(log.contains("feature (commit)") && !log.contains("agent/beside-a (commit)"), "{log}");
    // Nothing of it is taken for merged.
    let trees = ok(&home, &["worktree", "ls"]);
    assert_eq!(trees.matches("unmerged 1 commit").count(), 3, "{trees}");
    let (code, words) = refused(&home, &["mission", "rm", "beside"]);
    assert!(code == Some(4) && words.contains("on feature"), "{code:?} {words}");
    // What it says to do is what helps.
    let cures: Vec<&str> =
        report.lines().filter_map(|line| line.split_once("merge it: ")).map(|it| it.1).collect();
    assert_eq!(cures.len(), 2, "{report}");
    for cure in cures {
        let done = Command::new("sh").args(["-c", cure.trim_end_matches('`')]).status().unwrap();
        assert!(done.success(), "{cure}");
    }
    ok(&home, &["mission", "retry", "beside", "-y"]);
    until(&home, "beside", "completed");
    let merged = git(&home, &["ls-tree", "--name-only", "main"]);
    assert!(["one", "two", "four"].iter().all(|file| merged.lines().any(|line| line == *file)), "{merged}");
}

/// The member's session, once it is in its turn.
fn session_of(home: &TestHome, mission: &str, member: &str, marker: &str) -> String {
    wait::until("it works", SOON, || home.campaign_dir().join(marker).exists());
    let whole = json_of(home, &["mission", "show", mission]);
    assignment(&whole, member)["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_member_that_is_started_again_by_hand_stays_a_member() {
    let home = with_campaign();
    let head = "objective = \"Go on\"\nname = \"again\"\nstrategy = \"sequential\"\n[defaults]\nretries = 0";
    let work = vec![shell("test -e once || { touch once; sleep 600; }"), scenario::say("a")];
    plan(&home, "plan.toml", head, &[agent("a", "", work), agent("b", "", said("b"))]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let first = session_of(&home, "again", "a", "once");
    ok(&home, &["restart", &first]);
    let whole = until(&home, "again", "completed");
    let a = assignment(&whole, "a");
    assert_eq!((&a["attempt"], &a["status"]), (&json!(1), &json!("completed")), "{whole}");
    assert_ne!(a["session"], Value::String(first), "another session has done it: {whole}");
}

#[test]
fn a_member_that_hands_its_work_on_stays_a_member_and_all_of_it_is_counted() {
    let home = with_campaign();
    let head = "objective = \"Hand on\"\nname = \"hand\"\nstrategy = \"sequential\"\n[defaults]\nretries = 0";
    let hand = shell("test -e handed || { touch handed; ostler handoff -m 'out of context'; }");
    let work = vec![json!({"usage": {"input": 70, "output": 7}}), hand, scenario::say("a")];
    plan(&home, "plan.toml", head, &[agent("a", "", work), agent("b", "", said("b"))]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let whole = until(&home, "hand", "completed");
    let a = assignment(&whole, "a");
    assert_eq!((&a["attempt"], &a["status"]), (&json!(1), &json!("completed")), "{whole}");
    let log = ok(&home, &["mission", "logs", "hand", "-o", "jsonl"]);
    assert!(log.contains("ASSIGNMENT_MOVED"), "another session has gone on: {log}");
    assert!(a["usage"]["output"].as_u64().unwrap() >= 7, "what the first one used is in it: {whole}");
    assert_eq!((&a["outcome"], &whole["why"]), (&json!("done"), &Value::Null), "{whole}");
}

#[test]
fn what_a_person_said_to_a_member_that_failed_keeps_nobody_from_doing_it_again() {
    let home = with_repository();
    let head = "objective = \"Talk\"\nname = \"talk\"\n[defaults]\nretries = 0\nworktree = true";
    let work = vec![shell("test -e cured || kill -9 $PPID"), scenario::say("whole")];
    plan(&home, "plan.toml", head, &[agent("a", "", work)]);
    assert_eq!(refused(&home, &["mission", "start", "plan.toml"]).0, Some(10));
    let member = |home: &TestHome| assignment(&json_of(home, &["mission", "show", "talk"]), "a");
    let first = member(&home)["session"].as_str().unwrap().to_owned();
    // It is talked to, fails again, and is over.
    let (code, words) = refused(&home, &["send", &first, "what is in the way?", "--wait"]);
    assert_eq!(code, Some(10), "{words}");
    let tree =
        |session: &str| json_of(&home, &["show", session])["worktree"]["path"].as_str().unwrap().to_owned();
    fs::write(format!("{}/cured", tree(&first)), "").unwrap();
    ok(&home, &["mission", "retry", "talk", "-y"]);
    until(&home, "talk", "completed");
    let last = member(&home)["session"].as_str().unwrap().to_owned();
    let chain = json_of(&home, &["chain", "show", &last]);
    let chain: Vec<&str> =
        chain["sessions"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((chain.len(), chain[0], chain[2]), (3, first.as_str(), last.as_str()), "{chain:?}");
    assert_eq!(tree(&first), tree(&last), "with what was done there");
}

#[test]
fn a_retry_waits_for_whoever_talks_to_the_member_and_says_so() {
    let home = with_campaign();
    let head = "objective = \"Talk\"\nname = \"talk\"\n[defaults]\nretries = 0";
    let talks = shell("test -e cured || kill -9 $PPID; until test -e said; do sleep 0.05; done");
    plan(&home, "plan.toml", head, &[agent("a", "", vec![talks, scenario::say("whole")])]);
    assert_eq!(refused(&home, &["mission", "start", "plan.toml"]).0, Some(10));
    let member = |home: &TestHome| assignment(&json_of(home, &["mission", "show", "talk"]), "a");
    let first = member(&home)["session"].as_str().unwrap().to_owned();
    // Somebody talks to it, and is not through.
    fs::write(home.campaign_dir().join("cured"), "").unwrap();
    ok(&home, &["send", &first, "what is in the way?"]);
    let persons =
        json_of(&home, &["chain", "show", &first])["sessions"][1]["id"].as_str().unwrap().to_owned();
    ok(&home, &["mission", "retry", "talk", "-y"]);
    let waits = |home: &TestHome| member(home)["wait"].as_str().unwrap_or_default().to_owned();
    wait::until("it waits for the conversation", SOON, || waits(&home).contains("has its conversation"));
    let short = json_of(&home, &["show", &persons])["short"].as_str().unwrap_or_default().to_owned();
    assert!(waits(&home).ends_with(&format!("ostler stop {short}")), "{short}: {}", waits(&home));
    home.kill_daemon();
    let screen = ok(&home, &["mission", "show", "talk"]);
    assert!(screen.contains("has its conversation: ostler stop"), "{screen}");
    assert_eq!((&member(&home)["status"], &member(&home)["session"]), (&json!("ready"), &json!(first)));
    fs::write(home.campaign_dir().join("said"), "").unwrap();
    until(&home, "talk", "completed");
    let last = member(&home)["session"].as_str().unwrap().to_owned();
    let chain = json_of(&home, &["chain", "show", &last]);
    let chain: Vec<&str> =
        chain["sessions"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(chain, [first.as_str(), persons.as_str(), last.as_str()], "one after the other");
}

#[test]
fn a_mission_whose_campaign_was_removed_begins_nothing_and_says_what_to_do() {
    let home = with_campaign();
    let head = "objective = \"Block\"\nname = \"gone\"\nstrategy = \"adaptive\"\n[defaults]\nretries = 0";
    let fails = agent("a", "complete_when = \"done\"", said("a"));
    let blocked = agent("b", "needs = [\"a\"]\non_dep_failure = \"block\"", said("b"));
    plan(&home, "plan.toml", head, &[fails, blocked]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("b waits for a person", SOON, || {
        let whole = json_of(&home, &["mission", "show", "gone"]);
        assignment(&whole, "b")["wait"].as_str().is_some_and(|wait| wait.contains("for you"))
    });
    let (code, words) = refused(&home, &["campaign", "rm", "shop"]);
    assert!(code == Some(4) && words.contains("ostler mission cancel gone"), "{code:?} {words}");
    ok(&home, &["mission", "cancel", "gone"]);
    until(&home, "gone", "cancelled");
    ok(&home, &["campaign", "rm", "shop"]);
    for more in [&["-y"][..], &["--dry-run"]] {
        let args: Vec<&str> = ["mission", "retry", "gone"].iter().chain(more).copied().collect();
        let (code, words) = refused(&home, &args);
        assert!(
            code == Some(3) && words.contains("the campaign shop of the mission gone was removed"),
            "{words}"
        );
        assert!(words.contains("ostler campaign add /"), "{words}");
    }
    assert_eq!(json_of(&home, &["mission", "show", "gone"])["assignments_failed"], 1, "as it was");
}

#[test]
fn a_member_that_asks_is_shown_with_the_command_that_answers_it() {
    let home = with_campaign();
    let asks = vec![json!({"ask": {"tool": "run", "input": "make mischief"}}), scenario::say("went on")];
    plan(&home, "plan.toml", "objective = \"Ask\"\nname = \"ask\"", &[agent("a", "approve = \"ask\"", asks)]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let wait = |home: &TestHome| {
        let whole = json_of(home, &["mission", "show", "ask"]);
        assignment(&whole, "a")["wait"].as_str().unwrap_or_default().to_owned()
    };
    wait::until("it asks", SOON, || wait(&home).starts_with("for you: ostler allow "));
    assert!(wait(&home).contains("make mischief"), "{}", wait(&home));
    let shown = home.run(&["mission", "show", "ask"]);
    let (screen, next) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(screen.contains("for you: ostler allow "), "{screen}");
    let answer = next.lines().find_map(|line| line.trim().strip_prefix("ostler allow ")).expect(&next);
    assert!(answer.contains("a asks: "), "{next}");
    ok(&home, &["allow", answer.split_whitespace().next().unwrap()]);
    until(&home, "ask", "completed");
}

#[test]
fn a_plan_that_git_has_no_ground_for_says_so_where_it_stands() {
    let faulty = |home: &TestHome, fault: &str| {
        for verb in ["plan", "start"] {
            let (code, words) = refused(home, &["mission", verb, "plan.toml"]);
            assert!(code == Some(2) && words.contains(fault), "{code:?} {words}");
        }
    };
    let home = with_campaign();
    let trees = [agent("a", "worktree = true", said("a"))];
    plan(&home, "plan.toml", "objective = \"x\"", &trees);
    faulty(&home, "plan.toml:5: a can have no work tree: campaign shop is no git repository");
    let home = with_repository();
    let head = "objective = \"x\"\n[merge]\ninto = \"mian\"";
    plan(&home, "plan.toml", head, &trees);
    faulty(&home, "plan.toml:3: there is no branch \"mian\" to merge into (main is checked out");
    // With everything else that is wrong, and not when that was repaired.
    plan(&home, "plan.toml", &format!("{head}\ngaet = \"true\""), &trees);
    faulty(&home, "plan.toml:3: there is no branch");
    faulty(&home, "plan.toml:4: [merge] has no key \"gaet\" (did you mean gate?)");
    plan(&home, "plan.toml", head, &trees);
    git(&home, &["branch", "mian"]);
    ok(&home, &["mission", "plan", "plan.toml"]);
}

#[test]
fn a_plan_whose_agents_could_not_run_says_so_where_it_stands() {
    let home = with_campaign();
    let text = "objective = \"x\"\n[limits]\nproviders = { scirpt = 1 }\naccounts = { wrok = 1 }\n\
                [[agents]]\nname = \"a\"\ntask = \"t\"\nprovider = \"script\"\nagent = \"nobody\"\n\
                account = \"play\"\n[[agents]]\nname = \"b\"\ntask = \"t\"\nprovider = \"script\"\naccount = \"work\"\n";
    fs::write(home.campaign_dir().join("plan.toml"), text).unwrap();
    for verb in ["plan", "start"] {
        let (code, words) = refused(&home, &["mission", verb, "plan.toml"]);
        assert_eq!(code, Some(2), "{words}");
        for part in [
            "plan.toml:3: a limit is of the provider \"scirpt\", which there is not (did you mean script?)",
            "plan.toml:4: a limit is of the account \"wrok\"",
            "plan.toml:9: a cannot run",
            "plan.toml:10: a cannot run: script has no profile play",
            "plan.toml:15: b cannot run: script has no profile work",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
    // What is added is looked at in the same way, with its lines.
    let slow = vec![json!({"sleep_ms": 600_000})];
    plan(
        &home,
        "plan.toml",
        "objective = \"x\"\nname = \"x\"\nstrategy = \"adaptive\"",
        &[agent("a", "", slow)],
    );
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let more = "[[agents]]\nname = \"c\"\nprovider = \"script\"\ntask = \"t\"\nneeds = [\"nobody\"]\n";
    fs::write(home.campaign_dir().join("more.toml"), more).unwrap();
    let (code, words) = refused(&home, &["mission", "add", "x", "more.toml"]);
    assert!(code == Some(2) && words.contains("line 5: c needs \"nobody\""), "{code:?} {words}");
}

#[test]
fn limits_of_a_provider_hold_for_agents_that_name_none_and_a_pause_says_how_it_froze() {
    let home = with_campaign();
    ok(&home, &["campaign", "set", "shop", "provider=script"]);
    let head = "objective = \"Wait\"\nname = \"wait\"\n[limits]\nproviders = { script = 1 }";
    let slow = |name: &str| {
        let steps =
            vec![json!({"usage": {"input": 40, "output": 2}}), shell(&format!("touch {name}; sleep 600"))];
        agent(name, "", steps).replace("provider = \"script\"\n", "")
    };
    plan(&home, "plan.toml", head, &[slow("a"), slow("b")]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("a works", SOON, || home.campaign_dir().join("a").exists());
    let whole = json_of(&home, &["mission", "show", "wait"]);
    assert_eq!(assignment(&whole, "b")["wait"], "for a place of script (1 of 1 run)", "{whole}");
    let used = || assignment(&json_of(&home, &["mission", "show", "wait"]), "a")["usage"]["input"].clone();
    wait::until("what runs is counted", SOON, || used() == 40);
    let paused = json_of(&home, &["mission", "pause", "wait"]);
    let how = |word: &str| paused[word].as_u64().unwrap();
    assert_eq!(how("frozen_by_freezer") + how("frozen_by_signals"), 1, "{paused}");
    assert_eq!(paused["not_yet_frozen"], json!([]), "{paused}");
    // Whoever lets it go on hears first what the rest of that may cost.
    let said = ok(&home, &["mission", "resume", "wait", "--dry-run"]);
    assert!(said.contains("goes on  a") && said.contains("price    "), "{said}");
}
