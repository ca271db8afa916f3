//! What a policy may grant of the machine. Decided when it is said, and again when a sandbox is made: what lies around may
//! have changed meanwhile.

use std::path::Path;

use crate::{campaign::is_below, confinement};

/// What somebody wants agents to do with a path beside their campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    Read,
    Write,
}

/// What lies around a path that is to be granted; all of it canonical.
#[derive(Debug, Clone, Default)]
pub struct Around<'a> {
    /// The campaign that it is granted to.
    pub root: &'a str,
    pub other_roots: &'a [String],
    /// Ostler's own directories.
    pub own: &'a [String],
    /// Everybody's home.
    pub homes: &'a [String],
}

/// Why a path is nobody's to be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefused {
    #[error("it is a part of the system")]
    System,
    #[error("Ostler's own files are there ({0})")]
    Own(String),
    #[error("it holds a whole home directory ({0})")]
    Home(String),
    #[error("it holds another campaign ({0})")]
    HoldsCampaign(String),
    #[error("it lies in another campaign ({0}), whose hidden files are hidden to its own agents only")]
    InsideCampaign(String),
    #[error("it holds the campaign itself")]
    HoldsRoot,
    #[error("it lies in the campaign, which agents may read and write already")]
    InsideRoot,
}

/// Decides whether a canonical path may be granted.
pub fn refusal(path: &str, grant: Grant, around: &Around<'_>) -> Option<GrantRefused> {
    let holds = |inner: &str| inner == path || is_below(inner, path);
    let lies_in = |outer: &str| is_below(path, outer);
    if let Some(own) = around.own.iter().find(|own| holds(own) || lies_in(own)) {
        return Some(GrantRefused::Own(own.clone()));
    }
    if let Some(home) = around.homes.iter().find(|home| holds(home)) {
        return Some(GrantRefused::Home(home.clone()));
    }
    let is_system = match grant {
        Grant::Read => confinement::is_never_shown(Path::new(path)),
        Grant::Write => confinement::is_of_the_system(Path::new(path)),
    };
    if is_system {
        return Some(GrantRefused::System);
    }
    if let Some(root) = around.other_roots.iter().find(|root| holds(root)) {
        return Some(GrantRefused::HoldsCampaign(root.clone()));
    }
    if let Some(root) = around.other_roots.iter().find(|root| lies_in(root)) {
        return Some(GrantRefused::InsideCampaign(root.clone()));
    }
    if path == around.root || lies_in(around.root) {
        // A second way to the same files would lead past what covers the first.
        return Some(GrantRefused::InsideRoot);
    }
    (grant == Grant::Write && holds(around.root)).then_some(GrantRefused::HoldsRoot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_others_is_not_granted() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (other_roots, own) = (texts(&["/srv/other"]), texts(&["/home/ann/.local/state/ostler"]));
        let homes = texts(&["/home/ann", "/root"]);
        let around =
            Around { root: "/home/ann/code/shop", other_roots: &other_roots, own: &own, homes: &homes };
        let refused = |path: &str, grant| refusal(path, grant, &around).is_some();
        for path in [
            "/",
            "/proc",
            "/proc/1",
            "/sys",
            "/dev",
            "/run",
            "/run/user/1000",
            "/home",
            "/home/ann",
            "/root",
            "/etc",
            "/srv",
            "/srv/other",
            "/srv/other/deep",
            "/home/ann/.local/state/ostler/db",
            "/home/ann/.local",
            "/home/ann/code/shop",
            "/home/ann/code/shop/src",
        ] {
            assert!(refused(path, Grant::Write) && refused(path, Grant::Read), "{path}");
        }
        for path in ["/usr", "/usr/local/lib/x", "/etc/cron.d", "/opt", "/home/ann/code"] {
            assert!(refused(path, Grant::Write), "{path}");
            assert!(!refused(path, Grant::Read), "{path}");
        }
        for path in ["/srv/data", "/opt/sdk", "/home/ann/lib", "/mnt/disk/x", "/tmp/x"] {
            assert!(!refused(path, Grant::Write) && !refused(path, Grant::Read), "{path}");
        }
    }
}
