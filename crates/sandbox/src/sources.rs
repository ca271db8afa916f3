//! What of the host is shown inside, as handles: opened in the sandbox's mount namespace, compared with what the daemon
//! has validated, and reachable also where only root can go.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_domain::confinement::Confinement;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use crate::identity::{Identity, Ids};
use crate::mounts::{self, WRITABLE};
use crate::namespaces;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys;

/// Where mounts are made before there is a root of our own to make them in. Every host has it, and it is covered in our
/// own mount namespace only.
pub(crate) const PLACE: &str = "/tmp";

/// How something of the host is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Root,
    Home,
    ReadOnly,
    Writable,
    /// A part of a writable directory that can only be read.
    Kept,
    /// A part of a root that is read-only.
    Leased,
    /// A repository's directory.
    Git,
    /// A part of one that a commit writes.
    GitWritten,
    Socket,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) shown: Shown,
    /// Where it is on the host.
    pub(crate) path: PathBuf,
    /// Where it appears.
    pub(crate) inside: PathBuf,
}

/// Everything that the document names, in the order in which it is mounted: what holds others first.
pub(crate) fn of(confinement: &Confinement) -> Vec<Source> {
    let same = |shown| move |path: &PathBuf| Source { shown, path: path.clone(), inside: path.clone() };
    let mut all = vec![same(Shown::Root)(&confinement.root.path)];
    all.extend(confinement.root.leased().map(|path| same(Shown::Leased)(&path)));
    all.extend(confinement.home.source.iter().map(|path| Source {
        shown: Shown::Home,
        path: path.clone(),
        inside: confinement.home.inside.clone(),
    }));
    all.extend(confinement.read_only.iter().map(same(Shown::ReadOnly)));
    all.extend(confinement.writable.iter().map(same(Shown::Writable)));
    all.extend(confinement.kept.iter().map(same(Shown::Kept)));
    if let Some(git) = &confinement.git {
        all.push(same(Shown::Git)(&git.path));
        all.extend(git.written().iter().map(|part| same(Shown::GitWritten)(&git.path.join(part))));
    }
    all.extend(confinement.program.iter().map(|path| Source {
        shown: Shown::ReadOnly,
        path: path.clone(),
        inside: ostler_domain::confinement::PROGRAM.into(),
    }));
    all.extend(confinement.session_socket.iter().map(|path| Source {
        shown: Shown::Socket,
        path: path.clone(),
        inside: ostler_domain::confinement::SESSION_SOCKET.into(),
    }));
    all.sort_by_key(|source| source.inside.components().count());
    all
}

/// Whose the campaign's root is.
pub(crate) fn owner(confinement: &Confinement) -> Result<Ids, Refusal> {
    let path = &confinement.root.path;
    let found = std::fs::symlink_metadata(path)
        .or_refuse(Stage::Root, format_args!("looking at {}", path.display()))?;
    Ok(Ids { uid: found.uid(), gid: found.gid() })
}

/// Puts everything where the agent's identity can reach it, with the owners that it is to see. Only root can, and only
/// root needs to.
pub(crate) fn stage(
    sources: &[Source],
    confinement: &Confinement,
    identity: &Identity,
) -> Result<(), Refusal> {
    namespaces::leave_mounts()?;
    let map = namespaces::disk_namespace(identity)?;
    let mut copies = Vec::new();
    for source in sources {
        let handle = open(source, &source.path, confinement)?;
        let copy = mounts::copy(&handle)
            .or_refuse(Stage::Mounts, format_args!("copying the mount of {}", source.path.display()))?;
        let is_mapped = match source.shown {
            // What may be written is root's on disk, as the campaign is, or the agent could not write it.
            Shown::Root | Shown::Leased | Shown::Writable | Shown::Kept | Shown::Git | Shown::GitWritten => {
                identity.owns_roots_files
            }
            // The daemon's own files, in both cases.
            Shown::Home | Shown::Socket => true,
            Shown::ReadOnly => false,
        };
        if is_mapped {
            sys::set_mount_id_map(&copy, map.as_fd())
                .or_refuse(Stage::IdMap, format_args!("mapping the owners of {}", source.path.display()))?;
        }
        let is_dir =
            is_dir(&handle).or_refuse(Stage::Mounts, format_args!("looking at {}", source.path.display()))?;
        copies.push((copy, is_dir));
    }
    let place = mounts::make("tmpfs", &[("mode", "0755"), ("size", "1m")], WRITABLE)
        .or_refuse(Stage::Mounts, "making a place for mounts")?;
    let attached = mounts::handle(Path::new(PLACE)).and_then(|over| mounts::attach(&place, over));
    attached.or_refuse(Stage::Mounts, "attaching a place for mounts")?;
    for (number, (copy, is_dir)) in copies.into_iter().enumerate() {
        let name = number.to_string();
        let target = if is_dir { empty_dir(&place, &name) } else { empty_file(&place, &name) };
        target.and_then(|target| mounts::attach(copy, target)).or_refuse(Stage::Mounts, "staging a mount")?;
    }
    Ok(())
}

