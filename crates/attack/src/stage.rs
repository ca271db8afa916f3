//! A campaign to be attacked from, and what is around it: canaries, victims and listeners, all made for this and gone
//! afterwards.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::scene::{SCRATCH, Scene};
use crate::sys::{self, Arg};

/// Who listens on the host, and must hear nothing.
pub(crate) struct Listeners {
    pub(crate) tcp: TcpListener,
    pub(crate) tcp6: Option<TcpListener>,
    pub(crate) udp: UdpSocket,
    pub(crate) path: UnixListener,
    pub(crate) path_datagram: UnixDatagram,
    pub(crate) name: UnixListener,
    pub(crate) name_datagram: UnixDatagram,
    pub(crate) fifo: File,
}

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    base: PathBuf,
    /// In every file that nobody inside may read.
    pub(crate) secret: String,
    pub(crate) listeners: Listeners,
    pub(crate) victim: Child,
    pub(crate) stopped: Child,
    shared_memory: Option<i64>,
    queue: Option<OwnedFd>,
}

/// What is written into the campaign: hidden files, and others.
const HIDDEN: [&str; 11] = [
    ".env",
    "service/.env.production",
    "service/deep/.ENV",
    "id_rsa",
    "keys/server.pem",
    "keys/store.p12",
    ".netrc",
    "infra/prod.tfstate",
    "cellar/.env",
    "cellar/vault.key/inner.txt",
    "config/credentials.json",
];

/// Links that git follows, as they must stay.
pub(crate) const GIT_LINKS: [(&str, &str); 2] =
    [("linked/.git", "../hop"), (".git/hooks/pre-push", "../../scripts/push.sh")];

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 12];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn campaign(root: &Path, outside: &Path, secret: &str) -> io::Result<()> {
    for name in HIDDEN {
        write(&root.join(name), &format!("KEY={secret}\n"), 0o644)?;
    }
    write(&root.join("config/registry.txt"), &format!("token={secret}\n"), 0o644)?;
    symlink("config/registry.txt", root.join(".npmrc"))?;
    fs::hard_link(root.join("id_rsa"), root.join("plain-name.txt"))?;
    symlink(outside.join("secret.txt"), root.join("link-outside"))?;
    symlink(outside, root.join("dir-outside"))?;
    write(&root.join("README.md"), "a campaign\n", 0o644)?;
    write(&root.join(".gitignore"), "*\n!README.md\n", 0o644)?;
    write(&root.join(".vscode/tasks.json"), "{}\n", 0o644)?;
    write(&root.join(".envrc"), "# nothing\n", 0o644)?;
    write(&root.join(".gitmodules"), "", 0o644)?;
    fs::create_dir(root.join(SCRATCH))?;
    git(root, &["init", "-q", "--template=", "-b", "main"])?;
    git(root, &["add", "README.md"])?;
    git(root, &["commit", "-q", "-m", "Begin"])?;
    git(root, &["worktree", "add", "-q", "--detach", "tree"])?;
    fs::create_dir_all(root.join("nested/library"))?;
    git(&root.join("nested/library"), &["init", "-q", "--template=", "-b", "main"])?;
    git(root, &["init", "-q", "--template=", "--bare", "store"])?;
    git(root, &["init", "-q", "--template=", "-b", "main", "linked"])?;
    if root.join("linked/.git").exists() {
        fs::rename(root.join("linked/.git"), root.join("elsewhere"))?;
        symlink("elsewhere", root.join("hop"))?;
        for (link, target) in GIT_LINKS {
            fs::create_dir_all(root.join(link).parent().unwrap_or(root))?;
            symlink(target, root.join(link))?;
        }
    }
    git(root, &["config", "include.path", "../tools/one.conf"])?;
    write(&root.join("tools/one.conf"), "[include]\npath = two.conf\n", 0o644)?;
    write(&root.join("tools/two.conf"), "[core]\nhooksPath = .githooks\n", 0o644)?;
    write(&root.join(".githooks/pre-commit"), "#!/bin/sh\n", 0o755)?;
    write(&root.join("tree/.githooks/post-commit"), "#!/bin/sh\n", 0o755)?;
    write(&root.join("scripts/push.sh"), "#!/bin/sh\n", 0o755)?;
    write(&root.join(".git/hooks/pre-commit.sample"), "#!/bin/sh\n", 0o755)?;
    write(&root.join(".git/info/attributes"), "", 0o644)
}

