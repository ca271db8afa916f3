//! What a campaign's own files tell every agent that works in it: text, and so harmless to hand on where settings and hooks
//! of a project are not.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use ostler_domain::{hidden::Patterns, limits::PROJECT_TEXT_BYTES, text::head};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

/// The text of the first of these files at a campaign's root that has one. A line `@NAME` of another of them stands for
/// that one's text.
pub(crate) fn instructions(root: &Path, names: &[&str], hidden: &Patterns) -> Option<String> {
    names.iter().find_map(|name| {
        let own = read(root, name, hidden).ok().filter(|text| !text.trim().is_empty())?;
        let others = names.iter().filter(|other| *other != name);
        let whole = others.fold(own, |text, other| included(&text, root, other, hidden));
        Some(format!("What the project's {name} says:\n\n{}", head(&whole, PROJECT_TEXT_BYTES)))
    })
}

fn included(text: &str, root: &Path, name: &str, hidden: &Patterns) -> String {
    let reference = format!("@{name}");
    if !text.lines().any(|line| line.trim() == reference) {
        return text.to_owned();
    }
    let there = read(root, name, hidden).unwrap_or_default();
    let lines = text.lines().map(|line| if line.trim() == reference { there.as_str() } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// A regular file of the campaign, by whatever links within it, that its agents may see.
fn read(root: &Path, name: &str, hidden: &Patterns) -> io::Result<String> {
    let root = fs::canonicalize(root)?;
    // Not blocking: somebody may have put a pipe there.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(File::open(&root)?, name, flags, Mode::empty(), resolve)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let real = real.strip_prefix(&root).map_err(|_| io::ErrorKind::InvalidInput)?;
    if [Path::new(name), real].into_iter().any(|path| is_hidden(path, hidden)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    File::from(file).take(PROJECT_TEXT_BYTES as u64 + 4).read_to_end(&mut bytes)?;
    // No argument of a program can have one.
    Ok(String::from_utf8_lossy(&bytes).replace('\0', ""))
}

/// A hidden directory hides what is in it.
fn is_hidden(path: &Path, hidden: &Patterns) -> bool {
    let mut above = PathBuf::new();
    path.components().any(|part| {
        above.push(part);
        hidden.hide(&above)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const NAMES: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

    fn told(root: &Path, hide: &[&str]) -> Option<String> {
        let hide: Vec<String> = hide.iter().map(|name| (*name).to_owned()).collect();
        instructions(root, &NAMES, &Patterns::new(&hide))
    }

    #[test]
    fn the_first_file_that_has_text_is_told_and_may_name_the_other() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        assert_eq!(told(root.path(), &[]), None);
        write("AGENTS.md", "Use tabs.");
        write("CLAUDE.md", " \n");
        assert_eq!(told(root.path(), &[]).unwrap(), "What the project's AGENTS.md says:\n\nUse tabs.");
        write("CLAUDE.md", "Be brief.\n@AGENTS.md\n");
        assert_eq!(
            told(root.path(), &[]).unwrap(),
            "What the project's CLAUDE.md says:\n\nBe brief.\nUse tabs."
        );
        write("CLAUDE.md", &"long ".repeat(PROJECT_TEXT_BYTES));
        assert!(told(root.path(), &[]).unwrap().len() < PROJECT_TEXT_BYTES + 100);
    }

    #[test]
    fn what_is_hidden_or_elsewhere_or_no_file_is_not_told() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = root.path().join("CLAUDE.md");
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, &place).unwrap();
        assert_eq!(told(root.path(), &[]), None, "a link that leads out");
        fs::remove_file(&place).unwrap();
        fs::create_dir(root.path().join("notes")).unwrap();
        fs::write(root.path().join("notes/claude.txt"), "inside").unwrap();
        symlink("notes/claude.txt", &place).unwrap();
        assert!(told(root.path(), &[]).unwrap().ends_with("inside"), "a link within");
        for hide in ["CLAUDE.md", "notes", "notes/claude.txt"] {
            assert_eq!(told(root.path(), &[hide]), None, "{hide}");
        }
        fs::remove_file(&place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.is_err() || told(root.path(), &[]).is_none(), "a pipe holds nobody up");
    }
}
