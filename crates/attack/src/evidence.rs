//! What is to be seen of an attempt outside, whatever it says of itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::confined::Ended;
use crate::scene::{HOSTS_OWN, SCRATCH, Scene};
use crate::stage::{GIT_LINKS, Stage};
use crate::sys;

/// Files that were there from the start, as they have to stay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Before {
    files: BTreeMap<PathBuf, Seen>,
    victims: Vec<String>,
    hostname: String,
    mounts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    links: u64,
    modified: (i64, i64),
    /// Bytes, or where a link leads to.
    content: Vec<u8>,
}

/// Git changes these when it works as it should.
const MAY_CHANGE: [&str; 10] = [
    ".git/objects",
    ".git/refs",
    ".git/logs",
    ".git/index",
    ".git/HEAD",
    ".git/COMMIT_EDITMSG",
    ".git/worktrees/tree/index",
    ".git/worktrees/tree/logs",
    ".git/worktrees/tree/HEAD",
    SCRATCH,
];
const LARGEST: u64 = 1 << 20;

fn walk(at: &Path, visit: &mut impl FnMut(&Path, &fs::Metadata) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(at)? {
        let path = entry?.path();
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        // What an attempt has closed is opened, so that it can be looked at and thrown away.
        if (found.is_dir() || found.is_file()) && found.mode() & 0o400 == 0 {
            let open = found.mode() & 0o7777 | if found.is_dir() { 0o700 } else { 0o400 };
            fs::set_permissions(&path, fs::Permissions::from_mode(open))?;
        }
        visit(&path, &found)?;
        if found.is_dir() {
            walk(&path, visit)?;
        }
    }
    Ok(())
}

fn see(path: &Path, found: &fs::Metadata) -> io::Result<Seen> {
    let content = if found.is_symlink() {
        fs::read_link(path)?.as_os_str().as_bytes().to_vec()
    } else if found.is_file() && found.len() <= LARGEST {
        fs::read(path)?
    } else {
        Vec::new()
    };
    let is_dir = found.is_dir();
    Ok(Seen {
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
        inode: found.ino(),
        // Those of a directory change with what is in it, which is seen by itself.
        links: if is_dir { 0 } else { found.nlink() },
        modified: if is_dir { (0, 0) } else { (found.mtime(), found.mtime_nsec()) },
        content,
    })
}

fn files(scene: &Scene) -> io::Result<BTreeMap<PathBuf, Seen>> {
    let mut files = BTreeMap::new();
    for top in [&scene.root, &scene.outside] {
        walk(top, &mut |path, found| {
            let may_change = MAY_CHANGE.iter().any(|name| path.starts_with(scene.root.join(name)));
            if !may_change {
                files.insert(path.to_owned(), see(path, found)?);
            }
            Ok(())
        })?;
    }
    Ok(files)
}

/// State, priority, limits and the like of somebody who does nothing.
fn state(pid: i32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> =
        stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').collect()).unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or("gone");
    let status = read("status");
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    const IOPRIO_WHO_PROCESS: u64 = 1;
    let io = sys::plain(libc::SYS_ioprio_get, &[IOPRIO_WHO_PROCESS, pid as u64]).unwrap_or(-1);
    let state = [
        format!("state {}", field(3)),
        format!("nice {}", field(19)),
        format!("policy {}", field(41)),
        format!("io {io}"),
        line("TracerPid"),
        line("SigPnd"),
        line("ShdPnd"),
        line("Cpus_allowed:"),
        format!("oom {}", read("oom_score_adj").trim()),
        read("limits"),
    ];
    state.join("\n")
}

impl Before {
    pub(crate) fn look(stage: &Stage) -> io::Result<Before> {
        let scene = &stage.scene;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Before {
            files: files(scene)?,
            victims: [scene.victim, scene.stopped].map(state).to_vec(),
            hostname: fs::read_to_string("/proc/sys/kernel/hostname")?,
            // Others may be mounting at the same time.
            mounts: mounts.lines().filter(|line| line.contains(&scene.token)).map(str::to_owned).collect(),
        })
    }
}

/// All that is not as it was. Strays are removed.
pub(crate) fn gather(stage: &Stage, before: &Before, ended: &Ended) -> io::Result<Vec<String>> {
    let scene = &stage.scene;
    let mut found = Vec::new();
    if [&ended.stdout, &ended.stderr].iter().any(|text| text.contains(&stage.secret)) {
        found.push("it has read a secret".to_owned());
    }
    let now = Before::look(stage)?;
    compare(before, &now, &mut found);
    scratch(stage, &mut found)?;
    visitors(stage, &mut found);
    strays(scene, &mut found);
    survivors(scene, &mut found);
    left_behind(scene, &mut found);
    Ok(found)
}

