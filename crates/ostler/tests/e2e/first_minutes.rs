//! The first ten minutes of three people: a developer with agents in other terminals, whoever looks after a server, and a job.
//! What a job does is in `ci`, which runs the lines of its page.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use ostler_domain::session::{Attention, Status};
use ostler_testkit::{Proc, TestHome, scenario, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../providers/tests/recordings/history");
const DIALOGUE: &str = "5e550000-0000-4000-8000-000000000001";

/// A person with a home of their own: a toolchain, a name, and years with Claude Code.
struct Person {
    home: TestHome,
    dir: PathBuf,
}

impl Person {
    fn new() -> Person {
        let home = TestHome::new(OSTLER);
        let dir = home.path().canonicalize().unwrap().join("ann");
        for part in [".cargo/bin", ".rustup", ".claude/projects/-shop"] {
            fs::create_dir_all(dir.join(part)).unwrap();
        }
        fs::write(dir.join(".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.org # work\n")
            .unwrap();
        let recorded = fs::read_to_string(Path::new(RECORDED).join("claude/session.jsonl")).unwrap();
        let work = json!(home.campaign_dir().canonicalize().unwrap().to_string_lossy()).to_string();
        let recorded = recorded.replace("\"cwd\": \"/campaign\"", &format!("\"cwd\": {work}"));
        fs::write(dir.join(".claude/projects/-shop").join(format!("{DIALOGUE}.jsonl")), recorded).unwrap();
        let config = "[network.presets]\nrust = [\"crates.example.org\"]\n";
        fs::write(home.home.config_toml(), config).unwrap();
        Person { home, dir }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        for variable in
            ["CARGO_HOME", "RUSTUP_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CI"]
        {
            command.env_remove(variable);
        }
        command.env("HOME", &self.dir);
        command
    }

    fn types(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn at_terminal(&self, args: &[&str]) -> OnTerminal {
        OnTerminal::begin(self.command(args))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The questions of `init`, in their order, with an answer that is not the usual one where that makes a difference.
const QUESTIONS: [(&str, &str); 4] = [
    ("campaign  add ", "\n"),
    ("tools     rust", "\n"),
    ("network   model providers only; package registries @rust too?", "y\n"),
    ("history   1 session of claude-code in ~/.claude: import (read only, ", "\n"),
];

#[test]
fn a_developer_with_agents_in_other_terminals() {
    let ann = Person::new();
    // Somebody talks to Claude Code in a pane of tmux meanwhile.
    let mut outside = Command::new("bash")
        .args(["-c", "exec -a claude cat"])
        .env("TMUX_PANE", "%3")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut init = ann.at_terminal(&["init"]);
    for (question, answer) in QUESTIONS {
        init.until_shown(question);
        init.type_in(answer);
    }
    init.until_shown("1 session imported in ");
    init.until_shown("live      ");
    init.until_shown("outside of Ostler. To move one here: quit it there, ostler resume NAME");
    init.until_shown("ostler search \"…\" · ostler top · ostler open");
    assert_eq!(init.child.wait().unwrap().code(), Some(0), "{}", init.shown);
    outside.kill().unwrap();
    outside.wait().unwrap();
    let policy = text(&ann.types(&["campaign", "show", "shop"]).stdout);
    assert!(policy.contains("@rust"), "{policy}");

    // The past is there, and nobody goes on with what is open elsewhere.
    let found = text(&ann.types(&["search", "plan"]).stdout);
    assert!(found.contains("plan"), "{found}");
    let mut holder = Command::new("sh")
        .args(["-c", "read line", "claude", "--resume", DIALOGUE])
        .env("TMUX_PANE", "%3")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let refused = ann.types(&["resume", DIALOGUE]);
    let err = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{err}");
    assert!(err.contains("SECOND_WRITER") && err.contains("tmux pane %3"), "{err}");
    holder.kill().unwrap();
    holder.wait().unwrap();

    // The first run, with a question that is answered where it is asked, and a commit that needs no further words.
    let git = |args: &[&str]| ann.home.command_of(Path::new("git"), args).output().unwrap();
    assert!(git(&["init", "-q"]).status.success());
    let asks = json!({"ask": {"tool": "run", "input": "cargo add governor"}});
    let usage = json!({"usage": {"input": 1_000, "output": 50}});
    let write = json!({"write": {"path": "a.txt", "text": "one\n"}});
    let add = json!({"run": ["git", "add", "a.txt"]});
    let commit = json!({"run": ["git", "commit", "-qm", "first"]});
    let prompt = scenario::of(vec![write, asks, add, commit, usage, scenario::say("went on")]);
    let mut run = ann.at_terminal(&["run", "-p", "script", "--name", "login-limit", &prompt]);
    run.until_shown("sandbox on · no network");
    run.until_shown("[a] once");
    wait::until("keys to come one by one", wait::PATIENCE, || run.is_raw());
    run.type_in("a\r");
    run.until_shown("done in ");
    run.until_shown("(by its report)");
    assert_eq!(run.child.wait().unwrap().code(), Some(0), "{}", run.shown);
    let log = git(&["log", "--format=%an <%ae>"]);
    assert_eq!(text(&log.stdout), "Ann <ann@example.org>\n", "{}", text(&log.stderr));

    // Two more, which nobody waits for.
    for name in ["docs", "tests"] {
        let sleeps = scenario::of(vec![json!({"run": ["sleep", "300"]})]);
        let run = ann.types(&["run", "-d", "-p", "script", "--name", name, &sleeps]);
        assert!(run.status.success(), "{}", text(&run.stderr));
    }
    wait::until("both at work", wait::PATIENCE, || {
        text(&ann.types(&["ls"]).stdout).matches("run: sleep 300").count() == 2
    });
    // The lid is closed: the daemon is gone, and who comes back finds them at work.
    ann.home.kill_daemon();
    let listed = text(&ann.types(&["ls"]).stdout);
    assert!(listed.contains("docs") && listed.contains("tests"), "{listed}");
    let cost = text(&ann.types(&["cost", "--by", "day"]).stdout);
    assert!(cost.contains("DAY") && cost.contains("1.0k"), "{cost}");
}

#[test]
fn whoever_leaves_init_leaves_nothing_half_done() {
    for asked in 0..QUESTIONS.len() {
        let ann = Person::new();
        let mut init = ann.at_terminal(&["init"]);
        for (n, (question, answer)) in QUESTIONS.into_iter().enumerate().take(asked + 1) {
            init.until_shown(question);
            if n < asked {
                init.type_in(answer);
            }
        }
        Proc::of(init.child.id()).unwrap().signal(Signal::INT);
        let ended = init.child.wait().unwrap();
        assert!(ended.signal() == Some(2) || ended.code() == Some(130), "{ended:?}");
        assert!(!init.is_raw());
        let campaigns = text(&ann.types(&["campaign", "ls", "-o", "name"]).stdout);
        assert_eq!(campaigns, if asked == 0 { "" } else { "shop\n" });
        let sessions = text(&ann.types(&["ls", "-a", "-q"]).stdout);
        assert_eq!(sessions, "", "nothing was imported");
        // And the next one goes on where it was left.
        let again = ann.types(&["init", "-y"]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        assert!(text(&again.stderr).contains("1 session imported"), "{}", text(&again.stderr));
    }
}

#[test]
fn without_a_terminal_the_usual_answers_are_taken_and_said() {
    let ann = Person::new();
    let init = ann.types(&["init"]);
    let err = text(&init.stderr);
    assert_eq!(init.status.code(), Some(0), "{err}");
    for said in [
        "campaign  shop (",
        "tools     rust",
        " found in your home: readable inside",
        "network   model providers only",
        "history   1 session of claude-code in ~/.claude",
        "1 session imported in ",
    ] {
        assert!(err.contains(said), "{said}: {err}");
    }
    assert!(text(&init.stdout).contains("ostler search \"…\""), "{}", text(&init.stdout));
    let again: Value = serde_json::from_slice(&ann.types(&["init", "--json"]).stdout).unwrap();
    assert_eq!(again["history"], json!({"found": 0, "imported": 0, "failed": 0}), "{again}");
}

#[tokio::test]
async fn whoever_looks_after_a_server() {
    let home = TestHome::started(OSTLER).await;
    fs::create_dir(home.path().join("site")).unwrap();
    let file = home.path().join("fleet.toml");
    let site = home.path().join("site").display().to_string();
    let declared = format!(
        "[campaigns.site]\npath = {}\nidle_stop = \"never\"\n[campaigns.site.agents.reviewer]\nrole = \"reviewer\"\n\
         provider = \"script\"\nbudget = \"500k\"\n",
        json!(site)
    );
    fs::write(&file, declared).unwrap();
    let file = file.display().to_string();
    let said = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    let shown = said(&["campaign", "apply", &file, "--dry-run"]);
    assert!(shown.contains("+ site") && shown.contains("+ agent reviewer"), "{shown}");
    assert!(shown.contains("role  default → reviewer"), "{shown}");
    assert_eq!(said(&["agent", "ls", "-q"]), "", "it was only shown");
    said(&["campaign", "apply", &file, "-y"]);
    let agent: Value = serde_json::from_str(&said(&["agent", "show", "site/reviewer", "--json"])).unwrap();
    assert_eq!((&agent["role"], &agent["provider"]), (&json!("reviewer"), &json!("script")), "{agent}");
    let shown = said(&["campaign", "apply", &file, "-y"]);
    assert!(shown.contains("= site") && shown.contains("= agent reviewer"), "{shown}");

    // Two slots: the third is accepted, and its line says why it waits.
    said(&["config", "set", "limits.sessions", "2"]);
    said(&["daemon", "restart"]);
    let talks = scenario::of(vec![scenario::say("hello")]);
    let sleeps = scenario::of(vec![json!({"run": ["sleep", "300"]})]);
    said(&["run", "-d", "-C", "site", "--agent", "reviewer", &talks]);
    home.reaches("site/reviewer", "idleness", |view| {
        view.attention == Some(Attention::Idle) && view.turns == 1
    })
    .await;
    let shown = said(&["show", "site/reviewer"]);
    assert!(shown.contains("conversation main (open)"), "{shown}");
    said(&["run", "-d", "-C", "site", "-p", "script", "--name", "works", &sleeps]);
    home.reaches("works", "its work", |view| view.status == Status::Working).await;
    said(&["run", "-d", "-C", "site", "-p", "script", "--name", "waits", &talks]);
    let listed = said(&["ls"]);
    assert!(listed.contains("waits for a slot (2 of 2; 1st in line)"), "{listed}");
    let everywhere = said(&["ls", "--node", "all"]);
    assert!(everywhere.contains("works"), "{everywhere}");

    // Those that are idle for long are shown first, and ended when that is wanted.
    let shown = said(&["stop", "--attention", "idle", "--since", "2h", "--dry-run"]);
    assert!(shown.contains("0 sessions would be stopped"), "{shown}");
    let stopped = said(&["stop", "--attention", "idle", "-y"]);
    assert!(stopped.contains("reviewer") && !stopped.contains("works"), "{stopped}");
    home.reaches("waits", "its turn", |view| view.turns == 1).await;
    let drained = said(&["node", "drain", "-m", "kernel update"]);
    assert!(drained.contains("kernel update") || drained.contains("nothing new starts"), "{drained}");
    let restarted = said(&["daemon", "restart"]);
    assert!(restarted.contains("2 of 2 sessions"), "{restarted}");
    home.reaches("works", "its work", |view| view.status == Status::Working).await;
    said(&["node", "drain", "--end"]);
    let shown = said(&["halt", "--dry-run"]);
    assert!(shown.contains("would be killed") && shown.contains("works"), "{shown}");
    assert_eq!(
        home.run(&["kill", "--status", "WORKING"]).status.code(),
        Some(2),
        "nobody is there to be asked"
    );
    assert!(said(&["kill", "--status", "WORKING", "-y"]).contains("killed"));
}
