//! Pid 1 of the sandbox: mounts `/proc`, starts the agent, reaps, and tells the keeper how the agent ended.
//!
//! When it ends, the kernel ends everything else in its pid namespace, however detached: so it goes on until the
//! warden or the keeper kills it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use ostler_domain::confinement::Confinement;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal, wait,
};

use crate::agent::{self, Stdio};
use crate::channel::{ExecReport, InitReport, Order, send_report};
use crate::exec_status::ExecStatus;
use crate::log::log;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys::{self, Forked};
use crate::{EXIT_REFUSED, limits, namespaces, proc, root, seccomp};

/// What init is given. Descriptor 0 is the channel to the keeper.
pub(crate) struct Inside<'a> {
    pub(crate) order: &'a Order,
    pub(crate) confinement: &'a Confinement,
    pub(crate) stdio: Stdio,
    pub(crate) exec_status: ExecStatus,
    /// Opened while the host's files were in reach.
    pub(crate) cgroup_procs: Vec<File>,
}

/// Never returns to the warden's code.
pub(crate) fn run(inside: Inside<'_>) -> ! {
    let mut exec_status = inside.exec_status;
    let started =
        start(inside.order, inside.confinement, inside.stdio, &mut exec_status, inside.cgroup_procs);
    let agent = match started {
        Ok(agent) => agent,
        Err(refusal) => {
            exec_status.refuse(&refusal);
            sys::exit(EXIT_REFUSED)
        }
    };
    // The keeper waits for the last copy to be closed.
    drop(exec_status);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => {
                // A keeper that is gone has taken the warden along, and is about to take us.
                let _ = send_report(io::stdin().as_fd(), &InitReport::Ended { status: status.as_raw() });
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => idle(),
            Err(errno) => {
                log!("init: {errno}");
                sys::exit(EXIT_REFUSED)
            }
        }
    }
}

/// Nothing is left to reap, and nothing will come: there is nobody to fork. The warden ends us.
fn idle() -> ! {
    loop {
        std::thread::park();
    }
}

fn start(
    order: &Order,
    confinement: &Confinement,
    stdio: Stdio,
    exec_status: &mut ExecStatus,
    cgroup_procs: Vec<File>,
) -> Result<Pid, Refusal> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .or_refuse(Stage::Init, "binding init to the warden")?;
    if let Err(error) = cgroup_procs.into_iter().try_for_each(|mut procs| procs.write_all(b"0")) {
        exec_status.say(&ExecReport::NoCgroup { reason: error.to_string() });
    }
    namespaces::leave_cgroups()?;
    proc::mount()?;
    root::close()?;
    // While there is memory to compile them in, and to say so if it fails.
    let filters = seccomp::filters(confinement.ptrace, !confinement.network.is_private())?;
    // Whatever can be read of us is read with the agent's rights. Before there is an agent: on a busy machine it may look
    // around before we are given another moment.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).or_refuse(Stage::Init, "hiding init's memory")?;
    let agent = match sys::fork().or_refuse(Stage::Init, "starting the agent's process")? {
        Forked::Parent(agent) => agent,
        Forked::Child => {
            let Err(refusal) = agent::run(order, confinement, &stdio, &filters);
            exec_status.refuse(&refusal);
            sys::exit(EXIT_REFUSED)
        }
    };
    limits::drop_capabilities()?;
    Ok(agent)
}
