//! Where Ostler keeps its files: arithmetic on paths, from variables that the caller read.
//!
//! Everyone (daemon, keeper, client) computes the same paths here, so nobody has to be told them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{ConversationId, SessionId, Time, event::By, time::BootId};

/// The directories that one daemon and its clients share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Set when everything lies in one directory.
    root: Option<PathBuf>,
    state: PathBuf,
    config: PathBuf,
    run: PathBuf,
}

/// Why the directories are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// The daemon runs elsewhere: a relative path would mean another directory to it.
    #[error("{variable} must be an absolute path, and is \"{value}\"")]
    NotAbsolute { variable: &'static str, value: String },
    #[error("none of OSTLER_HOME, {variable} and HOME is set")]
    Unknown { variable: &'static str },
}

impl Home {
    /// Finds the directories: `OSTLER_HOME` has them all, else each has its place in the XDG base directories.
    pub fn resolve(vars: impl Fn(&str) -> Option<String>) -> Result<Home, HomeError> {
        let set = |name: &str| vars(name).filter(|value| !value.is_empty());
        if let Some(value) = set("OSTLER_HOME") {
            if !value.starts_with('/') {
                return Err(HomeError::NotAbsolute { variable: "OSTLER_HOME", value });
            }
            return Ok(Home::at(value));
        }
        // The base directory specification has relative values ignored.
        let absolute = |name: &str| set(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
        let base = |variable: &'static str, below_home: &str| {
            absolute(variable)
                .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
                .map(|base| base.join("ostler"))
                .ok_or(HomeError::Unknown { variable })
        };
        let state = base("XDG_STATE_HOME", ".local/state")?;
        let config = base("XDG_CONFIG_HOME", ".config")?;
        let run = absolute("XDG_RUNTIME_DIR").map_or_else(|| state.clone(), |run| run.join("ostler"));
        Ok(Home { root: None, state, config, run })
    }

    /// All directories in one, as with `OSTLER_HOME`.
    pub fn at(root: impl Into<PathBuf>) -> Home {
        let root = root.into();
        Home {
            state: root.join("state"),
            config: root.join("config"),
            run: root.join("run"),
            root: Some(root),
        }
    }

    /// The variables from which a program that we start finds the same directories.
    pub fn variables(&self) -> Vec<(&'static str, &Path)> {
        match &self.root {
            Some(root) => vec![("OSTLER_HOME", root)],
            None => {
                let own = [
                    ("XDG_STATE_HOME", &self.state),
                    ("XDG_CONFIG_HOME", &self.config),
                    ("XDG_RUNTIME_DIR", &self.run),
                ];
                own.into_iter()
                    .filter(|(name, path)| *name != "XDG_RUNTIME_DIR" || **path != self.state)
                    .filter_map(|(name, path)| Some((name, path.parent()?)))
                    .collect()
            }
        }
    }

    /// What must survive.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// What people write.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What lives as long as the daemon.
    pub fn run(&self) -> &Path {
        &self.run
    }

    pub fn config_toml(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The socket of the daemon's API, where nothing else is said in `daemon.json`.
    pub fn control_socket(&self) -> PathBuf {
        self.run.join("control.sock")
    }

    /// Says which daemon runs; see [`DaemonFile`].
    pub fn daemon_json(&self) -> PathBuf {
        self.state.join("daemon.json")
    }

    /// A halt that no daemon has recorded yet; see [`HaltFile`].
    pub fn halt_json(&self) -> PathBuf {
        self.state.join("halt.json")
    }

    /// Touched while somebody looks at this machine's screen: whoever sees it is not told by the desktop.
    pub fn looked_at(&self) -> PathBuf {
        self.run.join("looked-at")
    }

    /// Held by the daemon as long as it lives.
    pub fn daemon_lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// What a daemon in the background says.
    /// Logs that were put aside have a number behind their names: [`old_log`].
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    pub fn db(&self) -> PathBuf {
        self.state.join("ostler.db")
    }

    pub fn search_db(&self) -> PathBuf {
        self.state.join("search.db")
    }

    pub fn blobs(&self) -> PathBuf {
        self.state.join("blobs")
    }

    pub fn archive(&self) -> PathBuf {
        self.state.join("archive")
    }

    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// A session's tape, lock and sockets.
    pub fn session_dir(&self, session: &SessionId) -> PathBuf {
        self.sessions().join(session.to_string())
    }

    pub fn conversations(&self) -> PathBuf {
        self.state.join("conversations")
    }

    /// A conversation's transcripts, and its provider's home.
    pub fn conversation_dir(&self, conversation: &ConversationId) -> PathBuf {
        self.conversations().join(conversation.to_string())
    }
}

/// What `daemon.json` says. Clients read it first: a daemon may listen elsewhere than they would look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonFile {
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: with the number it is the process, the number alone is not.
    pub start_time: u64,
    pub version: String,
    /// What to run to have a daemon again: keepers do, and never from their own image, which may be older.
    pub program: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// The state directory it serves: a copy of that directory, with this file in it, is not served by anybody.
    #[serde(default)]
    pub state: PathBuf,
    /// A service manager holds the socket: to have a daemon again, connect to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_service: bool,
    /// The boot of the machine in which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
}

/// What `halt.json` says: everything was to stop while no daemon answered. The next one holds to it before it does anything
/// else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HaltFile {
    pub freeze: bool,
    pub by: By,
    #[serde(default)]
    pub why: String,
    pub since: Time,
}

