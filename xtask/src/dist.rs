//! `cargo xtask dist`: what is handed out. A static program, and a package for Debian and Ubuntu around it.

mod deb;
mod notices;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    cargo::{answers, cargo, root, target_dir},
    program::succeed,
};

/// What was built.
pub(crate) struct Dist {
    /// The program alone: static, so that it runs wherever its kernel does.
    pub(crate) program: PathBuf,
    pub(crate) package: PathBuf,
}

/// How much is made of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// For people.
    Release,
    /// For tests: the same way, with less time spent on speed.
    Quick,
}

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    let care = match options {
        [] => Care::Release,
        [option] if option == "--quick" => Care::Quick,
        _ => return Err(Failure::Usage("dist has one option, --quick".to_owned())),
    };
    lacking().map_or(Ok(()), |lacking| Err(Failure::Failed(lacking)))?;
    let Dist { program, package } = build(care)?;
    println!("{}\n{}", program.display(), package.display());
    Ok(())
}

/// What is missing on this machine, and how to get it.
pub(crate) fn lacking() -> Option<String> {
    let target = target();
    let has_target = Command::new("rustc").args(["--print", "target-libdir", "--target", &target]).output();
    let has_target =
        has_target.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_dir());
    if !has_target {
        return Some(format!("the toolchain cannot build for {target}: rustup target add {target}"));
    }
    // SQLite, zstd and ring are C.
    let variable = compiler_variable(&target);
    if env::var_os(&variable).is_none() && !answers(Command::new("musl-gcc").arg("--version")) {
        return Some(format!("no C compiler for musl: apt-get install musl-tools, or set {variable}"));
    }
    if !answers(Command::new("dpkg-deb").arg("--version")) {
        return Some("dpkg-deb is not installed, so no package is made: apt-get install dpkg".to_owned());
    }
    None
}

pub(crate) fn build(care: Care) -> Result<Dist, Failure> {
    let target = target();
    let profile = if care == Care::Release { "dist" } else { "dev" };
    let mut command = cargo(&["build", "--package", "ostler", "--target", &target, "--profile", profile]);
    if env::var_os(compiler_variable(&target)).is_none() {
        command.env(compiler_variable(&target), "musl-gcc");
    }
    succeed(&mut command)?;
    let built = target_dir().join(&target).join(if care == Care::Release { "dist" } else { "debug" });
    let dir = target_dir().join(if care == Care::Release { "dist" } else { "dist-quick" });
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", dir.display()));
    fs::create_dir_all(&dir).map_err(failed)?;
    let program = dir.join(format!("ostler-{}-linux-{}", deb::version(), env::consts::ARCH));
    fs::copy(built.join("ostler"), &program).map_err(failed)?;
    if care == Care::Quick {
        // Symbols are most of a program that was built quickly.
        let _ = Command::new("strip").arg(&program).status();
    }
    let package = deb::make(&program, &dir, care)?;
    Ok(Dist { program, package })
}

fn target() -> String {
    format!("{}-unknown-linux-musl", env::consts::ARCH)
}

/// By which the builders of C code are told what to compile with.
fn compiler_variable(target: &str) -> String {
    format!("CC_{}", target.replace('-', "_"))
}

/// A file of the workspace.
fn source(name: &str) -> PathBuf {
    root().join(name)
}
