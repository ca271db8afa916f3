//! Logins of programs: where each keeps its own, and what of it a session is lent.

use ostler_domain::Time;
use serde_json::Value;

/// How a program logs in, and what is in the file that it keeps of that.
pub struct LoginSpec {
    /// The words that have the program log in, on a terminal.
    pub words: &'static [&'static str],
    /// The variable that says where its things are, and where they are below a home.
    pub state: (&'static str, &'static str),
    /// What is off while it logs in or renews its login, as it is in sessions: telemetry, updates of itself.
    pub quiet: &'static [(&'static str, &'static str)],
    /// The file of the login, in there.
    pub file: &'static str,
    /// Whom an agent that is lent the login calls.
    pub hosts: &'static [&'static str],
    /// Variables by which somebody may have told the program of a login already.
    pub variables: &'static [&'static str],
    pub refresh: Refresh,
    /// What an agent is lent of a login; none where there is nothing in it.
    pub lend: fn(&Value) -> Option<Lent>,
}

/// What has the program renew its login by itself, without calling a model.
pub struct Refresh {
    pub words: &'static [&'static str],
    /// Lines that it is told.
    pub input: &'static [&'static str],
    /// What the line has in it that says it is done; without one it is when it ends.
    pub done: Option<&'static str>,
}

/// A login without the part that renews it: whoever has it can call the model for a while, and log nobody out.
#[derive(Clone, PartialEq, Eq)]
pub struct Lent {
    pub text: String,
    /// What must be seen nowhere.
    pub secrets: Vec<String>,
    /// When it ends, in seconds since 1970, where it says so.
    pub expires: Option<i64>,
    /// It is a key that pays for each call, and no subscription.
    pub is_key: bool,
}

impl Lent {
    pub fn ends(&self) -> Option<Time> {
        self.expires.map(|seconds| Time::from_micros(seconds.saturating_mul(1_000_000)))
    }
}

impl LoginSpec {
    /// Where the login is below a home.
    pub fn path(&self) -> std::path::PathBuf {
        std::path::Path::new(self.state.1).join(self.file)
    }

    /// What an agent is lent of this file.
    pub fn lent(&self, text: &str) -> Option<Lent> {
        (self.lend)(&serde_json::from_str(text).ok()?)
    }
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lent").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// A login made of these parts.
pub(crate) fn lent(login: &Value, secrets: &[&Value], expires: Option<i64>) -> Option<Lent> {
    let secrets: Vec<String> = secrets
        .iter()
        .filter_map(|secret| secret.as_str())
        .filter(|secret| !secret.is_empty())
        .map(str::to_owned)
        .collect();
    (!secrets.is_empty()).then(|| Lent { text: login.to_string(), secrets, expires, is_key: false })
}
