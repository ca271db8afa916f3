//! The package: built as it is handed out, unpacked, and used.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::steps::{Verdict, missing};
use crate::{
    Failure,
    cargo::{answers, target_dir},
    dist::{self, Care, Dist},
};

/// What must be in it, beside much else.
const FILES: [&str; 15] = [
    "usr/bin/ostler",
    "usr/share/man/man1/ostler.1.gz",
    "usr/share/man/man1/ostler-campaign-add.1.gz",
    "usr/share/bash-completion/completions/ostler",
    "usr/share/zsh/vendor-completions/_ostler",
    "usr/share/fish/vendor_completions.d/ostler.fish",
    "usr/lib/systemd/user/ostler.service",
    "usr/lib/systemd/user/ostler.socket",
    "usr/share/ostler/apparmor/ostler",
    "usr/share/doc/ostler/copyright",
    "usr/share/doc/ostler/NOTICES.gz",
    "usr/share/doc/ostler/changelog.gz",
    "usr/share/doc/ostler/README.md",
    "usr/share/doc/ostler/docs/config.md",
    "usr/share/doc/ostler/docs/adr/README.md",
];

pub(super) fn holds() -> Verdict {
    install_what_lacks();
    if let Some(lacking) = dist::lacking() {
        return missing(&lacking);
    }
    match checked() {
        Ok(()) => Verdict::Ok,
        Err(Failure::Usage(why) | Failure::Failed(why)) => Verdict::Failed(why),
    }
}

/// As the other steps do with what they need of the system.
fn install_what_lacks() {
    let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
    if dist::lacking().is_some_and(|what| what.contains("rustup")) {
        answers(Command::new("rustup").args(["target", "add", &target]));
    }
    if dist::lacking().is_some_and(|what| what.contains("musl-tools")) {
        let apt = |words: &[&str]| {
            answers(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(words))
        };
        let install = ["install", "-y", "-qq", "--no-install-recommends", "musl-tools"];
        if !apt(&install) && apt(&["update", "-qq"]) {
            apt(&install);
        }
    }
}

fn checked() -> Result<(), Failure> {
    let Dist { package, .. } = dist::build(Care::Quick)?;
    let place = target_dir().join("dist-quick/unpacked");
    let _ = fs::remove_dir_all(&place);
    said(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&place))?;
    let absent: Vec<&str> = FILES.into_iter().filter(|file| !place.join(file).is_file()).collect();
    if !absent.is_empty() {
        return Err(Failure::Failed(format!("not in the package: {}", absent.join(", "))));
    }
    let control = said(Command::new("dpkg-deb").arg("--field").arg(&package))?;
    if !control.contains("Package: ostler\n") || control.contains("Depends:") {
        return Err(Failure::Failed(format!("its control file is not what it should be:\n{control}")));
    }
    let program = place.join("usr/bin/ostler");
    is_static(&program)?;
    units_are_understood(&place)?;
    let version = said(Command::new(&program).arg("version"))?;
    println!("{}", version.trim());
    // In a home of its own, which it takes away itself; nothing of whoever runs this is touched.
    let home = Scratch::make()?;
    let mut demo = Command::new(&program);
    demo.arg("demo")
        .env("HOME", &home.0)
        .env("TMPDIR", &home.0)
        .env_remove("OSTLER_HOME")
        .current_dir(&home.0);
    let shown = said(&mut demo)?;
    println!("{}", shown.trim_end());
    Ok(())
}

/// Whatever the machine has for a C library does not matter.
fn is_static(program: &Path) -> Result<(), Failure> {
    let bytes = fs::read(program).map_err(|error| Failure::Failed(error.to_string()))?;
    // The only thing that names an interpreter is a program that wants one.
    let needs_one = bytes.windows(8).any(|window| window == b"/ld-musl" || window == b"/ld-linu");
    match needs_one {
        true => Err(Failure::Failed("the program of the package is not static".to_owned())),
        false => Ok(()),
    }
}

fn units_are_understood(place: &Path) -> Result<(), Failure> {
    if !answers(Command::new("systemd-analyze").arg("--version")) {
        return Ok(());
    }
    let units = ["ostler.service", "ostler.socket"].map(|name| place.join("usr/lib/systemd/user").join(name));
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "verify", "--man=no"]).args(units).env("SYSTEMD_LOG_LEVEL", "warning");
    verify.env("XDG_RUNTIME_DIR", target_dir());
    let verified = verify.output().map_err(|error| Failure::Failed(error.to_string()))?;
    let words = String::from_utf8_lossy(&verified.stderr).into_owned();
    // The program is not where the unit says until it is installed; and an earlier systemd leaves later settings out.
    let ours = |line: &&str| {
        line.contains("ostler.") && !line.contains("DelegateSubgroup") && !line.contains("/usr/bin/ostler")
    };
    match words.lines().find(ours) {
        Some(line) => Err(Failure::Failed(line.to_owned())),
        None => Ok(()),
    }
}

fn said(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().display().to_string();
    let failed = |why: String| Failure::Failed(format!("{name}: {why}"));
    let Output { status, stdout, stderr } = command.output().map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(failed(format!(
            "{status}\n{}{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        ))),
    }
}

/// A directory that is taken away again. Short: paths of sockets are.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Self, Failure> {
        let dir = env::temp_dir().join(format!("ostler-dist-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| Failure::Failed(format!("{}: {error}", dir.display())))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
