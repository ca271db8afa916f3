//! Lists against a real daemon: one set of filters and of flags for all of them.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed with {:?}: {err}", output.status.code());
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let out = ok(home, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

/// Two agents that say and use the same, one of them more.
fn with_two_agents() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    ok(&home, &["price", "set", "script", "input=1000000", "output=1000000"]);
    for (name, ticket, output) in [("api", "gh:1", 2), ("web", "gh:2", 5)] {
        let prompt = scenario::of(vec![
            json!({"usage": {"output": output}}),
            scenario::say(&format!("the needle of {name}")),
        ]);
        ok(&home, &["run", "-p", "script", "-q", "--name", name, "--ticket", ticket, &prompt]);
    }
    home
}

#[test]
fn one_set_of_filters_fits_all_lists() {
    let home = with_two_agents();
    for filter in [&["--agent", "api"][..], &["--ticket", "gh:1"], &["--chain", "api"]] {
        let with = |verb: &[&str]| -> Vec<String> {
            verb.iter().chain(filter).map(|word| (*word).to_owned()).collect()
        };
        let args = |words: &[String]| -> Value {
            json_of(&home, &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let listed = args(&with(&["ls", "-a", "-o", "json"]));
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{filter:?}");
        let id = listed["sessions"][0]["id"].clone();
        let events = with(&["events", "-o", "jsonl"]);
        let events = ok(&home, &events.iter().map(String::as_str).collect::<Vec<_>>());
        let of: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(of.len() > 5 && of.iter().all(|event| event["session"] == id), "{filter:?}: {events}");
        let hits = args(&with(&["search", "needle", "--kind", "completion", "-o", "json"]));
        assert_eq!(hits["hits"].as_array().unwrap().len(), 1, "{filter:?}: {hits}");
        let cost = args(&with(&["cost", "-o", "json"]));
        assert_eq!((&cost["total"]["cost"], &cost["rows"][0]["key"]), (&json!("2.00"), &id), "{filter:?}");
    }
    let dear = json_of(&home, &["ls", "-a", "--min-cost", "3", "-o", "json"]);
    assert_eq!(
        (dear["sessions"].as_array().unwrap().len(), &dear["sessions"][0]["name"]),
        (1, &json!("web"))
    );
    assert_eq!(json_of(&home, &["cost", "--outcome", "oom", "-o", "json"])["rows"], json!([]));
    assert_eq!(json_of(&home, &["cost", "--by", "ticket", "-o", "json"])["rows"][0]["name"], "gh:2");
    assert_eq!(json_of(&home, &["cost", "--by", "campaign", "-o", "json"])["rows"][0]["name"], "shop");
}

#[test]
fn a_price_that_is_set_later_is_what_a_filter_goes_by() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let prompt = scenario::of(vec![json!({"usage": {"input": 1_000_000}}), scenario::say("x")]);
    ok(&home, &["run", "-d", "-q", "-p", "script", "--name", "pricey", &prompt]);
    ok(&home, &["run", "-d", "-q", "-p", "script", "--name", "free", "hello"]);
    wait::until("both are idle", wait::PATIENCE, || {
        let listed = json_of(&home, &["ls", "--attention", "idle", "-o", "json"]);
        listed["sessions"].as_array().unwrap().len() == 2
    });
    let names = |args: &[&str]| -> Vec<Value> {
        let args = [args, &["--min-cost", "3usd", "-o", "json"]].concat();
        let listed = json_of(&home, &args)["sessions"].as_array().unwrap().clone();
        listed.iter().map(|session| session["name"].clone()).collect()
    };
    assert_eq!(names(&["ls"]), Vec::<Value>::new());
    ok(&home, &["price", "set", "script", "input=3", "output=15"]);
    assert_eq!(names(&["ls"]), ["pricey"]);
    let total = json_of(&home, &["cost", "--min-cost", "3", "-o", "json"])["total"]["cost"].clone();
    assert_eq!(total, "3.00");
    ok(&home, &["stop", "--min-cost", "3usd", "-y"]);
    assert_eq!(names(&["ls", "-a"]), ["pricey"]);
    assert_eq!(json_of(&home, &["show", "pricey", "-o", "json"])["status"], "STOPPED");
    assert_eq!(json_of(&home, &["show", "free", "-o", "json"])["status"], "RUNNING");
}

#[test]
fn who_follows_some_sessions_hears_of_no_others() {
    let home = with_two_agents();
    let mut watch = home
        .command(&["events", "-f", "--after", "0", "--agent", "later", "-o", "jsonl"])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    ok(&home, &["run", "-p", "script", "-q", "--name", "other", "hello"]);
    ok(&home, &["run", "-p", "script", "-q", "--name", "later", "hello"]);
    let id = json_of(&home, &["show", "later", "-o", "json"])["id"].clone();
    loop {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(event["session"], id, "{event}");
        if event["kind"] == "SESSION_STOPPED" {
            break;
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn columns_heads_and_limits_are_asked_for_alike() {
    let home = with_two_agents();
    assert_eq!(
        ok(&home, &["ls", "-a", "--columns", "agent,ticket"]),
        "AGENT TICKET\nweb   gh:2\napi   gh:1\n"
    );
    assert_eq!(ok(&home, &["ls", "-a", "--columns", "agent", "--no-headers", "--limit", "1"]), "web\n");
    assert_eq!(ok(&home, &["campaign", "ls", "--columns", "name", "--no-headers"]), "shop\n");
    assert_eq!(ok(&home, &["price", "ls", "script", "--columns", "input", "--no-headers"]), "1000000.00\n");
    assert_eq!(
        ok(&home, &["cost", "--by", "agent", "--columns", "agent,cost", "--no-headers"]),
        "web   $5.00\napi   $2.00\nTOTAL $7.00\n"
    );
    // Also where nothing is listed.
    for args in [&["approval", "ls", "-a"][..], &["ls", "-a"]] {
        let wrong = home.run(&[args, &["--columns", "colour"]].concat());
        let err = String::from_utf8(wrong.stderr).unwrap();
        assert_eq!(wrong.status.code(), Some(2), "{err}");
        assert!(err.contains("there is no column \"colour\"") && err.contains("agent"), "{err}");
    }
    assert_eq!(home.run(&["ls", "--columns", "id", "-o", "json"]).status.code(), Some(2));
    assert_eq!(home.run(&["ls", "-w"]).status.code(), Some(2), "nothing is drawn into a pipe");
    // What is alone means the list of sessions.
    assert_eq!(ok(&home, &["-o", "json"]), ok(&home, &["ls", "-o", "json"]));
}

#[test]
fn who_needs_you_is_among_the_few_that_are_shown() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let asks = scenario::of(vec![json!({"ask": {"tool": "run", "input": "git push"}})]);
    ok(&home, &["run", "-p", "script", "-d", "--keep", "--name", "waits", &asks]);
    wait::until("it asks", wait::PATIENCE, || {
        !json_of(&home, &["approval", "-o", "json"])["approvals"].as_array().unwrap().is_empty()
    });
    for name in ["one", "two", "three"] {
        ok(&home, &["run", "-p", "script", "-q", "--name", name, "hello"]);
    }
    for args in [&["ls", "-a"][..], &["ls"]] {
        let few: Vec<&str> = args.iter().copied().chain(["--limit", "1"]).collect();
        let output = home.run(&few);
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(out.contains("waits") && out.lines().count() == 2, "{args:?}: {out}");
        assert!(err.contains("1 needs you"), "{args:?}: {err}");
    }
    let two = ok(&home, &["ls", "-a", "--limit", "2", "--columns", "agent", "--no-headers"]);
    assert_eq!(two, "waits\nthree\n");
}

#[test]
fn everybody_whom_ls_counts_is_named_with_what_lets_them_go_on() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let calm = home.run(&["approval"]);
    assert!(String::from_utf8(calm.stderr).unwrap().contains("Nobody is waiting for you."));
    let dear = scenario::of(vec![json!({"usage": {"output": 200}}), json!({"sleep_ms": 60_000})]);
    ok(&home, &["run", "-p", "script", "-d", "--budget", "100", "--name", "held", &dear]);
    ok(&home, &["run", "-p", "script", "-d", "--name", "broken", r#"{"steps":[{"sya":1}]}"#]);
    let needs = |count: usize| {
        wait::until("they need somebody", wait::PATIENCE, || {
            let rows = json_of(&home, &["ls", "--needs-me", "-o", "json"]);
            rows["sessions"].as_array().unwrap().len() == count
        });
    };
    needs(2);
    let short = |name: &str| {
        let id = json_of(&home, &["show", name, "-o", "json"])["id"].as_str().unwrap().to_owned();
        id[id.len() - 5..].to_lowercase()
    };
    let listed = home.run(&["approval"]);
    let (out, err) = (String::from_utf8(listed.stdout).unwrap(), String::from_utf8(listed.stderr).unwrap());
    assert!(!err.contains("Nobody"), "{err}");
    for (name, cure) in [
        ("held", format!("(ostler resume {} --budget 400)", short("held"))),
        ("broken", format!("(ostler resume {})", short("broken"))),
    ] {
        let line = out.lines().find(|line| line.contains(&format!("also waiting: {name} ")));
        assert!(line.is_some_and(|line| line.contains(&cure)), "{name}: {out}");
    }
    let ls = String::from_utf8(home.run(&["ls"]).stderr).unwrap();
    assert!(ls.contains("2 need you (ostler approval)"), "{ls}");
    let asks = scenario::of(vec![json!({"ask": {"tool": "question", "input": "this or that?"}})]);
    ok(&home, &["run", "-p", "script", "-d", "--name", "asks", &asks]);
    needs(3);
    let all = json_of(&home, &["approval", "-o", "json"]);
    assert_eq!(all["approvals"].as_array().unwrap().len(), 1, "{all}");
    let also = all["also_waiting"].as_array().unwrap();
    let told: Vec<_> = also.iter().map(|one| (one["agent"].as_str(), one["attention"].as_str())).collect();
    assert!(told.contains(&(Some("held"), Some("budget_hold"))), "{all}");
    assert!(told.contains(&(Some("broken"), Some("turn_failed"))) && told.len() == 2, "{all}");
}

#[test]
fn a_filter_takes_several_words_and_refuses_what_cannot_be() {
    let home = with_two_agents();
    let names = |filter: &[&str]| -> Vec<String> {
        let args: Vec<&str> = ["ls", "-a", "-o", "json"].iter().chain(filter).copied().collect();
        let listed = json_of(&home, &args);
        let rows = listed["sessions"].as_array().unwrap();
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    for both in [
        &["--provider", "codex,script"][..],
        &["--agent", "api,web"],
        &["--ticket", "gh:1,gh:2"],
        &["--chain", "api,web"],
        &["--model", "other,script"],
        &["--status", "stopped,failed"],
        &["-C", "shop,shop"],
    ] {
        assert_eq!(names(both), ["web", "api"], "{both:?}");
    }
    assert_eq!(names(&["--provider", "codex,claude-code"]), [] as [&str; 0]);
    assert_eq!(names(&["--agent", "api,nobody"]), ["api"]);
    for verb in ["ls", "events", "cost"] {
        let wrong = home.run(&[verb, "--provider", "script,claud-code"]);
        let err = String::from_utf8(wrong.stderr).unwrap();
        assert_eq!(wrong.status.code(), Some(6), "{verb}: {err}");
        assert!(err.contains("there is no provider \"claud-code\", the nearest is claude-code"), "{err}");
    }
    for (flag, wrong, meant) in [
        ("--status", "workng", "WORKING"),
        ("--attention", "budget", "budget_hold"),
        ("--outcome", "crash", "crashed"),
    ] {
        let refused = home.run(&["ls", flag, wrong]);
        let err = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{err}");
        assert!(err.contains(&format!("the nearest is {meant}")), "{flag}: {err}");
    }
    assert_eq!(home.run(&["stop", "--provider", ",", "-y"]).status.code(), Some(2));
    assert_eq!(home.run(&["stop", "--agent", "", "-y"]).status.code(), Some(2));
}

#[test]
fn a_day_of_money_is_the_same_wherever_it_is_looked_at() {
    let home = with_two_agents();
    let day = |zone: &str| -> (Value, String) {
        let cost = home.command(&["cost", "-o", "json"]).env("TZ", zone).output().unwrap();
        let cost: Value = serde_json::from_slice(&cost.stdout).unwrap();
        let ls = home.command(&["ls", "-a"]).env("TZ", zone).output().unwrap();
        (cost, String::from_utf8(ls.stderr).unwrap())
    };
    let (here, _) = day("UTC");
    let midnight = here["since"].as_str().unwrap();
    assert!(midnight.ends_with("T00:00:00.000000Z"), "{midnight}");
    for zone in ["UTC-14", "UTC+11"] {
        let (cost, ls) = day(zone);
        assert_eq!((&cost["since"], &cost["total"]["cost"]), (&here["since"], &json!("7.00")), "{zone}");
        assert!(ls.contains("today (UTC) $7.00"), "{zone}: {ls}");
    }
}

#[test]
fn messages_that_wait_are_listed_until_they_are_delivered() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let asks =
        scenario::of(vec![json!({"ask": {"tool": "run", "input": "git push"}}), scenario::say("done")]);
    ok(&home, &["run", "-p", "script", "-d", "--keep", "--name", "busy", &asks]);
    ok(&home, &["send", "busy", "and then this"]);
    let waiting = json_of(&home, &["queue", "-o", "json"]);
    let rows = waiting["messages"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["text"]), (1, &json!("and then this")), "{waiting}");
    let id = rows[0]["id"].as_str().unwrap();
    let short = id[id.len() - 5..].to_lowercase();
    assert!(ok(&home, &["message", "show", &short]).contains("and then this"));
    assert!(ok(&home, &["show", &short]).contains("and then this"));
    let table = ok(&home, &["message", "ls", "busy", "-a", "--columns", "to,receipt", "--no-headers"]);
    assert_eq!(table.lines().next(), Some("busy accepted"), "{table}");
}

#[test]
fn questions_in_sql_are_answered_in_every_form_and_change_nothing() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let used = scenario::of(vec![json!({"usage": {"input": 7, "output": 3}}), scenario::say("done")]);
    ok(&home, &["run", "-p", "script", "-q", "--name", "one", &used]);
    let asked = "SELECT campaign, provider, input, NULL AS missing FROM v1_sessions";
    let row = json!({"campaign": "shop", "provider": "script", "input": 7, "missing": null});
    assert_eq!(
        json_of(&home, &["sql", asked, "--json"]),
        json!({"columns": ["campaign", "provider", "input", "missing"], "rows": [row], "cut": false})
    );
    assert_eq!(json_of(&home, &["sql", asked, "-o", "jsonl"]), row);
    assert_eq!(ok(&home, &["sql", "-o", "csv", asked]), "campaign,provider,input,missing\nshop,script,7,\n");
    assert!(ok(&home, &["sql", asked]).contains("shop"));
    for comment in ["-- of each campaign = one row\n", "--x\n", "/* all */ "] {
        let commented = format!("{comment}{asked}");
        assert_eq!(json_of(&home, &["sql", &commented, "--json"]), json_of(&home, &["sql", asked, "--json"]));
    }
    assert_eq!(home.run(&["sql", "--no-such-option"]).status.code(), Some(2));
    let file = home.path().join("question.sql");
    std::fs::write(&file, "SELECT count(*) AS n FROM v1_events").unwrap();
    let file = file.to_string_lossy();
    let count = || json_of(&home, &["sql", "-f", &file, "--json"])["rows"][0]["n"].clone();
    let before = count();
    for (sql, code) in [("DELETE FROM session", 5), ("SELECT body FROM log_event", 5), ("SELEC 1", 2)] {
        assert_eq!(home.run(&["sql", sql]).status.code(), Some(code), "{sql}");
    }
    assert_eq!(count(), before);
    let cut = home.run(&["sql", "SELECT seq FROM v1_events", "--limit", "2", "-o", "csv", "--no-headers"]);
    assert_eq!(String::from_utf8(cut.stdout).unwrap(), "1\n2\n");
    assert!(String::from_utf8_lossy(&cut.stderr).contains("cut after 2 rows"));
    assert!(ok(&home, &["sql", "--views"]).contains("v1_tool_calls"));
    assert_eq!(home.run(&["ls", "-o", "csv"]).status.code(), Some(2), "csv is of rows that were asked for");
}

#[test]
fn what_had_no_price_costs_the_same_in_every_list() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let used = scenario::of(vec![json!({"usage": {"output": 3}}), scenario::say("done")]);
    let run = || ok(&home, &["run", "-p", "script", "-q", &used]);
    run();
    let prices = json_of(&home, &["price", "set", "script", "input=1000000", "output=1000000", "--json"]);
    assert_eq!(prices["models"]["script"]["input"], "1000000.00", "{prices}");
    run();
    assert_eq!(json_of(&home, &["cost", "-o", "json"])["total"]["cost"], "6.00");
    let footer = || String::from_utf8(home.run(&["ls", "-a"]).stderr).unwrap();
    assert!(footer().contains("today (UTC) $6.00"), "{}", footer());
    ok(&home, &["campaign", "set", "shop", "budget=25usd/day"]);
    assert!(footer().contains("today (UTC) $6.00 of $25.00"), "{}", footer());
    let told = String::from_utf8(home.run(&["cost"]).stderr).unwrap();
    assert!(told.contains("$3.00 of $25.00") && told.contains("with them $6.00"), "{told}");
}

/// Every list that there is, found by the pages of the manual: `ostler-api-token-ls.1` is one.
fn all_lists(home: &TestHome) -> Vec<Vec<String>> {
    let dir = home.path().join("man");
    ok(home, &["man", "--dir", dir.to_str().unwrap()]);
    let mut lists: Vec<Vec<String>> = std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|page| {
            let name = page.unwrap().file_name().into_string().unwrap();
            let words: Vec<String> = name.strip_suffix(".1")?.split('-').skip(1).map(str::to_owned).collect();
            (words.last()? == "ls").then_some(words)
        })
        .collect();
    lists.sort();
    lists
}

