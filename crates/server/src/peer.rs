//! Who is at the other end of a connection: by uid and user namespace, as the kernel says.
//!
//! The same uid is not enough: agents have it too. They always live in another user namespace, and are refused.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use ostler_domain::{
    Reason, Refusal,
    event::{By, PERSON_VARIABLE, is_person},
};
use rustix::process::geteuid;
use tokio::net::UnixStream;
use tonic::{Request, Status};

/// What the kernel said when the connection was made.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    uid: Option<u32>,
    pid: Option<u32>,
    /// For whom it says that it asks.
    person: Option<String>,
    /// Where it looks for programs.
    search: Option<OsString>,
    allowed: Result<(), &'static str>,
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> Self {
        let Ok(credentials) = stream.peer_cred() else {
            let allowed = Err("the kernel does not say who it is");
            return Self { uid: None, pid: None, person: None, search: None, allowed };
        };
        let allowed = match credentials.pid() {
            _ if credentials.uid() != geteuid().as_raw() => Err("it belongs to another user"),
            Some(pid) => same_user_namespace(pid),
            None => Err("its process is not visible from here"),
        };
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        // Read now: the process may be gone when what it asked for is recorded.
        let environment = pid.filter(|_| allowed.is_ok()).and_then(environment).unwrap_or_default();
        let person = variable(&environment, PERSON_VARIABLE)
            .and_then(|said| std::str::from_utf8(said).ok())
            .filter(|said| is_person(said))
            .map(str::to_owned);
        let search = variable(&environment, "PATH").map(|path| OsStr::from_bytes(path).to_owned());
        Self { uid: Some(credentials.uid()), pid, person, search, allowed }
    }

    /// The directories in which it looks for programs.
    pub(crate) fn search(&self) -> Vec<PathBuf> {
        self.search.as_ref().map(|path| env::split_paths(path).collect()).unwrap_or_default()
    }
}

impl Peer {
    /// The HTTP door of this very process, which has found out for whom it asks.
    pub(crate) fn within(stream: &UnixStream, person: &str) -> Self {
        Self { person: Some(person.to_owned()), ..Self::of(stream) }
    }
}

fn same_user_namespace(pid: i32) -> Result<(), &'static str> {
    let namespace = |process: &str| {
        let found = fs::metadata(Path::new("/proc").join(process).join("ns/user")).ok()?;
        Some((found.dev(), found.ino()))
    };
    match (namespace(&pid.to_string()), namespace("self")) {
        (Some(theirs), Some(ours)) if theirs == ours => Ok(()),
        (Some(_), Some(_)) => Err("it lives in another user namespace, as agents and rootless containers do"),
        // Gone already, or hidden: nothing that it asked for can be answered anyway.
        _ => Err("its process cannot be looked at"),
    }
}

/// Refuses every call of a peer that may not be here.
pub(crate) fn check(request: Request<()>) -> Result<Request<()>, Status> {
    let verdict = match request.extensions().get::<Peer>() {
        Some(peer) => peer.allowed,
        None => Err("nothing is known of the connection"),
    };
    match verdict {
        Ok(()) => Ok(request),
        Err(why) => Err(ostler_wire::status::from_refusal(
            &Refusal::new(Reason::PermissionDenied, "this process may not talk to the daemon").because(why),
        )),
    }
}

/// The name of who asks, for the record.
pub(crate) fn by<T>(request: &Request<T>) -> By {
    let peer = request.extensions().get::<Peer>();
    let login = match peer.and_then(|peer| peer.uid) {
        Some(uid) => By::login(&fs::read_to_string("/etc/passwd").unwrap_or_default(), uid),
        None => "unknown".to_owned(),
    };
    By::claimed(&login, peer.and_then(|peer| peer.person.as_deref()))
}

/// For whom a process says that it asks.
pub(crate) fn person_of<T>(request: &Request<T>) -> Option<String> {
    request.extensions().get::<Peer>().and_then(|peer| peer.person.clone())
}

/// What a process was started with: it says for whom it works, where several people share a login and come by SSH, and where
/// programs are that a daemon was started too early, or by somebody with too little, to know of.
fn environment(pid: u32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The process that made the connection.
pub(crate) fn pid<T>(request: &Request<T>) -> Option<u32> {
    request.extensions().get::<Peer>().and_then(|peer| peer.pid)
}
