//! Tool steps: they really happen.

use std::{
    fs,
    io::{self, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, Stdio},
    sync::mpsc::Sender,
    thread,
};

use super::play::Wake;

/// How much of a tool's output is reported.
const OUTPUT_BYTES: u64 = 64 * 1024;

/// What a tool did.
pub(super) struct Outcome {
    pub(super) ok: bool,
    pub(super) exit: Option<i32>,
    pub(super) output: String,
}

impl Outcome {
    fn failed(error: &io::Error) -> Self {
        Self { ok: false, exit: None, output: error.to_string() }
    }
}

pub(super) fn write(path: &str, text: &str) -> Outcome {
    match fs::write(path, text) {
        Ok(()) => Outcome { ok: true, exit: None, output: format!("{} bytes written", text.len()) },
        Err(error) => Outcome::failed(&error),
    }
}

pub(super) fn read(path: &str) -> Outcome {
    let mut bytes = Vec::new();
    match fs::File::open(path).and_then(|file| file.take(OUTPUT_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Outcome { ok: true, exit: None, output: String::from_utf8_lossy(&bytes).into_owned() },
        Err(error) => Outcome::failed(&error),
    }
}

/// A command that is running; its end comes as [`Wake::Tool`].
pub(super) struct Running {
    pid: u32,
}

impl Running {
    pub(super) fn start(argv: &[String], call: u64, wake: Sender<Wake>) -> Result<Self, Outcome> {
        let child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that an interrupt ends all of it and not us.
            .process_group(0)
            .spawn()
            .map_err(|error| Outcome {
                ok: false,
                exit: Some(127),
                output: format!("{}: {error}", argv[0]),
            })?;
        let pid = child.id();
        thread::spawn(move || {
            // The receiver is gone only when the agent is ending.
            let _ = wake.send(Wake::Tool { call, outcome: finish(child) });
        });
        Ok(Self { pid })
    }

    /// Ends the command's whole group.
    pub(super) fn kill(&self) {
        // No unsafe, no dependency: `kill` is where every shell is.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.pid)])
            .stderr(Stdio::null())
            .status();
    }
}

fn finish(mut child: Child) -> Outcome {
    let error_text = child.stderr.take().map(|pipe| thread::spawn(move || drain(pipe)));
    let mut output = child.stdout.take().map(drain).unwrap_or_default();
    output.extend(error_text.and_then(|reader| reader.join().ok()).unwrap_or_default());
    output.truncate(usize::try_from(OUTPUT_BYTES).unwrap_or(usize::MAX));
    match child.wait() {
        Ok(status) => Outcome {
            ok: status.success(),
            exit: status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
            output: String::from_utf8_lossy(&output).into_owned(),
        },
        Err(error) => Outcome::failed(&error),
    }
}

/// Reads to the end, keeping the beginning: a command must not block on a full pipe.
fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let _ = pipe.by_ref().take(OUTPUT_BYTES).read_to_end(&mut kept);
    let _ = io::copy(&mut pipe, &mut io::sink());
    kept
}
