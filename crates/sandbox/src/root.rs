//! The root that the agent sees: an empty file system with a place for each thing that is shown, and nothing else.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use ostler_domain::confinement::Confinement;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::pivot_root;

use crate::identity::Identity;
use crate::mounts::{self, NO_PROGRAMS, NOTHING, READ_ONLY, WRITABLE};
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sources::{self, PLACE, Shown, Source};
use crate::{dev, etc, sys};

/// Where the host's root is between [`enter`] and [`close`].
const HOST: &str = "/.host";
/// Empty things to cover others with; the agent can list them, and nothing more.
pub(crate) const MASK_FILE: &str = "/.masks/file";
pub(crate) const MASK_DIR: &str = "/.masks/directory";

/// Parts of the host's root that are shown whole, or are links into `/usr`.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The root under construction.
struct NewRoot {
    dir: OwnedFd,
}

/// Builds the root and makes it ours. Behind us, the host's is still there for init.
pub(crate) fn enter(
    confinement: &Confinement,
    identity: &Identity,
    sources: &[Source],
    staged: bool,
) -> Result<(), Refusal> {
    // All of the host is opened first: the new root covers a part of it.
    let handles = sources::handles(sources, confinement, staged)?;
    let system = system()?;
    let etc = host_etc();
    let resolver = (!confinement.network.is_private())
        .then(|| etc::resolver(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()));
    let devices = dev::handles()?;

    let root = NewRoot::attach()?;
    for name in ["proc", "run/ostler", HOST.trim_start_matches('/')] {
        root.dir(Path::new(name))?;
    }
    for (path, part) in &system {
        match part {
            System::Link(target) => symlink(target, root.path(path))
                .or_refuse(Stage::Mounts, format_args!("linking {}", path.display()))?,
            System::Directory(handle) => root.bind(handle, path, READ_ONLY)?,
        }
    }
    for (path, handle) in &etc {
        root.bind(handle, path, READ_ONLY)?;
    }
    let own = etc::own(identity, &confinement.home.inside, &confinement.hostname);
    for (name, text) in own.into_iter().chain(resolver.map(|text| ("resolv.conf", text))) {
        root.dir(Path::new("/etc"))?;
        fs::write(root.path(Path::new("/etc").join(name).as_path()), text)
            .or_refuse(Stage::Mounts, format_args!("writing /etc/{name}"))?;
    }
    root.masks()?;
    for path in etc::COVERED.map(Path::new) {
        if root.existing(path).is_ok() {
            let mask = root.existing(Path::new(MASK_DIR)).or_refuse(Stage::Mounts, "opening a mask")?;
            root.bind(&mask, path, NOTHING)?;
        }
    }
    let limits = &confinement.limits;
    root.dir(Path::new("/dev"))?;
    dev::fill(&root.path(Path::new("/dev")), devices, limits.shm_bytes)?;
    for path in ["/tmp", "/var/tmp"] {
        root.tmpfs(Path::new(path), "1777", limits.tmp_bytes)?;
    }
    if confinement.home.source.is_none() {
        root.tmpfs(&confinement.home.inside, "0700", limits.tmp_bytes)?;
    }
    // Behind those in memory, which would bury what is below `/tmp`.
    for (source, handle) in sources.iter().zip(&handles) {
        let attributes = match source.shown {
            Shown::Root if confinement.root.read_only => READ_ONLY,
            Shown::Root | Shown::Leased | Shown::Home | Shown::Writable | Shown::GitWritten => WRITABLE,
            Shown::ReadOnly | Shown::Kept | Shown::Git => READ_ONLY,
            Shown::Socket => NO_PROGRAMS,
        };
        root.bind(handle, &source.inside, attributes)?;
    }
    root.become_ours()
}

/// Lets go of the host for good. Whatever is to be made in the root has been made.
pub(crate) fn close() -> Result<(), Refusal> {
    let close = || -> io::Result<()> {
        unmount(HOST, UnmountFlags::DETACH)?;
        fs::remove_dir(HOST)?;
        sys::set_mount_attributes(mounts::handle(Path::new("/"))?, READ_ONLY, false)
    };
    close().or_refuse(Stage::Mounts, "letting go of the host's root")
}

impl NewRoot {
    fn attach() -> Result<NewRoot, Refusal> {
        let make = || {
            let root = mounts::make("tmpfs", &[("mode", "0755"), ("size", "16m")], WRITABLE)?;
            mounts::attach(root, mounts::handle(Path::new(PLACE))?)?;
            Ok::<_, io::Error>(NewRoot { dir: mounts::handle(Path::new(PLACE))? })
        };
        make().or_refuse(Stage::Mounts, "making a root")
    }

