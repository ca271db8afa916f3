//! What a sandbox is to be, fully resolved: the document that the daemon writes and the warden obeys.
//!
//! Nothing here is looked up again: paths are canonical, patterns are final, and the warden refuses a document
//! that it does not understand to the last field. A field that was ignored might have been a restriction.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits;

/// The version of [`Confinement`] that this program writes and understands.
pub const CONFINEMENT_VERSION: u32 = 1;

/// Where a session's socket appears inside.
pub const SESSION_SOCKET: &str = "/run/ostler/session.sock";

/// Where this program appears inside.
pub const PROGRAM: &str = "/run/ostler/ostler";

/// One sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    pub version: u32,
    pub root: CampaignRoot,
    pub home: HomeDirectory,
    /// Toolchains and agent programs: canonical paths, visible under the same name.
    pub read_only: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Directories in writable ones that can only be read: what others rely on, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathBuf>,
    /// The repository of which the root is a work tree, where it lies elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitDirectory>,
    /// Names of hidden files, beyond the built-in ones; `*` stands for any characters.
    pub hidden: Vec<String>,
    pub tooling: Tooling,
    pub network: Network,
    /// The port on 127.0.0.1 inside whose listener is handed to the keeper.
    pub gateway_port: Option<u16>,
    /// This program itself, which appears as [`PROGRAM`]: for agents that are part of it, and for those that call it.
    pub program: Option<PathBuf>,
    /// A socket of the keeper's that appears as [`SESSION_SOCKET`].
    pub session_socket: Option<PathBuf>,
    pub limits: Limits,
    /// Debuggers, strace and leak checkers need it; the pid namespace and Landlock still hold them.
    pub ptrace: bool,
    pub hostname: String,
}

/// The campaign's directory, as it was when it was found to be acceptable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignRoot {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// Nothing in it can be changed: for who only looks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Directories and files below it that can be changed all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leased: Vec<PathBuf>,
}

impl CampaignRoot {
    /// Where what can be changed in a root that is read-only lies.
    pub fn leased(&self) -> impl Iterator<Item = PathBuf> {
        self.leased.iter().map(|below| self.path.join(below))
    }

    fn fault(&self) -> Option<String> {
        use std::path::Component::Normal;
        let is_below = |path: &PathBuf| {
            path.components().next().is_some() && path.components().all(|part| matches!(part, Normal(_)))
        };
        if let Some(path) = self.leased.iter().find(|path| !is_below(path)) {
            return Some(format!("{} is no path below the root", path.display()));
        }
        (!self.read_only && !self.leased.is_empty())
            .then(|| "who may change everything has leased nothing".to_owned())
    }
}

/// A repository's own directory, shown under the same name and read-only: of it, nobody inside can change what says which
/// programs git runs, nor what any other checkout of it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitDirectory {
    /// A `.git`.
    pub path: PathBuf,
    /// What the work tree is called below `worktrees` in it.
    pub entry: String,
    /// What a commit is made of can be written: objects, branches, their logs, and this work tree's own.
    pub commits: bool,
}

/// In a repository's directory: what a commit writes, beside what is the work tree's own.
pub const GIT_WRITTEN: [&str; 3] = ["objects", "refs", "logs/refs"];

/// In the directory of a work tree's own: what says where the rest is, and which programs git runs.
pub const GIT_ENTRY_FIXED: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

impl GitDirectory {
    /// The directory of the work tree's own, below the repository's.
    pub fn own(&self) -> PathBuf {
        Path::new("worktrees").join(&self.entry)
    }

    /// What can be written, below the repository's directory.
    pub fn written(&self) -> Vec<PathBuf> {
        let shared = GIT_WRITTEN.iter().map(PathBuf::from);
        if self.commits { shared.chain([self.own()]).collect() } else { Vec::new() }
    }

