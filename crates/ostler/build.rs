//! Which commit the program is built from, where somebody knows: `OSTLER_COMMIT` says so ("abc1234 2026-11-16"), else git
//! does. A tree without git is built all the same. Run again when the commit changes, and for nothing else.

use std::{path::Path, process::Command};

const SAID: &str = "OSTLER_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={SAID}");
    println!("cargo::rerun-if-changed=build.rs");
    let said = std::env::var(SAID).ok().filter(|said| !said.is_empty());
    if let Some(commit) = said.or_else(of_git) {
        println!("cargo::rustc-env=OSTLER_BUILT_FROM={commit}");
    }
}

fn of_git() -> Option<String> {
    // A checkout around a copy of these sources says nothing of them.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Where HEAD points is in one file, the commit there in another, or among those packed into a third.
    let reference = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(reference.as_deref()) {
        let file = git(&["rev-parse", "--git-path", name])?;
        // One that is not there would count as changed each time.
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    git(&["log", "-1", "--abbrev=7", "--format=%h %cs"])
}

fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok().filter(|said| said.status.success())?;
    let said = String::from_utf8(said.stdout).ok()?;
    Some(said.trim().to_owned())
}
