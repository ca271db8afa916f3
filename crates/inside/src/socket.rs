//! The session socket, from inside: how an agent's own processes say something of their session. Blocking, and without
//! a daemon: a call counts when the keeper has it on its tape.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_domain::{
    Reason, Refusal,
    call::{CallLine, Reply},
    limits::{CALL_ANSWER_TIME, CALL_READ_TIME, CALL_TAPED_TIME, FRAME_BYTES},
};
use serde::Serialize;

/// `sun_path` has 108 bytes, the last of which is zero.
const ADDRESS_BYTES: usize = 107;

/// Where a session is called, and the token that it is called with.
#[derive(Debug)]
pub struct SessionSocket {
    path: PathBuf,
    token: String,
}

/// What came of a call that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is recorded, and so.
    Done,
    /// It is on the tape: recorded as soon as a daemon is there.
    Taped,
}

impl SessionSocket {
    /// The socket of the session that this process belongs to. None for a process outside of every session, and for one
    /// that was given a home of its own.
    pub fn of_this_process() -> Option<Self> {
        let of = Self::of(|name| std::env::var_os(name))?;
        if !of.token.is_empty() {
            return Some(of);
        }
        // Some agents start their servers without what is called a token. Whoever started us has it.
        let token = ancestors().find_map(|pid| variable_of(pid, "OSTLER_TOKEN"));
        Some(Self { token: token.unwrap_or_default(), ..of })
    }

    /// The socket at a path, called with a token.
    pub fn new(path: PathBuf, token: String) -> Self {
        Self { path, token }
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        if variable("OSTLER_HOME").is_some_and(|home| !home.is_empty()) {
            return None;
        }
        let path = variable("OSTLER_SOCKET").filter(|path| !path.is_empty())?;
        let token = variable("OSTLER_TOKEN").unwrap_or_default().into_string().ok()?;
        Some(Self { path: path.into(), token })
    }

    /// Says something. Returns when it cannot be lost any more.
    pub fn say(&self, call: &impl Serialize) -> Result<Said, Refusal> {
        let mut connection = self.connect()?;
        if !connection.call(call)? {
            return Ok(Said::Taped);
        }
        match connection.answer(CALL_ANSWER_TIME)? {
            None => Ok(Said::Taped),
            Some(Reply::Refused(refusal)) => Err(refusal),
            Some(_) => Ok(Said::Done),
        }
    }

    /// Asks for something that is done outside of this session. None where no daemon is there: it is on the tape, and done when
    /// one is.
    pub fn ask(&self, call: &impl Serialize) -> Result<Option<Reply>, Refusal> {
        let mut connection = self.connect()?;
        if !connection.call(call)? {
            return Ok(None);
        }
        connection.answer(CALL_READ_TIME)
    }

    /// Asks to be told something. Who only looks has nothing of a call that is on the tape.
    pub fn read(&self, call: &impl Serialize) -> Result<Reply, Refusal> {
        match self.ask(call)? {
            Some(Reply::Refused(refusal)) => Err(refusal),
            Some(reply) => Ok(reply),
            None => Err(Refusal::new(Reason::DaemonUnreachable, "the daemon gave no answer")
                .because("the session goes on, and what it says is recorded meanwhile")
                .hint("ostler note TEXT", "needs no daemon")),
        }
    }

    fn connect(&self) -> Result<Connection, Refusal> {
        let open = || -> io::Result<Connection> {
            let stream = connect(&self.path)?;
            let mut connection = Connection { reader: BufReader::new(stream), call: 0 };
            connection.write_line(self.token.as_bytes())?;
            Ok(connection)
        };
        open().map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &io::Error) -> Refusal {
        Refusal::new(Reason::DaemonUnreachable, "the session socket does not answer")
            .because(format!("{}: {error}", self.path.display()))
    }
}

struct Connection {
    reader: BufReader<UnixStream>,
    /// The place of the last call on the tape.
    call: u64,
}

