//! Real agent programs: pinned in `programs.txt`, installed by `cargo xtask test` into a cache outside of the checkout.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::skip;

/// The list; `xtask` reads the same file.
const LIST: &str = include_str!("../programs.txt");

/// Where `cargo xtask test` puts them.
pub fn cache() -> PathBuf {
    let said = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = said("XDG_CACHE_HOME").or_else(|| said("HOME").map(|home| home.join(".cache")));
    caches.unwrap_or_else(env::temp_dir).join("ostler-test-programs")
}

/// The program of this name, where it is installed.
pub fn find(name: &str, who: &str) -> Option<PathBuf> {
    let line = LIST.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    let [_, _, version, program, ..] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let path = cache().join(format!("{name}-{version}")).join("node_modules").join(program);
    if is_program(&path) {
        return Some(path);
    }
    skip::lacking(&format!("{who} needs {name} {version}; `cargo xtask test --only programs` installs it"));
    None
}

/// What an example client in another language needs, installed as its lock file says: a Python with its packages, or a
/// directory `node_modules`.
pub fn example(language: &str, who: &str) -> Option<PathBuf> {
    let (lock, inside) = match language {
        "python" => ("requirements.txt", "venv/bin/python"),
        _ => ("package-lock.json", "node_modules"),
    };
    let place = cache().join(format!("example-{language}"));
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(language).join(lock);
    let is_current = fs::read(place.join(lock)).is_ok_and(|lock| lock == fs::read(wanted).unwrap());
    if is_current {
        return Some(place.join(inside));
    }
    skip::lacking(&format!(
        "{who} needs {language} and what its example uses; `cargo xtask test --only examples` installs it"
    ));
    None
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
