//! `ostler exec`: a command in the sandbox, with the caller's input, output, signals and exit code.

use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
};

use ostler_testkit::{TestHome, process::Proc, wait};
use rustix::process::Signal;

use crate::OSTLER;

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    std::fs::write(home.campaign_dir().join(".env"), "TOKEN=canary\n").unwrap();
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn streams_and_exit_codes_are_the_command_s() {
    let home = shop();
    let script = "cat; cat .env; echo oops >&2; exit 7";
    let mut running = home
        .command(&["exec", "--unlisted", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    running.stdin.take().unwrap().write_all(b"said\n").unwrap();
    let output = running.wait_with_output().unwrap();
    let (out, err) = text(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(7), "said\n"), "{err}");
    assert!(err.contains("oops") && err.contains("Permission denied") && !err.contains("canary"), "{err}");
    let killed = home.run(&["exec", "--unlisted", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
}

#[test]
fn only_listed_commands_run_and_every_decision_is_kept() {
    let home = shop();
    let denied = home.run(&["exec", "--", "sh", "-c", "touch made"]);
    let (_, err) = text(&denied);
    assert_eq!(denied.status.code(), Some(5));
    assert!(err.contains("commands+=sh") && err.contains("--unlisted"), "{err}");
    assert!(!home.campaign_dir().join("made").exists());
    assert!(home.run(&["campaign", "set", "shop", "commands+=sh"]).status.success());
    assert!(home.run(&["exec", "--", "sh", "-c", "touch made"]).status.success());
    assert!(home.campaign_dir().join("made").exists());
    assert_eq!(home.run(&["exec", "--", "git", "-c", "alias.x=!sh", "x"]).status.code(), Some(5));
    let events = home.run(&["events", "--kind", "denied", "-o", "jsonl"]);
    let (events, _) = text(&events);
    assert!(events.contains(r#""kind":"command","target":"sh -c touch made""#), "{events}");
    assert!(events.contains(r#""grant":"ostler campaign set shop commands+=sh""#), "{events}");
    assert_eq!(events.lines().count(), 2, "{events}");
    let audit = std::fs::read_to_string(home.home.state().join("audit.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |decision: &str, object: &str| {
        let fits = |line: &&serde_json::Value| {
            line["decision"] == decision && line["object"].as_str().is_some_and(|text| text.contains(object))
        };
        lines.iter().any(|line| fits(&line))
    };
    assert!(
        said("denied", "touch made") && said("allowed", "touch made") && said("denied", "alias.x"),
        "{audit}"
    );
    assert!(said("allowed", "commands+=sh"), "a change of the policy too: {audit}");
}

/// A command that says who it is and then sleeps.
fn sleeper(home: &TestHome) -> (Child, Proc) {
    let child =
        home.command(&["exec", "--unlisted", "--", "sleep", "300.25"]).stdout(Stdio::null()).spawn().unwrap();
    let inside = wait::answer("the command", wait::PATIENCE, || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let below = |pid: &u32| {
            let words = ostler_testkit::process::command_line(*pid);
            words.first().is_some_and(|name| name.ends_with("sleep"))
                && words.last().is_some_and(|word| word == "300.25")
                && descends(*pid, child.id())
        };
        pids.into_iter().find(below).and_then(Proc::of)
    });
    (child, inside)
}

fn descends(pid: u32, from: u32) -> bool {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(20).any(|pid| pid == from)
}

#[test]
fn signals_reach_the_command_and_a_killed_caller_takes_it_along() {
    let home = shop();
    let (mut child, inside) = sleeper(&home);
    Proc::of(child.id()).unwrap().signal(Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!inside.is_alive());

    let (mut child, inside) = sleeper(&home);
    child.kill().unwrap();
    child.wait().unwrap();
    wait::until("its end", wait::PATIENCE, || !inside.is_alive());
}

#[test]
fn a_path_in_no_campaign_is_refused_with_what_would_add_it() {
    let home = shop();
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let output = home.command(&["exec", "--", "git", "status"]).current_dir(&elsewhere).output().unwrap();
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(3));
    assert!(err.contains("ostler campaign add"), "{err}");
}

#[test]
fn a_command_starts_where_its_campaign_was_named() {
    let home = shop();
    let sub = home.campaign_dir().join("sub");
    std::fs::create_dir(&sub).unwrap();
    std::fs::write(sub.join("x.sh"), "#!/bin/sh\npwd\n").unwrap();
    std::fs::set_permissions(sub.join("x.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (sub, at) = (sub.canonicalize().unwrap(), sub.to_str().unwrap().to_owned());
    let run = |words: &[&str]| home.command(words).current_dir(&elsewhere).output().unwrap();
    let there = run(&["exec", "-C", &at, "--unlisted", "--", "./x.sh"]);
    let (out, err) = text(&there);
    assert_eq!(out.trim_end(), sub.to_str().unwrap(), "{err}");
    let from_root = run(&["exec", "-C", "shop", "--unlisted", "--", "sub/x.sh"]);
    let (out, err) = text(&from_root);
    assert_eq!(out.trim_end(), sub.parent().unwrap().to_str().unwrap(), "{err}");
    let nowhere = run(&["exec", "-C", "shop", "--unlisted", "--", "./x.sh"]);
    let (_, err) = text(&nowhere);
    assert_eq!(nowhere.status.code(), Some(2), "{err}");
    assert!(err.contains("would start in"), "{err}");
}

/// The near side of a terminal, and a command on the far side of it.
pub(crate) struct OnTerminal {
    near: std::fs::File,
    pub(crate) child: Child,
    pub(crate) shown: String,
}

impl OnTerminal {
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> OnTerminal {
        OnTerminal::begin(home.command(args))
    }

    pub(crate) fn begin(mut command: Command) -> OnTerminal {
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let far = ioctl_tiocgptpeer(&near, flags).unwrap();
        rustix::termios::tcsetwinsize(&near, size(40, 132)).unwrap();
        let stdio = || Stdio::from(far.try_clone().unwrap());
        let child = command
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .env("TERM", "vt100")
            .env("NO_COLOR", "1")
            .spawn()
            .unwrap();
        rustix::fs::fcntl_setfl(&near, rustix::fs::OFlags::NONBLOCK).unwrap();
        OnTerminal { near: near.into(), child, shown: String::new() }
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.near.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn until_shown(&mut self, text: &str) {
        let (near, shown) = (&mut self.near, &mut self.shown);
        wait::until(&format!("{text:?} on the screen"), wait::PATIENCE, || {
            let mut bytes = [0; 4096];
            if let Ok(len) = std::io::Read::read(near, &mut bytes) {
                shown.push_str(&String::from_utf8_lossy(&bytes[..len]));
            }
            shown.contains(text)
        });
    }

    /// Whether a text has been shown by now.
    pub(crate) fn has_shown(&mut self, text: &str) -> bool {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = std::io::Read::read(&mut self.near, &mut bytes) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
        self.shown.contains(text)
    }

    /// Waits for a text, or for the end; true if the text came first.
    pub(crate) fn shows(&mut self, text: &str) -> bool {
        let is_over = |child: &mut Child| child.try_wait().unwrap().is_some();
        wait::answer(&format!("{text:?} on the screen, or the end"), wait::PATIENCE, || {
            // Looked at first: what it has said before its end is read below.
            let was_over = is_over(&mut self.child);
            if self.has_shown(text) { Some(true) } else { was_over.then_some(false) }
        })
    }

    pub(crate) fn is_raw(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.near).unwrap().local_modes;
        !modes.contains(rustix::termios::LocalModes::ICANON)
    }
}

fn size(rows: u16, columns: u16) -> rustix::termios::Winsize {
    rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[test]
fn a_command_may_have_a_terminal_of_its_own() {
    let home = shop();
    let script = "tty; stty size; echo $TERM; trap 'echo caught' INT
        echo ready; read line; echo \"got $line\"; read line
        until [ \"$(stty size)\" = '20 70' ]; do sleep 0.02; done; stty size; exit 9";
    let mut on = OnTerminal::start(&home, &["exec", "--tty", "--unlisted", "--", "bash", "-c", script]);
    on.until_shown("ready");
    assert!(on.is_raw());
    assert!(on.shown.contains("/dev/pts/0\r\n40 132\r\nvt100\r\n"), "{:?}", on.shown);
    // Ctrl-C reaches the command, and nobody else.
    on.type_in("\u{3}");
    on.until_shown("caught");
    on.type_in("words\n");
    on.until_shown("got words");
    let runner = Proc::of(on.child.id()).unwrap();
    rustix::termios::tcsetwinsize(&on.near, size(20, 70)).unwrap();
    runner.signal(Signal::WINCH);
    on.type_in("\n");
    on.until_shown("20 70");
    assert_eq!(on.child.wait().unwrap().code(), Some(9));
    assert!(!on.is_raw());
}

#[test]
fn a_terminal_is_given_back_even_by_somebody_who_is_killed() {
    let home = shop();
    let mut on =
        OnTerminal::start(&home, &["exec", "--tty", "--unlisted", "--", "sh", "-c", "echo up; sleep 1000"]);
    on.until_shown("up");
    assert!(on.is_raw());
    on.child.kill().unwrap();
    on.child.wait().unwrap();
    wait::until("the terminal to be as it was", wait::PATIENCE, || !on.is_raw());

    let refused = home.run(&["exec", "--tty", "--", "git", "status"]);
    let (_, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(err.contains("no terminal"), "{err}");
}

#[test]
fn a_traced_command_is_told_what_was_kept_back_and_what_would_give_it() {
    let home = shop();
    let elsewhere = home.path().canonicalize().unwrap().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("header.h"), "int x;\n").unwrap();
    let header = elsewhere.join("header.h").display().to_string();
    let script = format!("cat {header} .env /no/such/file; echo out; exit 3");
    let traced = home.run(&["sandbox", "trace", "-o", "json", "--", "sh", "-c", &script]);
    let (out, err) = text(&traced);
    assert_eq!(traced.status.code(), Some(3), "{err}");
    let (said, report) = out.trim_end().split_once('\n').unwrap();
    assert_eq!(said, "out");
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    let denied: Vec<(&str, &str)> = report["denied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["target"].as_str().unwrap(), one["why"].as_str().unwrap()))
        .collect();
    let env = home.campaign_dir().join(".env").display().to_string();
    assert!(denied.contains(&(&env, "hidden")), "{report}");
    // What lies below /tmp is the sandbox's own, and tests live there where nothing else is said.
    if !header.starts_with("/tmp/") && !header.starts_with("/var/tmp/") {
        assert!(denied.contains(&(&header, "absent")), "{report}");
        assert_eq!(report["suggested"][0]["setting"], format!("read+={header}"));
    }
    assert!(!denied.iter().any(|(target, _)| target.starts_with("/no/such")), "{report}");

    let again = home.run(&["sandbox", "suggest"]);
    let named = home.run(&["sandbox", "suggest", "-C", "shop"]);
    assert_eq!(text(&named), text(&again));
    let (out, err) = text(&again);
    assert!(again.status.success() && out.contains("traced   sh -c") && out.contains("hidden"), "{out}{err}");
    assert!(out.contains("unseen"), "{out}");
}

#[test]
fn what_a_terminal_says_to_the_group_is_said_to_the_command_alone() {
    use std::os::unix::process::CommandExt;
    let home = shop();
    let script = "trap 'mkdir -p new/.git; echo caught; exit 3' INT; echo up; while :; do sleep 0.1; done";
    let mut child = home
        .command(&["exec", "--unlisted", "--", "sh", "-c", script])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(3), "caught\n"), "{stderr}");
    assert!(stderr.contains("may make programs outside run code: new/.git"), "{stderr}");
}

#[test]
fn a_command_that_stopped_itself_can_be_ended() {
    let home = shop();
    let (mut child, inside) = sleeper(&home);
    inside.signal(Signal::STOP);
    Proc::of(child.id()).unwrap().signal(Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_command_has_no_more_memory_than_its_campaign_allows() {
    let home = shop();
    assert!(home.run(&["campaign", "set", "shop", "limits.memory=64MiB"]).status.success());
    let hungry = [
        "exec",
        "--unlisted",
        "--",
        "sh",
        "-c",
        "head -c 200000000 /dev/zero | tail -c 190000000 | sleep 300",
    ];
    let output = home.run(&hungry);
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr}");
    assert!(stderr.contains("the limit is 67108864"), "{stderr}");
}
