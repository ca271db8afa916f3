//! Who commits: an agent's commits are its user's, so git inside knows their name. Git itself is not asked, because it
//! would run what a campaign's configuration says.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    git_config::{Identity, identity},
    limits::GIT_CONFIG_BYTES,
};

/// Writes the user's name and address into the agent's home, unless something is there already.
pub(super) fn introduce(person: Option<&Path>, home: &Path) -> io::Result<()> {
    let Some(person) = person else { return Ok(()) };
    let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let identity = identity(person, xdg.as_deref(), read);
    if identity == Identity::default() {
        return Ok(());
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join(".gitconfig"));
    match file {
        Ok(mut file) => file.write_all(identity.text().as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file that is not too large. Links are followed: people keep their configuration elsewhere and link to it.
fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    let opened =
        fs::File::open(file).ok().filter(|file| file.metadata().is_ok_and(|about| about.is_file()))?;
    opened.take(GIT_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_its_users_name_and_keeps_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (person, home) = (dir.path().join("ann"), dir.path().join("home"));
        fs::create_dir_all(&person).unwrap();
        fs::create_dir_all(&home).unwrap();
        introduce(Some(&person), &home).unwrap();
        assert!(!home.join(".gitconfig").exists(), "nothing is known");
        fs::write(person.join(".gitconfig"), "[user]\nname = Ann # me\nemail = ann@example\n").unwrap();
        introduce(Some(&person), &home).unwrap();
        let written = fs::read_to_string(home.join(".gitconfig")).unwrap();
        assert_eq!(written, "[user]\n\tname = \"Ann\"\n\temail = \"ann@example\"\n");
        fs::write(home.join(".gitconfig"), "own").unwrap();
        introduce(Some(&person), &home).unwrap();
        assert_eq!(fs::read_to_string(home.join(".gitconfig")).unwrap(), "own");
    }
}
