//! Why the sandbox decides as it does: what `ostler policy test` says about a path or a host. It explains what holds; the
//! kernel and the gateway are those who hold.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    NetMode, Policy,
    grant::{self, Around, Grant},
};
use crate::{
    confinement::{Protect, is_tooling},
    gateway::{
        GATEWAY_VERSION, GatewayOrder, Reach,
        rules::{Target, Way, permit},
    },
    hidden::Patterns,
};

/// What is decided, why, who says so, and what would change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub verdict: Verdict,
    pub why: String,
    /// The key of the policy that says so; `default` where nobody has to.
    pub by: String,
    /// The command that would allow it; none where nothing does.
    pub grant: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// Parts of it.
    Partly,
    Denied,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Allowed => "allowed",
            Verdict::Partly => "partly",
            Verdict::Denied => "denied",
        }
    }
}

impl Explained {
    fn of(verdict: Verdict, by: &str, why: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), by: by.to_owned(), grant: None }
    }

    fn granted(self, grant: String) -> Self {
        Self { grant: Some(grant), ..self }
    }
}

/// What is around a path that somebody asks about; all of it canonical.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    pub campaign: &'a str,
    pub around: Around<'a>,
    /// What each preset of the policy comes to on this machine.
    pub presets: &'a BTreeMap<String, Vec<PathBuf>>,
}

const DEFAULT: &str = "default";
/// Shown of the host, for reading.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Made anew for each sandbox.
const OWN: [&str; 6] = ["/tmp", "/var/tmp", "/dev", "/proc", "/run", "/sys"];

/// Whether a campaign's agents may read or write a path of this machine.
pub fn path(policy: &Policy, scene: &Scene<'_>, wish: Grant, asked: &str) -> Explained {
    let at = Path::new(asked);
    if let Ok(below) = at.strip_prefix(scene.around.root) {
        return in_root(policy, scene, wish, below);
    }
    let holds = |item: &String| at.starts_with(item);
    if let Some(item) = policy.write.iter().find(|item| holds(item)) {
        return Explained::of(Verdict::Allowed, "write", format!("{item} is granted, to read and to write"));
    }
    let set = |key: &str| format!("ostler campaign set {} {key}+={asked}", scene.campaign);
    let of_preset =
        |name: &String| scene.presets.get(name).into_iter().flatten().find(|part| at.starts_with(part));
    let read = policy.read.iter().find(|item| holds(item) || of_preset(item).is_some());
    let is_system = SYSTEM.iter().any(|system| at.starts_with(system));
    match (read, wish) {
        (Some(item), Grant::Read) => {
            return Explained::of(Verdict::Allowed, "read", format!("{item} is granted, to read"));
        }
        (None, Grant::Read) if is_system => {
            return Explained::of(
                Verdict::Allowed,
                DEFAULT,
                "the system's programs and libraries can be read",
            );
        }
        _ => {}
    }
    if at.starts_with("/etc") && wish == Grant::Read {
        return Explained::of(
            Verdict::Partly,
            DEFAULT,
            "of /etc agents see what programs need and nobody keeps secrets in: certificates, time zone, names",
        );
    }
    if let Some(own) = OWN.iter().find(|own| at.starts_with(own)) {
        return Explained::of(
            Verdict::Denied,
            DEFAULT,
            format!("a sandbox has a {own} of its own; this machine's is not in it"),
        );
    }
    if let Some(refused) = grant::refusal(asked, wish, &scene.around) {
        return Explained::of(
            Verdict::Denied,
            DEFAULT,
            format!("it is not in the sandbox, and nobody can be given it: {refused}"),
        );
    }
    let (why, key) = match (wish, read) {
        (Grant::Write, Some(item)) => (format!("{item} is granted to read, not to write"), "write"),
        (Grant::Write, None) => ("it is not in the sandbox".to_owned(), "write"),
        (Grant::Read, _) => ("it is not in the sandbox".to_owned(), "read"),
    };
    Explained::of(Verdict::Denied, if read.is_some() { "read" } else { DEFAULT }, why).granted(set(key))
}

