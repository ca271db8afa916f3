//! The units by which systemd starts the daemon and holds its socket. Arithmetic on text; somebody else writes the files.
//!
//! A restart of the unit must not end an agent: only the daemon itself is signalled, and keepers and sessions live in
//! groups of their own beside the daemon's.

use std::path::{Path, PathBuf};

/// The daemon's unit.
pub const SERVICE: &str = "ostler.service";
/// The unit that holds its socket, so that whoever connects has a daemon.
pub const SOCKET: &str = "ostler.socket";
/// The group of the daemon's process below its unit's, which stays free for those of sessions.
pub const DAEMON_GROUP: &str = "daemon";

/// Whose service manager starts the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user's own.
    User,
    /// The machine's, on behalf of a user.
    System { user: String },
}

impl Scope {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::System { .. } => "system",
        }
    }

    const fn wanted_by(&self) -> &'static str {
        match self {
            Scope::User => "default.target",
            Scope::System { .. } => "multi-user.target",
        }
    }
}

/// What the units say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub scope: Scope,
    pub program: PathBuf,
    pub socket: Socket,
    /// From which the daemon finds its directories.
    pub variables: Vec<(String, PathBuf)>,
}

/// Where the socket is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    At(PathBuf),
    /// In the run directory of whoever's manager reads the unit: one file for every user of a machine.
    OfEachUser,
}

/// A path or name that a unit cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be written into a unit")]
pub struct Unwritable(pub String);

impl Service {
    /// What a package brings: off until a user turns it on, with that user's own directories.
    pub fn of_each_user(program: impl Into<PathBuf>) -> Self {
        Self {
            scope: Scope::User,
            program: program.into(),
            socket: Socket::OfEachUser,
            variables: Vec::new(),
        }
    }

    /// The text of [`SERVICE`].
    pub fn unit(&self) -> Result<String, Unwritable> {
        let mut variables = String::new();
        for (name, path) in &self.variables {
            variables += &format!("Environment={}\n", quoted(&format!("{name}={}", text(path)?))?);
        }
        let user = match &self.scope {
            Scope::User => String::new(),
            Scope::System { user } => format!("User={}\n", plain(user)?),
        };
        Ok(format!(
            "[Unit]\n\
             Description=Ostler looks after coding agents\n\
             Requires={SOCKET}\n\
             After={SOCKET}\n\
             \n\
             [Service]\n\
             Type=notify\n\
             NotifyAccess=main\n\
             ExecStart={} daemon run\n\
             {user}{variables}\
             # Agents outlive the daemon: only its own process is ended, and sessions have groups beside its own.\n\
             KillMode=process\n\
             Delegate=yes\n\
             DelegateSubgroup={DAEMON_GROUP}\n\
             OOMPolicy=continue\n\
             TasksMax=infinity\n\
             LimitNOFILE=524288\n\
             Restart=on-failure\n\
             RestartSec=1\n\
             WatchdogSec=60\n\
             \n\
             [Install]\n\
             WantedBy={}\n\
             Also={SOCKET}\n",
            quoted(text(&self.program)?)?,
            self.scope.wanted_by(),
        ))
    }

    /// The text of [`SOCKET`].
    pub fn socket_unit(&self) -> Result<String, Unwritable> {
        let owner = match &self.scope {
            Scope::User => String::new(),
            Scope::System { user } => format!("SocketUser={}\n{}", plain(user)?, self.own_directory(user)?),
        };
        let socket = match &self.socket {
            Socket::At(path) => plain(text(path)?)?,
            Socket::OfEachUser => "%t/ostler/control.sock".to_owned(),
        };
        Ok(format!(
            "[Unit]\n\
             Description=Where Ostler is spoken to\n\
             \n\
             [Socket]\n\
             ListenStream={socket}\n\
             SocketMode=0600\n\
             DirectoryMode=0700\n\
             {owner}\
             \n\
             [Install]\n\
             WantedBy=sockets.target\n",
        ))
    }

    /// The machine's manager makes the directories above a socket root's own, whoever the socket's owner is
    /// (systemd issue 4125): there the daemon could not write its record. So its user makes them first.
    fn own_directory(&self, user: &str) -> Result<String, Unwritable> {
        let Socket::At(path) = &self.socket else { return Ok(String::new()) };
        let Some(dir) = path.parent() else { return Ok(String::new()) };
        Ok(format!("User={}\nExecStartPre=/bin/mkdir -p -m 0700 {}\n", plain(user)?, quoted(text(dir)?)?))
    }
}