/// Git, if there is one: attempts on it are untried where there is none.
fn git(root: &Path, words: &[&str]) -> io::Result<()> {
    let result = Command::new("git")
        .args(["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"])
        .args(words)
        .current_dir(root)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output();
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn give(path: &Path, owner: u32) -> io::Result<()> {
    lchown(path, Some(owner), Some(owner))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), owner)?;
        }
    }
    Ok(())
}

/// Somebody whose number nobody has inside, even if this is a young pid namespace.
fn victim(token: &str) -> io::Result<Child> {
    const HIGH: u32 = 1_000;
    loop {
        let mut child = Command::new("sleep")
            .arg("3600")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("VICTIM", token)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        if child.id() > HIGH {
            return Ok(child);
        }
        child.kill()?;
        child.wait()?;
    }
}

/// Waits until a process sleeps or is stopped, and so does not change by itself any more.
fn at_rest(pid: u32, state: char) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let is_program = stat.contains("(sleep)");
        if is_program && stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(state)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::other("a process does not come to rest"))
}

impl Listeners {
    fn open(outside: &Path, name: &str) -> io::Result<Listeners> {
        let reachable = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o777));
        let path = UnixListener::bind(outside.join("socket"))?;
        let path_datagram = UnixDatagram::bind(outside.join("socket-datagram"))?;
        rustix::fs::mkfifoat(rustix::fs::CWD, outside.join("fifo"), rustix::fs::Mode::from_raw_mode(0o666))?;
        for name in ["socket", "socket-datagram", "fifo"] {
            reachable(&outside.join(name))?;
        }
        let abstract_name = |suffix: &str| SocketAddr::from_abstract_name(format!("{name}{suffix}"));
        let listeners = Listeners {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            tcp6: TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok(),
            udp: UdpSocket::bind("127.0.0.1:0")?,
            path,
            path_datagram,
            name: UnixListener::bind_addr(&abstract_name("")?)?,
            name_datagram: UnixDatagram::bind_addr(&abstract_name("-datagram")?)?,
            fifo: OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(outside.join("fifo"))?,
        };
        listeners.tcp.set_nonblocking(true)?;
        listeners.tcp6.iter().try_for_each(|tcp6| tcp6.set_nonblocking(true))?;
        listeners.udp.set_nonblocking(true)?;
        listeners.path.set_nonblocking(true)?;
        listeners.path_datagram.set_nonblocking(true)?;
        listeners.name.set_nonblocking(true)?;
        listeners.name_datagram.set_nonblocking(true)?;
        Ok(listeners)
    }
}

/// A number that nobody else has.
fn key(random: &str) -> i32 {
    random.get(..7).and_then(|digits| i32::from_str_radix(digits, 16).ok()).unwrap_or(0) | 1
}

/// Shared memory of the host's, open to everybody.
fn shared_memory(token: &str) -> Option<(i32, i64)> {
    let key = key(token);
    let flags = (libc::IPC_CREAT | libc::IPC_EXCL | 0o666) as u64;
    let id = sys::plain(libc::SYS_shmget, &[key as u64, 4_096, flags]).ok()?;
    Some((key, id))
}

/// A POSIX message queue of the host's, open to everybody.
fn named_queue(token: &str) -> Option<OwnedFd> {
    let name = std::ffi::CString::new(token).ok()?;
    let flags = (libc::O_CREAT | libc::O_EXCL | libc::O_RDWR) as u64;
    let mut args = [Arg::Path(&name), Arg::Number(flags), Arg::Number(0o666), Arg::Number(0)];
    sys::descriptor(libc::SYS_mq_open, &mut args).ok()
}

