//! The dashboard in a real browser.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ostler_client::{Client, CreateMission, CreateSession};
use ostler_domain::{
    history::{Import, News, Source, Store},
    session::{Approve, Attention},
};
use ostler_testkit::{TestHome, programs, scenario, skip};
use serde_json::{Value, json};

use crate::OSTLER;

/// The scripts, beside what they import.
pub(crate) struct Browser {
    place: tempfile::TempDir,
}

impl Browser {
    /// None where there is no browser, which is said.
    pub(crate) fn new(who: &str) -> Option<Browser> {
        let modules = programs::example("browser", who)?;
        if !Path::new("/usr/bin/chromium").exists() {
            skip::lacking(&format!("{who} needs chromium; `cargo xtask test --only system` installs it"));
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(modules, place.path().join("node_modules")).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/browser");
        for script in fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()) {
            if script.extension().is_some_and(|extension| extension == "mjs") {
                fs::copy(&script, place.path().join(script.file_name().unwrap())).unwrap();
            }
        }
        Some(Browser { place })
    }

    /// Runs a script, and returns what it said.
    pub(crate) fn run(&self, script: &str, words: &[&str]) -> String {
        let ran = Command::new("node").arg(self.place.path().join(script)).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
        said
    }
}

/// Where pictures are kept, so that somebody can look at them.
pub(crate) fn pictures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

async fn link(client: &Client) -> String {
    client.open_http("").await.unwrap().link
}

async fn asking(home: &TestHome, client: &Client, steps: Vec<Value>) -> String {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Ask;
    wanted.initial_message = Some(scenario::of(steps));
    let session = client.create_session(wanted).await.unwrap().id.to_string();
    let asks = |view: &ostler_domain::session::View| {
        matches!(view.attention, Some(Attention::WaitingApproval | Attention::WaitingInput))
    };
    home.reaches(&session, "it to ask", asks).await;
    session
}

#[tokio::test]
async fn a_browser_sees_and_steers_what_agents_do() {
    let Some(browser) = Browser::new("the dashboard in a browser") else { return };
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = vec![
        scenario::say("I look around"),
        json!({"usage": {"input": 500, "output": 200}}),
        json!({"ask": {"tool": "run", "input": "git push origin main"}}),
        scenario::say("done"),
    ];
    let session = asking(&home, &client, steps).await;
    // However long a name is, no column is pushed out of sight.
    let mut long = CreateSession::new("shop", "script");
    long.name = Some("a-name-that-goes-on-without-a-place-to-break-it-until-it-ends".parse().unwrap());
    client.create_session(long).await.unwrap();
    let plan = "name = \"greetings\"\nobjective = \"Two greetings\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = \"greet\"\n[[agents]]\nname = \"b\"\ntask = \"greet\"\nneeds = [\"a\"]\n";
    let mission = CreateMission {
        campaign: "shop".to_owned(),
        plan: plan.to_owned(),
        starts: true,
        ..CreateMission::default()
    };
    let mission = client.create_mission(mission).await.unwrap().id.to_string();
    let (ann, bob) = (link(&client).await, link(&client).await);
    let pictures = pictures("dashboard");
    let said = browser.run("dashboard.mjs", &[&ann, &bob, &session, &mission, pictures.to_str().unwrap()]);
    assert!(said.starts_with("allowed by "), "{said}");
    assert!(pictures.join("mission-360.png").exists());
}

#[tokio::test]
async fn buttons_work_while_agents_are_busy() {
    let Some(browser) = Browser::new("steering in a browser") else { return };
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    // Something happens many times a second, and now and then something fails.
    let round = json!([{"say": "tick {i}"}, {"run": ["false"]}, {"sleep_ms": 40}]);
    let busy = scenario::of(vec![json!({"repeat": 5000, "every_ms": 40, "steps": round})]);
    let busy = home.session(&client, &busy).await.id.to_string();
    let asks = asking(&home, &client, vec![json!({"ask": {"tool": "run", "input": "make all"}})]).await;
    let question =
        vec![json!({"ask": {"tool": "question", "input": "Keep the old form? (keep it | drop it)"}})];
    let question = asking(&home, &client, question).await;
    let pictures = pictures("steering");
    let words = [&link(&client).await, &busy, &asks, &question, pictures.to_str().unwrap()];
    browser.run("steering.mjs", &words);
}

#[tokio::test]
async fn empty_pages_say_what_to_do_and_all_is_read_without_scripts() {
    let Some(browser) = Browser::new("empty pages in a browser") else { return };
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.remove_campaign("shop").await.unwrap();
    let pictures = pictures("empty");
    browser.run("empty.mjs", &[&link(&client).await, &link(&client).await, pictures.to_str().unwrap()]);
}

