//! The live screen, in a terminal that is looked at: `ostler top` in tmux, by what its screen shows.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use ostler_testkit::{Proc, TestHome, scenario, skip, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal};

/// A terminal of tmux, with one program in it.
struct Tmux<'a> {
    home: &'a TestHome,
    socket: PathBuf,
    server: Option<Proc>,
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // A test may have ended while it stood still.
        self.server.iter().for_each(|server| _ = server.signal(Signal::CONT));
        self.ask(&["kill-server"]);
    }
}

impl<'a> Tmux<'a> {
    /// Runs a command in a terminal of that size, and says with which code it ended. None where there is no tmux.
    fn start(home: &'a TestHome, size: (u16, u16), line: &str) -> Option<Self> {
        let is_there = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        if !is_there.is_ok_and(|status| status.success()) {
            skip::lacking("tmux, in which the live screen is looked at, is not installed");
            return None;
        }
        // A server that ends takes its socket along, also from under the next one.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let socket = home.path().join(format!("tmux-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let mut tmux = Self { home, server: None, socket };
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let line = format!("{line}; echo left with $?; stty -a; cat");
        let new = ["new-session", "-d", "-x", &width, "-y", &height, &line];
        let started = tmux.ask(&[&["-f", "/dev/null"], &new[..]].concat());
        assert!(started.status.success(), "{started:?}");
        tmux.server = Proc::of(tmux.says("#{pid}").parse().unwrap());
        Some(tmux)
    }

    fn server(&self) -> &Proc {
        self.server.as_ref().unwrap()
    }

    fn ask(&self, args: &[&str]) -> Output {
        let socket = self.socket.to_str().unwrap();
        let mut command = self.home.command_of(Path::new("tmux"), &[&["-u", "-S", socket], args].concat());
        command.env("NO_COLOR", "1").env_remove("TMUX").output().unwrap()
    }

    fn says(&self, format: &str) -> String {
        let said = self.ask(&["display-message", "-p", format]);
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// The program that was started first, by the shell in the terminal.
    fn program(&self) -> Proc {
        let shell = Proc::of(self.says("#{pane_pid}").parse().unwrap()).unwrap();
        self.home.children_of(&shell).remove(0)
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.ask(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.ask(&[&["send-keys"], keys].concat()).status.success());
    }

    fn type_in(&self, text: &str) {
        assert!(self.ask(&["send-keys", "-l", text]).status.success());
    }

    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait::until(what, wait::PATIENCE, || {
                last = self.screen();
                holds(&last)
            });
        }));
        assert!(seen.is_ok(), "never {what}:\n{last}");
        last
    }

    fn until_shown(&self, text: &str) -> String {
        self.until(&format!("{text:?} on the screen"), |screen| screen.contains(text))
    }

    fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        assert!(self.ask(&["resize-window", "-x", &width, "-y", &height]).status.success());
    }
}

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    assert!(home.run(&["campaign", "set", "shop", "provider=script"]).status.success());
    home
}

fn begin(home: &TestHome, name: &str, steps: Vec<Value>) {
    let prompt = scenario::of(steps);
    let run = home.run(&["run", "-p", "script", "-d", "--keep", "-q", "--name", name, &prompt]);
    assert!(run.status.success(), "{run:?}");
}

fn asks() -> Vec<Value> {
    vec![json!({"ask": {"tool": "run", "input": "cargo add governor"}}), scenario::say("went on")]
}

fn top(home: &TestHome, size: (u16, u16)) -> Option<Tmux<'_>> {
    Tmux::start(home, size, &format!("{OSTLER} top"))
}