/// Something in every list.
fn with_everything() -> TestHome {
    let home = with_two_agents();
    let dir = home.campaign_dir();
    for args in [
        &["init", "-q"][..],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a", "--allow-empty"],
    ] {
        let done = std::process::Command::new("git").args(args).current_dir(&dir).status().unwrap();
        assert!(done.success());
    }
    std::fs::write(
        dir.join("plan.toml"),
        "name = \"m\"\nobjective = \"o\"\n\n[[agents]]\nname = \"a\"\nprovider = \"script\"\ntask = \"hello\"\n",
    )
    .unwrap();
    let asks = scenario::of(vec![json!({"ask": {"tool": "run", "input": "git push"}})]);
    for args in [
        &["agent", "add", "ann"][..],
        &["ticket", "add", "a thing to do"],
        &["notify", "add", "desktop"],
        &["api", "token", "add", "ci"],
        &["share", "api", "--access", "observe"],
        &["hub", "node", "add", "far"],
        &["hub", "viewer", "add", "ann"],
        &["node", "add", "build2", "ssh://build2"],
        &["mission", "start", "plan.toml", "-d"],
        &["run", "-q", "--worktree", "hello"],
        &["run", "-q", "-d", "--name", "asks", &asks],
        &["retention", "hold", "api"],
    ] {
        ok(&home, args);
    }
    wait::until("it asks", wait::PATIENCE, || {
        !json_of(&home, &["approval", "-o", "json"])["approvals"].as_array().unwrap().is_empty()
    });
    // Nothing else changes from here on.
    wait::until("the mission to be over", wait::PATIENCE, || {
        json_of(&home, &["mission", "ls", "-a", "-o", "json"])["missions"][0]["status"] == "completed"
    });
    home
}