impl HaltFile {
    /// What a file says that somebody wrote by `now`. One that makes no sense stops everything all the same, by freezing:
    /// nothing is lost by that.
    pub fn read(text: &[u8], now: Time) -> HaltFile {
        serde_json::from_slice(text).unwrap_or_else(|_| HaltFile {
            freeze: true,
            by: By("halt.json".to_owned()),
            why: "what it says is not understood".to_owned(),
            since: now,
        })
    }
}

/// The log that was put aside so many times ago: `daemon.log.1` is the last.
pub fn old_log(log: &Path, n: u32) -> PathBuf {
    log.with_extension(format!("log.{n}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(vars: &[(&str, &str)]) -> Result<Home, HomeError> {
        Home::resolve(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn one_directory_has_it_all() {
        let home = resolve(&[("OSTLER_HOME", "/x"), ("XDG_STATE_HOME", "/y"), ("HOME", "/h")]).unwrap();
        assert_eq!(home, Home::at("/x"));
        assert_eq!(home.db(), Path::new("/x/state/ostler.db"));
        assert_eq!(home.control_socket(), Path::new("/x/run/control.sock"));
        assert_eq!(home.config_toml(), Path::new("/x/config/config.toml"));
    }

    #[test]
    fn else_the_base_directories_do() {
        let home =
            resolve(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7"), ("OSTLER_HOME", "")]).unwrap();
        assert_eq!(home.state(), Path::new("/h/.local/state/ostler"));
        assert_eq!(home.config(), Path::new("/h/.config/ostler"));
        assert_eq!(home.run(), Path::new("/run/user/7/ostler"));
        let home =
            resolve(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("XDG_CONFIG_HOME", "relative")]).unwrap();
        assert_eq!((home.state(), home.run()), (Path::new("/s/ostler"), Path::new("/s/ostler")));
        assert_eq!(home.config(), Path::new("/h/.config/ostler"));
    }

    #[test]
    fn a_halt_that_makes_no_sense_is_one() {
        let now = Time::from_micros(7);
        let asked = HaltFile {
            freeze: false,
            by: By("ann".to_owned()),
            why: "fire".to_owned(),
            since: Time::from_micros(3),
        };
        let text = r#"{"freeze":false,"by":"ann","why":"fire","since":3}"#;
        assert_eq!(serde_json::to_string(&asked).unwrap(), text);
        assert_eq!(HaltFile::read(text.as_bytes(), now), asked);
        for broken in ["", "{", r#"{"freeze":"#] {
            let read = HaltFile::read(broken.as_bytes(), now);
            assert!(read.freeze && read.since == now, "{broken}");
        }
    }

    #[test]
    fn says_what_is_missing() {
        assert_eq!(resolve(&[]), Err(HomeError::Unknown { variable: "XDG_STATE_HOME" }));
        assert!(matches!(resolve(&[("OSTLER_HOME", "x")]), Err(HomeError::NotAbsolute { .. })));
    }

    #[test]
    fn a_started_program_finds_the_same() {
        let places: [&[(&str, &str)]; 3] = [
            &[("OSTLER_HOME", "/x")],
            &[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")],
            &[("HOME", "/h"), ("XDG_STATE_HOME", "/s")],
        ];
        for vars in places {
            let home = resolve(vars).unwrap();
            let again = home.variables();
            let again = Home::resolve(|name| {
                again.iter().find(|(key, _)| *key == name).map(|(_, path)| path.display().to_string())
            });
            assert_eq!(again.unwrap(), home);
        }
    }
}
