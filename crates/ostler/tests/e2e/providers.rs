//! Providers as somebody meets them who has just installed Ostler.

use std::{env, fs, path::Path, process::Output};

use ostler_testkit::{FakeOpenai, TestHome, wait};
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal};

/// Nothing is installed here, whatever is on this machine.
const NOTHING: &str = "[providers.claude-code]\nprogram = \"/nowhere/claude\"\n[providers.codex]\n\
    program = \"/nowhere/codex\"\n[providers.openclaw]\nprogram = \"/nowhere/openclaw\"\n";

fn home(config: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    fs::write(home.home.config_toml(), config).unwrap();
    assert!(run(&home, &["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

/// Without the keys of whoever runs the tests.
fn run(home: &TestHome, args: &[&str]) -> Output {
    let mut command = home.command(args);
    command.env("HOME", home.path().join("nobody"));
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(key);
    }
    command.output().unwrap()
}

fn refused(output: &Output, code: i32, reason: &str) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    let said: Value = serde_json::from_str(err.lines().last().unwrap_or_default()).unwrap();
    assert_eq!(said["error"]["reason"], reason, "{err}");
    said["error"].clone()
}

fn provider(home: &TestHome, args: &[&str]) -> Value {
    let all: Vec<&str> = ["run", "-d", "-o", "json"].iter().chain(args).copied().collect();
    let output = run(home, &all);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["provider"].clone()
}

#[test]
fn whoever_names_none_gets_the_only_one_that_is_ready_and_never_the_script() {
    let home = home(NOTHING);
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    let why = said["why"].as_str().unwrap();
    for lacks in ["claude-code lacks its program", "codex lacks its program", "openai-api lacks a key"] {
        assert!(why.contains(lacks), "{why}");
    }
    let hints = said["hint"].to_string();
    // What is installed would not be taken where another program is configured.
    let unset = "ostler config unset providers.claude-code.program";
    assert!(hints.contains(unset) && hints.contains("-p script"), "{hints}");
    let tried = run(&home, &["provider", "test", "claude-code"]);
    let tried = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(tried.contains(unset) && !tried.contains("npm install"), "{tried}");
    assert_eq!(provider(&home, &["-p", "script", "hi"]), "script", "whoever names it gets it");

    // One that is ready, but for a model that whoever asks may name.
    let api = format!("{NOTHING}[providers.openai-api]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    fs::write(home.home.config_toml(), &api).unwrap();
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    assert!(said["why"].as_str().unwrap().contains("openai-api lacks the name of its model"), "{said}");
    assert_eq!(provider(&home, &["-m", "small", "hi"]), "openai-api");
    fs::write(home.home.config_toml(), format!("{api}model = \"small\"\n")).unwrap();
    assert_eq!(provider(&home, &["hi"]), "openai-api");

    // Several: which, is for a person to say.
    let two = format!("{api}model = \"small\"\n[providers.\"acp:mine\"]\nprogram = \"/bin/true\"\n");
    fs::write(home.home.config_toml(), &two).unwrap();
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 2, "INVALID_ARGUMENT");
    assert_eq!(said["why"], "there are openai-api, acp:mine");

    // The machine's, and before it the campaign's, with the campaign's model.
    fs::write(home.home.config_toml(), format!("provider = \"openai-api\"\n{two}")).unwrap();
    assert_eq!(provider(&home, &["hi"]), "openai-api");
    assert!(run(&home, &["campaign", "set", "shop", "provider=script", "model=tale"]).status.success());
    assert_eq!(provider(&home, &["hi"]), "script");
}

/// A program that says this version, whatever it is asked.
fn program(home: &TestHome, name: &str, version: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = home.path().join(name);
    fs::write(&path, format!("#!/bin/sh\nsleep 0.7\necho {version}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_program_that_is_too_old_is_said_to_be_and_all_are_looked_at_at_once() {
    let home = home("");
    let of = |name: &str, version: &str| {
        format!(
            "[providers.{name}]\nprogram = \"{}\"\n",
            program(&home, &name.replace(['"', ':'], ""), version)
        )
    };
    let config = [of("claude-code", "99.0.0"), of("codex", "0.0.1"), of("openclaw", "99.0.0")];
    let more = ["a", "b", "c"].map(|one| of(&format!("\"acp:{one}\""), "1.0.0"));
    fs::write(home.home.config_toml(), config.concat() + &more.concat()).unwrap();
    let began = std::time::Instant::now();
    let output = run(&home, &["provider", "ls"]);
    assert!(began.elapsed().as_millis() < 6 * 700, "one after the other: {:?}", began.elapsed());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("too old: 0.0.1, needs ") && !out.contains("not found"), "{out}");
    assert!(err.contains("npm install") && err.contains("codex lacks a newer program"), "{err}");
    fs::write(home.home.config_toml(), config.concat()).unwrap();
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    assert!(said["why"].as_str().unwrap().contains("codex lacks a newer program (too old: 0.0.1"), "{said}");
    let said = refused(&run(&home, &["run", "-p", "codex", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    assert!(said["message"].as_str().unwrap().contains("0.0.1 is too old"), "{said}");
}

#[test]
fn what_is_installed_after_the_daemon_was_started_is_found_where_whoever_asks_finds_it() {
    let home = home("[providers.\"acp:mine\"]\nprogram = \"agent-of-a-test\"\n");
    let problem = |search: Option<&Path>| {
        let mut command = home.command(&["provider", "show", "acp:mine", "-o", "json"]);
        if let Some(dir) = search {
            command.env("PATH", env::join_paths([dir, Path::new("/usr/bin")]).unwrap());
        }
        let output = command.output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["problem"].clone()
    };
    assert!(problem(None).as_str().unwrap().contains("was not found"));
    program(&home, "agent-of-a-test", "1.0.0");
    assert!(problem(None).is_string(), "it is in no place that anybody named");
    assert_eq!(problem(Some(home.path())), Value::Null);
    assert_eq!(problem(None), Value::Null, "what was found stays found, as for a session that starts again");
}

#[test]
fn nothing_said_is_refused_and_so_is_a_model_without_a_name() {
    let home = home(NOTHING);
    let empty = |args: &[&str], message: &str| {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        let said = refused(&run(&home, &args), 2, "INVALID_ARGUMENT");
        assert_eq!(said["message"], message, "{args:?}");
        assert!(said["hint"][0]["command"].as_str().is_some_and(|hint| hint.contains("…")), "{said}");
    };
    empty(&["run", "-p", "script", "-d", ""], "the prompt is empty");
    empty(&["run", "-p", "script", "--keep", " "], "the prompt is empty");
    empty(&["run", "-p", "script", "-m", "", "hi"], "the name of the model is empty");
    assert_eq!(provider(&home, &["-p", "script", "--name", "one", "hi"]), "script");
    empty(&["send", "one", ""], "the message is empty");
}

#[test]
fn whoever_names_one_that_is_not_there_is_told_which_are_and_how_each_gets_its_key() {
    let home = home(&format!(
        "{NOTHING}[providers.\"acp:mine\"]\nprogram = \"/bin/true\"\n\
         [providers.openai-api]\nmodel = \"m\"\napi_key_env = \"MYKEY\"\n"
    ));
    let of = |name: &str, reason: &str| {
        refused(&run(&home, &["run", "-p", name, "-d", "hi", "-o", "json"]), 6, reason)
    };
    let said = of("nope", "PROVIDER_UNKNOWN");
    let why = said["why"].as_str().unwrap();
    assert!(why.contains("codex") && why.contains("acp:mine"), "{why}");
    let said = of("acp:x", "PROVIDER_MISSING");
    let mut hints: Vec<String> =
        said["hint"].as_array().unwrap().iter().map(|hint| hint["command"].to_string()).collect();
    let all = hints.len();
    hints.dedup();
    assert_eq!(hints.len(), all, "{said}");
    let said = of("openai-api", "PROVIDER_AUTH");
    assert_eq!(said["hint"][0]["command"], "export MYKEY=…", "{said}");

    // A key that is not where it is said to be is lacking before anybody tries to use it.
    let file = home.path().join("key");
    let config =
        format!("{NOTHING}[providers.openai-api]\nmodel = \"m\"\napi_key_file = \"{}\"\n", file.display());
    fs::write(home.home.config_toml(), config).unwrap();
    let lacks = || {
        let output = run(&home, &["provider", "ls", "-o", "json"]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = said["providers"].as_array().unwrap();
        all.iter().find(|one| one["name"] == "openai-api").unwrap()["lacks"].clone()
    };
    assert_eq!(lacks(), "its key");
    fs::write(file, "sk-1\n").unwrap();
    assert_eq!(lacks(), Value::Null);
}

#[test]
fn one_that_has_no_login_of_its_own_is_not_started_without_a_key() {
    let home = home("");
    let gemini = program(&home, "gemini", "0.61.0");
    let of_gemini = format!("{NOTHING}[providers.\"acp:gemini\"]\nprogram = \"{gemini}\"\n");
    fs::write(home.home.config_toml(), &of_gemini).unwrap();
    for (name, variable) in [("acp:gemini", "GEMINI_API_KEY"), ("openai-api", "OPENAI_API_KEY")] {
        let of = |flags: &[&str]| {
            run(&home, &[&["run", "-p", name, "-m", "m", "hi", "-o", "json"], flags].concat())
        };
        for flags in [&["-d"][..], &[]] {
            let said = refused(&of(flags), 6, "PROVIDER_AUTH");
            assert!(said["why"].as_str().unwrap().contains(variable), "{said}");
            assert_eq!(said["hint"][0]["command"], format!("export {variable}=…"), "{said}");
        }
    }
    assert_eq!(answer(&home, &["ls", "-a", "-o", "json"])["sessions"], json!([]), "nothing was started");
    // Whoever says that its model is somewhere else, or gives it variables of its own, knows better.
    for more in ["base_url = \"http://127.0.0.1:9\"\n", "env = { GOOGLE_API_KEY = \"x\" }\n"] {
        fs::write(home.home.config_toml(), format!("{of_gemini}{more}")).unwrap();
        assert_eq!(provider(&home, &["-p", "acp:gemini", "-m", "m", "hi"]), "acp:gemini", "{more}");
    }
}

#[test]
fn a_login_that_cannot_be_taken_over_comes_with_what_else_there_is() {
    let home = home("");
    let codex = program(&home, "codex", "99.0.0");
    fs::write(home.home.config_toml(), format!("[providers.codex]\nprogram = \"{codex}\"\n")).unwrap();
    let nowhere = home.path().join("nowhere").display().to_string();
    let nothing = home.path().join("nothing").display().to_string();
    fs::write(&nothing, "{}").unwrap();
    for from in [nowhere, nothing] {
        let said = run(&home, &["provider", "login", "codex", "--from", &from, "-o", "json"]);
        let said = refused(&said, 6, "PROVIDER_AUTH");
        let commands: Vec<_> = said["hint"].as_array().unwrap().iter().map(|hint| &hint["command"]).collect();
        assert_eq!(
            commands,
            ["ostler provider login codex --from PATH", "ostler provider login codex"],
            "{said}"
        );
        assert!(said["hint"][0].to_string().contains("auth.json"), "{said}");
    }
}

#[test]
fn a_program_logs_in_on_the_terminal_with_no_key_of_anybody_and_with_its_telemetry_off() {
    use std::os::unix::fs::PermissionsExt;
    let home = home("");
    let claude = home.path().join("claude");
    let said = home.path().join("said");
    let script = r#"#!/bin/sh
[ "$1" = --version ] && echo 99.0.0 && exit
{ echo "$@"; env; } > SAID
printf 'Paste code here > '; read code
echo '{"claudeAiOauth":{"accessToken":"at-1","refreshToken":"rt-1"}}' > "$CLAUDE_CONFIG_DIR/.credentials.json"
"#;
    fs::write(&claude, script.replace("SAID", &said.display().to_string())).unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(
        home.home.config_toml(),
        format!("[providers.claude-code]\nprogram = \"{}\"\n", claude.display()),
    )
    .unwrap();
    let mut command = home.command(&["provider", "login", "claude-code", "--", "--elsewhere"]);
    command.env("ANTHROPIC_API_KEY", "sk-1").env("HOME", home.path().join("nobody"));
    let mut person = OnTerminal::begin(command);
    person.until_shown("Paste code here > ");
    person.type_in("1234\n");
    person.until_shown("claude-code is logged in");
    assert!(person.child.wait().unwrap().success(), "{}", person.shown);
    let said = fs::read_to_string(said).unwrap();
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("auth login --elsewhere"));
    assert!(!said.contains("ANTHROPIC_API_KEY"), "{said}");
    for off in ["DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1"] {
        assert!(said.contains(off), "{off}: {said}");
    }
}

#[test]
fn what_is_no_login_is_not_taken_over_whatever_key_is_configured() {
    let home = home("");
    let codex = program(&home, "codex", "99.0.0");
    let config = format!(
        "[providers.codex]\nprogram = \"{codex}\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"KEY\"\n"
    );
    fs::write(home.home.config_toml(), config).unwrap();
    let file = home.path().join("auth.json");
    let from = file.display().to_string();
    let login = |text: &str| {
        fs::write(&file, text).unwrap();
        run(&home, &["provider", "login", "codex", "--from", &from])
    };
    for garbage in ["no login", "{}"] {
        let output = login(garbage);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{garbage}: {err}");
        assert!(err.contains("auth.json cannot be read as a login of it"), "{err}");
    }
    let gone = run(&home, &["provider", "login", "codex", "--from", "/nowhere/auth.json"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("cannot be taken over"), "{gone:?}");
    assert!(!home.home.state().join("credentials/codex").exists(), "nothing is left of what did not come");
    let output = login(r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-dummy-of-a-test"}"#);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        out.contains("codex is logged in   but sessions do not use it: they call http://127.0.0.1:9/v1"),
        "{out}"
    );
    let shown = answer(&home, &["provider", "show", "codex", "-o", "json"]);
    assert_eq!(shown["is_logged_in"], true, "{shown}");
}

fn answer(home: &TestHome, args: &[&str]) -> Value {
    let output = run(home, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn init_goes_to_its_end_without_a_terminal_and_names_a_command_that_works() {
    let home = TestHome::new(OSTLER);
    fs::write(home.home.config_toml(), NOTHING).unwrap();
    fs::create_dir_all(home.campaign_dir().join(".git")).unwrap();
    let said = answer(&home, &["init", "-o", "json"]);
    assert_eq!((&said["campaign"]["name"], &said["sandbox_ok"]), (&json!("shop"), &json!(true)), "{said}");
    assert_eq!((&said["ready"], &said["next"]), (&json!(false), &json!("ostler run -p script \"…\"")));
    assert!(run(&home, &["run", "-p", "script", "hello"]).status.success());
    // One that is ready is what a plain run takes.
    let api =
        format!("{NOTHING}[providers.openai-api]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n");
    fs::write(home.home.config_toml(), api).unwrap();
    let output = run(&home, &["init", "-y"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        out.trim(),
        "Ready.    ostler run \"…\" · ostler search \"…\" · ostler top · ostler open",
        "{err}"
    );
    assert!(
        err.contains("found     openai-api (none is sent)") && err.contains("not found: claude-code"),
        "{err}"
    );
    assert!(err.contains("campaign  shop"), "{err}");
    assert_eq!(provider(&home, &["hi"]), "openai-api");
}

#[test]
fn the_endpoint_says_which_models_there_are_with_the_key_of_whoever_asks() {
    let model = FakeOpenai::start();
    let home = home(&format!(
        "{NOTHING}[providers.openai-api]\nbase_url = \"{}\"\napi_key_env = \"MODELS_KEY\"\n",
        model.base_url()
    ));
    let mut command = home.command(&["provider", "show", "openai-api", "-o", "json"]);
    let output = command.env("MODELS_KEY", "sk-dummy-of-a-test").output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["models"], &said["models_from"]),
        (&json!(["fake-model"]), &json!("endpoint")),
        "{said}"
    );
    // Nobody has the key, nobody is asked.
    let said = answer(&home, &["provider", "show", "openai-api", "-o", "json"]);
    assert_eq!(said["models_from"], "nobody");
    assert!(said["models_why_not"].as_str().unwrap().contains("MODELS_KEY"), "{said}");
    let said = answer(&home, &["provider", "show", "claude-code", "-o", "json"]);
    assert_eq!(said["models_from"], "price_table");
}

#[test]
fn trials_of_providers_fill_no_list() {
    let home = home(NOTHING);
    let said = answer(&home, &["provider", "test", "script", "-o", "json"]);
    let session = said["session"].as_str().unwrap();
    wait::until("the trial to end", wait::PATIENCE, || {
        answer(&home, &["show", session, "-o", "json"])["outcome"] == "stopped"
    });
    assert_eq!(answer(&home, &["ls", "-a", "-o", "json"])["sessions"], json!([]));
    let trials = answer(&home, &["ls", "-a", "--ticket", "ostler:trial", "-o", "json"]);
    assert_eq!(trials["sessions"][0]["id"], session);
    for prompt in ["one", "two"] {
        provider(&home, &["-p", "script", prompt]);
    }
    let listed = run(&home, &["ls", "-a", "--limit", "1"]);
    let err = String::from_utf8_lossy(&listed.stderr);
    assert!(err.contains("1 of 2 shown"), "it is not counted either: {err}");
}

#[test]
fn what_works_is_told_and_an_agent_that_costs_nothing_is_asked() {
    let home = home(NOTHING);
    let can = json!({"resume": false, "fork": false, "steer": false, "interrupt": true, "approvals": true,
        "partial_output": true, "model_change": false});
    let said = answer(&home, &["provider", "test", "script", "-o", "json"]);
    assert_eq!((&said["can"], &said["net_mode"], said.get("asked")), (&can, &json!("none"), None), "{said}");
    let said = answer(&home, &["provider", "test", "script", "--ask", "-o", "json"]);
    let asked = &said["asked"];
    assert_eq!((&asked["answer"], &asked["tool_call"]), (&json!("ready"), &json!("yes")), "{said}");
    assert_eq!((&said["ok"], &asked["approval"]), (&json!(true), &json!("yes")), "{said}");
    let output = run(&home, &["provider", "test", "script", "--ask"]);
    let out = String::from_utf8_lossy(&output.stdout);
    for line in [
        "✓ script  ready in its sandbox after ",
        "approvals yes",
        "yes: it asked for leave",
        "key      none is needed",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert_eq!(
        answer(&home, &["provider", "show", "script", "-o", "json"])["usage_sources"],
        json!(["report"])
    );

    // Whoever looks at the machine is told the same, and who needs what does not work.
    assert!(run(&home, &["agent", "add", "tester", "-C", "shop", "-p", "codex"]).status.success());
    let output = run(&home, &["doctor"]);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    for part in ["built in, needs no key, answered in ", "1 agent uses it", "table of 20", "store ", "tools"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let quick = run(&home, &["doctor", "--quick"]);
    assert!(
        quick.status.success() && !String::from_utf8_lossy(&quick.stdout).contains("answered"),
        "{quick:?}"
    );
}

#[test]
fn what_policy_says_of_paths_is_what_the_sandbox_does() {
    let home = home(NOTHING);
    let root = home.campaign_dir();
    let beside = home.path().canonicalize().unwrap().join("beside");
    fs::create_dir_all(root.join(".vscode")).unwrap();
    fs::create_dir_all(&beside).unwrap();
    for (path, text) in [(root.join("a.txt"), "x"), (root.join(".env"), "S=1"), (beside.join("b"), "x")] {
        fs::write(path, text).unwrap();
    }
    fs::write(root.join(".vscode/tasks.json"), "{}").unwrap();
    let in_root = |name: &str| root.join(name).display().to_string();
    for (path, read, write) in [
        (in_root("a.txt"), true, true),
        (in_root(".env"), false, false),
        (in_root(".vscode/tasks.json"), true, false),
        ("/usr/bin/env".to_owned(), true, false),
        (beside.join("b").display().to_string(), false, false),
        ("/etc/shadow".to_owned(), false, false),
    ] {
        for (wish, allowed, script) in [
            ("read", read, format!("[ -s '{path}' ] && cat '{path}'")),
            ("write", write, format!(": >> '{path}'")),
        ] {
            let said = answer(&home, &["policy", "test", "path", wish, &path, "-C", "shop", "-o", "json"]);
            let done =
                run(&home, &["exec", "-C", "shop", "--unlisted", "--", "sh", "-c", &script]).status.success();
            assert_eq!(done, allowed, "the sandbox: {wish} {path}");
            let verdict = said["verdict"].as_str().unwrap();
            assert!(verdict == "partly" || (verdict == "allowed") == allowed, "{wish} {path}: {said}");
        }
    }
    let said = answer(&home, &["policy", "test", "command", "-C", "shop", "-o", "json", "--", "make"]);
    assert_eq!(
        (&said["verdict"], &said["grant"]),
        (&json!("denied"), &json!("ostler campaign set shop commands+=make"))
    );
    let said = answer(&home, &["policy", "test", "net", "files.example", "-C", "shop", "-o", "json"]);
    assert_eq!(said["grant"], "ostler campaign set shop net.allow+=files.example");
    let shown = answer(&home, &["policy", "show", "shop", "-o", "json"]);
    assert!(
        shown["settings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["key"] == "net.mode" && row["origin"] == "default")
    );
}
