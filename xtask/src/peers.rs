//! Programs that benchmarks measure beside Ostler, kept beside the build. One that cannot be had is named, and its rows
//! say so; tmux and git are taken as the machine has them.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::cargo::{answers, cargo, target_dir};

/// The version of pueue that is measured.
const PUEUE: &str = "4.0.4";

/// A peer: who is measured beside it, and how it is had. The directories are where its programs are.
struct Peer {
    name: &'static str,
    marks: &'static [&'static str],
    install: fn() -> Result<Vec<PathBuf>, String>,
}

const PEERS: &[Peer] = &[
    Peer { name: "pueue", marks: &["P6", "P7"], install: pueue },
    Peer { name: "nats-server", marks: &["P10"], install: nats },
];

/// `PATH` with the peers of the marks that are asked for.
pub(crate) fn path(options: &[String]) -> OsString {
    let names: Vec<&String> = options.iter().filter(|option| is_mark(option)).collect();
    let is_asked = |peer: &&Peer| {
        names.is_empty()
            || names.iter().any(|name| peer.marks.iter().any(|mark| mark.eq_ignore_ascii_case(name)))
    };
    let mut dirs = Vec::new();
    for peer in PEERS.iter().filter(is_asked) {
        match (peer.install)() {
            Ok(places) => dirs.extend(places),
            Err(why) => eprintln!("xtask: {} is not measured: {why}", peer.name),
        }
    }
    let usual = env::var_os("PATH").unwrap_or_default();
    dirs.extend(env::split_paths(&usual));
    env::join_paths(dirs).unwrap_or(usual)
}

/// `P6`, and not the value of an option.
fn is_mark(word: &str) -> bool {
    word.strip_prefix(['P', 'p']).is_some_and(|number| number.parse::<u32>().is_ok())
}

fn pueue() -> Result<Vec<PathBuf>, String> {
    let place = target_dir().join("xtask-tools").join(format!("pueue-{PUEUE}"));
    let programs = place.join("bin");
    if !programs.join("pueued").is_file() {
        println!("installing pueue {PUEUE} into {}", place.display());
        let mut install = cargo(&["install", "pueue", "--version", PUEUE, "--locked", "--root"]);
        // Not among what is built here: it would be built again with every change of a flag.
        run(install.arg(&place).env_remove("CARGO_TARGET_DIR"))?;
    }
    Ok(vec![programs])
}

/// The machine's own, else the distribution's package, unpacked and not installed.
fn nats() -> Result<Vec<PathBuf>, String> {
    if answers(Command::new("nats-server").arg("--version")) {
        return Ok(Vec::new());
    }
    let place = target_dir().join("xtask-tools/nats-server");
    let programs = ["usr/sbin", "usr/bin"].map(|dir| place.join(dir));
    let is_there = || programs.iter().any(|dir| dir.join("nats-server").is_file());
    if !is_there() {
        println!("unpacking the package nats-server into {}", place.display());
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        run(Command::new("apt-get").args(["download", "-qq", "nats-server"]).current_dir(&place))?;
        let package = package(&place).ok_or("apt-get downloads no package")?;
        run(Command::new("dpkg").arg("-x").arg(package).arg(&place))?;
    }
    if is_there() { Ok(programs.into()) } else { Err("the package has no nats-server".to_owned()) }
}

fn package(dir: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_values() {
        assert!(is_mark("P6") && is_mark("p10"));
        assert!(!is_mark("--rounds") && !is_mark("3") && !is_mark("Px"));
    }
}
