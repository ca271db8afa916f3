//! `run_command`

use std::{
    collections::VecDeque,
    fs,
    hash::{BuildHasher, RandomState},
    io::{self, PipeReader, Read},
    mem,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use ostler_domain::text::one_line;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, prepared};

const TIMEOUT: Duration = Duration::from_secs(120);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
/// What is kept of an output: this much of its beginning, and as much of its end.
const KEPT_BYTES: usize = 32 * 1024;
/// How long output may still come after the command has ended: a child in the background may hold the pipe for ever.
const DRAIN: Duration = Duration::from_millis(200);
const DRAINS: u32 = 10;
/// Rounds of looking for processes that a command had started, when it is broken off.
const HUNTS: usize = 5;
/// Marks all that a command starts, so that it is found wherever it hides.
const MARK: &str = "OSTLER_AGENT_CALL";

pub(super) const TOOL: Tool = Tool {
    name: "run_command",
    description: "Runs a command with /bin/sh in the working directory and gives its exit status and output.",
    parameters,
    kind: Kind::Execute,
    needs_leave: true,
    prepare: prepared::<Run>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    command: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["command"], "properties": {
        "command": {"type": "string"},
        "timeout_seconds": {"type": "integer", "description": "120 if not given, 600 at most"},
    }})
}

impl Work for Run {
    fn title(&self) -> String {
        one_line(&self.command, 200)
    }

    fn run(&self, job: &Job) -> Outcome {
        match self.command(job) {
            Ok(outcome) => outcome,
            Err(error) => Outcome { ok: false, exit: None, output: format!("error: {error}") },
        }
    }
}

impl Run {
    fn command(&self, job: &Job) -> io::Result<Outcome> {
        let mark = format!("{:016x}", RandomState::new().hash_one(&self.command));
        let (output, theirs) = io::pipe()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.command]).current_dir(&job.root).env(MARK, &mark);
        for name in &job.hidden {
            command.env_remove(name);
        }
        // One pipe for both: what was printed first is read first.
        command.stdin(Stdio::null()).stdout(theirs.try_clone()?).stderr(theirs);
        let mut child = command.process_group(0).spawn()?;
        drop(command);
        let pid = child.id();
        let (ends, end) = mpsc::channel();
        let killer = mark.clone();
        job.stop.on_stop(move || kill(pid, &killer));
        let collected = Collector::start(output);
        thread::spawn(move || ends.send(child.wait()));
        let timeout = self.timeout_seconds.map_or(TIMEOUT, Duration::from_secs).min(LONGEST_TIMEOUT);
        let (status, timed_out) = match end.recv_timeout(timeout) {
            Ok(status) => (status?, false),
            Err(RecvTimeoutError::Timeout) => {
                kill(pid, &mark);
                (end.recv().map_err(io::Error::other)??, true)
            }
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the command was lost")),
        };
        job.stop.done();
        Ok(outcome(status, timed_out.then_some(timeout), &collected.finish()))
    }
}

fn outcome(status: ExitStatus, timed_out: Option<Duration>, output: &str) -> Outcome {
    let exit = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    let head = match (timed_out, status.signal(), exit) {
        (Some(after), ..) => format!("timed out after {} s and was ended", after.as_secs()),
        (None, Some(signal), _) => format!("ended by signal {signal}"),
        (None, None, code) => format!("exit status {}", code.unwrap_or_default()),
    };
    Outcome { ok: status.success() && timed_out.is_none(), exit, output: format!("{head}\n{output}") }
}

/// Ends a command, its group, and whatever left the group: processes carry the mark of the call that made them.
fn kill(group: u32, mark: &str) {
    // No unsafe, no dependency: every shell has `kill`.
    let send = |to: &str| {
        let _ = Command::new("/bin/sh")
            .args(["-c", &format!("kill -s KILL -- {to}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    };
    send(&format!("-{group}"));
    for _ in 0..HUNTS {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        send(&left.join(" "));
    }
}

/// Living processes that a marked call has started.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
        })
        .collect()
}

/// Reads an output to its end, whatever its length, and keeps both ends of it.
struct Collector {
    kept: Arc<Mutex<Kept>>,
    end: mpsc::Receiver<()>,
}

#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    read: u64,
    /// Nobody listens any more, but a child in the background must not block on a full pipe.
    closed: bool,
}

