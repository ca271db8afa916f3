//! System calls that no safe crate offers: all `unsafe` of Ostler is in this file.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::mount::MountAttrFlags;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Which of the two processes this is after a [`fork`].
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Copies this process, which must have one thread only.
pub(crate) fn fork() -> io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::other("a process with several threads cannot be copied"));
    }
    // SAFETY: nothing in the warden starts a thread, and the look above makes sure of it wherever /proc is there to
    // be asked: so no lock is held by a thread that the copy does not have, and the copy may do what we may.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        pid => {
            Pid::from_raw(pid).filter(|_| pid > 0).map(Forked::Parent).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// Ends a copy of this process without running what its original is to run at its end.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: `_exit` has no conditions.
    unsafe { libc::_exit(i32::from(code)) }
}

pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    let namespaces = namespaces - UnshareFlags::FILES;
    // SAFETY: only a separate table of descriptors is dangerous, and that flag is not among ours.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

/// Adds attributes to a mount, or to all mounts of a tree.
pub(crate) fn set_mount_attributes(
    mount: impl AsFd,
    attributes: MountAttrFlags,
    recursive: bool,
) -> io::Result<()> {
    mount_setattr(mount.as_fd(), u64::from(attributes.bits()), recursive, None)
}

/// Shows the files of a detached mount with the owners that the map of a user namespace gives them.
pub(crate) fn set_mount_id_map(mount: impl AsFd, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    mount_setattr(mount.as_fd(), libc::MOUNT_ATTR_IDMAP, false, Some(user_namespace))
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
    user_namespace: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both descriptors live as long as the call, the path is a C string, and the kernel reads as many bytes of
    // `change` as it is told there are.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes every descriptor above the three standard ones. Only for the first moment of a program.
pub(crate) fn close_inherited_descriptors() -> io::Result<()> {
    close_range(0)
}

/// Has every descriptor above the three standard ones closed by the next exec.
pub(crate) fn close_descriptors_on_exec() -> io::Result<()> {
    close_range(libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(flags: u32) -> io::Result<()> {
    // SAFETY: on exec, nobody is left who owned one. Without that flag it is called before anything was opened, so
    // what it closes came from whoever started us, and nothing here owns it.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up(any_socket: impl AsFd) -> io::Result<()> {
    // SAFETY: `ifreq` is plain data, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: this request reads one `ifreq`, whose name ends with a zero.
    let result = unsafe {
        libc::ioctl(any_socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The version of Landlock that the kernel offers.
pub(crate) fn landlock_abi() -> io::Result<i32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel wants no attributes, and only answers.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    if abi >= 0 { Ok(abi as i32) } else { Err(io::Error::last_os_error()) }
}

/// Puts a filter on this thread; what it tells of is told to the descriptor that is returned.
pub(crate) fn install_observer(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the kernel reads `len` instructions, which have the same form in both crates, and changes none.
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) }
    };
    // With the second flag a call that is being looked at is broken off by nothing but a kill. Older kernels do not
    // know it.
    let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let made = match install(killable) {
        -1 => install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        made => made,
    };
    let made = i32::try_from(made).map_err(io::Error::other)?;
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// The next call that waits to be let go on.
pub(crate) fn receive_notice(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    // SAFETY: it is plain data, for which zeroes are a value, and those are what the kernel wants to find.
    let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: this request writes one such structure.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) };
    if result == 0 { Ok(notice) } else { Err(io::Error::last_os_error()) }
}

/// Whether a call still waits.
pub(crate) fn is_notice_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: this request reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

pub(crate) fn let_call_go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: this request reads one such structure.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives every signal its default effect: what was ignored would stay ignored over an exec.
pub(crate) fn default_signals() {
    const LAST: libc::c_int = 64;
    for signal in 1..=LAST {
        // SAFETY: no handler is installed. Two signals and those of the C library cannot be changed, and stay.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
