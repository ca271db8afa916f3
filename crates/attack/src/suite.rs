//! All attempts, one after the other, each with its verdict.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_domain::attack::{Finding, Verdict};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::attempt::{Attempt, Said, Setting};
use crate::attempts;
use crate::confined::{self, End, Ended};
use crate::evidence::{self, Before};
use crate::stage::Stage;

#[derive(Debug, Default)]
struct Options {
    /// Those that do no harm, and without a sandbox.
    unconfined: bool,
    owner: Option<u32>,
    /// Areas or attempts; all if empty.
    names: Vec<String>,
}

impl Options {
    fn parse(args: &[OsString]) -> Option<Options> {
        let mut options = Options::default();
        let mut words = args.iter().map(|arg| arg.to_str());
        while let Some(word) = words.next() {
            match word? {
                "--unconfined" => options.unconfined = true,
                "--owner" => options.owner = Some(words.next()??.parse().ok()?),
                name => options.names.push(name.to_owned()),
            }
        }
        Some(options)
    }

    fn want(&self, attempt: &Attempt) -> bool {
        let (area, _) = attempt.name.split_once('/').unwrap_or((attempt.name, ""));
        let is_named =
            self.names.is_empty() || self.names.iter().any(|name| name == attempt.name || name == area);
        is_named && (!self.unconfined || attempt.setting == Setting::Harmless)
    }
}

/// Exit codes: 0 if all that could be tried was stopped, 1 if not, 2 if there is no such attempt.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let Some(options) = Options::parse(args) else { return ExitCode::from(2) };
    let wanted: Vec<&Attempt> = attempts::all().filter(|attempt| options.want(attempt)).collect();
    if wanted.is_empty() {
        return ExitCode::from(2);
    }
    match try_all(&options, &wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let finding = Finding {
                name: "suite/stage".to_owned(),
                tries: "prepare the attempts".to_owned(),
                verdict: Verdict::Failed,
                detail: error.to_string(),
                evidence: Vec::new(),
                left: 0,
            };
            let _ = tell(&finding);
            ExitCode::FAILURE
        }
    }
}

fn tell(finding: &Finding) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, finding)?;
    writeln!(out)?;
    out.flush()
}

fn try_all(options: &Options, wanted: &[&Attempt]) -> io::Result<bool> {
    // Whoever ends us gets an end in which everything that was made is thrown away.
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let mut all_held = true;
    let mut stage = None;
    for (place, attempt) in wanted.iter().enumerate() {
        if is_over.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let at = match stage.take() {
            Some(at) => at,
            None => {
                let stage = Stage::new(options.owner)?;
                let before = Before::look(&stage)?;
                (stage, before)
            }
        };
        let (verdict, detail, evidence) = match try_one(options, attempt, &at.0, &at.1) {
            Ok(judged) => judged,
            Err(error) => (Verdict::Failed, format!("the suite: {error}"), Vec::new()),
        };
        tell(&Finding {
            name: attempt.name.to_owned(),
            tries: attempt.tries.to_owned(),
            verdict,
            detail,
            evidence,
            left: wanted.len() - place - 1,
        })?;
        let held = verdict.held();
        all_held &= held;
        // What one has changed is no evidence against the next.
        if held && at.0.sweep().is_ok() {
            stage = Some(at);
        }
    }
    Ok(all_held)
}

fn try_one(
    options: &Options,
    attempt: &Attempt,
    stage: &Stage,
    before: &Before,
) -> io::Result<(Verdict, String, Vec<String>)> {
    let terminal = match attempt.setting {
        Setting::Terminal => Some(Stage::terminal()?),
        _ => None,
    };
    let (screen, agents) = terminal.map_or((None, None), |(ours, theirs)| (Some(ours), Some(theirs)));
    let keyboard = agents.as_ref().map(|agents| agents.try_clone()).transpose()?;
    let ended = if options.unconfined {
        confined::run_unconfined(&stage.scene, attempt)?
    } else {
        confined::run(&stage.scene, attempt, agents)?
    };
    let mut evidence = evidence::gather(stage, before, &ended)?;
    if let (Some(_screen), Some(keyboard)) = (&screen, keyboard) {
        // What was typed waits to be read by whoever has the terminal next.
        rustix::fs::fcntl_setfl(&keyboard, rustix::fs::OFlags::NONBLOCK)?;
        let mut typed = [0; 64];
        if matches!(std::fs::File::from(keyboard).read(&mut typed), Ok(1..)) {
            evidence.push("something was typed into the host's terminal".to_owned());
        }
    }
    let (verdict, detail) = judge(attempt, &ended, &evidence);
    Ok((verdict, detail, evidence))
}

