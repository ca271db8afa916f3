//! Landlock: the second wall. It adds to the mounts that nothing is mounted, nothing in `/proc` is written, no signal and
//! no abstract socket reaches anybody outside; and it holds if a mount is wrong.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use ostler_domain::confinement::{Confinement, Network};

use crate::cure::{self, Machine};
use crate::refusal::{Refusal, Stage};
use crate::sys;

/// The first version that knows of truncation; without it files can be emptied.
const OLDEST: i32 = 3;
/// The first version with scopes for signals and abstract sockets. Below it, only namespaces hold those back.
const WITH_SCOPES: i32 = 6;

const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];

/// What is asked of the kernel, chosen from what it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    abi: ABI,
    scopes: bool,
}

impl Target {
    /// The most that a kernel with this version can do; or a refusal, if that is too little.
    pub(crate) fn choose(abi: i32, network: &Network) -> Result<Target, Refusal> {
        if abi < OLDEST {
            return Err(too_old(abi, "6.2"));
        }
        if abi < WITH_SCOPES && !network.is_private() {
            return Err(too_old(abi, "6.12, or another network mode"));
        }
        let known = match abi {
            3 => ABI::V3,
            4 => ABI::V4,
            5 => ABI::V5,
            6 => ABI::V6,
            7 => ABI::V7,
            8 => ABI::V8,
            _ => ABI::V9,
        };
        Ok(Target { abi: known, scopes: abi >= WITH_SCOPES })
    }
}

fn too_old(abi: i32, needed: &str) -> Refusal {
    let message = format!("Landlock has version {abi}, and this sandbox needs Linux {needed}");
    Refusal::new(Stage::Landlock, message, cure::no_landlock(&Machine::look()))
}

pub(crate) fn restrict(confinement: &Confinement) -> Result<(), Refusal> {
    let abi = sys::landlock_abi().map_err(|error| Refusal {
        errno: error.raw_os_error(),
        ..Refusal::new(
            Stage::Landlock,
            format!("this kernel has no Landlock: {error}"),
            cure::no_landlock(&Machine::look()),
        )
    })?;
    let target = Target::choose(abi, &confinement.network)?;
    let status = rules(target, confinement).and_then(|rules| Ok(rules.restrict_self()?));
    match status.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Ok(()),
        Ok(less) => Err(not_in_force(format!("Landlock is {less:?}"))),
        Err(error) => Err(not_in_force(error.to_string())),
    }
}

fn not_in_force(message: String) -> Refusal {
    Refusal::new(Stage::Landlock, message, cure::no_landlock(&Machine::look()))
}

fn rules(
    Target { abi, scopes }: Target,
    confinement: &Confinement,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let all = AccessFs::from_all(abi);
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all)?;
    if scopes {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    if !confinement.network.is_private() {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let mut rules = ruleset.create()?;
    if let Network::Host { ports } = &confinement.network {
        for port in ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }

    let read = AccessFs::from_read(abi);
    let connect = all & AccessFs::ResolveUnix;
    let work = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = (AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::ReadDir
        | AccessFs::IoctlDev
        | AccessFs::Truncate)
        & all;
    for path in SYSTEM.map(Path::new).into_iter().filter(|path| path.exists()) {
        rules = allow(rules, path, read)?;
    }
    rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    rules = allow(rules, Path::new("/run"), read | connect)?;
    rules = allow(rules, Path::new("/proc"), AccessFs::ReadFile | AccessFs::ReadDir)?;
    rules = allow(rules, Path::new("/dev"), device)?;
    for path in ["/tmp", "/var/tmp", "/dev/shm"] {
        rules = allow(rules, Path::new(path), work)?;
    }
    let root = &confinement.root;
    rules = allow(rules, &root.path, if root.read_only { read } else { work })?;
    for path in root.leased() {
        rules = allow(rules, &path, work)?;
    }
    for path in [&confinement.home.inside].into_iter().chain(&confinement.writable) {
        rules = allow(rules, path, work)?;
    }
    for path in &confinement.read_only {
        rules = allow(rules, path, read)?;
    }
    if let Some(git) = &confinement.git {
        rules = allow(rules, &git.path, read)?;
        for part in git.written() {
            rules = allow(rules, &git.path.join(part), work)?;
        }
    }
    Ok(rules)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    // Rights to a directory's entries mean nothing for a file, and are an error there.
    let of_a_file = AccessFs::Execute
        | AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::IoctlDev
        | AccessFs::ResolveUnix;
    let access = if path.is_dir() { access } else { access & of_a_file };
    Ok(rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_follows_the_kernel() {
        let host = Network::Host { ports: vec![443] };
        let chosen = |abi, network: &Network| Target::choose(abi, network).ok();
        assert_eq!(chosen(2, &Network::None), None);
        assert_eq!(chosen(3, &Network::None), Some(Target { abi: ABI::V3, scopes: false }));
        assert_eq!(chosen(5, &Network::Open), Some(Target { abi: ABI::V5, scopes: false }));
        assert_eq!(chosen(5, &host), None, "signals and abstract sockets would be open");
        assert_eq!(chosen(6, &host), Some(Target { abi: ABI::V6, scopes: true }));
        assert_eq!(chosen(99, &host), Some(Target { abi: ABI::V9, scopes: true }));
    }

    #[test]
    fn a_refusal_says_which_kernel_is_needed() {
        let refusal = Target::choose(0, &Network::None).unwrap_err();
        assert!(refusal.message.contains("6.2"), "{refusal}");
        assert!(!refusal.hint.is_empty());
        let refusal = Target::choose(4, &Network::Host { ports: vec![] }).unwrap_err();
        assert!(refusal.message.contains("6.12"), "{refusal}");
    }
}
