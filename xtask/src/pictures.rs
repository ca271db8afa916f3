//! `cargo xtask pictures`: plays the demo, and takes pictures of what the dashboard and the live screen show of it.
//!
//! Nothing in them is made by hand: what is not there any more is not in the next ones.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    cargo::root,
    program::{Profile, answer, build, command, succeed},
    test::examples,
};

/// Besides the mission: who asks, who is busy, who failed.
const SESSIONS: &[(&str, &str, &str)] = &[
    (
        "api-auth",
        "ask",
        r#"{"steps":[{"think":"the login route has no limit yet"},{"read":"README.md"},{"usage":{"input":5200,"cache_read":41000,"output":900}},{"ask":{"tool":"run","input":"cargo add governor"}},{"say":"Login attempts are limited to 5 a minute."}]}"#,
    ),
    (
        "dash-tests",
        "ask",
        r#"{"steps":[{"usage":{"input":900,"output":120}},{"ask":{"tool":"question","input":"Keep the old snapshot form? (keep it | drop it)"}}]}"#,
    ),
    ("migrate", "policy", r#"{"steps":[{"usage":{"input":2100,"output":300}},{"run":["sleep","600"]}]}"#),
    (
        "flaky-hunt",
        "policy",
        r#"{"steps":[{"usage":{"input":3300,"output":410}},{"run":["sh","-c","echo 1 failed; exit 101"]},{"exit":101}]}"#,
    ),
];

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    if !options.is_empty() {
        return Err(Failure::Usage("pictures takes nothing".to_owned()));
    }
    let programs = build(Profile::Release, &["ostler", "ostler-recording"])?;
    let ostler = programs.join("ostler");
    let said = answer(command(ostler.clone()).args(["demo", "--keep"]))?;
    let kept = said.split_once("export OSTLER_HOME=").and_then(|(_, rest)| rest.split_whitespace().next());
    let kept = kept.ok_or_else(|| Failure::Failed(format!("the demo kept nothing:\n{said}")))?;
    let demo = Demo { ostler, home: PathBuf::from(kept) };
    demo.take(&programs)
}

/// What the demo left; removed with this.
struct Demo {
    ostler: PathBuf,
    home: PathBuf,
}

impl Demo {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.ostler);
        command.args(words).env("OSTLER_HOME", &self.home).current_dir(self.root().join("shop"));
        command
    }

    fn root(&self) -> &Path {
        self.home.parent().unwrap_or(&self.home)
    }

    fn take(&self, programs: &Path) -> Result<(), Failure> {
        for (name, approve, steps) in SESSIONS {
            let words = ["run", "-d", "-q", "-p", "script", "--name", name, "--approve", approve, steps];
            answer(&mut self.command(&words))?;
        }
        let docs = root().join("docs");
        let link = answer(&mut self.command(&["open", "--print"]))?;
        let scripts = self.root().join("scripts");
        examples::scripts(&scripts, &["browser.mjs", "pictures.mjs"]).map_err(Failure::Failed)?;
        succeed(Command::new("node").arg(scripts.join("pictures.mjs")).arg(link.trim()).arg(&docs))?;
        let mut top = command(programs.join("ostler-recording"));
        succeed(top.arg("--top").arg(&self.ostler).arg(&self.home).arg(docs.join("top.svg")))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Whatever went wrong is said already; what is left of this would only be in the way.
        let _ = self.command(&["daemon", "stop", "--stop-sessions"]).output();
        let _ = fs::remove_dir_all(self.root());
    }
}
