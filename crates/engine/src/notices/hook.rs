//! A program of the machine's owner, told on its standard input. Outside of every campaign and sandbox, and not for long.

use std::{
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    limits::HOOK_OUTPUT_BYTES,
    notice::{Hook, Notice},
    text::one_line,
};
use rustix::process::{Pid, Signal, kill_process_group};

use super::Tried;

/// How often a running hook is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs it to its end, or to the end of its time. One that failed is not run again: it may have done half of it.
pub(super) async fn tell(hook: &Hook, notice: &Notice) -> Tried {
    let body = match serde_json::to_vec(notice) {
        Ok(body) => body,
        Err(error) => return Tried::Refused(error.to_string()),
    };
    let (hook, id) = (hook.clone(), notice.id.clone());
    let name = one_line(&hook.run.join(" "), 200);
    match tokio::task::spawn_blocking(move || run_to_end(&hook, body)).await {
        Ok(Ok(printed)) => {
            if !printed.is_empty() {
                tracing::info!(hook = name, id, printed, "a program that was told said something");
            }
            Tried::Heard
        }
        Ok(Err(why)) => Tried::Refused(format!("{name}: {why}")),
        Err(error) => Tried::Refused(error.to_string()),
    }
}

fn run_to_end(hook: &Hook, body: Vec<u8>) -> Result<String, String> {
    let (program, args) = hook.run.split_first().ok_or("it names no program")?;
    let mut child = Command::new(program)
        .args(args)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group, so that its children end with it.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let stdin = child.stdin.take();
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&body)));
    let printed = [collect(child.stdout.take()), collect(child.stderr.take())];
    let ended = wait(&mut child, hook.limit);
    end_group(&child);
    let printed: Vec<String> = printed.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
    let printed = one_line(&printed.join(" "), HOOK_OUTPUT_BYTES);
    match ended {
        Ok(true) => Ok(printed),
        Ok(false) => Err(format!("it took longer than {} s and was ended {printed}", hook.limit.as_secs())),
        Err(why) => Err(format!("{why} {printed}")),
    }
}

/// Reads to the end, so that nobody waits for room, and keeps the beginning.
fn collect(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        let Some(mut from) = from else { return String::new() };
        let mut buffer = [0; 4096];
        while let Ok(read) = from.read(&mut buffer) {
            if read == 0 {
                break;
            }
            let room = HOOK_OUTPUT_BYTES - kept.len();
            kept.extend_from_slice(&buffer[..read.min(room)]);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// True when it ended well in time, false when it was not done in time.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(|error| format!("it cannot be waited for: {error}"))? {
            Some(status) if status.success() => return Ok(true),
            Some(status) => return Err(format!("it ended with {status}")),
            None if begun.elapsed() >= limit => {
                end_group(child);
                let _ = child.wait();
                return Ok(false);
            }
            None => thread::sleep(LOOK),
        }
    }
}

/// Ends whatever is left of its group: a child that holds its output open would be waited for.
fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(script: &str, seconds: u64) -> Hook {
        let run = ["sh", "-c", script].map(str::to_owned).to_vec();
        Hook { run, limit: Duration::from_secs(seconds) }
    }

    #[test]
    fn hears_the_notice_and_is_heard() {
        let told = run_to_end(&hook("cat; pwd >&2", 20), b"{\"on\":\"approval\"}".to_vec());
        assert_eq!(told, Ok("{\"on\":\"approval\"} /".to_owned()));
        let failed = run_to_end(&hook("echo no; exit 3", 20), Vec::new()).unwrap_err();
        assert!(failed.contains("exit status: 3") && failed.contains("no"), "{failed}");
        let missing = Hook { run: vec!["/no/such/program".to_owned()], ..hook("", 1) };
        assert!(run_to_end(&missing, Vec::new()).unwrap_err().contains("cannot be started"));
    }

    #[test]
    fn takes_no_longer_than_it_may_with_all_it_started() {
        let begun = Instant::now();
        let late = run_to_end(&hook("sleep 60 & sleep 60", 1), Vec::new()).unwrap_err();
        assert!(late.contains("longer than 1 s"), "{late}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_flood_is_cut_and_not_waited_for() {
        let printed = run_to_end(&hook("head -c 1000000 /dev/zero | tr '\\0' x", 20), Vec::new()).unwrap();
        assert!(printed.len() <= HOOK_OUTPUT_BYTES, "{}", printed.len());
    }
}
