//! `ostler internal launch`: the last thing between init and the agent's program, which it becomes.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ostler_sandbox::channel::{AgentEnds, ExecReport, Order, receive_agent};
use ostler_tape::launch::EXIT_REFUSED;
use rustix::fs::Mode;
use rustix::process::{ioctl_tiocsctty, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use crate::lifeline;
use crate::log::log;

/// What keeps files of a campaign readable for the user's other programs; the keeper's own mask is private.
const AGENT_UMASK: Mode = Mode::WGRP.union(Mode::WOTH);

struct Failure {
    stage: &'static str,
    error: io::Error,
}

fn at(stage: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure { stage, error }
}

pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let received = lifeline::die_with_parent(args).and_then(|()| receive_agent(io::stdin()));
    let (order, ends) = match received {
        Ok(received) => received,
        Err(error) => {
            log!("launch: {error}");
            return ExitCode::from(EXIT_REFUSED);
        }
    };
    let AgentEnds { stdin, stdout, stderr, exec_status } = ends;
    // Closed by the exec that succeeds, which is how the keeper learns of it.
    let mut status = File::from(exec_status);
    if let Err(error) = order.cgroup_procs.iter().try_for_each(|procs| std::fs::write(procs, "0")) {
        report(&mut status, &ExecReport::NoCgroup { reason: error.to_string() });
    }
    let stdio = || -> io::Result<()> {
        dup2_stdin(&stdin)?;
        dup2_stdout(&stdout)?;
        dup2_stderr(&stderr)?;
        Ok(())
    };
    let Err(Failure { stage, error }) = stdio().map_err(at("stdio")).and_then(|()| become_agent(&order));
    let message = match stage {
        "cwd" => format!("{}: {error}", order.cwd.display()),
        _ => format!("{}: {error}", order.program.display()),
    };
    report(
        &mut status,
        &ExecReport::Failed {
            stage: stage.to_owned(),
            errno: error.raw_os_error(),
            message,
            hint: String::new(),
        },
    );
    ExitCode::from(EXIT_REFUSED)
}

fn become_agent(order: &Order) -> Result<Infallible, Failure> {
    // A session, and so a process group, of its own: the stop ladder signals the group.
    setsid().map_err(|errno| at("setsid")(errno.into()))?;
    if order.terminal.is_some() {
        ioctl_tiocsctty(io::stdin()).map_err(|errno| at("terminal")(errno.into()))?;
    }
    std::env::set_current_dir(&order.cwd).map_err(at("cwd"))?;
    umask(AGENT_UMASK);
    restore_signals().map_err(at("signals"))?;
    // `exec` also empties the signal mask and restores SIGPIPE.
    let error = Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .exec();
    Err(at("exec")(error))
}

/// A signal that is ignored stays ignored over exec (a daemon started by `nohup` ignores SIGHUP), but one that
/// is handled goes back to its default.
fn restore_signals() -> io::Result<()> {
    for signal in
        [SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2]
    {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

fn report(status: &mut File, report: &ExecReport) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = status.write_all(&line);
    }
}
