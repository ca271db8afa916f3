//! `ostler internal warden`: makes the sandbox, stands beside it as long as it lives, and says at the end what was
//! tampered with. Only a keeper starts it.
//!
//! It is in the sandbox's user, mount and network namespaces and keeps its capabilities there, which is what masks are
//! made with; but it stays in the host's pid namespace, where nobody inside can see it. It dies with its keeper, and
//! init dies with it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use ostler_domain::confinement::Confinement;
use ostler_domain::hidden::Patterns;
use ostler_domain::limits::{FAILED_LOOKS, RESCAN, RESCAN_REST_FACTOR, TAMPER_ENTRIES};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getegid, geteuid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal, setpriority_process, umask, waitpid,
};
use rustix::system::sethostname;
use rustix::thread::set_no_new_privs;
use rustix::time::Timespec;

use crate::agent::Stdio;
use crate::channel::{
    self, AgentEnds, ExecReport, InitReport, Order, Received, WardenOrder, receive_agent, send_report,
    send_tampered,
};
use crate::exec_status::ExecStatus;
use crate::identity::{Accounts, Identity, Ids};
use crate::init::{self, Inside};
use crate::log::log;
use crate::masks::Masks;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys::{self, Forked};
use crate::tooling::Tooling;
use crate::work_tree::Repository;
use crate::{EXIT_REFUSED, limits, mounts, namespaces, net, root, set_ids, sources, terminal};

/// How nice a warden is once its agent is gone.
const LEISURELY: i32 = 10;

