//! Toolchains in a person's home: found, and granted by name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::policy::{PRESETS, Preset, Toolchain};

/// What a preset comes to on this machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) read_only: Vec<PathBuf>,
    pub(super) programs: Vec<PathBuf>,
    pub(super) variables: Vec<(String, String)>,
}

/// The presets that something is installed of.
pub(crate) fn found(home: Option<&Path>) -> Vec<String> {
    let is_there = |preset: &&Preset| !resolve(preset, home).read_only.is_empty();
    PRESETS.iter().filter(is_there).map(|preset| preset.name.to_owned()).collect()
}

/// Looks where a preset's toolchains are.
pub(super) fn resolve(preset: &Preset, home: Option<&Path>) -> Granted {
    let mut granted = Granted::default();
    for toolchain in preset.toolchains {
        let Some(dir) = place(toolchain, home) else { continue };
        // Canonical: a link's own name does not exist inside.
        let parts = toolchain.granted.iter().filter_map(|part| fs::canonicalize(dir.join(part)).ok());
        let before = granted.read_only.len();
        granted.read_only.extend(parts);
        if granted.read_only.len() == before {
            continue;
        }
        granted.programs.extend(toolchain.programs.iter().flat_map(|pattern| directories(&dir, pattern)));
        if let Some(variable) = toolchain.variable.filter(|_| toolchain.is_exported) {
            granted.variables.push((variable.to_owned(), dir.to_string_lossy().into_owned()));
        }
    }
    granted
}

/// A system's own directories are shown anyway.
fn place(toolchain: &Toolchain, home: Option<&Path>) -> Option<PathBuf> {
    let said = toolchain.variable.and_then(std::env::var_os).map(PathBuf::from);
    let dir = said.filter(|dir| dir.is_absolute()).or_else(|| Some(home?.join(toolchain.below_home)))?;
    fs::canonicalize(dir).ok().filter(|dir| !dir.starts_with("/usr"))
}

/// Directories of programs below another; one `*` stands for a version, the newest first.
fn directories(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![dir.join(pattern)].into_iter().filter(|path| path.is_dir()).collect();
    };
    let entries = fs::read_dir(dir.join(before)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path().join(after.trim_start_matches('/')))
        .filter(|path| path.is_dir())
        .collect();
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

/// The numbers in a path, to compare versions by.
fn version(path: &Path) -> Vec<u64> {
    let text = path.to_string_lossy();
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_beside_a_toolchain_are_not_granted() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for dir in [".nvm/versions/node/v9.1.0/bin", ".nvm/versions/node/v20.2.0/bin", ".npm-global/lib"] {
            fs::create_dir_all(home.join(dir)).unwrap();
        }
        fs::write(home.join(".npmrc"), "token").unwrap();
        let node = ostler_domain::policy::preset("@node").unwrap();
        let granted = resolve(node, Some(&home));
        assert_eq!(granted.read_only, [home.join(".nvm/versions"), home.join(".npm-global/lib")]);
        let versions: Vec<_> =
            granted.programs.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        assert_eq!(
            versions,
            [Path::new(".nvm/versions/node/v20.2.0/bin"), Path::new(".nvm/versions/node/v9.1.0/bin")]
        );
        assert!(granted.read_only.iter().all(|path| !home.join(".npmrc").starts_with(path)));
        assert!(found(Some(&home)).contains(&"@node".to_owned()));
    }
}
