//! What cargo says about the workspace.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env,
    path::PathBuf,
    process::Command,
    sync::LazyLock,
};

use serde::Deserialize;

/// Looked at once for all tests.
pub(crate) static WORKSPACE: LazyLock<Workspace> = LazyLock::new(Workspace::look);

/// Packages that are tools for working on the project, and no part of what it gives to others.
pub(crate) const TOOLS: &[&str] = &["xtask", "bench", "recording"];

pub(crate) struct Workspace {
    /// By their short names: `ostler-tape` is `tape`.
    pub(crate) crates: BTreeMap<String, Member>,
    /// Direct dependencies of every package, by id; those for tests left out.
    depends: HashMap<String, Vec<String>>,
    names: HashMap<String, String>,
}

pub(crate) struct Member {
    id: String,
    pub(crate) manifest: PathBuf,
    /// Where the code of each library and program begins.
    pub(crate) roots: Vec<PathBuf>,
    /// Crates of the workspace that it is built from.
    pub(crate) uses: BTreeSet<String>,
}

impl Workspace {
    fn look() -> Workspace {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1"])
            .current_dir(crate::root())
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
        let Metadata { packages, workspace_members, resolve } = metadata;
        let names: HashMap<String, String> =
            packages.iter().map(|package| (package.id.clone(), package.name.clone())).collect();
        let depends = resolve.nodes.into_iter().map(|node| (node.id, built_from(node.deps))).collect();
        let members: Vec<Package> =
            packages.into_iter().filter(|package| workspace_members.contains(&package.id)).collect();
        let own: BTreeSet<String> = members.iter().map(|member| member.name.clone()).collect();
        let crates =
            members.into_iter().map(|package| (short(&package.name), member(package, &own))).collect();
        Workspace { crates, depends, names }
    }

    /// The names of all packages that a crate is built from, however indirectly.
    pub(crate) fn built_from(&self, member: &Member) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut ahead = vec![member.id.as_str()];
        while let Some(id) = ahead.pop() {
            if found.insert(id) {
                ahead.extend(self.depends.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        found.into_iter().filter(|id| *id != member.id).map(|id| self.names[id].as_str()).collect()
    }
}

fn member(package: Package, own: &BTreeSet<String>) -> Member {
    let is_built = |target: &&Target| {
        // Programs that only tests start are in their directories.
        target.kind.iter().any(|kind| kind == "lib" || kind == "bin")
            && !target.src_path.iter().any(|part| part == "tests")
    };
    let roots = package.targets.iter().filter(is_built).map(|target| target.src_path.clone()).collect();
    let own_uses = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.as_deref() != Some("dev") && own.contains(&dependency.name));
    let uses = own_uses.map(|dependency| short(&dependency.name)).collect();
    Member { id: package.id, manifest: package.manifest_path, roots, uses }
}

fn built_from(deps: Vec<Dep>) -> Vec<String> {
    let for_tests_only = |dep: &Dep| dep.dep_kinds.iter().all(|kind| kind.kind.as_deref() == Some("dev"));
    deps.into_iter().filter(|dep| !for_tests_only(dep)).map(|dep| dep.pkg).collect()
}

fn short(name: &str) -> String {
    name.strip_prefix("ostler-").unwrap_or(name).to_owned()
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    id: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for the usual kind, else `dev` or `build`.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}
