//! Both ends of the way to another machine's daemon: `ssh host ostler internal relay`, which speaks for its control
//! socket on standard input and output.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::fd::OwnedFd,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_domain::{
    event::{PERSON_VARIABLE, is_person},
    home::Home,
    node::Node,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use crate::{Client, Error, socket};

/// What the far end says first. Whatever a login shell prints comes before it.
const GREETING: &str = "ostler relay 1";
/// How long SSH may take to be where it is to go. Who is asked for a password has as long.
const CONNECT_WITHIN: Duration = Duration::from_secs(60);
/// How much of what a shell or SSH says is kept.
const SAID_BYTES: u64 = 16 * 1024;
const CARRIED_BYTES: usize = 64 * 1024;

/// How another machine is reached.
#[derive(Debug, Clone)]
pub struct Way {
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub node: Node,
    /// The program that takes us there, and what it is told first.
    pub ssh: Vec<String>,
    /// Nobody is there to be asked for a password.
    pub batch: bool,
    /// For whom it is asked over there, for the record; a claim.
    pub person: Option<String>,
}

/// Who this process works for: as it was told, else by its login.
pub fn person() -> Option<String> {
    let said = [PERSON_VARIABLE, "LOGNAME", "USER"].into_iter().filter_map(|name| std::env::var(name).ok());
    said.into_iter().find(|person| is_person(person))
}

impl Way {
    /// The words of the command that takes us there.
    fn command(&self) -> Vec<String> {
        let address = &self.node.address;
        let mut words = self.ssh.clone();
        words.push("-T".to_owned());
        if self.batch {
            words.extend(["-o".to_owned(), "BatchMode=yes".to_owned()]);
        }
        words.extend(["-o".to_owned(), "ConnectTimeout=10".to_owned()]);
        words.extend(address.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.extend(address.user.iter().flat_map(|user| ["-l".to_owned(), user.clone()]));
        words.extend(["--".to_owned(), address.host.clone()]);
        // A shell reads it there.
        let program = ostler_domain::text::shell_word(self.node.program());
        // Several people may share the login over there: for the record each says who they are.
        let person = self.person.as_deref().filter(|person| is_person(person));
        words.push(match person {
            Some(person) => format!("{program} internal relay {person}"),
            None => format!("{program} internal relay"),
        });
        words
    }

    pub(crate) async fn open(&self) -> Result<UnixStream, Error> {
        let unreachable =
            |why: String| Error::NodeUnreachable { name: self.name.clone(), why, lacks_program: None };
        let words = self.command();
        let (ours, theirs) =
            std::os::unix::net::UnixStream::pair().map_err(|error| unreachable(error.to_string()))?;
        let ends = || theirs.try_clone().map(OwnedFd::from).map(Stdio::from);
        let (stdin, stdout) = (ends(), ends());
        let mut command = Command::new(words.first().map_or("ssh", String::as_str));
        command.args(words.get(1..).unwrap_or_default()).stderr(Stdio::piped()).kill_on_drop(true);
        let started = stdin
            .and_then(|stdin| Ok(command.stdin(stdin).stdout(stdout?)))
            .and_then(|command| command.spawn());
        let mut child = started.map_err(|error| unreachable(format!("{}: {error}", words[0])))?;
        drop((command, theirs));
        let stream = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours));
        let mut stream = stream.map_err(|error| unreachable(error.to_string()))?;
        match timeout(CONNECT_WITHIN, greeted(&mut stream)).await {
            Ok(Ok(())) => {
                // It ends when this end of the stream does.
                tokio::spawn(async move { drop(child.wait().await) });
                Ok(stream)
            }
            Ok(Err(said)) => {
                let (why, lacks_program) = why(&mut child, said).await;
                let lacks_program = lacks_program.then(|| self.node.address.to_string());
                Err(Error::NodeUnreachable { name: self.name.clone(), why, lacks_program })
            }
            Err(_) => Err(unreachable(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
        }
    }
}

/// Reads up to the greeting, byte by byte: what follows it is not ours. What came instead is returned.
async fn greeted(stream: &mut UnixStream) -> Result<(), String> {
    let (mut line, mut said) = (Vec::new(), String::new());
    loop {
        match stream.read_u8().await {
            Ok(b'\n') => {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                if text == GREETING {
                    return Ok(());
                }
                said = text;
                line.clear();
            }
            Ok(byte) if line.len() < SAID_BYTES as usize => line.push(byte),
            Ok(_) => return Err("what is there is no Ostler".to_owned()),
            Err(_) => return Err(said),
        }
    }
}

/// What a shell ends with that has not found the program, or may not run it; SSH ends with what the shell did.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// What SSH, or the shell over there, said last, and whether it is that the program is not there.
async fn why(child: &mut Child, said: String) -> (String, bool) {
    let mut text = String::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr.take(SAID_BYTES)).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if !line.trim().is_empty() {
                text = line;
            }
        }
    }
    let ended = child.wait().await;
    let code = ended.as_ref().ok().and_then(std::process::ExitStatus::code);
    let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    let why = [text, said].into_iter().find(|text| !text.is_empty());
    let lacks_program = code.is_some_and(|code| NO_PROGRAM.contains(&code));
    (why.unwrap_or(format!("ssh ended with {status}")), lacks_program)
}

