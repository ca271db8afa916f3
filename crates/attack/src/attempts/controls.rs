//! What must work inside.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};

use super::program;
use crate::attempt::{Attempt, Said, Setting, within};
use crate::scene::Scene;

fn all(scene: &Scene, name: &str, lines: &[&[&str]]) -> Said {
    let mut last = Said::Untried("nothing was run".to_owned());
    for words in lines {
        last = program(name, words, &scene.scratch(""));
        if !matches!(last, Said::Got(_)) {
            break;
        }
    }
    last
}

pub(super) const ALL: &[Attempt] = &[
    within(Setting::Control, "control/git", "commit, branch and read the log", |scene| {
        let identity = ["-c", "user.name=agent", "-c", "user.email=agent@localhost"];
        let commit = [&identity[..], &["commit", "-q", "--allow-empty", "-m", "Work"]].concat();
        all(scene, "git", &[&commit, &["branch", "-f", "topic"], &["log", "--oneline", "-1"]])
    }),
    within(Setting::Control, "control/cc", "compile and run a program", |scene| {
        let _ = std::fs::write(scene.scratch("a.c"), "int main(void) { return 0; }\n");
        match program("cc", &["-o", "a", "a.c"], &scene.scratch("")) {
            Said::Got(_) => program("./a", &[], &scene.scratch("")),
            other => other,
        }
    }),
    within(Setting::Control, "control/cargo", "build and run a Rust program", |scene| {
        let made = program(
            "cargo",
            &["init", "-q", "--vcs", "none", "--name", "hello", "hello"],
            &scene.scratch(""),
        );
        match made {
            Said::Got(_) => program("cargo", &["run", "-q", "--offline"], &scene.scratch("hello")),
            other => other,
        }
    }),
    within(Setting::Control, "control/make", "run make", |scene| {
        let _ = std::fs::write(scene.scratch("Makefile"), "all:\n\t@echo made\n");
        program("make", &["-j4"], &scene.scratch(""))
    }),
    within(Setting::Control, "control/python", "run python", |scene| {
        program("python3", &["-c", "print(6 * 7)"], &scene.scratch(""))
    }),
    within(Setting::Control, "control/node", "run node", |scene| {
        program("node", &["-e", "console.log(6 * 7)"], &scene.scratch(""))
    }),
    within(Setting::Control, "control/processes", "have 200 processes at once", |_| {
        let started: Result<Vec<Child>, _> =
            (0..200).map(|_| Command::new("sleep").arg("0.5").spawn()).collect();
        match started {
            Ok(mut children) => {
                let ended = children.iter_mut().filter_map(|child| child.wait().ok());
                Said::Got(format!("{} processes", ended.filter(|status| status.success()).count()))
            }
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    within(Setting::Control, "control/server", "serve on its own loopback", |_| {
        let serve = || -> std::io::Result<usize> {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let mut client = TcpStream::connect(listener.local_addr()?)?;
            listener.accept()?.0.write_all(b"hello")?;
            client.read(&mut [0; 8])
        };
        match serve() {
            Ok(count) => Said::Got(format!("{count} bytes")),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
];