impl Connection {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let mut whole = line.to_vec();
        whole.push(b'\n');
        self.reader.get_mut().write_all(&whole)
    }

    /// Calls, and waits until that is on the tape. Says whether there is a daemon to answer.
    fn call(&mut self, call: &impl Serialize) -> Result<bool, Refusal> {
        let line = serde_json::to_vec(call).map_err(|error| no_sense(&error.to_string()))?;
        // Refused already, perhaps: then the answer says why, and not the failed write.
        let written = self.write_line(&line);
        match self.line(CALL_TAPED_TIME)? {
            Some(CallLine { call, reply: Reply::Taped { daemon } }) => {
                self.call = call;
                Ok(daemon)
            }
            Some(CallLine { reply: Reply::Refused(refusal), .. }) => Err(refusal),
            Some(_) => Err(no_sense("it answers what was not asked")),
            None => {
                let why =
                    written.err().map_or_else(|| "it said nothing".to_owned(), |error| error.to_string());
                Err(Refusal::new(Reason::DaemonUnreachable, "nobody can say whether the call was recorded")
                    .because(why))
            }
        }
    }

    fn answer(&mut self, within: Duration) -> Result<Option<Reply>, Refusal> {
        Ok(self.line(within)?.filter(|line| line.call == self.call).map(|line| line.reply))
    }

    /// The next line; none if it does not come in time, or never will.
    fn line(&mut self, within: Duration) -> Result<Option<CallLine>, Refusal> {
        let mut line = Vec::new();
        let read = self
            .reader
            .get_ref()
            .set_read_timeout(Some(within))
            .and_then(|()| (&mut self.reader).take(FRAME_BYTES as u64).read_until(b'\n', &mut line));
        match read {
            Ok(1..) if line.ends_with(b"\n") => {
                serde_json::from_slice(&line).map(Some).map_err(|error| no_sense(&error.to_string()))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

/// Whoever started this process, whoever started that one, and so on.
fn ancestors() -> impl Iterator<Item = u32> {
    const GENERATIONS: usize = 16;
    let first = Some(std::os::unix::process::parent_id());
    std::iter::successors(first, |pid| parent_of(*pid)).take_while(|pid| *pid > 0).take(GENERATIONS)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A program's name may have anything in it, brackets too.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let set = environment.split(|byte| *byte == 0);
    let value = set.filter_map(|set| set.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()?;
    String::from_utf8(value.to_vec()).ok()
}

fn no_sense(why: &str) -> Refusal {
    Refusal::new(Reason::Internal, "the session socket's answer makes no sense to this version").because(why)
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES {
        return UnixStream::connect(path);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = File::open(dir)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    // The descriptor stays open until the connection stands.
    let stream = UnixStream::connect(short);
    drop(dir);
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_handed_on_is_found_with_whoever_started_us() {
        use std::process::{Command, Stdio};
        let mut child = Command::new("sh")
            .args(["-c", "read wait"])
            .env("OSTLER_TOKEN", "a=b")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The kernel shows what a program was started with only once it runs.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let token = loop {
            match variable_of(child.id(), "OSTLER_TOKEN") {
                None if std::time::Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                token => break token,
            }
        };
        assert_eq!(token.as_deref(), Some("a=b"));
        assert_eq!(variable_of(child.id(), "OSTLER_TOKE"), None);
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(ancestors().next() == Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_home_of_its_own_is_no_part_of_a_session() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, OsString)> =
                set.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            SessionSocket::of(|name| set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone()))
        };
        assert!(of(&[]).is_none());
        assert!(of(&[("OSTLER_SOCKET", "")]).is_none());
        assert!(of(&[("OSTLER_SOCKET", "/s"), ("OSTLER_TOKEN", "t")]).is_some());
        assert!(of(&[("OSTLER_SOCKET", "/s"), ("OSTLER_HOME", "/h")]).is_none());
    }
}