#[test]
fn who_needs_you_is_seen_and_answered_on_the_live_screen() {
    let home = shop();
    begin(&home, "busy", vec![json!({"run": ["sleep", "300"]})]);
    begin(&home, "api", asks());
    // Nothing said is the live screen, where there is something to see.
    let Some(tmux) = Tmux::start(&home, (80, 24), OSTLER) else { return };
    let screen = tmux.until_shown("waiting_approval");
    let place = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}:\n{screen}"));
    assert!(place("NEEDS YOU") < place("api") && place("api") < place("WORKING"), "{screen}");
    tmux.until_shown("run: sleep 300");
    // Who was first when nobody asked yet has the cursor still.
    tmux.press(&["Home"]);
    tmux.until_shown("Tab to answer");
    tmux.press(&["Tab"]);
    tmux.until_shown("A always in shop…");
    // Always is asked about, and left.
    wait::until("a question whether always", wait::PATIENCE, || {
        tmux.press(&["A"]);
        tmux.screen().contains("always in shop?")
    });
    tmux.press(&["Escape"]);
    tmux.until("the question gone", |screen| !screen.contains("always in shop?"));
    // A question that has only just come takes no answer: pressed until it was old enough.
    wait::until("an answer", wait::PATIENCE, || {
        // Where two were on their way, the second closed the box, and what was to close it has left the question.
        if tmux.screen().contains("Tab to answer") {
            tmux.press(&["Tab"]);
            tmux.until_shown("A always in shop…");
        }
        tmux.press(&["a"]);
        tmux.screen().contains("went on")
    });
    let shown = tmux.until_shown("allowed by");
    assert!(!shown.contains("NEEDS YOU"), "{shown}");
    let rules = String::from_utf8_lossy(&home.run(&["policy", "show", "shop"]).stdout).into_owned();
    assert!(!rules.contains("governor"), "it was allowed once: {rules}");
}

