//! What the example clients in other languages need, installed once as their lock files say, outside of the checkout.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    programs::cache,
    steps::{Verdict, missing},
};
use crate::cargo::{answers, root};

/// One language: its files that say what is needed, of which the first is the lock.
struct Example {
    language: &'static str,
    files: &'static [&'static str],
    program: &'static str,
    install: fn(&Path) -> Result<(), String>,
}

const EXAMPLES: &[Example] = &[
    Example { language: "python", files: &["requirements.txt"], program: "python3", install: python },
    Example {
        language: "typescript",
        files: &["package-lock.json", "package.json", ".npmrc"],
        program: "npm",
        install: typescript,
    },
    Example {
        language: "browser",
        files: &["package-lock.json", "package.json", ".npmrc"],
        program: "npm",
        install: typescript,
    },
];

/// What the scripts for a browser import, installed if it is not there.
fn browser() -> Result<PathBuf, String> {
    match install() {
        Verdict::Ok => Ok(cache().join("example-browser/node_modules")),
        other => Err(other.said()),
    }
}

/// Puts scripts for a browser where they find what they import.
pub(crate) fn scripts(dir: &Path, names: &[&str]) -> Result<(), String> {
    let modules = browser()?;
    let copied = fs::create_dir_all(dir)
        .and_then(|()| match dir.join("node_modules").is_symlink() {
            true => Ok(()),
            false => std::os::unix::fs::symlink(modules, dir.join("node_modules")),
        })
        .and_then(|()| {
            names.iter().try_for_each(|name| {
                fs::copy(root().join("examples/browser").join(name), dir.join(name)).map(|_| ())
            })
        });
    copied.map_err(|error| format!("{}: {error}", dir.display()))
}

pub(super) fn install() -> Verdict {
    for Example { language, files, program, install } in EXAMPLES {
        if !answers(Command::new(program).arg("--version")) {
            return missing(&format!("{program} is not installed, so the client in {language} is not run"));
        }
        let source = root().join("examples").join(language);
        let place = cache().join(format!("example-{language}"));
        let of = |dir: &Path| files.iter().map(|file| fs::read(dir.join(file)).ok()).collect::<Vec<_>>();
        if of(&place) == of(&source) {
            continue;
        }
        println!("installing what the client in {language} needs into {}", place.display());
        if let Err(why) = fetch(&source, files, &place, *install) {
            return missing(&format!("what the client in {language} needs cannot be installed: {why}"));
        }
    }
    Verdict::Ok
}

/// Into a directory beside its place, so that an installation that was cut short is never taken for one.
fn fetch(
    source: &Path,
    files: &[&str],
    place: &Path,
    install: fn(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let half: PathBuf = place.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    let in_words = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&half).map_err(in_words)?;
    for file in files {
        fs::copy(source.join(file), half.join(file)).map_err(in_words)?;
    }
    install(&half)?;
    let _ = fs::remove_dir_all(place);
    fs::rename(&half, place).map_err(in_words)
}

fn python(place: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(place))?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"];
    run(Command::new(place.join("venv/bin/python")).args(words).arg("requirements.txt").current_dir(place))
}

/// Nothing of a package is run to install it.
fn typescript(place: &Path) -> Result<(), String> {
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(place))
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", command.get_program().display())),
        Err(error) => Err(error.to_string()),
    }
}
