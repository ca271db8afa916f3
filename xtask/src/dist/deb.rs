//! The package for Debian and Ubuntu, put together by `dpkg-deb`: it is wherever such packages are, and a tree of files is
//! all that it wants. What is in the package beside the program and the pages, the program writes itself.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Care, notices::notices, source, target};
use crate::{Failure, program::succeed};

/// Pages at the top that go with it.
const PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const DOC: &str = "usr/share/doc/ostler";

/// Loads the profile where AppArmor is new enough to know user namespaces: only there they are forbidden without one.
const AFTER_INSTALLATION: &str = r#"#!/bin/sh
set -e
if [ "$1" = configure ] && [ -e /etc/apparmor.d/abi/4.0 ] && [ ! -e /etc/apparmor.d/ostler ]; then
    cp /usr/share/ostler/apparmor/ostler /etc/apparmor.d/ostler
    if command -v apparmor_parser >/dev/null && [ -d /sys/kernel/security/apparmor ]; then
        apparmor_parser --replace --write-cache --skip-bad-cache /etc/apparmor.d/ostler || true
    fi
fi
"#;

/// Agents go on with the program that they were started from; only the profile goes.
const BEFORE_REMOVAL: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ] && cmp -s /usr/share/ostler/apparmor/ostler /etc/apparmor.d/ostler; then
    if command -v apparmor_parser >/dev/null && [ -d /sys/kernel/security/apparmor ]; then
        apparmor_parser --remove /etc/apparmor.d/ostler || true
    fi
    rm -f /etc/apparmor.d/ostler
fi
"#;

/// The version of the workspace.
pub(super) fn version() -> String {
    let manifest = fs::read_to_string(source("Cargo.toml")).unwrap_or_default();
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    line.unwrap_or("0").trim_matches('"').to_owned()
}

/// Makes the package of a program into a directory.
pub(super) fn make(program: &Path, dir: &Path, care: Care) -> Result<PathBuf, Failure> {
    let tree = dir.join("root");
    let _ = fs::remove_dir_all(&tree);
    fill(program, &tree)?;
    let architecture = architecture()?;
    let package = dir.join(format!("ostler_{}_{architecture}.deb", version()));
    let mut build = Command::new("dpkg-deb");
    // Named, since what dpkg-deb takes by itself differs, and not every Debian reads zstd. Packing well takes most of a
    // minute.
    build.args(if care == Care::Release { ["-Zxz", "-z6"] } else { ["-Zgzip", "-z1"] });
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
    build.stdout(std::process::Stdio::null());
    if let Some(moment) = moment_of_commit() {
        // The same sources give the same package.
        build.env("SOURCE_DATE_EPOCH", moment);
    }
    succeed(&mut build)?;
    Ok(package)
}

fn fill(program: &Path, tree: &Path) -> Result<(), Failure> {
    let installed = tree.join("usr/bin/ostler");
    put(&installed, &read(program)?, 0o755)?;
    succeed(Command::new(&installed).args(["internal", "package"]).arg(tree))?;
    for page in PAGES {
        put(&tree.join(DOC).join(page), &read(&source(page))?, 0o644)?;
    }
    copy_pages(&source("docs"), &tree.join(DOC).join("docs"))?;
    put(&tree.join(DOC).join("changelog"), &read(&source("CHANGELOG.md"))?, 0o644)?;
    put(&tree.join(DOC).join("copyright"), copyright()?.as_bytes(), 0o644)?;
    put(&tree.join(DOC).join("NOTICES"), notices(&target())?.as_bytes(), 0o644)?;
    // As Debian wants manuals and the changelog; without a name and a time, the same bytes give the same file.
    let manuals = entries(&tree.join("usr/share/man/man1"))?;
    succeed(
        Command::new("gzip")
            .args(["-9", "-n"])
            .args(manuals)
            .args(["changelog", "NOTICES"].map(|name| tree.join(DOC).join(name))),
    )?;
    let size = disk_use(tree)?.div_ceil(1024);
    put(&tree.join("DEBIAN/control"), control(&architecture()?, size).as_bytes(), 0o644)?;
    put(&tree.join("DEBIAN/postinst"), AFTER_INSTALLATION.as_bytes(), 0o755)?;
    put(&tree.join("DEBIAN/prerm"), BEFORE_REMOVAL.as_bytes(), 0o755)?;
    make_readable(tree)
}

fn control(architecture: &str, kib: u64) -> String {
    format!(
        "Package: ostler\n\
         Version: {}\n\
         Architecture: {architecture}\n\
         Maintainer: The Ostler developers <ostler@localhost>\n\
         Installed-Size: {kib}\n\
         Recommends: ca-certificates, git\n\
         Section: devel\n\
         Priority: optional\n\
         Description: looks after AI coding agents\n \
         A daemon, a command line and a library: agents are started in a kernel sandbox,\n \
         recorded to the last line, talked to from one place, and never lost.\n",
        version()
    )
}

fn copyright() -> Result<String, Failure> {
    let indented = |text: String| {
        let line = |line: &str| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") };
        text.lines().map(line).collect::<String>()
    };
    let license = |name: &str| Ok(String::from_utf8_lossy(&read(&source(name))?).into_owned());
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: Ostler\n\
         \n\
         Files: *\n\
         Copyright: the Ostler developers\n\
         License: MIT or Apache-2.0\n\
         \n\
         License: MIT\n{}\n\
         License: Apache-2.0\n{}",
        indented(license("LICENSE-MIT")?),
        indented(license("LICENSE-APACHE")?),
    ))
}

/// Debian's word for the machine.
fn architecture() -> Result<String, Failure> {
    let word = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Err(Failure::Failed(format!("no package is made for {other}"))),
    };
    Ok(word.to_owned())
}

fn moment_of_commit() -> Option<String> {
    let said =
        Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(source("")).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn copy_pages(from: &Path, to: &Path) -> Result<(), Failure> {
    for path in entries(from)? {
        let place = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_pages(&path, &place)?;
        } else {
            put(&place, &read(&path)?, 0o644)?;
        }
    }
    Ok(())
}

fn disk_use(dir: &Path) -> Result<u64, Failure> {
    let mut sum = 0;
    for path in entries(dir)? {
        sum += if path.is_dir() { disk_use(&path)? } else { path.metadata().map_err(failed(&path))?.len() };
    }
    Ok(sum)
}

/// Whatever the mask of who builds it, everybody may read what is installed.
fn make_readable(dir: &Path) -> Result<(), Failure> {
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed(path));
    mode(dir, 0o755)?;
    for path in entries(dir)? {
        let is_program = path.metadata().map_err(failed(&path))?.permissions().mode() & 0o100 != 0;
        match path.is_dir() {
            true => make_readable(&path)?,
            false => mode(&path, if is_program { 0o755 } else { 0o644 })?,
        }
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(failed(dir))?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(failed(path))
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    let written = written.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    written.map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::Failed(format!("{path}: {error}"))
}
