//! A campaign: a registered directory and what is remembered about it.

use serde::{Deserialize, Serialize};

use crate::{id::CampaignId, name::Name, policy::Policy, time::Time};

/// A registered directory. The root's (device, inode) is kept so that another directory at the same path is
/// noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    pub id: CampaignId,
    pub name: Name,
    pub root: Root,
    pub added: Time,
    #[serde(default)]
    pub policy: Policy,
    /// Hidden files whose content git has all the same, as they were found just now. Not a fact about the campaign that
    /// is remembered.
    #[serde(skip)]
    pub tracked_hidden: Vec<String>,
    /// Why hidden files that appear in it are not all covered at once, as it is just now. None: they are, or nobody runs
    /// there.
    #[serde(skip)]
    pub unwatched: Option<String>,
}

/// Where a campaign lives on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Absolute and canonical.
    pub path: String,
    pub device: u64,
    pub inode: u64,
}

/// Why a directory may not be a campaign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootRefused {
    #[error("{0} is the root of the file system")]
    FileSystemRoot(String),
    #[error("{0} is a system directory")]
    SystemDirectory(String),
    #[error("{0} is your home directory")]
    Home(String),
    #[error("{path} holds Ostler's own files ({inside})")]
    HoldsState { path: String, inside: String },
    #[error("{path} lies in Ostler's own files ({outside})")]
    InsideState { path: String, outside: String },
    #[error("{path} holds the campaign {name}")]
    HoldsCampaign { path: String, name: Name },
    #[error("{path} lies in the campaign {name}, whose agents read and write it")]
    InsideCampaign { path: String, name: Name },
}

/// Directories that belong to the machine. Each of them and everything directly below it is refused, except
/// below those where people keep their work.
const SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/var",
];
/// Directories that hold people's directories: themselves refused, what is below them is not.
const PARENTS: &[&str] =
    &["/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var/tmp", "/var/lib"];

/// Decides whether a canonical path may become a campaign's root.
pub fn check_root(
    path: &str,
    home: Option<&str>,
    state: &[String],
    others: &[Campaign],
) -> Result<(), RootRefused> {
    let owned = || path.to_owned();
    if path == "/" {
        return Err(RootRefused::FileSystemRoot(owned()));
    }
    if home.is_some_and(|home| home == path) {
        return Err(RootRefused::Home(owned()));
    }
    let in_people_s_place = PARENTS.iter().any(|parent| is_below(path, parent));
    let in_system = SYSTEM.iter().any(|dir| path == *dir || is_below(path, dir));
    if PARENTS.contains(&path) || (in_system && !in_people_s_place) {
        return Err(RootRefused::SystemDirectory(owned()));
    }
    for dir in state {
        if dir == path || is_below(dir, path) {
            return Err(RootRefused::HoldsState { path: owned(), inside: dir.clone() });
        }
        if is_below(path, dir) {
            return Err(RootRefused::InsideState { path: owned(), outside: dir.clone() });
        }
    }
    for Campaign { name, root, .. } in others {
        if is_below(&root.path, path) {
            return Err(RootRefused::HoldsCampaign { path: owned(), name: name.clone() });
        }
        if is_below(path, &root.path) {
            return Err(RootRefused::InsideCampaign { path: owned(), name: name.clone() });
        }
    }
    Ok(())
}

/// Says whether `path` lies strictly below `parent`, both canonical.
pub fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_one_s_own_project() {
        let home = Some("/home/ann");
        let state = ["/home/ann/.local/state/ostler".to_owned()];
        let refused = |path: &str| check_root(path, home, &state, &[]).is_err();
        for path in [
            "/",
            "/etc",
            "/etc/ssl",
            "/usr/src/x",
            "/home",
            "/home/ann",
            "/tmp",
            "/home/ann/.local",
            "/home/ann/.local/state/ostler/x",
        ] {
            assert!(refused(path), "{path}");
        }
        for path in ["/home/ann/code", "/srv/app", "/tmp/x", "/data/main", "/home/annette"] {
            assert!(!refused(path), "{path}");
        }
    }
}