fn judge(attempt: &Attempt, ended: &Ended, evidence: &[String]) -> (Verdict, String) {
    let said = ended.stdout.lines().rev().find_map(|line| serde_json::from_str::<Said>(line).ok());
    if !evidence.is_empty() {
        let said = said.map_or_else(|| "nothing was said".to_owned(), |said| said.words().to_owned());
        return (Verdict::GotThrough, said);
    }
    if attempt.setting == Setting::Control {
        return match said {
            Some(Said::Got(detail)) => (Verdict::Works, detail),
            Some(Said::Untried(reason)) => (Verdict::Untried, reason),
            other => (Verdict::Failed, format!("{other:?} {:?} {}", ended.end, ended.stderr.trim())),
        };
    }
    match (&ended.end, said) {
        (_, Some(Said::Got(detail))) => (Verdict::GotThrough, detail),
        (_, Some(Said::Untried(reason))) => (Verdict::Untried, reason),
        (End::Exited(_), Some(Said::Blocked(detail) | Said::Tried(detail))) => (Verdict::Stopped, detail),
        (End::Exited(status), None) if status.signal() == Some(libc::SIGSYS) => {
            (Verdict::Stopped, "killed by its first forbidden call".to_owned())
        }
        (End::Exited(status), None) => {
            (Verdict::Failed, format!("ended without a word: {status} {}", ended.stderr.trim()))
        }
        (End::TimedOut, _) => (Verdict::Failed, "did not end in time".to_owned()),
        (End::Refused(reason), _) if attempt.setting == Setting::HostNetwork => {
            (Verdict::Untried, format!("there is no such sandbox here: {reason}"))
        }
        (End::Refused(reason), _) => (Verdict::Failed, reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(end: End, stdout: &str, evidence: &[&str]) -> Verdict {
        let attempt = attempts::all().find(|attempt| attempt.setting == Setting::Harmless).unwrap();
        let ended = Ended { end, stdout: stdout.to_owned(), stderr: String::new() };
        let evidence: Vec<String> = evidence.iter().map(|&text| text.to_owned()).collect();
        judge(attempt, &ended, &evidence).0
    }

    fn exited(status: i32) -> End {
        End::Exited(std::process::ExitStatus::from_raw(status))
    }

    #[test]
    fn stopped_is_what_both_sides_say() {
        let blocked = r#"{"blocked":"no"}"#;
        assert_eq!(judged(exited(0), blocked, &[]), Verdict::Stopped);
        assert_eq!(judged(exited(0), blocked, &["a canary is gone"]), Verdict::GotThrough);
        assert_eq!(judged(exited(0), r#"{"got":"it"}"#, &[]), Verdict::GotThrough);
        assert_eq!(judged(exited(0), r#"{"untried":"no tool"}"#, &[]), Verdict::Untried);
        assert_eq!(judged(exited(0), "", &[]), Verdict::Failed);
        assert_eq!(judged(exited(libc::SIGSYS), "", &[]), Verdict::Stopped);
        assert_eq!(judged(exited(libc::SIGSEGV), "", &[]), Verdict::Failed);
        assert_eq!(judged(End::TimedOut, blocked, &[]), Verdict::Failed);
        assert_eq!(judged(End::Refused("no".to_owned()), "", &[]), Verdict::Failed);
    }

    #[test]
    fn there_are_more_than_a_hundred_and_no_two_of_a_name() {
        let attacks: Vec<&Attempt> =
            attempts::all().filter(|attempt| attempt.setting != Setting::Control).collect();
        assert!(attacks.len() >= 100, "{}", attacks.len());
        let mut names: Vec<&str> = attempts::all().map(|attempt| attempt.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
