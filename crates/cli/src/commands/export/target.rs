//! The directory that is written: it appears when it is whole, in the place of nothing that somebody else has written.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::Refusal;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Says what an export has written, so that the next one knows it again.
const MARK: &str = ".ostler-export.json";

#[derive(Serialize, Deserialize)]
struct Mark {
    format: String,
    /// The SHA-256 of each file, by its name.
    files: BTreeMap<String, String>,
}

pub(super) struct Target {
    dir: PathBuf,
    building: PathBuf,
    mark: Mark,
    is_done: bool,
}

impl Target {
    pub(super) fn begin(dir: &Path, format: &'static str) -> Result<Target, Failure> {
        check_ours(dir, format)?;
        let name = dir.file_name().ok_or_else(|| cannot(dir, "it names no directory"))?;
        let building = dir.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let _ = fs::remove_dir_all(&building);
        make_dir(&building).map_err(|error| cannot(dir, &error.to_string()))?;
        let mark = Mark { format: format.to_owned(), files: BTreeMap::new() };
        Ok(Target { dir: dir.to_owned(), building, mark, is_done: false })
    }

    pub(super) fn file(&self, name: &str) -> Result<Writing, Failure> {
        let path = self.building.join(name);
        let open = || {
            path.parent().map_or(Ok(()), make_dir)?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)
        };
        let file = open().map_err(|error| cannot(&self.dir, &format!("{name}: {error}")))?;
        Ok(Writing { file: BufWriter::new(file), hash: Sha256::new(), name: name.to_owned() })
    }

    pub(super) fn close(&mut self, writing: Writing) -> Result<(), Failure> {
        let Writing { mut file, hash, name } = writing;
        let done = file.flush().and_then(|()| file.get_ref().sync_all());
        done.map_err(|error| cannot(&self.dir, &format!("{name}: {error}")))?;
        self.mark.files.insert(name, hex(&hash.finalize()));
        Ok(())
    }

    pub(super) fn write(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        let mut writing = self.file(name)?;
        writing.write(text.as_ref())?;
        self.close(writing)
    }

    /// Puts it in its place; how many files it has.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        let files = self.mark.files.len() as u64;
        let text = serde_json::to_string_pretty(&self.mark).unwrap_or_default();
        let mark = self.file(MARK)?;
        let mut mark = mark.file;
        let said = mark.write_all(text.as_bytes()).and_then(|()| mark.flush());
        said.and_then(|()| mark.get_ref().sync_all())
            .map_err(|error| cannot(&self.dir, &error.to_string()))?;
        // Once more: it has taken a while.
        check_ours(&self.dir, &self.mark.format)?;
        self.place().map_err(|error| cannot(&self.dir, &error.to_string()))?;
        self.is_done = true;
        Ok(files)
    }

    fn place(&self) -> io::Result<()> {
        match renameat_with(CWD, &self.building, CWD, &self.dir, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                // What was there is put aside at the same moment, and has been seen to be ours.
                renameat_with(CWD, &self.building, CWD, &self.dir, RenameFlags::EXCHANGE)?;
                fs::remove_dir_all(&self.building)?;
            }
            Err(error) => return Err(error.into()),
        }
        let parent = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_dir_all(&self.building);
        }
    }
}

/// A file in the making.
pub(super) struct Writing {
    file: BufWriter<File>,
    hash: Sha256,
    name: String,
}

impl Writing {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.hash.update(bytes);
        let name = &self.name;
        self.file.write_all(bytes).map_err(|error| {
            Refusal::invalid(format!("{name} cannot be written")).because(error.to_string()).into()
        })
    }
}

/// Whether there is nothing yet, or only what an export of the same form wrote and nobody has changed.
fn check_ours(dir: &Path, format: &str) -> Result<(), Failure> {
    let refused = |why: String| -> Failure {
        Refusal::invalid(format!("{} is not written over", dir.display()))
            .because(why)
            .hint("--dir OTHER", "writes somewhere else")
            .into()
    };
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot(dir, &error.to_string())),
        Ok(there) if !there.is_dir() => return Err(refused("it is no directory".to_owned())),
        Ok(_) => {}
    }
    let is_empty = fs::read_dir(dir).map(|mut entries| entries.next().is_none());
    if is_empty.map_err(|error| cannot(dir, &error.to_string()))? {
        return Ok(());
    }
    let mark = fs::read(dir.join(MARK)).ok().and_then(|text| serde_json::from_slice::<Mark>(&text).ok());
    let Some(mark) = mark else { return Err(refused("no export has written what is in it".to_owned())) };
    if mark.format != format {
        return Err(refused(format!("it has an export in the form {}", mark.format)));
    }
    let mut found = BTreeMap::new();
    list(dir, Path::new(""), &mut found).map_err(|error| cannot(dir, &error.to_string()))?;
    found.remove(MARK);
    if let Some(other) = found.keys().find(|name| !mark.files.contains_key(*name)) {
        return Err(refused(format!("no export has written {other}")));
    }
    match found.iter().find(|(name, hash)| mark.files.get(*name) != Some(*hash)) {
        Some((changed, _)) => Err(refused(format!("somebody has changed {changed}"))),
        None => Ok(()),
    }
}

/// All files below a directory with their hashes; directories that are empty are nothing.
fn list(dir: &Path, below: &Path, found: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(dir, &name, found)?;
        } else {
            let is_file = entry.file_type()?.is_file();
            let hash = if is_file { hash_of(&dir.join(&name))? } else { String::new() };
            found.insert(name.to_string_lossy().into_owned(), hash);
        }
    }
    Ok(())
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&piece[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn cannot(dir: &Path, why: &str) -> Failure {
    Refusal::invalid(format!("{} cannot be written", dir.display())).because(why.to_owned()).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn export(dir: &Path, text: &str) -> Result<u64, Failure> {
        let mut target = Target::begin(dir, "gastown")?;
        target.write(".sessions/index.jsonl", text)?;
        target.finish()
    }

    #[test]
    fn it_appears_whole_for_its_owner_alone_and_replaces_only_what_it_wrote() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("out");
        assert_eq!(export(&dir, "one\n").unwrap(), 1);
        let index = dir.join(".sessions/index.jsonl");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&index), mode(&dir.join(MARK))), (0o700, 0o600, 0o600));
        export(&dir, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&index).unwrap(), "two\n");
        let entries = |dir: &Path| fs::read_dir(dir).unwrap().count();
        assert_eq!(entries(place.path()), 1, "nothing is left beside it");

        // Half an export is none.
        drop(Target::begin(&dir, "gastown").unwrap());
        assert_eq!(fs::read_to_string(&index).unwrap(), "two\n");

        assert!(Target::begin(&dir, "openclaw").is_err(), "another form");
        fs::write(&index, "mine\n").unwrap();
        assert!(export(&dir, "three\n").is_err(), "somebody has changed it");
        fs::write(&index, "two\n").unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        assert!(export(&dir, "three\n").is_err(), "somebody has put something there");
        assert_eq!(fs::read_to_string(dir.join("notes.txt")).unwrap(), "mine");
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn a_file_or_somebody_s_directory_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(export(&file, "one").is_err());
        assert!(export(place.path(), "one").is_err());
        let empty = place.path().join("empty");
        fs::create_dir(&empty).unwrap();
        export(&empty, "one").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&empty, &link).unwrap();
        assert!(export(&link, "one").is_err(), "a link leads elsewhere");
    }
}
