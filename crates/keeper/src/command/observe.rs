//! `--observe`: writes down what the command wanted and was not given. It is told of each call before it is made,
//! looks for itself what will come of it, and lets it go on.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ostler_domain::confinement::{Confinement, Network};
use ostler_domain::hidden::Patterns;
use ostler_domain::limits::TRACE_KEPT;
use ostler_domain::trace::{Denied, Found, Trace, Why, Wish, why};
use ostler_sandbox::observe::{Call, Notice, Observer};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, accessat, fstat, fstatvfs,
    openat2,
};
use rustix::net::AddressFamily;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4_096;
const PAGE: u64 = 4_096;
const LONGEST_ADDRESS: usize = 128;
const NAMES: u16 = 53;
const NAME_SERVERS: &str = "/etc/resolv.conf";
/// The sandbox's own, or full of what is different for each process.
const NOT_LOOKED_FOR: [&str; 7] = ["/proc", "/sys", "/dev", "/tmp", "/var/tmp", "/run/ostler", "/.masks"];

pub(super) struct Watch {
    observer: Option<Observer>,
    confinement: Confinement,
    trace: Trace,
    places: HashMap<(Wish, String, Why), usize>,
    /// The root inside, once there is somebody who has it, and the device of the covers in it.
    inside: Option<(OwnedFd, u64)>,
}

impl Watch {
    pub(super) fn new(listener: OwnedFd, confinement: Confinement) -> Watch {
        let observer = Some(Observer::new(listener));
        Watch { observer, confinement, trace: Trace::default(), places: HashMap::new(), inside: None }
    }

    /// None when nobody is left who could be watched.
    pub(super) fn observer(&self) -> Option<&Observer> {
        self.observer.as_ref()
    }

    pub(super) fn close(&mut self) {
        self.observer = None;
    }

    pub(super) fn into_trace(self) -> Trace {
        self.trace
    }

    /// Looks at one call.
    pub(super) fn hear(&mut self) -> io::Result<()> {
        let Some(observer) = self.observer.take() else { return Ok(()) };
        if let Some(notice) = observer.next()? {
            self.trace.calls += 1;
            // What cannot be read is nobody's loss but the report's.
            let wanted = self.wanted(&notice);
            if let Some((wish, target, why)) = wanted.filter(|_| observer.waits(&notice)) {
                self.note(wish, target, why, notice.pid);
            }
            observer.let_go_on(&notice)?;
        }
        self.observer = Some(observer);
        Ok(())
    }

    fn note(&mut self, wish: Wish, target: String, why: Why, pid: u32) {
        if let Some(place) = self.places.get(&(wish, target.clone(), why)) {
            self.trace.denied[*place].times += 1;
            return;
        }
        if self.trace.denied.len() >= TRACE_KEPT {
            self.trace.left_out += 1;
            return;
        }
        self.places.insert((wish, target.clone(), why), self.trace.denied.len());
        let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let program = program.trim_end().to_owned();
        self.trace.denied.push(Denied { wish, target, why, program, times: 1 });
    }

    fn wanted(&mut self, notice: &Notice) -> Option<(Wish, String, Why)> {
        let memory = Memory::of(notice.pid)?;
        let args = &notice.args;
        let (directory, path, wish) = match notice.call {
            Call::Connect => return self.connection(notice.pid, &memory.bytes(args[1], args[2])?),
            Call::Open => (None, args[0], wish(args[1])),
            Call::OpenAt => (Some(args[0]), args[1], wish(args[2])),
            Call::OpenAt2 => (Some(args[0]), args[1], wish(memory.word(args[2])?)),
            Call::Create => (None, args[0], Wish::Write),
            Call::Look => (None, args[0], Wish::Read),
            Call::LookAt => (Some(args[0]), args[1], Wish::Read),
            Call::Execute => (None, args[0], Wish::Execute),
            Call::ExecuteAt => (Some(args[0]), args[1], Wish::Execute),
        };
        let path = memory.path(path)?;
        if path.as_os_str().is_empty() {
            return None;
        }
        let path = absolute(notice.pid, directory, &path)?;
        self.file(notice.pid, wish, &path)
    }

