//! Who commits: an agent's commits are its user's, so git inside knows their name. Git itself is not asked, because it
//! would run what a campaign's configuration says.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes the user's name and address into the agent's home, unless something is there already.
pub(super) fn introduce(person: Option<&Path>, home: &Path) -> io::Result<()> {
    let Some(config) = person.and_then(|person| fs::read_to_string(person.join(".gitconfig")).ok()) else {
        return Ok(());
    };
    let identity = identity(&config);
    if identity.is_empty() {
        return Ok(());
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join(".gitconfig"));
    match file {
        Ok(mut file) => {
            writeln!(file, "[user]")?;
            identity.iter().try_for_each(|(key, value)| writeln!(file, "\t{key} = {value}"))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Name and address from a person's configuration, as they are written there.
fn identity(config: &str) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    let mut in_user = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            in_user = line.trim_end_matches(']').trim_start_matches('[').trim().eq_ignore_ascii_case("user");
        } else if in_user && let Some((key, value)) = line.split_once('=') {
            let known = ["name", "email"].into_iter().find(|known| key.trim().eq_ignore_ascii_case(known));
            found.extend(known.map(|known| (known, value.trim())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_somebody_is_is_taken_over() {
        let config = "[core]\n\teditor = vi\n[user]\n  Name = Ann O'Hara\n\temail=ann@example\n\tsigningkey = K\n[alias]\n\tname = !sh\n";
        assert_eq!(identity(config), [("name", "Ann O'Hara"), ("email", "ann@example")]);
        assert_eq!(identity("garbage"), []);
    }
}
