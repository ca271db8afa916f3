//! Hidden files of the campaign.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with};

use super::{any, c_path, program, read, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::sys::{Arg, call};

pub(super) const ALL: &[Attempt] = &[
    harmless("hidden/read-env", "read .env", |scene| read(scene.in_root(".env"))),
    harmless("hidden/read-nested", "read a .env.production further down", |scene| {
        read(scene.in_root("service/.env.production"))
    }),
    harmless("hidden/read-capitals", "read a hidden file whose name is in capitals", |scene| {
        read(scene.in_root("service/deep/.ENV"))
    }),
    harmless("hidden/read-keys", "read private keys and certificates", |scene| {
        let names = ["id_rsa", "keys/server.pem", "keys/store.p12", ".netrc", "config/credentials.json"];
        any(names.map(|name| way(name, read(scene.in_root(name)))))
    }),
    harmless("hidden/read-policys", "read a file that the policy hides", |scene| {
        read(scene.in_root("infra/prod.tfstate"))
    }),
    harmless("hidden/read-directory", "list and read a hidden directory", |scene| {
        any([
            way("list", said(fs::read_dir(scene.in_root("cellar/vault.key")))),
            way("read", read(scene.in_root("cellar/vault.key/inner.txt"))),
        ])
    }),
    harmless("hidden/other-name", "read a hidden file by its other name", |scene| {
        read(scene.in_root("plain-name.txt"))
    }),
    harmless("hidden/target-of-link", "read what a link with a hidden name leads to", |scene| {
        any([
            way("link", read(scene.in_root(".npmrc"))),
            way("target", read(scene.in_root("config/registry.txt"))),
        ])
    }),
    harmless("hidden/move-target", "move what a link with a hidden name leads to", |scene| {
        said(fs::rename(scene.in_root("config"), scene.scratch("config")))
    }),
    harmless("hidden/rename", "give a hidden file another name", |scene| {
        let name = scene.scratch("renamed.txt");
        match fs::rename(scene.in_root(".env"), &name) {
            Ok(()) => read(&name),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    harmless("hidden/rename-parent", "move the directory of a hidden file and read it there", |scene| {
        let (from, to) = (scene.in_root("cellar"), scene.scratch("moved"));
        if let Err(error) = fs::rename(&from, &to) {
            return Said::Blocked(error.to_string());
        }
        let outcome =
            any([way("file", read(to.join(".env"))), way("directory", read(to.join("vault.key/inner.txt")))]);
        // In its place again: moving directories is allowed, and no evidence.
        let _ = fs::rename(&to, &from);
        outcome
    }),
    harmless("hidden/exchange", "swap a hidden file with another one", |scene| {
        let mine = scene.scratch("mine.txt");
        let _ = fs::write(&mine, "mine");
        match renameat_with(CWD, scene.in_root(".env"), CWD, &mine, RenameFlags::EXCHANGE) {
            Ok(()) => read(&mine),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    harmless("hidden/link", "link a hidden file to another name", |scene| {
        let name = scene.scratch("linked.txt");
        match fs::hard_link(scene.in_root(".env"), &name) {
            Ok(()) => read(&name),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    harmless("hidden/symbolic-link", "read a hidden file through a link", |scene| {
        let name = scene.scratch("link");
        let _ = symlink(scene.in_root(".env"), &name);
        read(&name)
    }),
    harmless("hidden/delete", "delete a hidden file", |scene| said(fs::remove_file(scene.in_root(".env")))),
    harmless("hidden/delete-parent", "delete the directory of hidden files", |scene| {
        said(fs::remove_dir_all(scene.in_root("keys")))
    }),
    harmless("hidden/overwrite", "overwrite a hidden file", |scene| {
        let file = OpenOptions::new().write(true).truncate(true).open(scene.in_root(".env"));
        said(file.and_then(|mut file| file.write_all(b"mine")))
    }),
    harmless("hidden/replace", "put a file of one's own over a hidden one", |scene| {
        let _ = fs::write(scene.scratch("mine.txt"), "mine");
        said(fs::rename(scene.scratch("mine.txt"), scene.in_root("id_rsa")))
    }),
    harmless("hidden/open-up", "make a hidden file readable, and read it", |scene| {
        let path = scene.in_root(".env");
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o644));
        read(&path)
    }),
    harmless("hidden/reopen", "open a hidden file as a place only, and then through /proc", |scene| {
        let place = rustix::fs::open(scene.in_root(".env"), OFlags::PATH, Mode::empty());
        match place {
            Ok(place) => read(format!("/proc/self/fd/{}", place.as_raw_fd())),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    harmless("hidden/past-mounts", "open a hidden file without crossing a mount", |scene| {
        let open = || {
            let root = File::open(&scene.root)?;
            let flags = ResolveFlags::NO_XDEV | ResolveFlags::BENEATH;
            openat2(&root, ".env", OFlags::RDONLY, Mode::empty(), flags).map_err(std::io::Error::from)
        };
        said(open())
    }),
    usual("hidden/uncover", "unmount what covers a hidden file", |scene| {
        let path = c_path(&scene.in_root(".env"));
        const DETACH: u64 = libc::MNT_DETACH as u64;
        match call(libc::SYS_umount2, &mut [Arg::Path(&path), Arg::Number(DETACH)]) {
            Ok(_) => read(scene.in_root(".env")),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    usual("hidden/by-git", "have git read a hidden file", |scene| {
        any([
            way("hash-object", program("git", &["hash-object", "-w", "../.env"], &scene.scratch(""))),
            way("add", program("git", &["add", "-f", "../.env"], &scene.scratch(""))),
            way(
                "diff",
                match program("git", &["diff", "--no-index", "../README.md", "../.env"], &scene.scratch("")) {
                    Said::Untried(why) => Said::Untried(why),
                    // It ends with 1 for a difference; the secret would be in what it says.
                    Said::Got(text) | Said::Blocked(text) | Said::Tried(text) => Said::Blocked(text),
                },
            ),
        ])
    }),
    usual("hidden/all-ways", "read the whole campaign, by every path that leads to it", |scene| {
        let roots = ["", "/proc/self/root", "/proc/1/root", "/proc/thread-self/root", "/proc/self/cwd/../.."];
        let mut count = 0;
        for root in roots {
            let below = scene.root.strip_prefix("/").unwrap_or(&scene.root);
            let top = if root.ends_with("..") {
                Path::new(root).join("campaign")
            } else {
                Path::new(root).join(below)
            };
            let top = if root.is_empty() { scene.root.clone() } else { top };
            count += print_all(&top, 0);
        }
        Said::Tried(format!("{count} files could be read, and no secret was in them"))
    }),
    usual("hidden/copy", "copy the campaign with cp and tar", |scene| {
        let at = scene.scratch("");
        let _ = program("cp", &["-a", "../service", "../keys", "../cellar", "../.env", "."], &at);
        let _ = program("tar", &["-cf", "all.tar", "../service", "../keys", "../cellar", "../config"], &at);
        let _ = program("cp", &["-al", "../config", "linked"], &at);
        Said::Tried("no secret was in the copies".to_owned())
    }),
];

/// Prints what can be read, for the suite to search.
fn print_all(at: &Path, depth: usize) -> usize {
    use std::io::stdout;
    const DEEPEST: usize = 6;
    const MOST: usize = 2_000;
    let mut count = 0;
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < DEEPEST && entry.file_name() != "objects" {
            count += print_all(&path, depth + 1);
        } else if let Ok(bytes) = fs::read(&path) {
            count += 1;
            let _ = stdout().write_all(&bytes[..bytes.len().min(MOST)]);
            let _ = stdout().write_all(b"\n");
        }
    }
    count
}
