//! What is checked. The quick steps come first, and the tests last: their summary is then where one looks for it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::cargo::{answers, cargo, root, target_dir};

/// One thing that must hold.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) run: fn() -> Verdict,
}

/// What became of a step.
pub(super) enum Verdict {
    Ok,
    Failed(String),
    /// Not looked at, and why.
    Skipped(String),
}

impl Verdict {
    pub(super) fn said(&self) -> String {
        match self {
            Verdict::Ok => "ok".to_owned(),
            Verdict::Failed(why) => format!("FAILED: {why}"),
            Verdict::Skipped(why) => format!("skipped: {why}"),
        }
    }

    fn of(command: &mut Command) -> Verdict {
        match command.status() {
            Ok(status) if status.success() => Verdict::Ok,
            Ok(status) => Verdict::Failed(status.to_string()),
            Err(error) => Verdict::Failed(format!("{}: {error}", command.get_program().display())),
        }
    }
}

pub(super) const STEPS: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step {
        name: "arrows",
        about: "the crates depend on each other as ARCHITECTURE.md says, and the pages are true",
        run: arrows,
    },
    Step { name: "protocol", about: "the protocol is lint-free (buf)", run: protocol },
    Step {
        name: "deny",
        about: "licences, banned crates and sources of dependencies (cargo-deny)",
        run: deny,
    },
    Step { name: "clippy", about: "no warnings", run: clippy },
    Step { name: "docs", about: "the documentation builds without warnings", run: docs },
    Step { name: "doctests", about: "the examples in the documentation", run: doctests },
    Step { name: "system", about: "what tests need of the system is installed", run: system },
    Step {
        name: "programs",
        about: "the real agent programs that tests drive are installed",
        run: super::programs::install,
    },
    Step {
        name: "examples",
        about: "what the example clients in other languages need is installed",
        run: super::examples::install,
    },
    Step {
        name: "package",
        about: "the package is built, unpacked, and the demo runs from it",
        run: super::package::holds,
    },
    Step { name: "tests", about: "all other tests", run: tests },
];

fn fmt() -> Verdict {
    Verdict::of(&mut cargo(&["fmt", "--all", "--check"]))
}

/// The tests of this package: they read the manifests and the pages.
fn arrows() -> Verdict {
    Verdict::of(&mut cargo(&["test", "--package", "xtask"]))
}

fn clippy() -> Verdict {
    Verdict::of(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn docs() -> Verdict {
    Verdict::of(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn doctests() -> Verdict {
    Verdict::of(&mut cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]))
}

/// Everything but the doc tests, and this package's own.
fn tests() -> Verdict {
    let everyone_else = ["--workspace", "--exclude", "xtask", "--no-fail-fast"];
    let runner: &[&str] = if answers(&mut cargo(&["nextest", "--version"])) {
        &["nextest", "run"]
    } else {
        &["test", "--lib", "--bins", "--tests"]
    };
    Verdict::of(&mut cargo(&[runner, &everyone_else].concat()))
}

fn deny() -> Verdict {
    if !answers(&mut cargo(&["deny", "--version"])) {
        return Verdict::Skipped("cargo-deny is not installed".to_owned());
    }
    Verdict::of(&mut cargo(&["deny", "check", "licenses", "bans", "sources"]))
}

/// What tests need of the system beside cargo, and the package that has each.
const SYSTEM: [(&str, &str); 8] = [
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("systemd-analyze", "systemd"),
    ("strace", "strace"),
    ("tmux", "tmux"),
    ("unshare", "util-linux"),
    ("bash", "bash"),
    ("chromium", "chromium"),
];

/// Installs what is missing of that.
fn system() -> Verdict {
    let places = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin", "/bin"];
    let is_there = |program: &str| places.iter().any(|dir| Path::new(dir).join(program).exists());
    let absent = || SYSTEM.into_iter().filter(|(program, _)| !is_there(program)).collect::<Vec<_>>();
    let apt = |words: &[&str]| {
        answers(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(words))
    };
    let packages: Vec<&str> = absent().into_iter().map(|(_, package)| package).collect();
    if !packages.is_empty() {
        let install = [&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat();
        if !apt(&install) && apt(&["update", "-qq"]) {
            apt(&install);
        }
    }
    match absent().as_slice() {
        [] => Verdict::Ok,
        still => {
            let names: Vec<&str> = still.iter().map(|(program, _)| *program).collect();
            missing(&format!("not installed, and cannot be: {}", names.join(", ")))
        }
    }
}

/// The version of buf that the protocol is checked with.
const BUF: &str = "1.74.0";

fn protocol() -> Verdict {
    if !answers(Command::new("npm").arg("--version")) {
        return missing("npm is not installed");
    }
    match buf() {
        Some(buf) => Verdict::of(Command::new(buf).arg("lint").current_dir(root().join("proto"))),
        None => missing("npm cannot install buf"),
    }
}

/// Who works on something else can go on without a tool; who checks everything cannot.
pub(super) fn missing(what: &str) -> Verdict {
    let in_ci = env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    if in_ci { Verdict::Failed(what.to_owned()) } else { Verdict::Skipped(what.to_owned()) }
}

/// The program, installed beside the build unless it is there.
fn buf() -> Option<PathBuf> {
    let place = target_dir().join("xtask-tools");
    let modules = place.join("node_modules");
    if installed_version(&modules).is_none_or(|version| version != BUF) {
        fs::create_dir_all(&place).ok()?;
        // The program comes as a package for this platform: nothing of it needs to run to be installed.
        let mut install = Command::new("npm");
        install.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        install.arg(&place).arg(format!("@bufbuild/buf@{BUF}"));
        install.status().ok().filter(|status| status.success())?;
    }
    Some(modules.join(".bin/buf"))
}

fn installed_version(modules: &Path) -> Option<String> {
    let package = fs::read_to_string(modules.join("@bufbuild/buf/package.json")).ok()?;
    let (_, version) = package.split_once("\"version\":")?;
    version.split('"').nth(1).map(str::to_owned)
}
