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
        let [name, package, version, program] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Verdict::Failed(format!("{LIST}: \"{line}\" has not four words"));
        };
        let place = cache().join(format!("{name}-{version}"));
        if place.join("node_modules").join(program).is_file() {
            continue;
        }
        println!("installing {package}@{version} into {}", place.display());
        if let Err(why) = fetch(&place, package, version) {
            return missing(&format!("{name} cannot be installed: {why}"));
        }
    }
    Verdict::Ok
}

/// Into a directory beside its place, so that an installation that was cut short is never taken for one.
fn fetch(place: &Path, package: &str, version: &str) -> Result<(), String> {
    let half = place.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half).map_err(|error| error.to_string())?;
    let mut install = Command::new("npm");
    // Nothing of a package is run to install it.
    install.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    install.arg(&half).arg(format!("{package}@{version}")).current_dir(&half);
    match install.status() {
        Ok(status) if status.success() => {
            let _ = fs::remove_dir_all(place);
            fs::rename(&half, place).map_err(|error| error.to_string())
        }
        Ok(status) => Err(format!("npm ended with {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// As `ostler-testkit` looks for them.
fn cache() -> PathBuf {
    let said = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = said("XDG_CACHE_HOME").or_else(|| said("HOME").map(|home| home.join(".cache")));
    caches.unwrap_or_else(env::temp_dir).join("ostler-test-programs")
}
