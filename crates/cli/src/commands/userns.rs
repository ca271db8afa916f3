//! `ostler sandbox allow-userns`: the AppArmor profile that lets this program make user namespaces, where a
//! distribution forbids that to programs without one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use ostler_domain::{Reason, Refusal};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct AllowUsernsArgs {
    /// Print the profile and install nothing
    #[arg(long)]
    print: bool,
    /// Install below this directory, and load nothing
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

const BY_COMMAND: &str = "Installed by `ostler sandbox allow-userns`.";
/// Where profiles are kept, below the root of the file system.
const PROFILE: &str = "etc/apparmor.d/ostler";

pub(crate) fn run(app: &App, args: &AllowUsernsArgs) -> Result<u8, Failure> {
    let program = app.program.path.canonicalize().unwrap_or_else(|_| app.program.path.clone());
    let profile = profile(&program, BY_COMMAND)?;
    if args.print {
        profile.lines().try_for_each(|line| app.ui.data(&Line::of(line)))?;
        return Ok(exit_code::OK);
    }
    let path = args.root.as_deref().unwrap_or(Path::new("/")).join(PROFILE);
    install(&path, &profile)?;
    app.ui.data(&Line::of("installed ").strong(path.display().to_string()))?;
    if args.root.is_none() {
        load(&path)?;
        app.ui
            .remark(&Line::toned(Tone::Good, "✓ ").plain("loaded; ").faint("ostler sandbox check tries it"));
    }
    Ok(exit_code::OK)
}

/// The profile: nothing is confined by it, one thing is allowed.
pub(crate) fn profile(program: &Path, by: &str) -> Result<String, Failure> {
    let text = program.to_str().filter(|text| !text.contains(['"', '\n', '*', '?', '[', '{', '\\']));
    let text = text.ok_or_else(|| {
        Failure::usage(format!("{} has a name that a profile cannot hold", program.display()))
    })?;
    Ok(format!(
        "# Lets Ostler make user namespaces: its sandbox is built of them.\n\
         # {by}\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         \n\
         profile ostler \"{text}\" flags=(unconfined) {{\n\
         \x20 userns,\n\
         \n\
         \x20 include if exists <local/ostler>\n\
         }}\n"
    ))
}

fn install(path: &Path, profile: &str) -> Result<(), Failure> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, profile));
    written.map_err(|error| {
        Refusal::new(Reason::PermissionDenied, format!("{} cannot be written", path.display()))
            .because(error.to_string())
            .hint("sudo ostler sandbox allow-userns", "installs it as root; --print shows it first")
            .into()
    })
}

fn load(path: &Path) -> Result<(), Failure> {
    let loaded = Command::new("apparmor_parser").arg("--replace").arg(path).status();
    match loaded {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(not_loaded(&format!("apparmor_parser ended with {status}"))),
        Err(error) => Err(not_loaded(&format!("apparmor_parser cannot be run: {error}"))),
    }
}

fn not_loaded(why: &str) -> Failure {
    Refusal::new(Reason::SandboxUnavailable, "the profile is installed and was not loaded")
        .because(why)
        .hint("sudo systemctl reload apparmor", "loads it")
        .into()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn the_profile_is_pinned() {
        assert_snapshot!(profile(Path::new("/usr/local/bin/ostler"), BY_COMMAND).unwrap_or_default());
        assert!(profile(Path::new("/tmp/*/ostler"), BY_COMMAND).is_err());
    }

    #[test]
    fn it_is_installed_below_a_root() {
        let root = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let path = root.path().join(PROFILE);
        assert!(install(&path, "text").is_ok());
        assert_eq!(fs::read_to_string(path).ok().as_deref(), Some("text"));
    }
}