impl Collector {
    fn start(mut pipe: PipeReader) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (ends, end) = mpsc::channel();
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).take(&buffer[..n]);
            }
            let _ = ends.send(());
        });
        Self { kept, end }
    }

    fn finish(self) -> String {
        for _ in 0..DRAINS {
            let before = self.kept().read;
            let is_over = self.end.recv_timeout(DRAIN) != Err(RecvTimeoutError::Timeout);
            if is_over || self.kept().read == before {
                break;
            }
        }
        self.kept().close()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, piece: &[u8]) {
        self.read += piece.len() as u64;
        if self.closed {
            return;
        }
        let room = KEPT_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..room]);
        self.tail.extend(&piece[room..]);
        let over = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    fn close(&mut self) -> String {
        self.closed = true;
        let (head, tail) = (mem::take(&mut self.head), mem::take(&mut self.tail));
        if self.dropped == 0 {
            return String::from_utf8_lossy(&[head, tail.into()].concat()).into_owned();
        }
        let middle = format!("\n… {} bytes left out …\n", self.dropped);
        [String::from_utf8_lossy(&head), middle.into(), String::from_utf8_lossy(&Vec::from(tail))].concat()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{super::testing::*, *};

    #[test]
    fn a_command_gives_its_status_and_both_streams_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let outcome =
            call(&job(dir.path()), "run_command", json!({"command": "echo a; echo b >&2; echo c; exit 3"}));
        assert_eq!(outcome, Outcome { ok: false, exit: Some(3), output: "exit status 3\na\nb\nc\n".into() });
        let outcome = call(&job(dir.path()), "run_command", json!({"command": "kill -TERM $$"}));
        assert_eq!((outcome.exit, outcome.output.as_str()), (Some(143), "ended by signal 15\n"));
    }

    #[test]
    fn a_flood_is_read_and_cut_in_the_middle() {
        let dir = tempfile::tempdir().unwrap();
        let command = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last";
        let outcome = call(&job(dir.path()), "run_command", json!({"command": command}));
        assert!(outcome.ok);
        assert!(outcome.output.starts_with("exit status 0\nfirst\n") && outcome.output.ends_with("last\n"));
        assert!(outcome.output.contains("bytes left out") && outcome.output.len() < 3 * KEPT_BYTES);
    }

    #[test]
    fn a_child_in_the_background_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let outcome = call(&job(dir.path()), "run_command", json!({"command": "sleep 30 & echo $!"}));
        assert!(outcome.ok && begun.elapsed() < Duration::from_secs(20), "{}", outcome.output);
        let pid = outcome.output.lines().nth(1).unwrap().to_owned();
        Command::new("/bin/sh").args(["-c", &format!("kill {pid}")]).status().unwrap();
    }

    #[test]
    fn a_timeout_ends_all_that_was_started() {
        let dir = tempfile::tempdir().unwrap();
        let command = "setsid sh -c 'sleep 300 & wait' & sleep 300";
        let outcome =
            call(&job(dir.path()), "run_command", json!({"command": command, "timeout_seconds": 1}));
        assert!(outcome.output.starts_with("timed out after 1 s"), "{}", outcome.output);
        assert!(!outcome.ok);
    }

    #[test]
    fn a_stop_ends_even_what_left_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let (stop, file) = (Arc::clone(&job.stop), dir.path().join("pid"));
        let worker = thread::spawn(move || {
            call(
                &job,
                "run_command",
                json!({"command": "setsid sh -c 'echo $$ > pid; exec sleep 300' & sleep 300"}),
            )
        });
        let deadline = Instant::now() + Duration::from_secs(30);
        let pid = loop {
            match fs::read_to_string(&file) {
                Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
                _ => assert!(Instant::now() < deadline, "the command never started"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        stop.stop();
        assert!(!worker.join().unwrap().ok);
        let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_alive = || state().rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
        while is_alive() {
            assert!(Instant::now() < deadline, "a process survived: {}", state());
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn commands_do_not_see_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let mut job = job(dir.path());
        job.hidden = vec!["PATH".to_owned()];
        // The shell has a default of its own, which is not exported.
        let outcome = call(&job, "run_command", json!({"command": "/usr/bin/env | grep -c ^PATH="}));
        assert_eq!(outcome.output, "exit status 1\n0\n");
    }
}
