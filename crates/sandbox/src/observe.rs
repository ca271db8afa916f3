//! Watching a command: what it opens, executes and connects to is told before it is done, and then goes on.
//!
//! The kernel tells through a descriptor (seccomp's user notification) that the agent makes and hands to whoever
//! watches. Whoever is told answers with "go on", always: what a call's arguments point to can be changed after they
//! were looked at, so nothing can be decided by looking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_long;
use seccompiler::{BpfProgram, sock_filter};

use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys;

/// How a call names what it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A path as the first argument, and flags as the second.
    Open,
    /// A directory, a path, flags.
    OpenAt,
    /// A directory, a path, and flags in memory.
    OpenAt2,
    /// A path that is made.
    Create,
    /// A path.
    Look,
    /// A directory and a path.
    LookAt,
    Execute,
    ExecuteAt,
    /// A descriptor, an address in memory and its length.
    Connect,
}

/// The calls that are told of. Those that forbidding filters refuse are not.
const OBSERVED: &[(c_long, Call)] = &[
    (libc::SYS_openat, Call::OpenAt),
    (libc::SYS_openat2, Call::OpenAt2),
    (libc::SYS_newfstatat, Call::LookAt),
    (libc::SYS_statx, Call::LookAt),
    (libc::SYS_faccessat, Call::LookAt),
    (libc::SYS_faccessat2, Call::LookAt),
    (libc::SYS_execve, Call::Execute),
    (libc::SYS_execveat, Call::ExecuteAt),
    (libc::SYS_connect, Call::Connect),
];
#[cfg(target_arch = "x86_64")]
const OBSERVED_HERE: &[(c_long, Call)] = &[
    (libc::SYS_open, Call::Open),
    (libc::SYS_creat, Call::Create),
    (libc::SYS_stat, Call::Look),
    (libc::SYS_lstat, Call::Look),
    (libc::SYS_access, Call::Look),
];
#[cfg(not(target_arch = "x86_64"))]
const OBSERVED_HERE: &[(c_long, Call)] = &[];

fn observed() -> impl Iterator<Item = &'static (c_long, Call)> {
    OBSERVED.iter().chain(OBSERVED_HERE)
}

/// Has calls of this process and of all that it starts told to the descriptor that is returned. The last filter: it
/// would be told of what is done to set up the others.
pub(crate) fn begin() -> Result<OwnedFd, Refusal> {
    sys::install_observer(&filter()).or_refuse(Stage::Seccomp, "watching what is opened")
}

fn filter() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const TELL: u32 = 0x7fc0_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut program = vec![instruction(LOAD_WORD, 0, 0, 0)];
    let count = observed().count();
    for (place, (number, _)) in observed().enumerate() {
        // Over the other comparisons and the line that allows; there are few enough of them.
        let to_the_end = u8::try_from(count - place).unwrap_or(u8::MAX);
        program.push(instruction(JUMP_IF_EQUAL, to_the_end, 0, *number as u32));
    }
    program.push(instruction(RETURN, 0, 0, ALLOW));
    program.push(instruction(RETURN, 0, 0, TELL));
    program
}

/// Who is told.
#[derive(Debug)]
pub struct Observer {
    listener: OwnedFd,
}

/// A call that waits.
#[derive(Debug)]
pub struct Notice {
    id: u64,
    /// The thread that makes it, by its number here.
    pub pid: u32,
    pub call: Call,
    pub args: [u64; 6],
}

impl AsFd for Observer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Observer {
    pub fn new(listener: OwnedFd) -> Observer {
        Observer { listener }
    }

    /// The next call that waits; none if whoever made it was killed meanwhile. Waits if there is none.
    pub fn next(&self) -> io::Result<Option<Notice>> {
        let told = match sys::receive_notice(self.listener.as_fd()) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return Ok(None);
            }
            told => told?,
        };
        let known = observed().find(|(number, _)| *number == c_long::from(told.data.nr));
        Ok(known.map(|(_, call)| Notice { id: told.id, pid: told.pid, call: *call, args: told.data.args }))
    }

    /// Whether it still waits, so that what was read of its process is not another's with the same number.
    pub fn waits(&self, notice: &Notice) -> bool {
        sys::is_notice_valid(self.listener.as_fd(), notice.id)
    }

    /// Lets it be made, as if nobody had looked.
    pub fn let_go_on(&self, notice: &Notice) -> io::Result<()> {
        match sys::let_call_go_on(self.listener.as_fd(), notice.id) {
            // Killed meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            answered => answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_tells_of_each_call_and_of_no_other() {
        let program = filter();
        // What the kernel would do with it.
        let run = |number: c_long| {
            let mut at = 1;
            loop {
                let line = &program[at];
                match line.code {
                    0x15 if i64::from(line.k) == number => at += 1 + usize::from(line.jt),
                    0x15 => at += 1 + usize::from(line.jf),
                    _ => return line.k,
                }
            }
        };
        for (number, _) in observed() {
            assert_eq!(run(*number), 0x7fc0_0000, "{number}");
        }
        for other in [libc::SYS_read, libc::SYS_sendmsg, libc::SYS_exit_group, libc::SYS_seccomp] {
            assert_eq!(run(other), 0x7fff_0000, "{other}");
        }
    }
}
