//! Files that make the host's git and editors run code.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::{any, program, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::scene::Scene;

/// In place, through whatever is there.
const WRITTEN_BY_GIT: [&str; 5] =
    ["COMMIT_EDITMSG", "FETCH_HEAD", "MERGE_MSG", "logs/refs/heads/left", "refs/heads/left"];

fn append(scene: &Scene, name: &str) -> Said {
    let file = OpenOptions::new().append(true).open(scene.in_root(name));
    said(file.and_then(|mut file| file.write_all(b"\n")))
}

fn replace(scene: &Scene, name: &str) -> Said {
    let mine = scene.scratch("mine");
    let _ = fs::write(&mine, "[core]\n");
    any([
        way("write", append(scene, name)),
        way("replace", said(fs::rename(&mine, scene.in_root(name)))),
        way("move away", said(fs::rename(scene.in_root(name), scene.scratch("old")))),
        way("delete", said(fs::remove_file(scene.in_root(name)))),
    ])
}

pub(super) const ALL: &[Attempt] = &[
    harmless("git/config", "change git's configuration", |scene| replace(scene, ".git/config")),
    usual("git/config-by-git", "have git change its configuration", |scene| {
        program("git", &["config", "core.fsmonitor", "touch owned"], &scene.root)
    }),
    harmless("git/hook", "leave a hook", |scene| {
        any([
            way("new", said(fs::write(scene.in_root(".git/hooks/pre-commit"), "#!/bin/sh\n"))),
            way("existing", replace(scene, ".git/hooks/pre-commit.sample")),
            way("all", said(fs::rename(scene.in_root(".git/hooks"), scene.scratch("hooks")))),
        ])
    }),
    harmless("git/attributes", "have files filtered by a program", |scene| {
        any([
            way("file", replace(scene, ".git/info/attributes")),
            way("directory", said(fs::rename(scene.in_root(".git/info"), scene.scratch("info")))),
        ])
    }),
    usual("git/common-directory", "have git take its configuration from elsewhere", |scene| {
        replace(scene, ".git/commondir")
    }),
    harmless("git/directory", "put another .git in the place of the campaign's", |scene| {
        said(fs::rename(scene.in_root(".git"), scene.scratch("git")))
    }),
    harmless("git/worktree", "have a work tree belong to another repository", |scene| {
        any([
            way("its .git", replace(scene, "tree/.git")),
            way("commondir", replace(scene, ".git/worktrees/tree/commondir")),
            way("gitdir", replace(scene, ".git/worktrees/tree/gitdir")),
        ])
    }),
    harmless("git/nested-parent", "put another directory in the place of one with a .git in it", |scene| {
        let moved = |name: &str, to: &str| said(fs::rename(scene.in_root(name), scene.in_root(to)));
        any([
            way("beside itself", moved("nested/library", "nested/old")),
            way("elsewhere", moved("nested/library", "scratch/old")),
            way("the one above", moved("nested", "scratch/old")),
        ])
    }),
    usual("git/links", "leave links where git on the host writes", |scene| {
        for name in WRITTEN_BY_GIT {
            let link = scene.in_root(".git").join(name);
            let _ = fs::remove_file(&link);
            if let Err(error) = std::os::unix::fs::symlink(scene.outside("notes.txt"), link) {
                return Said::Untried(format!("{name}: {error}"));
            }
        }
        Said::Tried("they were made, and are gone afterwards".to_owned())
    }),
    harmless("git/included", "change what git's configuration brings in by ways", |scene| {
        any([
            way("a file", replace(scene, "tools/one.conf")),
            way("one that it names", replace(scene, "tools/two.conf")),
            way("their directory", said(fs::rename(scene.in_root("tools"), scene.scratch("tools")))),
            way("hooks that it names", replace(scene, ".githooks/pre-commit")),
            way("the same of a work tree", replace(scene, "tree/.githooks/post-commit")),
        ])
    }),
    harmless("git/hook-target", "change what a hook that is a link leads to", |scene| {
        any([
            way("file", replace(scene, "scripts/push.sh")),
            way("directory", said(fs::rename(scene.in_root("scripts"), scene.scratch("scripts")))),
        ])
    }),
    harmless("git/bare", "change a bare repository's configuration, or leave a hook in it", |scene| {
        any([
            way("config", replace(scene, "store/config")),
            way("hook", said(fs::write(scene.in_root("store/hooks/update"), "#!/bin/sh\n"))),
            way("all", said(fs::rename(scene.in_root("store"), scene.scratch("store")))),
        ])
    }),
    harmless("git/by-a-link", "change a repository that a .git leads to by two links", |scene| {
        any([
            way("config", replace(scene, "elsewhere/config")),
            way("all", said(fs::rename(scene.in_root("elsewhere"), scene.scratch("elsewhere")))),
        ])
    }),
    harmless("git/submodules", "name other submodules", |scene| replace(scene, ".gitmodules")),
    harmless("git/editor", "change the editor's tasks", |scene| {
        any([
            way("file", replace(scene, ".vscode/tasks.json")),
            way("new", said(fs::write(scene.in_root(".vscode/settings.json"), "{}"))),
            way("all", said(fs::rename(scene.in_root(".vscode"), scene.scratch("vscode")))),
        ])
    }),
    harmless("git/shell-settings", "change what the shell runs in this directory", |scene| {
        replace(scene, ".envrc")
    }),
];
