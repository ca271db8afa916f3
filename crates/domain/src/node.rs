//! Other machines with a daemon of their own, reached by SSH.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

const SCHEME: &str = "ssh://";

/// `ssh://user@host:port`; who and where SSH's own configuration may say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a machine is named as ssh://host, ssh://user@host or ssh://user@host:2222")]
pub struct NoAddress;

impl Address {
    pub fn parse(text: &str) -> Result<Address, NoAddress> {
        let rest = text.strip_prefix(SCHEME).ok_or(NoAddress)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, rest),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or(NoAddress)?)),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0).ok_or(NoAddress)?),
            None => None,
        };
        // Neither may begin like an option of ssh's, nor hold what a shell would take apart.
        let fits = |part: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
            !part.is_empty() && !part.starts_with('-') && part.chars().all(is_plain)
        };
        let is_address = fits(host) && user.as_deref().is_none_or(fits);
        is_address.then(|| Address { user, host: host.to_owned(), port }).ok_or(NoAddress)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Address::parse(&text).map_err(|no| D::Error::custom(format!("\"{text}\": {no}")))
    }
}

/// A machine that has a name here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub address: Address,
    /// What Ostler is called there; absent, `ostler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl Node {
    pub const KEYS: [&str; 2] = ["address", "program"];
    /// All of them at once, and this machine: no name of one.
    pub const ALL: &str = "all";
    /// This machine, where it is listed among others.
    pub const HERE: &str = "here";

    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or("ostler")
    }

    /// Why a text is no name of a machine.
    pub fn name_fault(name: &str) -> Option<String> {
        if [Self::ALL, Self::HERE].contains(&name) {
            return Some(format!("\"{name}\" means something else"));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let fits =
            !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.chars().all(is_plain);
        (!fits).then(|| "a name has letters, digits, - and _".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in
            ["ssh://build2", "ssh://ann@build2.example:2222", "ssh://[fe80::1%eth0]:22", "ssh://10.0.0.1"]
        {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        let address = Address::parse("ssh://a@h:22/").unwrap();
        assert_eq!(
            (address.user.as_deref(), address.host.as_str(), address.port),
            (Some("a"), "h", Some(22))
        );
    }

    #[test]
    fn nothing_else_is_one() {
        for text in [
            "",
            "build2",
            "http://x",
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-l@h",
            "ssh://h:0",
            "ssh://h:x",
            "ssh://h:70000",
            "ssh://@h",
            "ssh://h;id",
            "ssh://h/path",
            "ssh://[::1]x",
            "ssh://a b",
        ] {
            assert_eq!(Address::parse(text), Err(NoAddress), "{text}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(Node::name_fault("build-2"), None);
        for name in ["", "all", "here", "-x", "a.b", "a b"] {
            assert!(Node::name_fault(name).is_some(), "{name}");
        }
    }
}