fn in_root(policy: &Policy, scene: &Scene<'_>, wish: Grant, below: &Path) -> Explained {
    let (all, built_in) = (Patterns::new(&policy.hide), Patterns::new(&[]));
    let parts: Vec<&Path> = below.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    if let Some(hidden) = parts.iter().find(|part| all.hide(part)) {
        let by = if built_in.hide(hidden) { DEFAULT } else { "hide" };
        let why = format!("{} is a hidden file: agents find it empty", hidden.display());
        return Explained::of(Verdict::Denied, by, why);
    }
    let protect = policy.protect_tooling.unwrap_or(Protect::Existing);
    if wish == Grant::Write && protect != Protect::Off && is_tooling(below) {
        let when = if protect == Protect::Existing { ", where it exists" } else { "" };
        let by = if policy.protect_tooling.is_some() { "protect_tooling" } else { DEFAULT };
        let why = format!("programs of yours run what is in it, so it can only be read{when}");
        return Explained::of(Verdict::Denied, by, why)
            .granted(format!("ostler campaign set {} protect_tooling=off", scene.campaign));
    }
    Explained::of(Verdict::Allowed, DEFAULT, "it lies in the campaign")
}

/// Ports that agents reach in the host's own network.
const HOST_PORTS: [u16; 4] = [22, 53, 80, 443];