/// Handles to everything, in the same order. `staged`: where [`stage`] has put it.
pub(crate) fn handles(
    sources: &[Source],
    confinement: &Confinement,
    staged: bool,
) -> Result<Vec<OwnedFd>, Refusal> {
    let open = |(number, source): (usize, &Source)| {
        let path = if staged { Path::new(PLACE).join(number.to_string()) } else { source.path.clone() };
        open(source, &path, confinement)
    };
    sources.iter().enumerate().map(open).collect()
}

fn open(source: &Source, path: &Path, confinement: &Confinement) -> Result<OwnedFd, Refusal> {
    // Agents that work in the same place can put links there, and this is opened with more rights.
    let beneath = match (source.shown, &confinement.git) {
        (Shown::GitWritten, Some(git)) => Some(&git.path),
        (Shown::Leased, _) => Some(&confinement.root.path),
        (Shown::Kept, _) => confinement.writable.iter().find(|writable| path.starts_with(writable)),
        _ => None,
    };
    let opened = match beneath.filter(|_| path == source.path) {
        Some(top) => mounts::handle(top)
            .and_then(|root| mounts::handle_beneath(root.as_fd(), path.strip_prefix(top).unwrap_or(path))),
        None => mounts::handle(path),
    };
    let handle = opened.or_refuse(Stage::Root, format_args!("opening {}", source.path.display()))?;
    if matches!(source.shown, Shown::Leased | Shown::Kept) {
        let found =
            rustix::fs::fstat(&handle).or_refuse(Stage::Root, "looking at a part of what is shown")?;
        if rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink() {
            return Err(Refusal::new(
                Stage::Root,
                format!("{} is a link, and leads elsewhere", source.path.display()),
                "lease what it leads to",
            ));
        }
    }
    let is_of_git = matches!(source.shown, Shown::Git | Shown::GitWritten);
    if is_of_git && !is_dir(&handle).or_refuse(Stage::Root, "looking at the repository")? {
        return Err(Refusal::new(
            Stage::Root,
            format!("{} is no directory", source.path.display()),
            "put the repository's directory back where it was",
        ));
    }
    if source.shown == Shown::Root {
        let found = rustix::fs::fstat(&handle).or_refuse(Stage::Root, "looking at the root")?;
        let root = &confinement.root;
        if (found.st_dev, found.st_ino) != (root.device, root.inode) {
            return Err(Refusal::new(
                Stage::Root,
                format!("{} is not the directory that was registered", root.path.display()),
                "register the campaign again if it was moved or made anew",
            ));
        }
    }
    Ok(handle)
}

pub(crate) fn is_dir(handle: impl AsFd) -> std::io::Result<bool> {
    let found = rustix::fs::fstat(handle)?;
    Ok(rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir())
}

/// A new empty directory, or the one that is there.
pub(crate) fn empty_dir(parent: impl AsFd, name: &str) -> std::io::Result<OwnedFd> {
    match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Err(errno) if errno != rustix::io::Errno::EXIST => return Err(errno.into()),
        _ => {}
    }
    mounts::handle_beneath(parent.as_fd(), Path::new(name))
}

/// A new empty file, to mount another one on.
pub(crate) fn empty_file(parent: impl AsFd, name: &str) -> std::io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    drop(File::from(openat(&parent, name, flags, Mode::from_raw_mode(0o644))?));
    mounts::handle_beneath(parent.as_fd(), Path::new(name))
}