fn compare(before: &Before, now: &Before, found: &mut Vec<String>) {
    for (path, was) in &before.files {
        match now.files.get(path) {
            None => found.push(format!("{} is gone", path.display())),
            Some(is) if is != was => found.push(format!("{} was changed", path.display())),
            Some(_) => {}
        }
    }
    for path in now.files.keys().filter(|path| !before.files.contains_key(*path)) {
        found.push(format!("{} was made", path.display()));
    }
    for (was, is) in before.victims.iter().zip(&now.victims) {
        let lines = was.lines().zip(is.lines()).filter(|(was, is)| was != is);
        found.extend(lines.map(|(was, is)| format!("a process of the host's had {was:?} and has {is:?}")));
    }
    if before.hostname != now.hostname {
        found.push(format!("the host is called {}", now.hostname.trim()));
    }
    if before.mounts != now.mounts {
        found.push("the host's mounts were changed".to_owned());
    }
}

/// What it has made where it may: no secret, and nothing that gives rights.
fn scratch(stage: &Stage, found: &mut Vec<String>) -> io::Result<()> {
    const FILE_KINDS: u32 = libc::S_IFMT;
    let secret = stage.secret.as_bytes();
    walk(&stage.scene.root, &mut |path, metadata| {
        let mode = metadata.mode();
        let is_new = path.starts_with(stage.scene.scratch(""));
        if mode & 0o6000 != 0 && !metadata.is_symlink() {
            found.push(format!("{} has mode {:o}", path.display(), mode & 0o7777));
        }
        let is_ours = GIT_LINKS.iter().any(|(link, target)| {
            path == stage.scene.in_root(link) && fs::read_link(path).is_ok_and(|now| now == Path::new(target))
        });
        if metadata.is_symlink() && !is_ours && path.components().any(|part| part.as_os_str() == ".git") {
            found.push(format!("{} is a link, which git on the host follows", path.display()));
        }
        if [libc::S_IFBLK, libc::S_IFCHR].contains(&(mode & FILE_KINDS)) {
            found.push(format!("{} is a device", path.display()));
        }
        if !metadata.is_file() {
            return Ok(());
        }
        let mut room = [0; 64];
        if rustix::fs::getxattr(path, "security.capability", &mut room[..]).is_ok() {
            found.push(format!("{} has capabilities", path.display()));
        }
        if is_new && metadata.len() <= LARGEST {
            let content = fs::read(path)?;
            if content.windows(secret.len()).any(|part| part == secret) {
                found.push(format!("a secret was copied to {}", path.display()));
            }
        }
        Ok(())
    })
}

fn visitors(stage: &Stage, found: &mut Vec<String>) {
    let listeners = &stage.listeners;
    let mut room = [0; 64];
    let visits = [
        ("TCP on 127.0.0.1", listeners.tcp.accept().is_ok()),
        ("TCP on ::1", listeners.tcp6.as_ref().is_some_and(|tcp6| tcp6.accept().is_ok())),
        ("UDP on 127.0.0.1", listeners.udp.recv(&mut room).is_ok()),
        ("a socket", listeners.path.accept().is_ok()),
        ("a datagram socket", listeners.path_datagram.recv(&mut room).is_ok()),
        ("an abstract socket", listeners.name.accept().is_ok()),
        ("an abstract datagram socket", listeners.name_datagram.recv(&mut room).is_ok()),
        ("a fifo", matches!((&listeners.fifo).read(&mut room), Ok(1..))),
    ];
    found.extend(
        visits.iter().filter(|(_, came)| *came).map(|(name, _)| format!("{name} of the host's was reached")),
    );
}

fn strays(scene: &Scene, found: &mut Vec<String>) {
    let homes = scene.home.iter().map(PathBuf::as_path);
    for directory in HOSTS_OWN.iter().map(Path::new).chain(homes) {
        let stray = scene.stray(directory);
        if stray.symlink_metadata().is_ok() {
            found.push(format!("{} was made", stray.display()));
            let _ = fs::remove_file(&stray);
        }
    }
}

/// What lives on in the kernel without anybody who uses it.
fn left_behind(scene: &Scene, found: &mut Vec<String>) {
    let key = scene.left_key as u64;
    let kinds = [
        ("shared memory", sys::plain(libc::SYS_shmget, &[key, 0, 0])),
        ("a message queue", sys::plain(libc::SYS_msgget, &[key, 0])),
        ("a semaphore", sys::plain(libc::SYS_semget, &[key, 0, 0])),
    ];
    found
        .extend(kinds.iter().filter(|(_, id)| id.is_ok()).map(|(name, _)| format!("{name} was left behind")));
}

/// Processes of the attempt that have outlived its sandbox.
fn survivors(scene: &Scene, found: &mut Vec<String>) {
    let us = [std::process::id().to_string(), scene.victim.to_string(), scene.stopped.to_string()];
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) || us.contains(&name) {
            continue;
        }
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if environment.windows(scene.token.len()).any(|part| part == scene.token.as_bytes()) {
            found.push(format!("process {name} has outlived its sandbox"));
            if let Some(pid) = name.parse().ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}