#[test]
fn every_list_has_every_form() {
    let home = with_everything();
    let lists = all_lists(&home);
    assert!(lists.len() >= 17 && lists.contains(&vec!["ls".to_owned()]), "{lists:?}");
    for list in &lists {
        let words: Vec<&str> = list.iter().map(String::as_str).collect();
        // Those too that have ended, were delivered, are over.
        let asked: Vec<&str> = match &words[..] {
            ["message", "ls"] => vec!["message", "ls", "-a", "api"],
            ["conversation" | "mission", "ls"] | ["ls"] => [&words[..], &["-a"]].concat(),
            words => words.to_vec(),
        };
        let said = |more: &[&str]| ok(&home, &[&asked[..], more].concat());
        let whole: Value = serde_json::from_str(&said(&["-o", "json"])).unwrap();
        let mut all = whole.as_object().unwrap().iter().filter(|(key, _)| *key != "also_waiting");
        // Prices are what `price update` reads, by model.
        let rows = all.find_map(|(_, value)| match value {
            Value::Array(rows) => Some(rows.len()),
            Value::Object(models) => Some(models.len()),
            _ => None,
        });
        let rows = rows.unwrap_or_else(|| panic!("{words:?}: no rows in {whole}"));
        assert!(rows > 0, "{words:?}: nothing to list");
        let lines = said(&["-o", "jsonl"]);
        let each: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(each.len(), rows, "{words:?}: {lines}");
        assert!(each.iter().all(Value::is_object), "{words:?}: {lines}");
        for names in [said(&["-o", "name"]), said(&["-q"])] {
            assert_eq!(names.lines().count(), rows, "{words:?}: {names}");
            let is_one = |name: &str| !name.is_empty() && !name.starts_with('{') && !name.contains("  ");
            assert!(names.lines().all(is_one), "{words:?}: {names}");
        }
        for table in [said(&["-o", "table"]), said(&["-o", "wide"])] {
            assert!(table.lines().count() > rows, "{words:?}: {table}");
        }
        let without = said(&["--no-headers", "--limit", "1"]);
        assert!(without.lines().count() < said(&[]).lines().count(), "{words:?}: {without}");
        let wrong: Vec<&str> = asked.iter().copied().chain(["--columns", "colour"]).collect();
        let refused = home.run(&wrong);
        let err = String::from_utf8(refused.stderr).unwrap();
        assert!(err.contains("there is no column \"colour\""), "{words:?}: {err}");
    }
}