    /// The way there from the host's root, for what nobody else can change.
    fn path(&self, inside: &Path) -> PathBuf {
        Path::new(PLACE).join(inside.strip_prefix("/").unwrap_or(inside))
    }

    fn existing(&self, path: &Path) -> io::Result<OwnedFd> {
        mounts::handle_beneath(self.dir.as_fd(), path.strip_prefix("/").unwrap_or(path))
    }

    /// A directory of the new root, made if it is not there.
    fn dir(&self, path: &Path) -> Result<OwnedFd, Refusal> {
        let walk = || {
            let mut at = self.existing(Path::new("."))?;
            for name in path.components().filter_map(normal) {
                at = sources::empty_dir(&at, name?)?;
            }
            Ok::<_, io::Error>(at)
        };
        walk().or_refuse(Stage::Mounts, format_args!("making {}", path.display()))
    }

    fn file(&self, path: &Path) -> Result<OwnedFd, Refusal> {
        let parent = self.dir(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        match mounts::handle_beneath(parent.as_fd(), Path::new(name)) {
            Ok(there) => Ok(there),
            Err(_) => sources::empty_file(&parent, name)
                .or_refuse(Stage::Mounts, format_args!("making {}", path.display())),
        }
    }

    fn bind(&self, source: &OwnedFd, path: &Path, attributes: MountAttrFlags) -> Result<(), Refusal> {
        let doing = || format!("mounting {}", path.display());
        let is_dir = sources::is_dir(source).or_refuse(Stage::Mounts, doing())?;
        let target = if is_dir { self.dir(path)? } else { self.file(path)? };
        mounts::bind(source, target, attributes).or_refuse(Stage::Mounts, doing())
    }

    fn tmpfs(&self, path: &Path, mode: &str, bytes: u64) -> Result<(), Refusal> {
        let target = self.dir(path)?;
        let make = || {
            let size = bytes.to_string();
            mounts::attach(mounts::make("tmpfs", &[("mode", mode), ("size", &size)], WRITABLE)?, target)
        };
        make().or_refuse(Stage::Mounts, format_args!("making {}", path.display()))
    }

    fn masks(&self) -> Result<(), Refusal> {
        use std::os::unix::fs::PermissionsExt;
        let file = self.file(Path::new(MASK_FILE))?;
        let dir = self.dir(Path::new(MASK_DIR))?;
        drop((file, dir));
        for path in [MASK_FILE, MASK_DIR] {
            fs::set_permissions(self.path(Path::new(path)), fs::Permissions::from_mode(0o000))
                .or_refuse(Stage::Mounts, "making masks")?;
        }
        Ok(())
    }

    fn become_ours(self) -> Result<(), Refusal> {
        let pivot = || {
            std::env::set_current_dir(PLACE)?;
            pivot_root(".", HOST.trim_start_matches('/'))?;
            std::env::set_current_dir("/")
        };
        pivot().or_refuse(Stage::Mounts, "changing the root")
    }
}

fn normal(component: Component<'_>) -> Option<io::Result<&str>> {
    match component {
        Component::Normal(name) => Some(name.to_str().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not UTF-8", Path::new(name).display()))
        })),
        _ => None,
    }
}

enum System {
    Link(PathBuf),
    Directory(OwnedFd),
}

fn system() -> Result<Vec<(&'static Path, System)>, Refusal> {
    let mut found = Vec::new();
    for path in SYSTEM.map(Path::new) {
        let Ok(metadata) = fs::symlink_metadata(path) else { continue };
        let part = if metadata.is_symlink() {
            fs::read_link(path).map(System::Link)
        } else {
            mounts::handle(path).map(System::Directory)
        };
        found.push((path, part.or_refuse(Stage::Mounts, format_args!("opening {}", path.display()))?));
    }
    Ok(found)
}

/// What of `/etc` is shown. Links are followed: most lead to `/usr`, and where they lead elsewhere the text is meant.
fn host_etc() -> Vec<(PathBuf, OwnedFd)> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let shown = entries.filter(|entry| entry.file_name().to_str().is_some_and(etc::is_shown));
    // A link that leads nowhere on the host leads nowhere inside.
    shown.filter_map(|entry| Some((entry.path(), mounts::handle_of_target(&entry.path()).ok()?))).collect()
}
