//! `ostler internal package`: writes what a package has beside the program, for `cargo xtask dist`. All of it is made from
//! what the program itself knows, so that no package says anything else.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ostler_domain::{Refusal, service::Service};

use crate::{
    Program, args,
    commands::{man, service, userns},
    complete,
    failure::Failure,
};

/// Where packages put the program.
const PROGRAM: &str = "/usr/bin/ostler";
const MAN: &str = "usr/share/man/man1";
const UNITS: &str = "usr/lib/systemd/user";
/// Put into its place by who installs the package, where AppArmor is new enough to read it.
const PROFILE: &str = "usr/share/ostler/apparmor/ostler";
/// What the profile says of who put it where it is.
const BY_PACKAGE: &str = "Installed by the package ostler, and taken away with it unless it was changed.";
/// Where shells look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/ostler"),
    ("fish", "usr/share/fish/vendor_completions.d/ostler.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_ostler"),
];

/// Writes everything below a directory that stands for the root of the file system.
pub(crate) fn write(root: &Path, program: &Program) -> Result<(), Failure> {
    let pages = root.join(MAN);
    man::write_all(&args::command(program.version), &pages, &man::Edition::of(program))
        .map_err(|error| unwritable(&pages, &error))?;
    for (shell, path) in COMPLETIONS {
        let path = root.join(path);
        let script = complete::registration(shell).map_err(|error| unwritable(&path, &error))?;
        put(path, &script)?;
    }
    for (name, text) in service::texts(&Service::of_each_user(PROGRAM))? {
        put(root.join(UNITS).join(name), text.as_bytes())?;
    }
    put(root.join(PROFILE), userns::profile(Path::new(PROGRAM), BY_PACKAGE)?.as_bytes())
}

fn put(path: PathBuf, bytes: &[u8]) -> Result<(), Failure> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
    written.map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Refusal::invalid(format!("{} cannot be written", path.display())).because(error.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_all_that_the_program_knows_of_itself() {
        let root = tempfile::tempdir().unwrap();
        let program = Program { version: "0.0.0", commit: None, path: PathBuf::new() };
        write(root.path(), &program).unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        assert!(read("usr/share/man/man1/ostler-run.1").contains("SYNOPSIS"));
        for (shell, path) in COMPLETIONS {
            assert!(read(path).contains("ostler"), "{shell}");
        }
        assert!(read("usr/share/zsh/vendor-completions/_ostler").starts_with("#compdef ostler"));
        assert!(read("usr/lib/systemd/user/ostler.service").contains("ExecStart=/usr/bin/ostler daemon run"));
        assert!(read("usr/lib/systemd/user/ostler.socket").contains("ListenStream=%t/"));
        let profile = read(PROFILE);
        assert!(profile.contains("profile ostler \"/usr/bin/ostler\""));
        assert!(
            profile.contains("# Installed by the package") && !profile.contains("allow-userns"),
            "{profile}"
        );
    }
}
