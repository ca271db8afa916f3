//! Files with set-id bits, left behind for other users of the host to run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, XattrFlags, openat2};

use super::{any, c_path, program, said, way};
use crate::attempt::{Attempt, Said, usual};
use crate::scene::Scene;
use crate::sys::{self, Arg, call};

const PROGRAM: &[u8] = b"#!/bin/sh\nid\n";
const HERE: u64 = libc::AT_FDCWD as u64;
const SYS_FCHMODAT2: i64 = 452;
const MODES: [u32; 3] = [0o4755, 0o2755, 0o6755];

/// A file with something in it, to be given the bits.
fn filled(scene: &Scene) -> io::Result<std::path::PathBuf> {
    let path = scene.scratch("filled");
    fs::write(&path, PROGRAM)?;
    Ok(path)
}

/// Tries each of the modes, with and without bits that the kernel ignores.
fn each_mode(tried: impl Fn(u64) -> io::Result<i64>) -> Said {
    any(MODES
        .iter()
        .flat_map(|&mode| [u64::from(mode), u64::from(mode) | 1 << 32])
        .map(|mode| way(format!("{mode:o}"), said(tried(mode)))))
}

fn change(scene: &Scene, tried: impl Fn(&std::ffi::CStr, u64) -> io::Result<i64>) -> Said {
    match filled(scene) {
        Ok(path) => each_mode(|mode| tried(&c_path(&path), mode)),
        Err(error) => Said::Untried(error.to_string()),
    }
}

fn make(scene: &Scene, tried: impl Fn(&std::ffi::CStr, u64) -> io::Result<i64>) -> Said {
    let path = scene.scratch("made");
    each_mode(|mode| {
        let _ = fs::remove_file(&path);
        tried(&c_path(&path), mode)
    })
}

/// An empty file with the bits, which is all that `openat2` can make, is filled in some way.
fn fill(scene: &Scene, filling: impl Fn(&OwnedFd, &Path) -> io::Result<()>) -> Said {
    any([0o6777_u32, 0o4755, 0o2755].map(|mode| {
        let path = scene.scratch(&format!("filled-{mode:o}"));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let made = openat2(CWD, &path, flags, Mode::from_raw_mode(mode), ResolveFlags::empty());
        let outcome = made.map_err(io::Error::from).and_then(|file| filling(&file, &path));
        let mode_name = format!("{mode:o}");
        let is_set = fs::metadata(&path).is_ok_and(|found| found.mode() & 0o6000 != 0 && found.len() > 0);
        match outcome {
            _ if is_set => way(mode_name, Said::Got("it is filled and keeps its bits".to_owned())),
            Ok(()) => way(mode_name, Said::Blocked("filling it took the bits away".to_owned())),
            Err(error) => way(mode_name, Said::Blocked(error.to_string())),
        }
    }))
}

/// It can be made inside; what counts is what is there when the session has ended.
fn judged_outside(made: io::Result<()>) -> Said {
    match made {
        Ok(()) => Said::Tried("it was made".to_owned()),
        Err(error) => Said::Blocked(error.to_string()),
    }
}

fn number(file: &impl AsRawFd) -> u64 {
    file.as_raw_fd() as u64
}

fn source(scene: &Scene) -> io::Result<File> {
    File::open(filled(scene)?)
}

