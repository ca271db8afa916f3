//! Who may use whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    block,
    workspace::{TOOLS, WORKSPACE},
};

/// `name → first, second` or `name →`.
fn parse(line: &str) -> (String, BTreeSet<String>) {
    let (name, uses) = line.split_once('→').unwrap_or_else(|| panic!("no arrow in \"{line}\""));
    let uses = uses.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    (name.trim().to_owned(), uses.collect())
}

#[test]
fn the_crates_depend_on_each_other_as_the_page_says() {
    let drawn: BTreeMap<String, BTreeSet<String>> = block("arrows").iter().map(|line| parse(line)).collect();
    let built = WORKSPACE.crates.iter().filter(|(name, _)| !TOOLS.contains(&name.as_str()));
    let built: BTreeMap<String, BTreeSet<String>> =
        built.map(|(name, member)| (name.clone(), member.uses.clone())).collect();
    let arrows = |map: &BTreeMap<String, BTreeSet<String>>| -> BTreeSet<String> {
        let of = |(name, uses): (&String, &BTreeSet<String>)| {
            uses.iter().map(|used| format!("{name} → {used}")).chain([name.clone()]).collect::<Vec<_>>()
        };
        map.iter().flat_map(of).collect()
    };
    let (drawn, built) = (arrows(&drawn), arrows(&built));
    let undrawn: Vec<_> = built.difference(&drawn).collect();
    let unbuilt: Vec<_> = drawn.difference(&built).collect();
    assert!(
        undrawn.is_empty() && unbuilt.is_empty(),
        "ARCHITECTURE.md and the manifests differ\n  in the manifests only: {undrawn:?}\n  on the page only: {unbuilt:?}"
    );
}

#[test]
fn some_crates_are_built_without_some_others() {
    for line in block("without") {
        let (crates, banned) =
            line.split_once(" without ").unwrap_or_else(|| panic!("no rule in \"{line}\""));
        let banned: Vec<&str> = banned.split(',').map(str::trim).collect();
        for name in crates.split(',').map(str::trim) {
            let member = WORKSPACE.crates.get(name).unwrap_or_else(|| panic!("there is no crate {name}"));
            let built_from = WORKSPACE.built_from(member);
            let found: Vec<_> = banned.iter().filter(|banned| built_from.contains(**banned)).collect();
            assert!(found.is_empty(), "{name} is to be built without {found:?}");
        }
    }
}

#[test]
fn the_testkit_is_for_tests_only() {
    let users = WORKSPACE.crates.iter().filter(|(_, member)| member.uses.contains("testkit"));
    let users: Vec<&String> =
        users.map(|(name, _)| name).filter(|name| !TOOLS.contains(&name.as_str())).collect();
    assert!(users.is_empty(), "{users:?} would ship the testkit");
}