impl Client {
    /// Connects to the daemon of another machine. `home` is this machine's, for what is remembered here.
    pub async fn connect_by(way: &Way, home: &Home) -> Result<Client, Error> {
        let stream = way.open().await?;
        let way = Arc::new(way.clone());
        let again = move || {
            let way = Arc::clone(&way);
            async move { way.open().await.map_err(io::Error::other) }
        };
        Ok(Client::over(Arc::new(Mutex::new(Some(stream))), home, again))
    }
}

/// Takes the stream that is open, once.
pub(crate) fn take(first: &Mutex<Option<UnixStream>>) -> Option<UnixStream> {
    first.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The far end: starts a daemon if there is none, and carries everything between it and standard input and output,
/// until one of them has no more to say.
pub fn serve(home: &Home, program: &Path) -> Result<(), Error> {
    let broken = |error: io::Error| Error::Broken { what: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let socket = runtime.block_on(async {
        Client::connect_or_start(home, program).await?;
        let stream = socket::connect(&socket::path(home)).await.map_err(broken)?;
        stream.into_std().map_err(broken)
    })?;
    carry(socket).map_err(broken)
}

fn carry(mut from_daemon: std::os::unix::net::UnixStream) -> io::Result<()> {
    from_daemon.set_nonblocking(false)?;
    let mut to_daemon = from_daemon.try_clone()?;
    let mut output = io::stdout().lock();
    output.write_all(format!("{GREETING}\n").as_bytes())?;
    output.flush()?;
    // Ends with this process, or with what it reads.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let mut buffer = vec![0; CARRIED_BYTES];
    loop {
        match from_daemon.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                output.write_all(&buffer[..read])?;
                output.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::node::Address;

    use super::*;

    #[test]
    fn ssh_is_told_where_to_go_and_nothing_of_a_name_is_an_option() {
        let node = Node {
            address: Address::parse("ssh://ann@build2:2222").unwrap(),
            program: Some("/opt/my ostler".into()),
        };
        let way = Way {
            name: "build2".into(),
            node,
            ssh: vec!["ssh".into(), "-F".into(), "x".into()],
            batch: true,
            person: Some("bob".into()),
        };
        let command = "ssh -F x -T -o BatchMode=yes -o ConnectTimeout=10 -p 2222 -l ann -- build2 '/opt/my ostler' internal relay";
        assert_eq!(way.command().join(" "), format!("{command} bob"));
        for odd in ["a b", "$(x)", "", "-x;y"] {
            let way = Way { person: Some(odd.into()), ..way.clone() };
            assert_eq!(way.command().join(" "), command, "a shell reads it there");
        }
    }
}