pub(super) const ALL: &[Attempt] = &[
    usual("set-id/chmod", "set the bits by chmod", |scene| {
        #[cfg(target_arch = "x86_64")]
        return change(scene, |path, mode| call(libc::SYS_chmod, &mut [Arg::Path(path), Arg::Number(mode)]));
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried(format!("there is no such call here ({})", scene.token));
    }),
    usual("set-id/fchmod", "set the bits by fchmod", |scene| match filled(scene).and_then(File::open) {
        Ok(file) => each_mode(|mode| sys::plain(libc::SYS_fchmod, &[number(&file), mode])),
        Err(error) => Said::Untried(error.to_string()),
    }),
    usual("set-id/fchmodat", "set the bits by fchmodat", |scene| {
        change(scene, |path, mode| {
            call(libc::SYS_fchmodat, &mut [Arg::Number(HERE), Arg::Path(path), Arg::Number(mode)])
        })
    }),
    usual("set-id/fchmodat2", "set the bits by fchmodat2", |scene| {
        change(scene, |path, mode| {
            call(SYS_FCHMODAT2, &mut [Arg::Number(HERE), Arg::Path(path), Arg::Number(mode), Arg::Number(0)])
        })
    }),
    usual("set-id/creat", "make a file with the bits by creat", |scene| {
        #[cfg(target_arch = "x86_64")]
        return make(scene, |path, mode| call(libc::SYS_creat, &mut [Arg::Path(path), Arg::Number(mode)]));
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried(format!("there is no such call here ({})", scene.token));
    }),
    usual("set-id/open", "make a file with the bits by open", |scene| {
        let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
        #[cfg(target_arch = "x86_64")]
        return make(scene, |path, mode| {
            call(libc::SYS_open, &mut [Arg::Path(path), Arg::Number(flags), Arg::Number(mode)])
        });
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried(format!("there is no such call here ({flags} {})", scene.token));
    }),
    usual("set-id/openat", "make a file with the bits by openat", |scene| {
        let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
        make(scene, |path, mode| {
            let mut args = [Arg::Number(HERE), Arg::Path(path), Arg::Number(flags), Arg::Number(mode)];
            call(libc::SYS_openat, &mut args)
        })
    }),
    usual("set-id/nameless", "make a nameless file with the bits, and name it", |scene| {
        let directory = c_path(&scene.scratch(""));
        let flags = (libc::O_TMPFILE | libc::O_RDWR) as u64;
        each_mode(|mode| {
            let mut args = [Arg::Number(HERE), Arg::Path(&directory), Arg::Number(flags), Arg::Number(mode)];
            call(libc::SYS_openat, &mut args)
        })
    }),
    usual("set-id/mknod", "make a file with the bits by mknod and mknodat", |scene| {
        let file = u64::from(libc::S_IFREG);
        make(scene, |path, mode| {
            let mut args = [Arg::Number(HERE), Arg::Path(path), Arg::Number(file | mode), Arg::Number(0)];
            call(libc::SYS_mknodat, &mut args)
        })
    }),
    usual("set-id/directory", "make a directory with the bits", |scene| {
        let path = scene.scratch("directory");
        let _ = rustix::fs::mkdirat(CWD, &path, Mode::from_raw_mode(0o6777));
        let plain = fs::set_permissions(&path, fs::Permissions::from_mode(0o2777));
        let mode = fs::metadata(&path).map_or(0, |found| found.mode());
        if mode & 0o6000 != 0 { Said::Got(format!("{mode:o}")) } else { said(plain) }
    }),
    usual("set-id/programs", "set the bits by chmod, install, cp and tar", |scene| {
        let at = scene.scratch("");
        let _ = fs::write(at.join("p"), PROGRAM);
        any([
            way("chmod", program("chmod", &["u+s", "p"], &at)),
            way("chmod -R", program("chmod", &["-R", "6755", "."], &at)),
            way("install", program("install", &["-m", "4755", "p", "q"], &at)),
            way("mkdir", program("mkdir", &["-m", "2777", "d"], &at)),
        ])
    }),
    usual("set-id/fill-write", "fill an empty file that has the bits by writing", |scene| {
        fill(scene, |file, _| File::from(file.try_clone()?).write_all(PROGRAM))
    }),
    usual("set-id/fill-positioned", "fill one by pwrite, and by another descriptor", |scene| {
        fill(scene, |file, path| {
            rustix::io::pwrite(file, PROGRAM, 0)?;
            fs::OpenOptions::new().append(true).open(path)?.write_all(PROGRAM)
        })
    }),
    usual("set-id/fill-truncate", "lengthen one", |scene| {
        fill(scene, |file, _| Ok(rustix::fs::ftruncate(file, 4_096)?))
    }),
    usual("set-id/fill-allocate", "allocate room in one", |scene| {
        fill(scene, |file, _| Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, 4_096)?))
    }),
    usual("set-id/fill-mapping", "fill one through shared memory", |scene| {
        fill(scene, |file, _| {
            rustix::fs::ftruncate(file, 4_096)?;
            sys::write_by_mapping(file, PROGRAM)
        })
    }),
    usual("set-id/fill-copy", "fill one by copy_file_range", |scene| {
        fill(scene, |file, _| {
            let from = source(scene)?;
            Ok(rustix::fs::copy_file_range(&from, None, file, None, PROGRAM.len()).map(drop)?)
        })
    }),
    usual("set-id/fill-sendfile", "fill one by sendfile", |scene| {
        fill(scene, |file, _| {
            let from = source(scene)?;
            Ok(rustix::fs::sendfile(file, &from, None, PROGRAM.len()).map(drop)?)
        })
    }),
    usual("set-id/fill-splice", "fill one by splicing a pipe into it", |scene| {
        fill(scene, |file, _| {
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(PROGRAM)?;
            let args = [number(&reader), 0, number(file), 0, PROGRAM.len() as u64, 0];
            sys::plain(libc::SYS_splice, &args).map(drop)
        })
    }),
    usual("set-id/fill-clone", "fill one by sharing another file's blocks", |scene| {
        const FICLONE: u64 = 0x4004_9409;
        fill(scene, |file, _| {
            sys::plain(libc::SYS_ioctl, &[number(file), FICLONE, number(&source(scene)?)]).map(drop)
        })
    }),
    usual(
        "set-id/group-by-acl",
        "fill one that nobody may execute, and make it executable by an ACL",
        |scene| {
            let path = scene.scratch("acl");
            let attempt = || -> io::Result<()> {
                // A set-gid bit without the group's right to execute survives writing.
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
                let file = openat2(CWD, &path, flags, Mode::from_raw_mode(0o2745), ResolveFlags::empty())?;
                File::from(file).write_all(PROGRAM)?;
                // Version 2: owner rwx, group r-x, others r-x.
                let mut acl = 2_u32.to_le_bytes().to_vec();
                for (tag, rights) in [(1_u16, 7_u16), (4, 5), (0x20, 5)] {
                    acl.extend(tag.to_le_bytes());
                    acl.extend(rights.to_le_bytes());
                    acl.extend(u32::MAX.to_le_bytes());
                }
                Ok(rustix::fs::setxattr(&path, "system.posix_acl_access", &acl, XattrFlags::empty())?)
            };
            let outcome = attempt();
            let mode = fs::metadata(&path).map_or(0, |found| found.mode());
            if mode & 0o2010 == 0o2010 {
                Said::Got(format!("a filled file has mode {mode:o}"))
            } else {
                said(outcome)
            }
        },
    ),
    usual(
        "set-id/group-without-execute",
        "leave a filled one that a later chmod makes executable",
        |scene| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
            let path = scene.scratch("group");
            let made = openat2(CWD, &path, flags, Mode::from_raw_mode(0o2745), ResolveFlags::empty())
                .map_err(io::Error::from)
                .and_then(|file| File::from(file).write_all(PROGRAM));
            judged_outside(made)
        },
    ),
    usual("set-id/empty", "leave empty ones for somebody privileged to fill", |scene| {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        judged_outside(MODES.iter().try_for_each(|&mode| {
            let path = scene.scratch(&format!("empty-{mode:o}"));
            openat2(CWD, path, flags, Mode::from_raw_mode(mode), ResolveFlags::empty())?;
            Ok(())
        }))
    }),
    usual("set-id/closed-directory", "leave one in a directory that nobody may look into", |scene| {
        let directory = scene.scratch("closed");
        judged_outside(fs::create_dir(&directory).and_then(|()| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
            let mode = Mode::from_raw_mode(0o4755);
            openat2(CWD, directory.join("inside"), flags, mode, ResolveFlags::empty())?;
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o000))
        }))
    }),
    usual("set-id/capabilities", "give a file capabilities", |scene| match filled(scene) {
        Ok(path) => {
            let mut value = 0x0200_0001_u32.to_le_bytes().to_vec();
            value.extend([0xff; 4]);
            value.extend([0; 12]);
            said(rustix::fs::setxattr(path, "security.capability", &value, XattrFlags::empty()))
        }
        Err(error) => Said::Untried(error.to_string()),
    }),
    usual("set-id/owner", "give a file to root", |scene| match filled(scene) {
        Ok(path) => any([
            way("user", said(std::os::unix::fs::chown(&path, Some(0), None))),
            way("group", said(std::os::unix::fs::chown(&path, None, Some(0)))),
        ]),
        Err(error) => Said::Untried(error.to_string()),
    }),
];