    fn file(&mut self, pid: u32, wish: Wish, path: &Path) -> Option<(Wish, String, Why)> {
        if is_own(&self.confinement, path) {
            return None;
        }
        if self.confinement.network.is_private() && path == Path::new(NAME_SERVERS) {
            return Some((wish, path.to_string_lossy().into_owned(), Why::Name));
        }
        let mut inside = self.look_inside(pid, path);
        let mut outside = look_outside(path);
        if wish == Wish::Write && inside.is_none() && outside.is_none() {
            // It is to be made: what counts is where.
            let above = path.parent()?;
            inside = self.look_inside(pid, above).map(|above| Found { is_dir: false, ..above });
            outside = look_outside(above);
        }
        let is_hidden = Patterns::new(&self.confinement.hidden).hide(path);
        let why = why(wish, inside, outside, is_hidden)?;
        // What the host would refuse as well is not the sandbox's doing.
        let access = match wish {
            Wish::Write => Access::WRITE_OK,
            Wish::Execute => Access::EXEC_OK,
            Wish::Read | Wish::Connect => Access::READ_OK,
        };
        let may = |path: &Path| accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
        let on_host = may(path) || (wish == Wish::Write && !path.exists() && path.parent().is_some_and(may));
        (on_host || why == Why::Hidden || why == Why::Socket)
            .then(|| (wish, path.to_string_lossy().into_owned(), why))
    }

    fn look_inside(&mut self, pid: u32, path: &Path) -> Option<Found> {
        if self.inside.is_none() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()).ok()?;
            let covers =
                beneath(&root, Path::new("/.masks")).and_then(|covers| Some(fstat(covers).ok()?.st_dev));
            self.inside = Some((root, covers.unwrap_or(u64::MAX)));
        }
        let (root, covers) = self.inside.as_ref()?;
        let handle = beneath(root, path)?;
        let mut found = found(&handle)?;
        found.is_cover = fstat(&handle).is_ok_and(|stat| stat.st_dev == *covers && stat.st_mode & 0o777 == 0);
        Some(found)
    }

    fn connection(&mut self, pid: u32, address: &[u8]) -> Option<(Wish, String, Why)> {
        let family = AddressFamily::from_raw(u16::from_ne_bytes([*address.first()?, *address.get(1)?]));
        match family {
            AddressFamily::UNIX => {
                let name =
                    address.get(2..)?.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
                let path = absolute(pid, None, &PathBuf::from(std::ffi::OsStr::from_bytes(name)))?;
                self.file(pid, Wish::Connect, &path)
            }
            AddressFamily::INET | AddressFamily::INET6 => {
                let address = internet(family, address)?;
                let why = self.network(pid, address)?;
                Some((Wish::Connect, address.to_string(), why))
            }
            _ => None,
        }
    }

    fn network(&self, pid: u32, address: SocketAddr) -> Option<Why> {
        if let Network::Host { ports } = &self.confinement.network {
            return (!ports.contains(&address.port())).then_some(Why::Network);
        }
        match (address.ip().is_loopback(), address.port()) {
            (_, NAMES) => Some(Why::Name),
            (false, 0) => None,
            (false, _) => Some(Why::Network),
            (true, port) => {
                let listens = |net: &str| {
                    let table = |name: &str| fs::read_to_string(format!("{net}/{name}")).unwrap_or_default();
                    [table("tcp"), table("tcp6")].iter().any(|table| has_listener(table, port))
                };
                (!listens(&format!("/proc/{pid}/net")) && listens("/proc/self/net"))
                    .then_some(Why::HostsLoopback)
            }
        }
    }
}

/// Whether what is at a path is the sandbox's own and not a part of the host.
fn is_own(confinement: &Confinement, path: &Path) -> bool {
    let Confinement { root, read_only, writable, home, .. } = confinement;
    let mut shown = [&root.path].into_iter().chain(read_only).chain(writable);
    let mut own = NOT_LOOKED_FOR.map(Path::new).into_iter().chain([home.inside.as_path()]);
    !shown.any(|shown| path.starts_with(shown)) && own.any(|own| path.starts_with(own))
}

fn wish(flags: u64) -> Wish {
    let writes = OFlags::RWMODE | OFlags::CREATE | OFlags::TRUNC;
    if flags & u64::from(writes.bits()) == 0 { Wish::Read } else { Wish::Write }
}

fn beneath(root: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS).ok()
}

fn look_outside(path: &Path) -> Option<Found> {
    let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    found(&handle)
}

