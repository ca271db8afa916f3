//! What a traced command wanted and was not given, and the smallest grants that would have given it.
//!
//! Whoever watches sees a call before it is made and looks for themselves what will come of it; between the look and
//! the call things may change. So this explains, and never decides.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::policy::PRESETS;

/// The record of one traced command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// In the order in which they were first wanted.
    pub denied: Vec<Denied>,
    /// Calls that were looked at.
    pub calls: u64,
    /// Different things that were wanted beyond those that are kept.
    pub left_out: u64,
}

/// One thing that was wanted, however often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub wish: Wish,
    /// A path, or an address with its port.
    pub target: String,
    pub why: Why,
    /// The program that wanted it first.
    pub program: String,
    pub times: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// To open it for reading, or to learn whether it is there.
    Read,
    Write,
    Execute,
    Connect,
}

impl Wish {
    pub const fn as_str(self) -> &'static str {
        match self {
            Wish::Read => "read",
            Wish::Write => "write",
            Wish::Execute => "execute",
            Wish::Connect => "connect",
        }
    }
}

/// What stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is on the host, and not in the sandbox.
    Absent,
    /// A hidden file.
    Hidden,
    /// It is there to be read only.
    ReadOnly,
    /// A socket of the host's.
    Socket,
    /// A service on the host's own loopback.
    HostsLoopback,
    /// There is no network, or none to that port.
    Network,
    /// A name was to be looked up; which one is not to be seen.
    Name,
}

impl Why {
    pub const fn words(self) -> &'static str {
        match self {
            Why::Absent => "not in the sandbox",
            Why::Hidden => "hidden",
            Why::ReadOnly => "read-only",
            Why::Socket => "a socket of the host's",
            Why::HostsLoopback => "on the host's loopback",
            Why::Network => "no network to it",
            Why::Name => "looks up a name",
        }
    }
}

/// What was found when looking for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub is_dir: bool,
    pub is_socket: bool,
    /// It lies on a file system that cannot be written to.
    pub is_read_only: bool,
    /// It is a cover over something hidden.
    pub is_cover: bool,
}

/// Why a file is not given, from how it looks on both sides; none if it is, or if nobody could give it.
pub fn why(wish: Wish, inside: Option<Found>, outside: Option<Found>, has_hidden_name: bool) -> Option<Why> {
    match (inside, outside) {
        (Some(inside), _) if inside.is_cover => Some(Why::Hidden),
        (Some(inside), _) if wish == Wish::Write && inside.is_read_only && !inside.is_dir => {
            Some(Why::ReadOnly)
        }
        (Some(_), _) | (None, None) => None,
        (None, Some(outside)) if outside.is_socket => Some(Why::Socket),
        (None, Some(_)) if has_hidden_name => Some(Why::Hidden),
        (None, Some(_)) => Some(Why::Absent),
    }
}

/// A change of a campaign's policy that would let something through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// As it is typed behind `ostler campaign set NAME`.
    pub setting: String,
    /// How many of the things that were denied it would let through.
    pub lets_through: usize,
}

/// What holds secrets by its place rather than by its name.
const SECRET_PLACES: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh"];
const SECRET_FILES: [&str; 5] = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"];
/// What makes a directory too much to be given for the sake of a few files in it.
const LEAST_DEPTH: usize = 3;
/// So many files of a directory stand for the directory.
const A_FEW: usize = 3;

/// The grants, the fewest and smallest that would have let everything through that can be. `home` is the person's.
pub fn suggestions(trace: &Trace, home: Option<&Path>) -> Vec<Suggestion> {
    let wanted = |write: bool| -> Vec<&Path> {
        let is_wanted = |denied: &&Denied| {
            let is_write = denied.wish == Wish::Write;
            let reads = matches!(denied.wish, Wish::Read | Wish::Execute) && !write;
            matches!(denied.why, Why::Absent) && (reads || (write && is_write))
        };
        let paths = trace.denied.iter().filter(is_wanted).map(|denied| Path::new(denied.target.as_str()));
        paths.filter(|path| !is_secret(path, home)).collect()
    };
    // A directory is granted for writing, never a single file: editors and tools replace files.
    let places: Vec<PathBuf> =
        wanted(true).iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    let places: Vec<&Path> =
        places.iter().map(PathBuf::as_path).filter(|path| is_narrow(path, home)).collect();
    let writable = grants("write", &places, home);
    // What may be written may be read.
    let reads = wanted(false).into_iter().filter(|path| !places.iter().any(|place| path.starts_with(place)));
    let (presets, rest) = by_preset(reads.collect(), home);
    let readable = grants("read", &rest, home);
    presets.into_iter().chain(readable).chain(writable).collect()
}

fn by_preset<'a>(paths: Vec<&'a Path>, home: Option<&Path>) -> (Vec<Suggestion>, Vec<&'a Path>) {
    let Some(home) = home else { return (Vec::new(), paths) };
    let holds = |toolchain: &crate::policy::Toolchain, path: &Path| {
        toolchain.granted.iter().any(|part| path.starts_with(home.join(toolchain.below_home).join(part)))
    };
    let mut rest = paths;
    let mut suggestions = Vec::new();
    for preset in PRESETS {
        let (held, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|path| preset.toolchains.iter().any(|toolchain| holds(toolchain, path)));
        rest = others;
        if !held.is_empty() {
            suggestions
                .push(Suggestion { setting: format!("read+={}", preset.name), lets_through: held.len() });
        }
    }
    (suggestions, rest)
}