/// Whether a campaign's sessions may connect to a host. `presets` are the hosts of the presets that somebody has named.
pub fn net(
    policy: &Policy,
    campaign: &str,
    presets: &BTreeMap<String, Vec<String>>,
    host: &str,
    port: u16,
) -> Explained {
    let by = if policy.net_mode.is_some() { "net.mode" } else { DEFAULT };
    let set = |value: &str| format!("ostler campaign set {campaign} {value}");
    let reach = match policy.net_mode.unwrap_or(NetMode::Provider) {
        NetMode::None => {
            return Explained::of(
                Verdict::Denied,
                by,
                "net.mode is none: agents have their own loopback and nothing else",
            )
            .granted(set("net.mode=provider"));
        }
        NetMode::Host if HOST_PORTS.contains(&port) => {
            return Explained::of(
                Verdict::Allowed,
                by,
                "net.mode is host: the machine's own network, this port included",
            );
        }
        NetMode::Host => {
            return Explained::of(
                Verdict::Denied,
                by,
                "net.mode is host, which reaches ports 22, 53, 80 and 443 alone",
            );
        }
        NetMode::Provider => Reach::Provider,
        NetMode::Open => Reach::Open,
    };
    let mut allow = Vec::new();
    for item in &policy.net_allow {
        match item.strip_prefix('@').map(|name| (name, presets.get(name))) {
            None => allow.push(item.clone()),
            Some((_, Some(hosts))) => allow.extend(hosts.iter().cloned()),
            Some((name, None)) => {
                let why = format!(
                    "net.allow has {item}, and nobody said which hosts that is, so no session starts"
                );
                return Explained::of(Verdict::Denied, "net.allow", why)
                    .granted(format!("ostler config set network.presets.{name} '[\"HOST\"]'"));
            }
        }
    }
    let order = GatewayOrder {
        version: GATEWAY_VERSION,
        campaign: campaign.to_owned(),
        reach,
        allow,
        idle_ms: 0,
        model: None,
    };
    let way = if port == 80 { Way::Plain } else { Way::Tunnel };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match permit(&order, &Target { host, port, way }) {
        Ok(rule) if rule.starts_with("net.allow") => {
            Explained::of(Verdict::Allowed, "net.allow", format!("{rule}; its address must be a public one"))
        }
        Ok(rule) => {
            Explained::of(Verdict::Allowed, by, format!("{rule}: every public host, if its address is one"))
        }
        Err(denial) => {
            let model =
                if reach == Reach::Provider { "; a session's own model is reached in any case" } else { "" };
            Explained {
                grant: denial.grant,
                ..Explained::of(Verdict::Denied, by, format!("{}{model}", denial.rule))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[&str]) -> Policy {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        Policy::default().changed_by(&settings).unwrap()
    }

    #[test]
    fn paths_are_explained() {
        let presets = BTreeMap::from([("@rust".to_owned(), vec![PathBuf::from("/home/ann/.cargo/bin")])]);
        let (own, homes) = (["/home/ann/.local/state/ostler".to_owned()], ["/home/ann".to_owned()]);
        let around = Around { root: "/home/ann/shop", other_roots: &[], own: &own, homes: &homes };
        let scene = Scene { campaign: "shop", around, presets: &presets };
        let policy = with(&["read+=@rust", "read+=/opt/sdk", "write+=/srv/data", "hide+=*.tfstate"]);
        let said = |wish, asked: &str| {
            let said = path(&policy, &scene, wish, asked);
            (said.verdict.as_str(), said.by.clone(), said.grant.is_some())
        };
        use Grant::{Read, Write};
        for (wish, asked, verdict, by, has_grant) in [
            (Write, "/home/ann/shop/src/a.rs", "allowed", "default", false),
            (Read, "/home/ann/shop/.env", "denied", "default", false),
            (Read, "/home/ann/shop/x/prod.tfstate", "denied", "hide", false),
            (Read, "/home/ann/shop/.git/config", "allowed", "default", false),
            (Write, "/home/ann/shop/.git/config", "denied", "default", true),
            (Write, "/home/ann/shop/sub/.git/hooks/pre-commit", "denied", "default", true),
            (Write, "/home/ann/shop/.vscode/tasks.json", "denied", "default", true),
            (Write, "/home/ann/shop/sub/.vscode/tasks.json", "allowed", "default", false),
            (Write, "/srv/data/x", "allowed", "write", false),
            (Read, "/opt/sdk/lib", "allowed", "read", false),
            (Write, "/opt/sdk/lib", "denied", "read", true),
            (Read, "/home/ann/.cargo/bin/cargo", "allowed", "read", false),
            (Read, "/home/ann/.cargo/credentials.toml", "denied", "default", true),
            (Read, "/usr/bin/git", "allowed", "default", false),
            (Write, "/usr/bin/git", "denied", "default", false),
            (Read, "/etc/ssl/certs", "partly", "default", false),
            (Write, "/etc/hosts", "denied", "default", false),
            (Read, "/tmp/x", "denied", "default", false),
            (Read, "/home/ann", "denied", "default", false),
            (Read, "/home/ann/.local/state/ostler/ostler.db", "denied", "default", false),
            (Read, "/home/ann/lib", "denied", "default", true),
        ] {
            assert_eq!(said(wish, asked), (verdict, by.to_owned(), has_grant), "{wish:?} {asked}");
        }
        let open = with(&["protect_tooling=off"]);
        assert_eq!(path(&open, &scene, Write, "/home/ann/shop/.git/config").verdict, Verdict::Allowed);
    }

    #[test]
    fn hosts_are_explained() {
        let presets = BTreeMap::from([("rust".to_owned(), vec!["crates.example".to_owned()])]);
        let said = |settings: &[&str], host: &str, port| net(&with(settings), "shop", &presets, host, port);
        assert_eq!(
            said(&[], "files.example", 443).grant.unwrap(),
            "ostler campaign set shop net.allow+=files.example"
        );
        let listed = said(&["net.allow+=@rust"], "Crates.Example.", 443);
        assert_eq!((listed.verdict, listed.by.as_str()), (Verdict::Allowed, "net.allow"));
        let unnamed = said(&["net.allow+=@go"], "go.example", 443);
        assert!(unnamed.grant.unwrap().contains("network.presets.go"));
        for (settings, host, port, verdict) in [
            (&["net.mode=open"][..], "any.example", 443, Verdict::Allowed),
            (&["net.mode=open"], "any.example", 80, Verdict::Denied),
            (&["net.mode=open"], "10.0.0.1", 443, Verdict::Denied),
            (&["net.mode=none"], "any.example", 443, Verdict::Denied),
            (&["net.mode=host"], "any.example", 22, Verdict::Allowed),
            (&["net.mode=host"], "any.example", 8080, Verdict::Denied),
            (&[], "169.254.169.254", 443, Verdict::Denied),
        ] {
            assert_eq!(said(settings, host, port).verdict, verdict, "{settings:?} {host} {port}");
        }
    }
}
