//! What a policy grants of this machine, as it is now; or why nobody is given it.

use std::{
    fs, io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    campaign::is_below,
    policy::grant::{self, Around, Grant},
};

use super::Machine;

/// A directory with more in it than this is not looked through for sockets.
const LOOKED_AT: usize = 10_000;

impl Machine<'_> {
    /// The path that is meant, or why it is not granted to the campaign of this root.
    pub(crate) fn granted(&self, path: &str, grant: Grant, root: &str) -> Result<PathBuf, String> {
        let canonical = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => format!("it cannot be looked at: {error}"),
        })?;
        if let Some(link) = self.link_of_an_agent(Path::new(path)) {
            return Err(format!("{} on the way to it is a link that an agent may have made", link.display()));
        }
        let text = canonical.to_str().ok_or_else(|| "its name is not UTF-8".to_owned())?;
        let own: Vec<String> = self.options.own_dirs.iter().map(|dir| real(dir)).collect();
        let mut homes = homes(&fs::read_to_string("/etc/passwd").unwrap_or_default());
        homes.extend(self.options.home_dir.as_deref().map(real));
        let around = Around { root, other_roots: &self.other_roots, own: &own, homes: &homes };
        if let Some(refused) = grant::refusal(text, grant, &around) {
            return Err(refused.to_string());
        }
        // Whoever reaches a socket speaks to whoever listens there; that it may only be read does not hinder that.
        match socket_in(&canonical) {
            Some(socket) => Err(format!("somebody may be listening there ({})", socket.display())),
            None => Ok(canonical),
        }
    }

    /// A link on the way to a path that lies where agents may write: it leads where one of them wants it to.
    fn link_of_an_agent(&self, path: &Path) -> Option<PathBuf> {
        let writable: Vec<String> = self.writable.iter().map(|dir| real(Path::new(dir))).collect();
        let is_agents = |link: &&Path| {
            let is_link = fs::symlink_metadata(link).is_ok_and(|found| found.file_type().is_symlink());
            let lies_in = link.parent().map(real).unwrap_or_default();
            is_link && writable.iter().any(|dir| lies_in == *dir || is_below(&lies_in, dir))
        };
        path.ancestors().find(is_agents).map(Path::to_owned)
    }
}

fn real(dir: &Path) -> String {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()).to_string_lossy().into_owned()
}

/// Homes of people; those of services are directories of the system or nowhere.
fn homes(passwd: &str) -> Vec<String> {
    let home = |line: &str| {
        let mut fields = line.split(':');
        let uid: u32 = fields.nth(2)?.parse().ok()?;
        let home = fields.nth(2)?;
        let is_person = uid == 0 || (1_000..65_000).contains(&uid);
        (is_person && home.len() > 1).then(|| real(Path::new(home)))
    };
    passwd.lines().filter_map(home).collect()
}

fn socket_in(path: &Path) -> Option<PathBuf> {
    let is_socket = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket(path) {
        return Some(path.to_owned());
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().take(LOOKED_AT);
    let mut sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.next().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_people_s() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbin:x:2:2::/bin:/bin/sh\nann:x:1000:1000::/nowhere/ann:/bin/sh\n\
                      nobody:x:65534:65534::/nonexistent:/bin/sh\ngarbage\n";
        assert_eq!(homes(passwd), [real(Path::new("/root")), "/nowhere/ann".to_owned()]);
    }

    #[test]
    fn sockets_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(socket_in(dir.path()), None);
        let path = dir.path().join("x.sock");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(socket_in(dir.path()), Some(path.clone()));
        assert_eq!(socket_in(&path), Some(path));
    }
}
