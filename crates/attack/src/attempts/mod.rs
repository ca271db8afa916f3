//! The attempts, by area, and the few words that they are written in.

mod controls;
mod delayed;
mod descriptors;
mod environment;
mod files;
mod git;
mod hidden;
mod kernel;
mod links;
mod mounts;
mod network;
mod privileges;
mod proc;
mod processes;
mod resources;
mod set_id;
mod sockets;
mod terminals;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use libc::c_long;

use crate::attempt::{Attempt, Said};
use crate::sys;

pub(crate) fn all() -> impl Iterator<Item = &'static Attempt> {
    [
        files::ALL,
        hidden::ALL,
        links::ALL,
        proc::ALL,
        processes::ALL,
        sockets::ALL,
        descriptors::ALL,
        terminals::ALL,
        mounts::ALL,
        privileges::ALL,
        set_id::ALL,
        kernel::ALL,
        network::ALL,
        environment::ALL,
        git::ALL,
        delayed::ALL,
        resources::ALL,
        controls::ALL,
    ]
    .into_iter()
    .flatten()
}

/// It was refused, or it was not.
fn said<T>(result: Result<T, impl std::fmt::Display>) -> Said {
    match result {
        Ok(_) => Said::Got("it was allowed".to_owned()),
        Err(error) => Said::Blocked(error.to_string()),
    }
}

/// What can be read of a file is printed, for the suite to find its secret in.
fn read(path: impl AsRef<Path>) -> Said {
    match fs::read(path) {
        Ok(bytes) => Said::Got(String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()),
        Err(error) => Said::Blocked(error.to_string()),
    }
}

/// Of several ways to the same thing, one is enough.
fn any(ways: impl IntoIterator<Item = (String, Said)>) -> Said {
    let mut blocked = None;
    let mut untried = None;
    for (way, said) in ways {
        match said {
            Said::Got(what) => return Said::Got(format!("{way}: {what}")),
            Said::Untried(why) => untried = untried.or(Some(format!("{way}: {why}"))),
            Said::Blocked(why) | Said::Tried(why) => blocked = blocked.or(Some(format!("{way}: {why}"))),
        }
    }
    match (blocked, untried) {
        (Some(why), _) => Said::Blocked(why),
        (None, why) => Said::Untried(why.unwrap_or_else(|| "there is nothing to try".to_owned())),
    }
}

fn way(name: impl ToString, said: Said) -> (String, Said) {
    (name.to_string(), said)
}

/// A call whose arguments would do nothing. Any other answer than a refusal of the call itself means that the kernel
/// has looked at them.
fn refused(number: c_long, args: &[u64]) -> Said {
    answer(sys::plain(number, args))
}

fn answer<T>(result: io::Result<T>) -> Said {
    match result {
        Ok(_) => Said::Got("the call was carried out".to_owned()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => Said::Blocked(error.to_string()),
            _ => Said::Got(format!("the call reached the kernel: {error}")),
        },
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// A program's success; what is missing makes an attempt untried.
fn program(name: &str, words: &[&str], at: &Path) -> Said {
    match Command::new(name).args(words).current_dir(at).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Said::Untried(format!("there is no {name}")),
        Err(error) => Said::Blocked(error.to_string()),
        Ok(output) if output.status.success() => {
            Said::Got(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr);
            Said::Blocked(words.lines().next().unwrap_or("it failed").to_owned())
        }
    }
}

const EMPTY: &[u8] = b"\0";
