//! What every crate says of itself.

use std::fs;

use crate::workspace::WORKSPACE;

/// The one library with unsafe code, and the one file that it is in.
const UNSAFE_LIBRARY: &str = "crates/sandbox/src/lib.rs";
const UNSAFE_FILE: &str = "crates/sandbox/src/sys.rs";

#[test]
fn no_crate_but_the_sandbox_has_unsafe_code() {
    for (name, member) in &WORKSPACE.crates {
        for path in &member.roots {
            let root = fs::read_to_string(path).unwrap();
            let lint = if path.ends_with(UNSAFE_LIBRARY) { "deny" } else { "forbid" };
            assert!(
                root.lines().any(|line| line == format!("#![{lint}(unsafe_code)]")),
                "{name}: {} does not {lint} unsafe code",
                path.display()
            );
        }
    }
}

#[test]
fn the_sandbox_has_unsafe_code_in_one_file() {
    let library = WORKSPACE.crates.values().flat_map(|member| &member.roots);
    let library = library.into_iter().find(|path| path.ends_with(UNSAFE_LIBRARY)).unwrap();
    for entry in fs::read_dir(library.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let allows = text.contains("(unsafe_code)]") && !path.ends_with(UNSAFE_LIBRARY);
        assert_eq!(allows, path.ends_with(UNSAFE_FILE), "{}", path.display());
    }
}

#[test]
fn every_crate_says_what_it_is_for() {
    for (name, member) in &WORKSPACE.crates {
        for path in &member.roots {
            let root = fs::read_to_string(path).unwrap();
            assert!(root.starts_with("//! "), "{name}: {} has no words of its own", path.display());
        }
    }
}

/// Tests, examples and build scripts have the lints from there.
#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (name, member) in &WORKSPACE.crates {
        let manifest = fs::read_to_string(&member.manifest).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true\n"), "{name} has lints of its own, or none");
    }
}