    fn fault(&self, root: &Path) -> Option<String> {
        let is_name = !self.entry.is_empty() && !self.entry.contains('/') && !self.entry.starts_with('.');
        if !is_name {
            return Some(format!("{} is no name of a work tree", self.entry));
        }
        if self.path.file_name().is_none_or(|name| name != ".git") {
            return Some(format!("{} is no directory of a repository's", self.path.display()));
        }
        // A second way to the same files would lead past the masks on the first.
        (self.path.starts_with(root) || root.starts_with(&self.path))
            .then(|| "the root and its repository are not to hold each other".to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeDirectory {
    /// What `$HOME` is inside.
    pub inside: PathBuf,
    /// The conversation's directory on the host; without one, home is in memory and gone afterwards.
    pub source: Option<PathBuf>,
}

/// Files in a campaign that make programs of the host run code: git's configuration and hooks, settings of editors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tooling {
    pub protect: Protect,
    /// Paths below the root that the agent may change all the same, such as `.vscode` or `.git/hooks`.
    pub except: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protect {
    /// What is there at the start is read-only.
    Existing,
    /// What is not there is made, empty and read-only.
    Always,
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Loopback only.
    None,
    /// Loopback, and what the gateway allows to the provider.
    Provider,
    /// Loopback, and every public host through the gateway.
    Open,
    /// The host's network; connections to these TCP ports only.
    Host { ports: Vec<u16> },
}

impl Network {
    /// Whether the sandbox has a network namespace of its own.
    pub fn is_private(&self) -> bool {
        !matches!(self, Network::Host { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub open_files: u64,
    pub processes: u64,
    pub file_bytes: u64,
    pub tmp_bytes: u64,
    pub shm_bytes: u64,
    /// Of the whole session, where a cgroup can hold it to that.
    pub memory_bytes: Option<u64>,
    /// Of the whole session, where a cgroup can hold it to that.
    pub tasks: Option<u64>,
    /// Of each process. JavaScript engines and sanitizers reserve far more than they use and die of this one.
    pub address_space_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            open_files: limits::SANDBOX_OPEN_FILES,
            processes: limits::SANDBOX_PROCESSES,
            file_bytes: limits::SANDBOX_FILE_BYTES,
            tmp_bytes: limits::SANDBOX_TMP_BYTES,
            shm_bytes: limits::SANDBOX_SHM_BYTES,
            memory_bytes: None,
            tasks: None,
            address_space_bytes: None,
        }
    }
}

impl Confinement {
    /// The strictest sandbox around a root: nothing beyond the defaults, no network, home in memory.
    pub fn new(root: CampaignRoot) -> Self {
        Confinement {
            version: CONFINEMENT_VERSION,
            root,
            home: HomeDirectory { inside: "/home/agent".into(), source: None },
            read_only: Vec::new(),
            writable: Vec::new(),
            kept: Vec::new(),
            git: None,
            hidden: Vec::new(),
            tooling: Tooling { protect: Protect::Existing, except: Vec::new() },
            network: Network::None,
            gateway_port: None,
            program: None,
            session_socket: None,
            limits: Limits::default(),
            ptrace: false,
            hostname: "sandbox".to_owned(),
        }
    }

    /// What makes the document unusable, whatever the machine it is used on.
    pub fn fault(&self) -> Option<String> {
        if self.version != CONFINEMENT_VERSION {
            return Some(format!("confinement has version {}", self.version));
        }
        if self.gateway_port.is_some() && !self.network.is_private() {
            return Some("a gateway needs a private network".to_owned());
        }
        // A second way to the campaign's files would lead past the masks on the first.
        if let Some(source) = &self.home.source
            && (source.starts_with(&self.root.path) || self.root.path.starts_with(source))
        {
            return Some("home and the campaign's root are not to hold each other".to_owned());
        }
        if let Some(fault) = self.root.fault() {
            return Some(fault);
        }
        if let Some(fault) = self.git.as_ref().and_then(|git| git.fault(&self.root.path)) {
            return Some(fault);
        }
        let paths = [&self.root.path, &self.home.inside].into_iter();
        let git = self.git.iter().map(|git| &git.path);
        let paths = paths.chain(git).chain(&self.home.source).chain(&self.read_only).chain(&self.writable);
        for path in paths.chain(&self.program).chain(&self.session_socket) {
            if let Some(fault) = path_fault(path) {
                return Some(fault);
            }
        }
        let is_in_writable = |path: &&PathBuf| {
            self.writable.iter().any(|writable| path.starts_with(writable) && *path != writable)
        };
        if let Some(path) = self.kept.iter().find(|path| path_fault(path).is_some() || !is_in_writable(path))
        {
            return Some(format!("{} is in nothing that can be written", path.display()));
        }
        // What the sandbox makes anew, and what holds everybody's files, is not shown even to be read.
        if let Some(path) = self.read_only.iter().find(|path| is_never_shown(path)) {
            return Some(format!("{} cannot be shown as a whole", path.display()));
        }
        // A part of the system that an agent may write is a part of the host.
        let writable = [&self.root.path, &self.home.inside].into_iter().chain(&self.writable);
        writable.clone().find(|path| is_of_the_system(path)).map(|path| {
            format!("{} is a directory of the system and cannot be given to an agent", path.display())
        })
    }
}

/// In a campaign's root: settings of editors and agents, which run commands when the directory is opened.
pub const TOOLING_TOP: [&str; 8] =
    [".vscode", ".idea", ".claude", ".codex", ".husky", ".mcp.json", ".envrc", ".gitmodules"];

/// In each `.git`: what says which programs git runs.
pub const TOOLING_IN_GIT: [&str; 5] = ["config", "hooks", "info/attributes", "config.worktree", "modules"];

/// Whether a path below a campaign's root is one of the files that make programs of the host run code, or in one.
pub fn is_tooling(below: &Path) -> bool {
    let in_git = |git: &Path| {
        let inside = below.strip_prefix(git).unwrap_or(below);
        TOOLING_IN_GIT.iter().any(|name| inside.starts_with(name))
    };
    TOOLING_TOP.iter().any(|name| below.starts_with(name))
        || below.ancestors().filter(|part| part.file_name().is_some_and(|name| name == ".git")).any(in_git)
}

fn path_fault(path: &Path) -> Option<String> {
    use std::path::Component::{Normal, RootDir};
    if !path.is_absolute() {
        return Some(format!("{} is not absolute", path.display()));
    }
    // `components` drops `.` and doubled slashes, which are harmless.
    (!path.components().all(|part| matches!(part, Normal(_) | RootDir)))
        .then(|| format!("{} is not canonical", path.display()))
}

/// What holds everybody's files, and what the sandbox makes anew: sockets and processes are there.
pub(crate) fn is_never_shown(path: &Path) -> bool {
    const WHOLE: [&str; 7] = ["/", "/boot", "/etc", "/home", "/root", "/tmp", "/var"];
    const BELOW_TOO: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];
    WHOLE.iter().any(|whole| path == Path::new(whole))
        || BELOW_TOO.iter().any(|system| path.starts_with(system))
}

/// The root of the file system, what the sandbox makes anew, and what it shows of the host.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    const WHOLE: [&str; 10] =
        ["/", "/home", "/root", "/mnt", "/media", "/opt", "/srv", "/tmp", "/var", "/var/tmp"];
    const BELOW_TOO: [&str; 13] = [
        "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin",
        "/sys", "/usr",
    ];
    WHOLE.iter().any(|system| path == Path::new(system))
        || BELOW_TOO.iter().any(|system| path.starts_with(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(root: &str) -> Confinement {
        Confinement::new(CampaignRoot {
            path: root.into(),
            device: 1,
            inode: 2,
            read_only: false,
            leased: Vec::new(),
        })
    }

    #[test]
    fn an_unknown_field_is_refused_at_every_depth() {
        let mut document = confinement("/srv/camp");
        document.network = Network::Host { ports: vec![443] };
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(serde_json::from_value::<Confinement>(json.clone()).unwrap(), document);
        for pointer in ["", "/root", "/home", "/tooling", "/limits", "/network", "/network/host"] {
            let mut widened = json.clone();
            widened.pointer_mut(pointer).unwrap()["also"] = true.into();
            assert!(serde_json::from_value::<Confinement>(widened).is_err(), "{pointer}");
        }
    }

    #[test]
    fn a_repository_is_beside_its_work_tree() {
        let mut document = confinement("/s/worktrees/shop/fix");
        let git = |path: &str, entry: &str| {
            Some(GitDirectory { path: path.into(), entry: entry.to_owned(), commits: true })
        };
        document.git = git("/srv/shop/.git", "fix");
        assert_eq!(document.fault(), None);
        let written = document.git.as_ref().unwrap().written();
        assert_eq!(written, ["objects", "refs", "logs/refs", "worktrees/fix"].map(PathBuf::from));
        for (path, entry) in [
            ("/srv/shop/.git", ""),
            ("/srv/shop/.git", ".."),
            ("/srv/shop/.git", "a/b"),
            ("/srv/shop", "fix"),
            ("/s/worktrees/shop/fix/.git", "fix"),
            ("relative/.git", "fix"),
        ] {
            document.git = git(path, entry);
            assert!(document.fault().is_some(), "{path} {entry}");
        }
    }

    #[test]
    fn a_part_is_leased_of_a_root_that_is_read_only() {
        let mut document = confinement("/srv/camp");
        document.root.leased = vec!["src/api".into()];
        assert!(document.fault().is_some(), "all of it can be changed");
        document.root.read_only = true;
        assert_eq!(document.fault(), None);
        for path in ["", "/srv/camp/src", "../other", "src/../.."] {
            document.root.leased = vec![path.into()];
            assert!(document.fault().is_some(), "{path}");
        }
    }

    #[test]
    fn only_what_could_be_written_is_kept() {
        let mut document = confinement("/srv/camp");
        document.writable = vec!["/srv/shared".into()];
        document.kept = vec!["/srv/shared/context".into()];
        assert_eq!(document.fault(), None);
        for path in ["/srv/shared", "/srv/other", "context", "/srv/shared/../camp"] {
            document.kept = vec![path.into()];
            assert!(document.fault().is_some(), "{path}");
        }
    }

    #[test]
    fn what_the_system_needs_is_never_given_away() {
        for root in ["/", "/home", "/root", "/usr/local", "/etc", "/proc/1", "/tmp", "/var"] {
            assert!(confinement(root).fault().is_some(), "{root}");
        }
        for root in ["/home/ada/shop", "/tmp/x", "/var/lib/camp", "/root/camp", "/opt/camp"] {
            assert_eq!(confinement(root).fault(), None, "{root}");
        }
        for whole in ["/", "/home", "/root", "/proc"] {
            let mut shown = confinement("/srv/camp");
            shown.read_only.push(whole.into());
            assert!(shown.fault().unwrap().contains("as a whole"), "{whole}");
        }
        let mut extra = confinement("/srv/camp");
        extra.writable.push("/etc/cron.d".into());
        assert!(extra.fault().is_some());
    }

    #[test]
    fn paths_are_absolute_and_canonical() {
        assert!(confinement("work").fault().is_some());
        assert!(confinement("/srv/../etc").fault().is_some());
        let mut newer = confinement("/srv/camp");
        newer.version += 1;
        assert!(newer.fault().unwrap().contains("version"));
        for source in ["/srv", "/srv/camp", "/srv/camp/.home"] {
            let mut nested = confinement("/srv/camp");
            nested.home.source = Some(source.into());
            assert!(nested.fault().unwrap().contains("hold each other"), "{source}");
        }
        let mut open = confinement("/srv/camp");
        open.network = Network::Host { ports: vec![443] };
        open.gateway_port = Some(1);
        assert!(open.fault().unwrap().contains("private network"));
    }
}