/// People who work with sound may run before everybody else; so that it is the sandbox that takes this away, it is
/// given here where we may.
fn allow_real_time() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::Rtprio, 10), (Resource::Nice, 40)] {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

impl Stage {
    /// With a campaign that belongs to `owner`, or else to whoever this is.
    pub(crate) fn new(owner: Option<u32>) -> io::Result<Stage> {
        let (token, secret) = (random()?, random()?);
        // On a disk, as campaigns are; what is in memory is gone with whoever uses it.
        let above = PathBuf::from("/var/tmp");
        let above = if above.is_dir() { above } else { std::env::temp_dir() };
        let base = above.canonicalize()?.join(format!("ostler-attack-{token}"));
        fs::DirBuilder::new().mode(0o755).create(&base)?;
        let (root, outside) = (base.join("campaign"), base.join("outside"));
        fs::create_dir(&root)?;
        fs::create_dir(&outside)?;
        write(&outside.join("secret.txt"), &format!("{secret}\n"), 0o644)?;
        write(&outside.join("notes.txt"), "notes\n", 0o666)?;
        write(&outside.join("doomed.txt"), "here\n", 0o666)?;
        write(&outside.join("other/code.txt"), &format!("{secret}\n"), 0o666)?;
        write(&outside.join("tool"), &format!("#!/bin/sh\necho {secret}\n"), 0o755)?;
        campaign(&root, &outside, &secret)?;
        if let Some(owner) = owner {
            give(&root, owner)?;
        }
        // Only the sandbox is to be in the way.
        for directory in [&outside, &outside.join("other")] {
            fs::set_permissions(directory, Permissions::from_mode(0o777))?;
        }
        let abstract_name = format!("ostler-attack-{token}");
        let listeners = Listeners::open(&outside, &abstract_name)?;
        let (victim, stopped) = (victim(&secret)?, victim(&secret)?);
        let number = |child: &Child| child.id() as i32;
        at_rest(stopped.id(), 'S')?;
        if let Some(pid) = Pid::from_raw(number(&stopped)) {
            kill_process(pid, Signal::STOP)?;
        }
        at_rest(victim.id(), 'S')?;
        at_rest(stopped.id(), 'T')?;
        let memory = shared_memory(&token);
        let queue = named_queue(&token);
        allow_real_time();
        let scene = Scene {
            tcp: listeners.tcp.local_addr()?.port(),
            tcp6: listeners.tcp6.as_ref().and_then(|tcp6| Some(tcp6.local_addr().ok()?.port())),
            udp: listeners.udp.local_addr()?.port(),
            victim: number(&victim),
            stopped: number(&stopped),
            user: geteuid().as_raw(),
            shared_memory: memory.map(|(key, _)| key),
            left_key: key(&secret) ^ 0x2000_0000,
            pid_namespace: fs::read_link("/proc/self/ns/pid")?.display().to_string(),
            home: std::env::home_dir(),
            device: fs::metadata(&root)?.dev(),
            token,
            root,
            outside,
            abstract_name,
        };
        let shared_memory = memory.map(|(_, id)| id);
        Ok(Stage { scene, base, secret, listeners, victim, stopped, shared_memory, queue })
    }

    /// A terminal of the host's: its own side, and the side that a program is given.
    pub(crate) fn terminal() -> io::Result<(File, OwnedFd)> {
        let ours = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open("/dev/ptmx")?;
        let number = rustix::fd::AsRawFd::as_raw_fd(&ours) as u64;
        let unlock = 0_i32.to_ne_bytes();
        sys::call(
            libc::SYS_ioctl,
            &mut [Arg::Number(number), Arg::Number(sys::request(libc::TIOCSPTLCK)), Arg::In(&unlock)],
        )?;
        let flags = (libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) as u64;
        let theirs = sys::descriptor(
            libc::SYS_ioctl,
            &mut [Arg::Number(number), Arg::Number(TIOCGPTPEER), Arg::Number(flags)],
        )?;
        Ok((ours, theirs))
    }

    /// Throws away what the last attempt has made in the campaign.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.scene.scratch(""))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

const TIOCGPTPEER: u64 = 0x5441;

impl Drop for Stage {
    fn drop(&mut self) {
        for child in [&mut self.victim, &mut self.stopped] {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(id) = self.shared_memory {
            let _ = sys::plain(libc::SYS_shmctl, &[id as u64, libc::IPC_RMID as u64, 0]);
        }
        if self.queue.take().is_some()
            && let Ok(name) = std::ffi::CString::new(self.scene.token.as_str())
        {
            let _ = sys::call(libc::SYS_mq_unlink, &mut [Arg::Path(&name)]);
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}