/// What a process holds for itself.
fn megabytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The most that a process holds while something is done.
fn most_meanwhile<T>(pid: u32, something: impl FnOnce() -> T) -> (u64, T) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(megabytes(pid));
                std::thread::sleep(Duration::from_millis(50));
            }
            most
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(something));
        is_over.store(true, Ordering::Relaxed);
        (watch.join().unwrap(), done.unwrap_or_else(|why| std::panic::resume_unwind(why)))
    })
}

/// Ten thousand sessions and one of a hundred megabytes, as a history that was imported: a page holds a window of it, and
/// the daemon no more than it sends.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_and_a_long_transcript_stay_small() {
    const SESSIONS: usize = 10_000;
    const LONG_BYTES: usize = 100_000_000;
    const TEXT_BYTES: usize = 2_000_000;
    const DAEMON_MB: u64 = 200;
    let Some(browser) = Browser::new("long pages in a browser") else { return };
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = home.path().join("outside/.claude");
    let project = dir.join("projects/-campaign");
    fs::create_dir_all(&project).unwrap();
    let id = |n: usize| format!("5e550000-0000-4000-8000-{n:012}");
    let said = |id: &str, n: usize, text: &str| {
        json!({
            "type": "user", "sessionId": id, "cwd": "/campaign", "isSidechain": false,
            "timestamp": format!("2026-11-{:02}T19:{:02}:{:02}.000Z", 1 + n / 3_600 % 15, n / 60 % 60, n % 60),
            "message": {"role": "user", "content": text},
        })
    };
    for n in 1..SESSIONS {
        let text = format!("{}\n", said(&id(n), n, &format!("number {n}")));
        fs::write(project.join(format!("{}.jsonl", id(n))), text).unwrap();
    }
    let long = id(SESSIONS);
    let mut file = std::io::BufWriter::new(fs::File::create(project.join(format!("{long}.jsonl"))).unwrap());
    let mut paragraph = String::new();
    while paragraph.len() < 12_000 {
        write!(paragraph, "what was said in line {} ", paragraph.len()).unwrap();
    }
    let messages = (LONG_BYTES - TEXT_BYTES) / paragraph.len();
    for n in 0..messages {
        writeln!(file, "{}", said(&long, n, &format!("{n} {paragraph}"))).unwrap();
    }
    let text = paragraph.repeat(TEXT_BYTES / paragraph.len());
    writeln!(file, "{}", said(&long, messages, &text)).unwrap();
    file.flush().unwrap();
    let store = Store { source: Source::Claude, dir: dir.to_string_lossy().into_owned() };
    let mut news = client.import_history(&Import { stores: vec![store], ..Import::default() }).await.unwrap();
    while let Some(news) = news.next().await {
        if let News::Done(_) = news.unwrap() {
            break;
        }
    }
    let long = client.session(&long).await.unwrap().id.to_string();
    // Another daemon: what importing took is not what showing takes.
    home.kill_daemon();
    let client = home.start().await;
    let daemon = home.daemon().unwrap().pid;
    let before = megabytes(daemon);
    let words = [link(&client).await, SESSIONS.to_string(), long, text.len().to_string()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (most, said) = most_meanwhile(daemon, || browser.run("large.mjs", &words));
    println!("{said}daemon: {before} MB before, {most} MB at most");
    assert!(most < DAEMON_MB, "the daemon takes {most} MB, {before} MB before:\n{said}");
    for part in ["list: ", "transcript: ", "one text: "] {
        assert!(said.contains(part), "{said}");
    }
}

/// An agent that says much, looked at for a while: what is older than the page has room for leaves it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_followed_for_long_stays_small() {
    const DAEMON_MB: u64 = 200;
    let Some(browser) = Browser::new("a busy page in a browser") else { return };
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let round = json!([{"say": format!("tick {{i}} {}", "and on it goes ".repeat(200))}]);
    let busy = scenario::of(vec![json!({"repeat": 100_000, "every_ms": 30, "steps": round})]);
    let busy = home.session(&client, &busy).await.id.to_string();
    let (link, daemon) = (link(&client).await, home.daemon().unwrap().pid);
    let (most, said) = most_meanwhile(daemon, || browser.run("busy.mjs", &[&link, &busy]));
    println!("{said}daemon: {most} MB at most");
    assert!(most < DAEMON_MB, "the daemon takes {most} MB:\n{said}");
}