#[test]
fn a_reply_and_a_new_session_are_typed_on_the_live_screen() {
    let home = shop();
    begin(&home, "api", vec![scenario::say("ready when you are")]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("ready when you are");
    tmux.press(&["r"]);
    tmux.until_shown("┌ to api ");
    tmux.type_in("quit? no: x");
    tmux.press(&["Enter"]);
    tmux.until_shown("You said: quit? no: x");
    tmux.press(&["n"]);
    tmux.until_shown("┌ new session in shop ");
    tmux.type_in("fix the login test");
    tmux.until_shown("ostler run -d -C shop 'fix the login test'");
    tmux.press(&["Enter"]);
    tmux.until_shown("You said: fix the login test");
    // Stopping asks, and any other key is a no.
    tmux.press(&["x"]);
    tmux.until_shown("stop fix-the-login-test?");
    tmux.press(&["Enter"]);
    tmux.until("the question gone", |screen| !screen.contains("stop fix-the-login-test?"));
    tmux.press(&["x"]);
    tmux.until_shown("stop fix-the-login-test?");
    tmux.press(&["y"]);
    wait::until("its end", wait::PATIENCE, || {
        let shown = home.run(&["show", "fix-the-login-test", "-o", "json"]).stdout;
        serde_json::from_slice::<Value>(&shown).unwrap()["outcome"] == "stopped"
    });
    let live = home.run(&["show", "api", "-o", "json"]).stdout;
    assert_eq!(
        serde_json::from_slice::<Value>(&live).unwrap()["status"],
        "RUNNING",
        "nobody else was stopped"
    );
}

#[test]
fn letters_that_come_together_are_taken_together() {
    let home = shop();
    begin(&home, "api", vec![scenario::say("ready when you are")]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("ready when you are");
    tmux.press(&["r"]);
    tmux.until_shown("┌ to api ");
    let begun = Instant::now();
    tmux.type_in(&"%".repeat(LETTERS));
    tmux.until("all that was typed", |screen| screen.matches('%').count() == LETTERS);
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
}

/// At one for each look at the terminal, of which there are twenty a second, they would take longer than is waited.
const LETTERS: usize = 400;

#[test]
fn the_live_screen_fits_any_size() {
    let home = shop();
    begin(&home, "api", asks());
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("Tab to answer");
    tmux.resize(120, 40);
    let beside = |screen: &str| screen.lines().filter(|line| line.contains('│')).count() > 30;
    tmux.until("the session beside the list", beside);
    tmux.resize(50, 10);
    tmux.until("only the list", |screen| {
        screen.contains("waiting_approval") && !screen.contains("Tab to answer")
    });
    tmux.press(&["Space"]);
    tmux.until_shown("Tab to answer");
    tmux.resize(12, 2);
    tmux.resize(80, 24);
    tmux.press(&["Space"]);
    tmux.until("both again", |screen| screen.contains("NEEDS YOU") && screen.contains("Tab to answer"));
}

#[test]
fn the_live_screen_outlives_the_daemon_and_misses_nothing() {
    let home = shop();
    begin(&home, "api", vec![scenario::say("before")]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("before");
    home.kill_daemon();
    // Its keeper starts another one.
    tmux.until_shown("and is back; nothing was missed");
    assert!(home.run(&["send", "api", "after"]).status.success());
    let screen = tmux.until_shown("You said: after");
    assert_eq!(screen.matches("You said: after").count(), 1, "{screen}");
    assert_eq!(screen.matches("say     before").count(), 1, "{screen}");
    assert!(home.run(&["daemon", "stop"]).status.success());
    tmux.until_shown("offline since");
    assert!(tmux.screen().contains("You said: after"), "what was seen stays");
    assert!(home.run(&["daemon", "start"]).status.success());
    tmux.until("the daemon back", |screen| {
        !screen.contains("offline since") && screen.contains("nothing was missed")
    });
    assert!(home.run(&["send", "api", "later"]).status.success());
    tmux.until_shown("You said: later");
}

#[test]
fn who_leaves_the_live_screen_has_the_terminal_back() {
    let home = shop();
    begin(&home, "api", asks());
    let Some(tmux) = top(&home, (80, 40)) else { return };
    tmux.until_shown("waiting_approval");
    assert_eq!(tmux.says("#{alternate_on}"), "1");
    // Attaching leaves the screen to another program, whose Ctrl-C comes back here.
    tmux.press(&["Enter"]);
    tmux.until_shown("Ctrl-C leaves, the agent goes on");
    tmux.until_shown("one of these and Enter");
    tmux.press(&["C-c"]);
    tmux.until_shown("Tab to answer");
    tmux.press(&["q"]);
    let screen = tmux.until_shown("left with 0");
    tmux.until_shown(" icanon");
    assert!(!screen.contains("-icanon") && !screen.contains("-echo "), "{screen}");
    assert_eq!(tmux.says("#{alternate_on} #{cursor_flag}"), "0 1");
    let live = home.run(&["show", "api", "-o", "json"]).stdout;
    assert_eq!(
        serde_json::from_slice::<Value>(&live).unwrap()["attention"],
        "waiting_approval",
        "nothing ended"
    );
}

#[test]
fn a_live_screen_that_is_ended_gives_the_terminal_back() {
    let home = shop();
    begin(&home, "api", asks());
    for (signal, code) in [(Signal::TERM, "143"), (Signal::INT, "130")] {
        let Some(tmux) = top(&home, (80, 24)) else { return };
        tmux.until_shown("waiting_approval");
        assert!(tmux.program().signal(signal));
        tmux.until_shown(&format!("left with {code}"));
        let screen = tmux.until_shown(" icanon");
        assert!(!screen.contains("-icanon"), "{screen}");
        assert_eq!(tmux.says("#{alternate_on} #{cursor_flag}"), "0 1");
    }
}

/// However it loses it: by a signal, or with nobody left to send one.
#[test]
fn a_live_screen_ends_with_its_terminal() {
    let home = shop();
    begin(&home, "api", asks());
    for ignores in ["", "trap '' HUP; "] {
        let line = format!("{ignores}{OSTLER} top");
        let Some(tmux) = Tmux::start(&home, (80, 24), &line) else { return };
        tmux.until_shown("waiting_approval");
        let program = tmux.program();
        tmux.server().kill_and_wait();
        wait::until("its end", wait::PATIENCE, || !program.is_alive());
    }
}

#[test]
fn a_flood_does_not_keep_the_live_screen_from_listening() {
    let home = shop();
    begin(&home, "loud", vec![scenario::count("line", 1_000_000, 0)]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("say     line ");
    tmux.press(&["?"]);
    tmux.until_shown("quit; nothing ends, agents go on");
    tmux.press(&["q"]);
    tmux.until("the list again", |screen| screen.contains("WORKING"));
    tmux.press(&["q"]);
    tmux.until_shown("left with 0");
}

/// How much was recorded.
fn events(home: &TestHome) -> u64 {
    let status = home.run(&["daemon", "status", "-o", "json"]).stdout;
    serde_json::from_slice::<Value>(&status).unwrap()["last_seq"].as_u64().unwrap()
}

#[test]
fn a_terminal_that_takes_nothing_keeps_the_live_screen_from_nothing() {
    let home = shop();
    begin(&home, "loud", vec![scenario::count("line", 1_000_000, 1)]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    let newest = |screen: &str| {
        let lines =
            screen.lines().filter_map(|line| line.split("say     line ").nth(1)?.trim().parse::<u64>().ok());
        lines.max().unwrap_or(0)
    };
    tmux.until("some lines", |screen| newest(screen) > 0);
    let (program, server) = (tmux.program(), tmux.server());
    // Nobody reads what it draws, while a thousand things happen.
    let stand_still = || {
        assert!(server.signal(Signal::STOP));
        let before = events(&home);
        wait::until("a thousand events", wait::PATIENCE, || events(&home) > before + 1_000);
        before
    };
    let before = stand_still();
    assert!(server.signal(Signal::CONT));
    // Every line is an event, and few others are.
    tmux.until("the newest lines, not those in between", |screen| newest(screen) + 100 > before + 1_000);
    // And once more: who ends it then is heard all the same.
    stand_still();
    assert!(program.signal(Signal::TERM));
    wait::until("its end", wait::PATIENCE, || !program.is_alive());
    assert!(server.signal(Signal::CONT));
    tmux.until_shown("left with 143");
}

#[test]
fn where_there_is_no_terminal_or_nobody_to_see_there_is_a_list() {
    let home = shop();
    let refused = home.run(&["top"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("ostler ls -w"), "{refused:?}");
    let mut on = OnTerminal::start(&home, &[]);
    on.until_shown("No sessions yet.");
    assert_eq!(on.child.wait().unwrap().code(), Some(0));
    begin(&home, "api", asks());
    let listed = home.run(&[]);
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("api"), "{listed:?}");
}

/// tmux calls a pane in front that somebody has put behind another window: it does not ask the terminal around it.
#[test]
fn a_tmux_that_does_not_know_whether_it_is_in_front_rings() {
    let home = shop();
    assert!(home.run(&["notify", "add", "terminal", "--on", "approval"]).status.success());
    begin(&home, "night-watch", vec![scenario::say("ready")]);
    let Some(tmux) = top(&home, (80, 24)) else { return };
    tmux.until_shown("night-watch");
    let passes = tmux.ask(&["set-option", "-g", "allow-passthrough", "on"]);
    if !passes.status.success() {
        skip::lacking("this tmux hands on no notices: 3.3 does");
        return;
    }
    let mut attach =
        home.command_of(Path::new("tmux"), &["-u", "-S", tmux.socket.to_str().unwrap(), "attach"]);
    attach.env_remove("TMUX");
    let mut around = OnTerminal::begin(attach);
    around.until_shown("night-watch");
    let asked = home.run(&["send", "night-watch", &scenario::of(asks())]);
    assert!(asked.status.success(), "{asked:?}");
    around.until_shown("\u{1b}]9;night-watch asks to use run: ostler approval show ");
    around.child.kill().unwrap();
    around.child.wait().unwrap();
}