fn text(path: &Path) -> Result<&str, Unwritable> {
    path.to_str().ok_or_else(|| Unwritable(path.to_string_lossy().into_owned()))
}

/// For places that take a value as it is, to the end of its line.
fn plain(value: &str) -> Result<String, Unwritable> {
    if value.is_empty() || value.chars().any(|c| c.is_control() || c == '\\') || value.trim() != value {
        return Err(Unwritable(value.to_owned()));
    }
    Ok(value.replace('%', "%%"))
}

/// One word of a list of words.
fn quoted(value: &str) -> Result<String, Unwritable> {
    if value.chars().any(|c| c.is_control()) {
        return Err(Unwritable(value.to_owned()));
    }
    let value = value.replace('%', "%%").replace('$', "$$");
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if value.chars().all(is_bare) {
        return Ok(value);
    }
    Ok(format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\"")))
}

/// The program that a unit starts: the first word of what it executes, read as [`Service::unit`] writes it.
pub fn program_of(unit: &str) -> Option<PathBuf> {
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart="))?;
    let word = match line.strip_prefix('"') {
        None => line.split(' ').next()?.to_owned(),
        Some(rest) => {
            let mut word = String::new();
            let mut chars = rest.chars();
            loop {
                match chars.next()? {
                    '"' => break word,
                    '\\' => word.push(chars.next()?),
                    c => word.push(c),
                }
            }
        }
    };
    let word = word.replace("$$", "$").replace("%%", "%");
    (!word.is_empty()).then(|| PathBuf::from(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(program: &str) -> Service {
        Service {
            scope: Scope::User,
            program: program.into(),
            socket: Socket::At("/run/user/7/ostler/control.sock".into()),
            variables: vec![("OSTLER_HOME".to_owned(), "/srv/my agents".into())],
        }
    }

    #[test]
    fn only_the_daemon_is_signalled() {
        let unit = service("/usr/bin/ostler").unit().unwrap();
        for line in ["KillMode=process", "Delegate=yes", "DelegateSubgroup=daemon", "OOMPolicy=continue"] {
            assert!(unit.lines().any(|found| found == line), "{line}");
        }
        assert!(unit.contains("ExecStart=/usr/bin/ostler daemon run\n"));
        assert!(unit.contains("Environment=\"OSTLER_HOME=/srv/my agents\"\n"));
        assert!(!unit.contains("User="));
    }

    #[test]
    fn the_program_of_a_unit_is_read_as_it_was_written() {
        for program in ["/usr/bin/ostler", "/srv/my programs/100% \"new\"/a\\b$c/ostler"] {
            let unit = service(program).unit().unwrap();
            assert_eq!(program_of(&unit), Some(PathBuf::from(program)), "{unit}");
        }
        assert_eq!(program_of("[Service]\nType=notify\n"), None);
    }

    #[test]
    fn a_machines_service_is_some_users() {
        let service =
            Service { scope: Scope::System { user: "agents".into() }, ..service("/usr/bin/ostler") };
        assert!(service.unit().unwrap().contains("User=agents\n"));
        assert!(service.unit().unwrap().contains("WantedBy=multi-user.target\n"));
        let socket = service.socket_unit().unwrap();
        assert!(socket.contains("SocketUser=agents\n"), "{socket}");
        // Else the directory would be root's, and the daemon could write nothing into it.
        let made = "User=agents\nExecStartPre=/bin/mkdir -p -m 0700 /run/user/7/ostler\n";
        assert!(socket.contains(made), "{socket}");
    }

    #[test]
    fn a_packages_units_are_every_users() {
        let service = Service::of_each_user("/usr/bin/ostler");
        assert!(service.socket_unit().unwrap().contains("ListenStream=%t/ostler/control.sock\n"));
        let unit = service.unit().unwrap();
        assert!(unit.contains("ExecStart=/usr/bin/ostler daemon run\n") && !unit.contains("Environment="));
    }

    #[test]
    fn odd_names_are_escaped_or_refused() {
        let unit = service("/opt/100% \"real\"/$x/ostler").unit().unwrap();
        assert!(unit.contains("ExecStart=\"/opt/100%% \\\"real\\\"/$$x/ostler\" daemon run\n"), "{unit}");
        assert_eq!(service("/a\nb").unit(), Err(Unwritable("/a\nb".to_owned())));
    }
}
