//! What the kernel offers, and whether a sandbox really starts on it.

use std::fs;
use std::io::{self, Read, pipe};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ostler_domain::confinement::{CampaignRoot, Confinement};
use ostler_domain::readiness::{Readiness, Trial};

use crate::channel::{self, AgentEnds, ExecReport, Order};
use crate::sys;

/// What there is to make a sandbox of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The version of Landlock; nothing where the kernel has none.
    pub landlock: Option<i32>,
    pub seccomp: bool,
    /// Namespaces that the kernel knows, by their names in `/proc/self/ns`.
    pub namespaces: Vec<String>,
}

pub fn probe() -> Offer {
    let entries = fs::read_dir("/proc/self/ns").into_iter().flatten().flatten();
    let mut namespaces: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    namespaces.retain(|name| !name.ends_with("_for_children"));
    namespaces.sort();
    Offer {
        landlock: sys::landlock_abi().ok(),
        seccomp: fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap_or(false),
        namespaces,
    }
}

/// `ostler internal check`: tries a sandbox and prints what came of it, for a daemon and for `doctor`, which are not to
/// have the sandbox's code in them.
pub fn report() -> ExitCode {
    let Offer { landlock, seccomp, namespaces } = probe();
    let trial = match check(&std::env::temp_dir()) {
        Ok(Ok(took)) => Trial::Ran { took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX) },
        Ok(Err(ExecReport::Failed { stage, message, hint, .. })) => Trial::Refused { stage, message, hint },
        Ok(Err(other)) => refused(format!("{other:?}")),
        Err(error) => refused(format!("a sandbox cannot be tried: {error}")),
    };
    let readiness = Readiness { landlock, seccomp, namespaces, trial };
    let printed = serde_json::to_writer(io::stdout(), &readiness);
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refused(message: String) -> Trial {
    Trial::Refused { stage: "check".to_owned(), message, hint: String::new() }
}

/// Starts a sandboxed `true` in a directory below `scratch`, by the program that this process is, and says how long that
/// took; or what refused it, with its hint.
pub fn check(scratch: &Path) -> io::Result<Result<Duration, ExecReport>> {
    let root = scratch.join(format!("sandbox-check-{}", std::process::id()));
    fs::create_dir(&root)?;
    let began = Instant::now();
    let outcome = start_true(&root);
    let took = began.elapsed();
    fs::remove_dir(&root)?;
    Ok(outcome?.map_or(Ok(took), Err))
}

fn start_true(root: &Path) -> io::Result<Option<ExecReport>> {
    let path = fs::canonicalize(root)?;
    let found = fs::metadata(&path)?;
    let order = Order {
        program: "/usr/bin/true".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: path.clone(),
        cgroup_procs: Vec::new(),
        confinement: Some(Confinement::new(CampaignRoot {
            path,
            device: found.dev(),
            inode: found.ino(),
            read_only: false,
            leased: Vec::new(),
        })),
        terminal: None,
        observe: false,
    };
    let (mut exec_read, exec_status) = pipe()?;
    let null = || fs::File::options().read(true).write(true).open("/dev/null").map(Into::into);
    let ends =
        AgentEnds { stdin: null()?, stdout: null()?, stderr: null()?, exec_status: exec_status.into() };
    let (keeper, mut warden) = channel::start("warden", &order, ends)?;
    let mut said = Vec::new();
    // Ends when the program is executed, or is known not to be.
    exec_read.read_to_end(&mut said)?;
    drop(keeper);
    warden.wait()?;
    Ok(channel::failed(&said))
}
