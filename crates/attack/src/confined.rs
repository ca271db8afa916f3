//! One attempt in a sandbox of its own, made by the real warden; or, to see that the suite can fail, in none.

use std::fs::{self, File};
use std::io::{self, Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use ostler_domain::confinement::{CampaignRoot, Confinement, Network, PROGRAM};
use ostler_sandbox::channel::{self, AgentEnds, ExecReport, InitReport, Order, Received};

use crate::attempt::{Attempt, Setting};
use crate::scene::{SCENE_VARIABLE, Scene};

/// The longest attempts race for half a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a left-over has before the sandbox ends.
const LINGER: Duration = Duration::from_millis(150);
const PAUSE: Duration = Duration::from_millis(2);
/// More than this is nobody's report.
const OUTPUT_BYTES: u64 = 1 << 20;

/// How an attempt's process ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    TimedOut,
    /// There was no sandbox to try it in.
    Refused(String),
}

fn read(from: File) -> JoinHandle<String> {
    spawn(move || {
        let mut text = Vec::new();
        // A terminal that nobody has open any more gives an error, and that is its end.
        let _ = from.take(OUTPUT_BYTES).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn environment(scene: &Scene) -> io::Result<Vec<(String, String)>> {
    Ok(vec![
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME".to_owned(), "/home/agent".to_owned()),
        (SCENE_VARIABLE.to_owned(), serde_json::to_string(scene)?),
    ])
}

/// What `@rust` grants, where it is in the home of whoever runs this.
fn grant_toolchain(scene: &Scene, confinement: &mut Confinement, env: &mut Vec<(String, String)>) {
    let place = |variable: &str, below_home: &str| {
        let said = std::env::var_os(variable).map(PathBuf::from);
        said.or_else(|| Some(scene.home.as_ref()?.join(below_home)))?.canonicalize().ok()
    };
    let programs = place("CARGO_HOME", ".cargo").map(|cargo| cargo.join("bin")).filter(|bin| bin.is_dir());
    let (Some(programs), Some(toolchains)) = (programs, place("RUSTUP_HOME", ".rustup")) else { return };
    for (_, value) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        *value = format!("{}:{value}", programs.display());
    }
    env.push(("RUSTUP_HOME".to_owned(), toolchains.display().to_string()));
    confinement.read_only.extend([programs, toolchains]);
}

/// Runs an attempt in a sandbox. `terminal` is a terminal of the host's for those that want one.
pub(crate) fn run(scene: &Scene, attempt: &Attempt, terminal: Option<OwnedFd>) -> io::Result<Ended> {
    let found = fs::metadata(&scene.root)?;
    let root = CampaignRoot {
        path: scene.root.clone(),
        device: found.dev(),
        inode: found.ino(),
        read_only: false,
        leased: Vec::new(),
    };
    let mut confinement = Confinement::new(root);
    confinement.program = Some(std::env::current_exe()?.canonicalize()?);
    confinement.hidden = vec!["*.tfstate".to_owned()];
    confinement.limits.tmp_bytes = 32 << 20;
    confinement.limits.shm_bytes = 8 << 20;
    if attempt.setting == Setting::HostNetwork {
        confinement.network = Network::Host { ports: vec![22, 80, 443] };
    }
    let mut env = environment(scene)?;
    if attempt.setting == Setting::Control {
        grant_toolchain(scene, &mut confinement, &mut env);
    }
    let order = Order {
        program: PROGRAM.into(),
        args: vec!["internal".to_owned(), "attack".to_owned(), attempt.name.to_owned()],
        env,
        cwd: scene.scratch(""),
        cgroup_procs: Vec::new(),
        confinement: Some(confinement),
        terminal: None,
        observe: false,
    };
    let (stdout, agents_stdout) = pipe()?;
    let (stderr, agents_stderr) = pipe()?;
    let (mut exec_read, exec_status) = pipe()?;
    let ends = AgentEnds {
        stdin: File::open("/dev/null")?.into(),
        stdout: agents_stdout.into(),
        stderr: terminal.unwrap_or_else(|| agents_stderr.into()),
        exec_status: exec_status.into(),
    };
    let (keeper, mut warden) = channel::start("warden", &order, ends)?;
    let (stdout, stderr) = (read(OwnedFd::from(stdout).into()), read(OwnedFd::from(stderr).into()));
    let mut end = await_end(&keeper);
    if attempt.setting == Setting::Lingers {
        sleep(LINGER);
    }
    // The warden ends what is left when there is nobody to keep it for.
    drop(keeper);
    if !ends_in_time(&mut warden)? {
        warden.kill()?;
        warden.wait()?;
        end = End::TimedOut;
    }
    let mut said = Vec::new();
    exec_read.read_to_end(&mut said)?;
    if let Some(ExecReport::Failed { stage, message, .. }) = channel::failed(&said) {
        end = End::Refused(format!("{stage}: {message}"));
    }
    Ok(Ended { end, stdout: joined(stdout), stderr: joined(stderr) })
}

fn joined(reader: JoinHandle<String>) -> String {
    reader.join().unwrap_or_default()
}

fn await_end(keeper: &OwnedFd) -> End {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match channel::receive_report(keeper) {
            Ok(Received::Message(InitReport::Ended { status })) => {
                return End::Exited(ExitStatus::from_raw(status));
            }
            Ok(Received::Message(InitReport::NotStarted { message, .. })) => return End::Refused(message),
            Ok(Received::NotYet) => sleep(PAUSE),
            Ok(Received::Closed) => return End::Refused("the warden ended by itself".to_owned()),
            Ok(_) => {}
            Err(error) => return End::Refused(error.to_string()),
        }
    }
    End::TimedOut
}

fn ends_in_time(child: &mut Child) -> io::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            return Ok(false);
        }
        sleep(PAUSE);
    }
    Ok(true)
}

/// Runs an attempt without any sandbox.
pub(crate) fn run_unconfined(scene: &Scene, attempt: &Attempt) -> io::Result<Ended> {
    let mut child = Command::new("/proc/self/exe")
        .args(["internal", "attack", attempt.name])
        .env_clear()
        .envs(environment(scene)?)
        .current_dir(scene.scratch(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let file = |end: Option<OwnedFd>| end.map(File::from).ok_or_else(|| io::Error::other("no pipe"));
    let stdout = read(file(child.stdout.take().map(OwnedFd::from))?);
    let stderr = read(file(child.stderr.take().map(OwnedFd::from))?);
    let end = if ends_in_time(&mut child)? {
        End::Exited(child.wait()?)
    } else {
        child.kill()?;
        child.wait()?;
        End::TimedOut
    };
    Ok(Ended { end, stdout: joined(stdout), stderr: joined(stderr) })
}
