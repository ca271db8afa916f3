//! What every crate says of itself.

use std::fs;

use crate::workspace::WORKSPACE;

#[test]
fn no_crate_has_unsafe_code() {
    for (name, member) in &WORKSPACE.crates {
        for path in &member.roots {
            let root = fs::read_to_string(path).unwrap();
            assert!(
                root.lines().any(|line| line == "#![forbid(unsafe_code)]"),
                "{name}: {} does not forbid unsafe code",
                path.display()
            );
        }
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
