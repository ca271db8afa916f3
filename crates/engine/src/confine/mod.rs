//! What a session's sandbox is to be: the campaign's policy, resolved against this machine.
//!
//! The daemon only writes the document; keeper and warden build what it says, or refuse.

mod copy;
mod git;
mod grants;
mod home_files;
mod leases;
mod network;
mod presets;

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Policy,
    campaign::Root,
    confinement::{CampaignRoot, Confinement, HomeDirectory, Limits, Tooling},
    policy::{NetMode, grant::Grant},
};

pub(crate) use copy::copy as copy_home;
pub(crate) use home_files::{files_in, make_dirs, write as write_home_files};
pub(crate) use leases::resolve as resolve_leases;
pub(crate) use network::gateway;
pub(crate) use presets::found as found_presets;

use crate::{Options, keeper::NotStarted};

/// Where the agent's home is inside.
const HOME: &str = "/home/agent";
const USER: &str = "agent";
/// Where the system's programs are.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where this program is, for agents that say something of themselves with it.
const OWN_PATH: &str = "/run/ostler";

/// A sandbox, and the environment of whoever runs in it.
pub(crate) struct Confined {
    pub(crate) confinement: Confinement,
    /// Before everything that a person or a provider adds.
    pub(crate) environment: Vec<(String, String)>,
}

/// What is known of the machine.
pub(crate) struct Machine<'a> {
    pub(crate) options: &'a Options,
    /// This program, for agents that are part of it.
    pub(crate) program: &'a Path,
    /// Other campaigns' roots: nobody is given one of them by the way.
    pub(crate) other_roots: Vec<String>,
    /// What agents of any campaign may write.
    pub(crate) writable: Vec<String>,
}

impl Machine<'_> {
    /// The sandbox around a root. `whose` names the home that is kept for the next one; what the policy leaves open
    /// about the network has been decided.
    pub(crate) fn confine(
        &self,
        policy: &Policy,
        net_mode: NetMode,
        root: &Root,
        whose: &str,
    ) -> Result<Confined, NotStarted> {
        let home = home(self.options, whose)?;
        let granted = |path: &str, grant| {
            self.granted(path, grant, &root.path)
                .map_err(|why| NotStarted::at("policy", format!("the policy grants {path}, but {why}")))
        };
        let mut read_only = Vec::new();
        let mut programs = Vec::new();
        let mut variables = Vec::new();
        for name in &policy.read {
            match ostler_domain::policy::preset(name) {
                Some(preset) => {
                    let granted = presets::resolve(preset, self.options.home_dir.as_deref());
                    read_only.extend(granted.read_only);
                    programs.extend(granted.programs);
                    variables.extend(granted.variables);
                }
                None => read_only.push(granted(name, Grant::Read)?),
            }
        }
        let writable = policy.write.iter().map(|path| granted(path, Grant::Write));
        let writable = writable.collect::<Result<Vec<_>, NotStarted>>()?;
        let path = CampaignRoot {
            path: (&root.path).into(),
            device: root.device,
            inode: root.inode,
            read_only: false,
            leased: Vec::new(),
        };
        let mut confinement = Confinement::new(path);
        confinement.home = HomeDirectory { inside: HOME.into(), source: Some(home) };
        confinement.read_only = read_only;
        confinement.writable = writable;
        confinement.hidden = policy.hide.clone();
        confinement.tooling = Tooling {
            protect: policy.protect_tooling.unwrap_or(confinement.tooling.protect),
            except: Vec::new(),
        };
        confinement.network = network::of(net_mode);
        confinement.program = Some(self.program.to_owned());
        confinement.limits = limits(policy);
        confinement.ptrace = policy.ptrace.unwrap_or(false);
        Ok(Confined { confinement, environment: environment(policy, &programs, variables) })
    }
}

/// The directory that is an agent's home, and stays for the conversation's next session.
pub(crate) fn home(options: &Options, whose: &str) -> Result<PathBuf, NotStarted> {
    let home = options.state_dir.join("homes").join(whose);
    let make = || -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&home)?;
        git::introduce(options.home_dir.as_deref(), &home)?;
        fs::canonicalize(&home)
    };
    make().map_err(|error| {
        NotStarted::at("home", format!("the agent's home {} cannot be made: {error}", home.display()))
    })
}

fn limits(policy: &Policy) -> Limits {
    let usual = Limits::default();
    Limits {
        processes: policy.limits.pids.unwrap_or(usual.processes),
        tmp_bytes: policy.limits.tmp.unwrap_or(usual.tmp_bytes),
        shm_bytes: policy.limits.shm.unwrap_or(usual.shm_bytes),
        memory_bytes: policy.limits.memory,
        tasks: policy.limits.pids,
        ..usual
    }
}

/// Starts empty: nothing of the daemon's own environment but what says which language and which hour it is, and what the
/// policy names.
fn environment(
    policy: &Policy,
    programs: &[PathBuf],
    variables: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let path = programs.iter().map(|dir| dir.to_string_lossy()).chain([SYSTEM_PATH.into(), OWN_PATH.into()]);
    let fixed = [
        ("PATH", path.collect::<Vec<_>>().join(":")),
        ("HOME", HOME.to_owned()),
        ("USER", USER.to_owned()),
        ("LOGNAME", USER.to_owned()),
        ("SHELL", shell.to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("LANG", std::env::var("LANG").unwrap_or_else(|_| "C.UTF-8".to_owned())),
    ];
    // What was let through before it was known for what it does is not handed on either.
    let asked = policy.env.iter().filter(|name| ostler_domain::environment::refusal(name).is_none());
    let named = ["TZ".to_owned()].into_iter().chain(asked.cloned());
    let inherited = named.filter_map(|name| std::env::var(&name).ok().map(|value| (name, value)));
    fixed
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .chain(variables)
        .chain(inherited)
        .collect()
}
