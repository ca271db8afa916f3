//! System calls by their numbers, as somebody would make them who does not ask a library.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{c_int, c_long};

/// An argument of a call.
pub(crate) enum Arg<'a> {
    Number(u64),
    Path(&'a CStr),
    In(&'a [u8]),
    Out(&'a mut [u8]),
}

/// Makes a call.
pub(crate) fn call(number: c_long, args: &mut [Arg<'_>]) -> io::Result<i64> {
    let mut raw = [0_u64; 6];
    for (raw, arg) in raw.iter_mut().zip(args) {
        *raw = match arg {
            Arg::Number(number) => *number,
            Arg::Path(path) => path.as_ptr() as u64,
            Arg::In(bytes) => bytes.as_ptr() as u64,
            Arg::Out(bytes) => bytes.as_mut_ptr() as u64,
        };
    }
    // SAFETY: this crate makes no call that maps, unmaps or protects memory. What a call reads or writes is behind an
    // argument that is borrowed for as long as it takes, of the size that the caller names; any other number is no
    // address of ours, and the kernel refuses it.
    let result = unsafe { libc::syscall(number, raw[0], raw[1], raw[2], raw[3], raw[4], raw[5]) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a call with nothing but numbers.
pub(crate) fn plain(number: c_long, args: &[u64]) -> io::Result<i64> {
    let mut args: Vec<Arg<'_>> = args.iter().map(|&number| Arg::Number(number)).collect();
    call(number, &mut args)
}

/// The number of a request to a device. C libraries differ in its type; the kernel looks at 32 bits.
pub(crate) fn request(number: libc::Ioctl) -> u64 {
    u64::from(number as u32)
}

/// A call that makes a descriptor.
pub(crate) fn descriptor(number: c_long, args: &mut [Arg<'_>]) -> io::Result<OwnedFd> {
    let fd = call(number, args)?;
    let fd = c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The process number, asked for as a 32-bit program would.
#[cfg(target_arch = "x86_64")]
pub(crate) fn getpid_of_i386() -> i32 {
    const GETPID: i32 = 20;
    let pid: i32;
    // SAFETY: this call takes no argument and touches no memory; the old gate keeps all registers but the first,
    // except for those that are named.
    unsafe {
        std::arch::asm!(
            "int 0x80", inlateout("eax") GETPID => pid,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _
        );
    }
    pid
}

/// Another process that is a copy of this one, by the bare call with flags of one's own. The copy ends at once.
pub(crate) fn clone(flags: u64) -> io::Result<i64> {
    // SAFETY: without a stack of its own and without CLONE_VM the copy has our memory for itself, and all that it
    // does is to end.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD as u64, 0, 0, 0, 0) };
    match result {
        // SAFETY: `_exit` has no conditions.
        0 => unsafe { libc::_exit(0) },
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// Writes through shared memory into a file that has room for `bytes`.
pub(crate) fn write_by_mapping(file: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    // SAFETY: the kernel chooses a place that is free, and the mapping is used only as long as it is there.
    unsafe {
        let place = mmap(
            std::ptr::null_mut(),
            bytes.len(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            file,
            0,
        )?;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len());
        munmap(place, bytes.len())?;
    }
    Ok(())
}