pub(crate) fn run() -> ExitCode {
    let received = sys::close_inherited_descriptors().and_then(|()| receive_agent(io::stdin()));
    let (order, AgentEnds { stdin, stdout, stderr, exec_status }) = match received {
        Ok(received) => received,
        Err(error) => {
            log!("warden: {error}");
            let report = InitReport::NotStarted { errno: error.raw_os_error(), message: error.to_string() };
            let _ = send_report(io::stdin(), &report);
            return ExitCode::from(EXIT_REFUSED);
        }
    };
    let mut exec_status = ExecStatus::new(exec_status);
    let cgroup_procs = enter_later(&order, &mut exec_status);
    let no_sandbox = || Refusal::new(Stage::Document, "the order describes no sandbox", "");
    let mut stdio = Stdio { stdin, stdout, stderr };
    let started = order.confinement.as_ref().ok_or_else(no_sandbox).and_then(|confinement| {
        let house = make(confinement, &stdio)?;
        if let Some(size) = order.terminal {
            stdio = terminal::open(size, io::stdin())?;
        }
        Ok((confinement, house, sys::fork().or_refuse(Stage::Init, "starting init")?))
    });
    match started {
        Ok((confinement, house, Forked::Child)) => {
            drop(house);
            init::run(Inside { order: &order, confinement, stdio, exec_status, cgroup_procs })
        }
        Ok((_, house, Forked::Parent(init))) => {
            // Init has its own copies, and the keeper waits for the last one to be closed.
            drop((stdio, exec_status, cgroup_procs));
            house.keep(init)
        }
        Err(refusal) => {
            exec_status.refuse(&refusal);
            drop(exec_status);
            // The keeper finds the reason in the exec status, which must have ended by now.
            let _ = send_report(io::stdin(), &InitReport::Ended { status: i32::from(EXIT_REFUSED) << 8 });
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// The session's groups are out of reach once the host's files are, so init enters them by these descriptors: all of
/// them, or none.
fn enter_later(order: &Order, exec_status: &mut ExecStatus) -> Vec<File> {
    let open = |path| OpenOptions::new().write(true).open(path);
    let opened: io::Result<Vec<File>> = order.cgroup_procs.iter().map(open).collect();
    let opened = opened.map_err(|error| exec_status.say(&ExecReport::NoCgroup { reason: error.to_string() }));
    opened.unwrap_or_default()
}

/// Goes inside, and makes everything there except for what takes a process of the new pid namespace.
fn make(confinement: &Confinement, stdio: &Stdio) -> Result<House, Refusal> {
    if let Some(fault) = confinement.fault() {
        return Err(Refusal::new(Stage::Document, fault, "daemon and keeper must be the same program"));
    }
    die_with_keeper()?;
    let us = Ids { uid: geteuid().as_raw(), gid: getegid().as_raw() };
    let owner = sources::owner(confinement)?;
    let identity = Identity::choose(us, owner, &Accounts::read(), std::process::id());
    let sources = sources::of(confinement);
    if identity.daemon_is_root {
        sources::stage(&sources, confinement, &identity)?;
        stdio.give_to(identity.outside)?;
        identity.assume()?;
    }
    namespaces::leave_host(&identity, confinement)?;
    // A change of user undoes it, and this was the last one.
    die_with_keeper()?;
    net::set_up(confinement, io::stdin())?;
    sethostname(confinement.hostname.as_bytes()).or_refuse(Stage::Namespaces, "setting the host name")?;
    umask(Mode::WGRP | Mode::WOTH);
    root::enter(confinement, &identity, &sources, identity.daemon_is_root)?;

    let mut masks = Masks::new(&confinement.root.path, Patterns::new(&confinement.hidden))?;
    let found = masks.cover_all()?;
    let tooling = Tooling::protect(&confinement.root.path, &confinement.tooling, &found.git)?;
    let repository = confinement.git.as_ref();
    let repository = repository.map(|git| Repository::protect(git, &confinement.hidden)).transpose()?;
    let home = confinement.home.source.as_ref().map(|_| &confinement.home.inside);
    let written =
        confinement.git.iter().flat_map(|git| git.written().into_iter().map(|part| git.path.join(part)));
    let tops = std::iter::once(&confinement.root.path).chain(&confinement.writable).chain(home).cloned();
    let tops = tops.chain(confinement.root.leased()).chain(written).collect();
    Ok(House { masks, tooling, repository, tops, began: SystemTime::now(), hidden_links: BTreeSet::new() })
}

fn die_with_keeper() -> Result<(), Refusal> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .or_refuse(Stage::Init, "binding the warden to its keeper")?;
    // It may have ended before the kernel knew of our wish; then its end of the channel is closed.
    let channel = io::stdin();
    let mut fds = [PollFd::new(&channel, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        .or_refuse(Stage::Init, "looking for the keeper")?;
    if fds[0].revents().is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Stage::Init, "the keeper is gone", ""))
}

/// What is looked after while the agent lives.
struct House {
    masks: Masks,
    tooling: Tooling,
    /// The one of which the root is a work tree.
    repository: Option<Repository>,
    /// The campaign, and what else of the host's the agent may write.
    tops: Vec<PathBuf>,
    began: SystemTime,
    /// Those that were removed, or changed, and put back.
    hidden_links: BTreeSet<PathBuf>,
}

enum Woken {
    InitEnded,
    KeeperSpoke,
    TimeToLook,
}

impl House {
    fn keep(mut self, init: Pid) -> ExitCode {
        // Init has the others, and gives up all of them.
        if let Err(refusal) = limits::keep_capabilities(limits::WARDENS).and_then(|()| no_new_privileges()) {
            log!("warden: {refusal}");
            return ExitCode::FAILURE;
        }
        let status = match self.keep_until_end(init) {
            Ok(status) => status,
            Err(error) => {
                log!("warden: {error}");
                return ExitCode::FAILURE;
            }
        };
        // Whoever halts everything wants agents dead first: hundreds of wardens that look around would be in the way.
        let _ = setpriority_process(None, LEISURELY);
        self.put_right();
        let mut names = self.tooling.changed();
        names.extend(self.repository.iter().flat_map(Repository::changed));
        names.extend(self.hidden_links.iter().map(|path| path.display().to_string()));
        match self.masks.look_at_git() {
            Ok(found) => names.extend(self.tooling.new_repositories(&found)),
            Err(refusal) => log!("warden: {refusal}"),
        }
        names.extend(self.clear_set_ids());
        if !names.is_empty()
            && let Err(error) = send_tampered(io::stdin(), names)
        {
            log!("warden: what was tampered with could not be reported: {error}");
        }
        self.tooling.clean_up();
        // A second word on an agent whose end was told already is ignored. An init that was killed took it along.
        let _ = send_report(io::stdin(), &InitReport::Ended { status });
        if status == i32::from(EXIT_REFUSED) << 8 { ExitCode::from(EXIT_REFUSED) } else { ExitCode::SUCCESS }
    }

    fn put_right(&mut self) {
        self.tooling.put_right();
        self.repository.iter_mut().for_each(Repository::put_right);
        self.put_hidden_links_back();
    }

    fn put_hidden_links_back(&mut self) {
        for link in self.masks.put_links_back() {
            log!("warden: put back {}, which leads to a hidden file", link.display());
            self.hidden_links.insert(link);
        }
    }

    /// What had bits that no file of an agent's may have; names in the campaign are below its root.
    fn clear_set_ids(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (number, top) in self.tops.iter().enumerate() {
            let opened =
                if number == 0 { self.masks.bare().try_clone_to_owned() } else { mounts::handle(top) };
            let Ok(opened) = opened else { continue };
            for path in set_ids::clear_new(opened.as_fd(), self.began) {
                log!("warden: {} in {} was set-id, and is not any more", path.display(), top.display());
                let shown = if number == 0 { path } else { top.join(path) };
                names.push(shown.display().to_string());
            }
        }
        names.truncate(TAMPER_ENTRIES);
        names
    }

    /// The status of init, which ends when it is killed, or by refusing.
    fn keep_until_end(&mut self, init: Pid) -> io::Result<i32> {
        let pidfd = pidfd_open(init, PidfdFlags::empty())?;
        let report = InitReport::Housed { init_pid: init.as_raw_nonzero().get() as u32 };
        let mut keeper_is_there = send_report(io::stdin(), &report).is_ok();
        let mut looks = Looks::new();
        loop {
            let breach =
                self.masks.breach().or_else(|| self.repository.as_ref().and_then(Repository::breach));
            if let Some(why) = breach.map(str::to_owned).or_else(|| looks.breach()) {
                log!("warden: {why}: the agent is ended");
                let _ = send_report(io::stdin(), &InitReport::Breached { why });
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                break;
            }
            if !keeper_is_there {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
            match wait(&pidfd, keeper_is_there, looks.next)? {
                Woken::InitEnded => break,
                Woken::KeeperSpoke => keeper_is_there = self.hear_keeper(&mut looks),
                Woken::TimeToLook => {
                    let began = Instant::now();
                    let covered = self.masks.cover_again().and_then(|covered| {
                        let beside = self.repository.as_mut().map_or(Ok(0), Repository::cover_again)?;
                        Ok(covered + beside)
                    });
                    looks.succeeded(covered.is_ok());
                    say(covered);
                    self.put_right();
                    looks.looked(began.elapsed());
                }
            }
        }
        match waitpid(Some(init), WaitOptions::empty())? {
            Some((_, status)) => Ok(status.as_raw()),
            None => Err(io::Error::other("init was not to be waited for")),
        }
    }

    /// False if there is nobody to be heard.
    fn hear_keeper(&mut self, looks: &mut Looks) -> bool {
        loop {
            match channel::receive_order(io::stdin()) {
                Ok(Received::Message(WardenOrder::Remask { paths })) => {
                    let changed = self.masks.cover_changed(&paths);
                    if changed.as_ref().is_ok_and(|changed| changed.look_at_all) {
                        looks.hurry();
                    }
                    say(changed.map(|changed| changed.covered));
                    self.put_hidden_links_back();
                }
                Ok(Received::NotYet) => return true,
                // Nobody sends a warden one.
                Ok(Received::Listener(_) | Received::Terminal(_) | Received::Observer(_)) => {}
                Ok(Received::Closed) => return false,
                Err(error) => log!("warden: an order was not understood: {error}"),
            }
        }
    }
}

/// When to look through all of the campaign.
struct Looks {
    next: Instant,
    /// Not before: a look is given so much rest, whoever asks for the next one.
    rested: Instant,
    /// One after the other.
    failed: u32,
}

impl Looks {
    fn new() -> Looks {
        let now = Instant::now();
        Looks { next: now + RESCAN, rested: now, failed: 0 }
    }

    fn succeeded(&mut self, it_did: bool) {
        self.failed = if it_did { 0 } else { self.failed + 1 };
    }

    fn breach(&self) -> Option<String> {
        (self.failed >= FAILED_LOOKS).then(|| "hidden files cannot be looked for any more".to_owned())
    }

    fn looked(&mut self, took: Duration) {
        let now = Instant::now();
        self.rested = now + took * RESCAN_REST_FACTOR;
        self.next = self.rested.max(now + RESCAN);
    }

    fn hurry(&mut self) {
        self.next = self.next.min(self.rested);
    }
}

fn no_new_privileges() -> Result<(), Refusal> {
    set_no_new_privs(true).or_refuse(Stage::Limits, "giving up new privileges")
}

fn say(covered: Result<usize, Refusal>) {
    match covered {
        Ok(0) => {}
        Ok(count) => log!("warden: covered {count} hidden files that were new"),
        Err(refusal) => log!("warden: {refusal}"),
    }
}

fn wait(init: &impl AsFd, keeper_is_there: bool, look_at: Instant) -> io::Result<Woken> {
    let channel = io::stdin();
    let timeout = look_at.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let mut fds = vec![PollFd::new(init, PollFlags::IN)];
    if keeper_is_there {
        fds.push(PollFd::new(&channel, PollFlags::IN));
    }
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) | Err(Errno::INTR) => Ok(Woken::TimeToLook),
        Ok(_) if !fds[0].revents().is_empty() => Ok(Woken::InitEnded),
        Ok(_) => Ok(Woken::KeeperSpoke),
        Err(errno) => Err(errno.into()),
    }
}
