//! The real agent programs that end-to-end tests drive, installed once and kept outside of the checkout.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::steps::{Verdict, missing};
use crate::cargo::{answers, root};

/// The list; the tests read the same file.
const LIST: &str = "crates/testkit/programs.txt";

pub(super) fn install() -> Verdict {
    if !answers(Command::new("npm").arg("--version")) {
        return missing("npm is not installed, so no real agent program is driven");
    }
    let Ok(list) = fs::read_to_string(root().join(LIST)) else {
        return Verdict::Failed(format!("{LIST} cannot be read"));
    };
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let ([name, package, version, program] | [name, package, version, program, _]) = words[..] else {
            return Verdict::Failed(format!("{LIST}: \"{line}\" has neither four words nor five"));
        };
        let place = cache().join(format!("{name}-{version}"));
        if place.join("node_modules").join(program).is_file() {
            continue;
        }
        println!("installing {package}@{version} into {}", place.display());
        if let Err(why) = fetch(&place, &format!("{package}@{version}"), words.get(4).copied()) {
            return missing(&format!("{name} cannot be installed: {why}"));
        }
    }
    Verdict::Ok
}

/// Into a directory beside its place, so that an installation that was cut short is never taken for one.
fn fetch(place: &Path, package: &str, runtime: Option<&str>) -> Result<(), String> {
    let half = place.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half).map_err(|error| error.to_string())?;
    // Nothing of a package is run to install it.
    let quiet = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    npm(&half, &[&["install"][..], &quiet, &[package], runtime.as_slice()].concat())?;
    if let Some(runtime) = runtime {
        // Except of what runs it: its script puts the program into its place.
        npm(&half, &["rebuild", runtime.split('@').next().unwrap_or(runtime)])?;
    }
    let _ = fs::remove_dir_all(place);
    fs::rename(&half, place).map_err(|error| error.to_string())
}

fn npm(place: &Path, words: &[&str]) -> Result<(), String> {
    match Command::new("npm").args(words).arg("--prefix").arg(place).current_dir(place).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("npm ended with {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// As `ostler-testkit` looks for them.
pub(super) fn cache() -> PathBuf {
    let said = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = said("XDG_CACHE_HOME").or_else(|| said("HOME").map(|home| home.join(".cache")));
    caches.unwrap_or_else(env::temp_dir).join("ostler-test-programs")
}
