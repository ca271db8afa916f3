//! `/etc`: an explicit list of the host's, and files of our own that say who and where the agent is.

use std::path::Path;

use crate::identity::Identity;

/// What programs read and nobody keeps secrets in.
const SHOWN: [&str; 33] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "gitconfig",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "localtime",
    "lsb-release",
    "maven",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki",
    "profile",
    "profile.d",
    "protocols",
    "services",
    "ssl",
    "terminfo",
    "timezone",
    "bashrc",
    "shells",
];
/// Settings of installed runtimes that `/usr` links into.
const SHOWN_BY_BEGINNING: [&str; 2] = ["java-", "python3"];

/// Directories of keys within what is shown.
pub(crate) const COVERED: [&str; 2] = ["/etc/ssl/private", "/etc/pki/tls/private"];

/// Whether an entry of the host's `/etc` appears inside.
pub(crate) fn is_shown(name: &str) -> bool {
    SHOWN.contains(&name) || SHOWN_BY_BEGINNING.iter().any(|beginning| name.starts_with(beginning))
}

/// Whom to ask for names in the host's network: the host's servers, by TCP, since there are no datagrams. With a network
/// of its own the sandbox has no names to resolve, and nobody to ask.
pub(crate) fn resolver(hosts: &str) -> String {
    let hosts = hosts.trim_end();
    format!("{hosts}\noptions use-vc\n")
}

/// The files that are ours.
pub(crate) fn own(identity: &Identity, home: &Path, hostname: &str) -> [(&'static str, String); 4] {
    let (uid, gid, home) = (identity.inside.uid, identity.inside.gid, home.display());
    [
        (
            "passwd",
            format!(
                "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{uid}:{gid}:agent:{home}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        ("group", format!("root:x:0:\nagent:x:{gid}:\nnogroup:x:65534:\n")),
        ("hostname", format!("{hostname}\n")),
        ("hosts", format!("127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost ip6-loopback\n")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Ids;

    #[test]
    fn secrets_and_names_of_others_are_not_shown() {
        for name in [
            "passwd",
            "shadow",
            "group",
            "gshadow",
            "sudoers",
            "ssh",
            "hosts",
            "hostname",
            "machine-id",
            "fstab",
            "resolv.conf",
        ] {
            assert!(!is_shown(name), "{name}");
        }
        for name in ["ssl", "ld.so.cache", "java-17-openjdk", "python3.11", "python3", "gitconfig"] {
            assert!(is_shown(name), "{name}");
        }
        assert_eq!(resolver("nameserver 10.0.0.1\n"), "nameserver 10.0.0.1\noptions use-vc\n");
    }

    #[test]
    fn the_agent_finds_itself() {
        let ids = Ids { uid: 1000, gid: 100 };
        let identity = Identity { outside: ids, inside: ids, daemon_is_root: false, owns_roots_files: false };
        let [passwd, group, hostname, hosts] = own(&identity, Path::new("/home/agent"), "sandbox");
        assert!(passwd.1.contains("agent:x:1000:100:agent:/home/agent:"));
        assert!(group.1.contains("agent:x:100:"));
        assert_eq!(hostname.1, "sandbox\n");
        assert!(hosts.1.contains("127.0.0.1 localhost sandbox\n"));
    }
}