/// One grant for each path, or for the directory that several of them are in; none below another.
fn grants(key: &str, paths: &[&Path], home: Option<&Path>) -> Vec<Suggestion> {
    let mut chosen: BTreeSet<&Path> = BTreeSet::new();
    for path in paths {
        let together = |other: &&&Path| path.parent().is_some_and(|parent| other.starts_with(parent));
        let parent = path.parent().filter(|parent| is_narrow(parent, home));
        let is_of_several = paths.iter().filter(together).count() >= A_FEW;
        chosen.insert(parent.filter(|_| is_of_several).unwrap_or(path));
    }
    let is_below_another = |path: &Path| chosen.iter().any(|other| *other != path && path.starts_with(other));
    let outermost = chosen.iter().filter(|path| !is_below_another(path));
    outermost
        .map(|path| Suggestion {
            setting: format!("{key}+={}", path.display()),
            lets_through: paths.iter().filter(|one| one.starts_with(path)).count(),
        })
        .collect()
}

fn is_narrow(directory: &Path, home: Option<&Path>) -> bool {
    let holds_home = home.is_some_and(|home| home.starts_with(directory));
    !holds_home && directory.components().count() >= LEAST_DEPTH
}

fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    SECRET_FILES.iter().any(|file| path.starts_with(file))
        || home.is_some_and(|home| SECRET_PLACES.iter().any(|place| path.starts_with(home.join(place))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(wish: Wish, target: &str, why: Why) -> Denied {
        Denied { wish, target: target.to_owned(), why, program: "cc".to_owned(), times: 1 }
    }

    fn suggested(denied: Vec<Denied>) -> Vec<String> {
        let trace = Trace { denied, calls: 100, left_out: 0 };
        let all = suggestions(&trace, Some(Path::new("/home/ann")));
        all.into_iter().map(|one| format!("{} {}", one.setting, one.lets_through)).collect()
    }

    const FILE: Found = Found { is_dir: false, is_socket: false, is_read_only: false, is_cover: false };

    #[test]
    fn the_sandbox_is_to_blame_only_for_what_it_keeps_back() {
        assert_eq!(why(Wish::Read, None, None, false), None, "it is nowhere");
        assert_eq!(why(Wish::Read, Some(FILE), Some(FILE), false), None);
        assert_eq!(why(Wish::Read, None, Some(FILE), false), Some(Why::Absent));
        assert_eq!(why(Wish::Read, None, Some(FILE), true), Some(Why::Hidden));
        let cover = Found { is_cover: true, ..FILE };
        assert_eq!(why(Wish::Read, Some(cover), Some(FILE), false), Some(Why::Hidden));
        let read_only = Found { is_read_only: true, ..FILE };
        assert_eq!(why(Wish::Write, Some(read_only), Some(FILE), false), Some(Why::ReadOnly));
        assert_eq!(why(Wish::Read, Some(read_only), Some(FILE), false), None);
        let socket = Found { is_socket: true, ..FILE };
        assert_eq!(why(Wish::Connect, None, Some(socket), false), Some(Why::Socket));
    }

    #[test]
    fn one_file_is_one_file_and_several_are_their_directory() {
        let read = |path: &str| denied(Wish::Read, path, Why::Absent);
        assert_eq!(suggested(vec![read("/opt/sdk/include/a.h")]), ["read+=/opt/sdk/include/a.h 1"]);
        let several = ["a.h", "b.h", "deep/c.h"].map(|name| read(&format!("/opt/sdk/include/{name}")));
        assert_eq!(suggested(several.to_vec()), ["read+=/opt/sdk/include 3"]);
        let wide = ["a", "b", "c"].map(|name| read(&format!("/opt/{name}")));
        assert_eq!(suggested(wide.to_vec()), ["read+=/opt/a 1", "read+=/opt/b 1", "read+=/opt/c 1"]);
        let home = ["a", "b", "c"].map(|name| read(&format!("/home/ann/{name}")));
        assert_eq!(suggested(home.to_vec()).len(), 3, "nobody is given a home");
    }

    #[test]
    fn what_may_be_written_need_not_be_granted_to_be_read() {
        let wanted = vec![
            denied(Wish::Read, "/srv/data/shop/in.txt", Why::Absent),
            denied(Wish::Write, "/srv/data/shop/out.txt", Why::Absent),
        ];
        assert_eq!(suggested(wanted), ["write+=/srv/data/shop 1"]);
    }

    #[test]
    fn toolchains_have_names_and_secrets_are_not_offered() {
        let all = vec![
            denied(Wish::Execute, "/home/ann/.cargo/bin/cargo", Why::Absent),
            denied(Wish::Read, "/home/ann/.rustup/settings.toml", Why::Absent),
            denied(Wish::Read, "/home/ann/.ssh/config", Why::Absent),
            denied(Wish::Read, "/home/ann/shop/.env", Why::Hidden),
            denied(Wish::Write, "/srv/data/shop/log.txt", Why::Absent),
            denied(Wish::Write, "/usr/lib/x", Why::ReadOnly),
            denied(Wish::Connect, "/run/docker.sock", Why::Socket),
            denied(Wish::Connect, "192.0.2.1:443", Why::Network),
        ];
        assert_eq!(suggested(all), ["read+=@rust 2", "write+=/srv/data/shop 1"]);
    }
}
