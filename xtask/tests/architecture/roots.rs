//! What every crate says of itself.

use std::fs;

use crate::workspace::WORKSPACE;

/// The libraries with unsafe code, and the one file of each that it is in.
const UNSAFE: [(&str, &str); 2] = [
    ("crates/sandbox/src/lib.rs", "crates/sandbox/src/sys.rs"),
    ("crates/attack/src/lib.rs", "crates/attack/src/sys.rs"),
];

#[test]
fn no_crate_but_the_sandbox_and_its_attackers_has_unsafe_code() {
    for (name, member) in &WORKSPACE.crates {
        for path in &member.roots {
            let root = fs::read_to_string(path).unwrap();
            let may = UNSAFE.iter().any(|(library, _)| path.ends_with(library));
            let lint = if may { "deny" } else { "forbid" };
            assert!(
                root.lines().any(|line| line == format!("#![{lint}(unsafe_code)]")),
                "{name}: {} does not {lint} unsafe code",
                path.display()
            );
        }
    }
}

#[test]
fn they_have_unsafe_code_in_one_file() {
    for (unsafe_library, unsafe_file) in UNSAFE {
        let library = WORKSPACE.crates.values().flat_map(|member| &member.roots);
        let library = library.into_iter().find(|path| path.ends_with(unsafe_library)).unwrap();
        let files = fs::read_dir(library.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.is_file()) {
            let text = fs::read_to_string(&path).unwrap();
            let allows = text.contains("(unsafe_code)]") && !path.ends_with(unsafe_library);
            assert_eq!(allows, path.ends_with(unsafe_file), "{}", path.display());
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