fn found(handle: &OwnedFd) -> Option<Found> {
    let kind = FileType::from_raw_mode(fstat(handle).ok()?.st_mode);
    let flags = fstatvfs(handle).ok()?.f_flag;
    Some(Found {
        is_dir: kind.is_dir(),
        is_socket: kind == FileType::Socket,
        is_read_only: flags.contains(StatVfsMountFlags::RDONLY),
        is_cover: false,
    })
}

/// The path as its process means it, without going where it leads.
fn absolute(pid: u32, directory: Option<u64>, path: &Path) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    let base = match directory.map(|number| number as i32) {
        None => fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        Some(number) if number == CWD.as_raw_fd() => fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        Some(number) => fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?,
    };
    base.is_absolute().then(|| base.join(path))
}

fn internet(family: AddressFamily, address: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([*address.get(2)?, *address.get(3)?]);
    let ip: IpAddr = if family == AddressFamily::INET {
        Ipv4Addr::from(<[u8; 4]>::try_from(address.get(4..8)?).ok()?).into()
    } else {
        Ipv6Addr::from(<[u8; 16]>::try_from(address.get(8..24)?).ok()?).into()
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// A line of `/proc/net/tcp` for a socket that listens on this port.
fn has_listener(table: &str, port: u16) -> bool {
    const LISTENS: &str = "0A";
    table.lines().skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let local = words.next().and_then(|local| local.rsplit_once(':'));
        let is_port = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
        is_port && words.nth(1) == Some(LISTENS)
    })
}

/// The memory of whoever makes the call.
struct Memory(File);

impl Memory {
    fn of(pid: u32) -> Option<Memory> {
        File::open(format!("/proc/{pid}/mem")).ok().map(Memory)
    }

    fn bytes(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len).ok()?.min(LONGEST_ADDRESS)];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn word(&self, at: u64) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(at, 8)?.try_into().ok()?))
    }

    /// A text with a zero at its end, read page by page: behind it there may be nothing.
    fn path(&self, mut at: u64) -> Option<PathBuf> {
        let mut text = Vec::new();
        while text.len() < LONGEST_PATH {
            let mut page = vec![0; usize::try_from(PAGE - at % PAGE).ok()?];
            self.0.read_exact_at(&mut page, at).ok()?;
            if let Some(end) = page.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&page[..end]);
                return Some(std::ffi::OsString::from_vec(text).into());
            }
            at += page.len() as u64;
            text.append(&mut page);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_is_wanted() {
        assert_eq!(wish(u64::from((OFlags::RDONLY | OFlags::CLOEXEC).bits())), Wish::Read);
        for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::CREATE, OFlags::TRUNC] {
            assert_eq!(wish(u64::from(flags.bits())), Wish::Write, "{flags:?}");
        }
    }

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let mut v4 = vec![0; 16];
        v4[2..8].copy_from_slice(&[1, 187, 192, 0, 2, 7]);
        assert_eq!(internet(AddressFamily::INET, &v4).unwrap().to_string(), "192.0.2.7:443");
        let mut v6 = vec![0; 28];
        v6[2..4].copy_from_slice(&[0, 80]);
        v6[23] = 1;
        assert_eq!(internet(AddressFamily::INET6, &v6).unwrap().to_string(), "[::1]:80");
        assert_eq!(internet(AddressFamily::INET6, &v6[..20]), None);
    }

    #[test]
    fn listeners_are_found_by_their_port() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                       0: 0100007F:1538 00000000:0000 0A 00000000:00000000\n\
                       1: 0100007F:0050 0100007F:9C40 01 00000000:00000000\n";
        assert!(has_listener(table, 5432));
        assert!(!has_listener(table, 80), "it is a connection");
    }

    #[test]
    fn paths_are_read_over_the_end_of_a_page() {
        let own = Memory::of(std::process::id()).unwrap();
        let text = std::ffi::CString::new("/".repeat(5_000)).unwrap();
        assert_eq!(own.path(text.as_ptr() as u64), None, "longer than a path can be");
        let text = std::ffi::CString::new(format!("/opt/{}", "x".repeat(3_000))).unwrap();
        assert_eq!(own.path(text.as_ptr() as u64).unwrap().as_os_str().len(), 3_005);
        assert_eq!(own.path(1), None);
    }
}
