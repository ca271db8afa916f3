//! `sessions.json` as others have it open too: changed under its lock, read anew when somebody has changed it, and
//! replaced whole.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use ostler_domain::Time;
use serde_json::{Map, Value, json};

/// How long somebody else's lock is waited for, how often it is looked at, and when nobody holds it any more.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(25);
const STALE: Duration = Duration::from_secs(30);
/// How long a file that nobody has changed is believed to be what was read.
const CACHED: Duration = Duration::from_secs(45);
/// The variable that says otherwise, in milliseconds; 0 believes nothing.
const CACHED_VARIABLE: &str = "OPENCLAW_SESSION_CACHE_TTL_MS";

pub(super) type Rows = Map<String, Value>;

/// What was read of files, while they are as they were.
pub(super) struct Cache {
    of: HashMap<PathBuf, Known>,
    cached: Duration,
}

struct Known {
    print: Print,
    at: Instant,
    rows: Rows,
}

/// By which a file is known to be the same.
#[derive(PartialEq, Eq)]
struct Print {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Print {
    fn of(path: &Path) -> io::Result<Print> {
        let found = fs::metadata(path)?;
        Ok(Print { inode: found.ino(), bytes: found.len(), modified: (found.mtime(), found.mtime_nsec()) })
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::lasting(lasts(std::env::var(CACHED_VARIABLE).ok().as_deref()))
    }
}

/// How long what was read is believed, by what the variable says.
fn lasts(said: Option<&str>) -> Duration {
    said.and_then(|text| text.trim().parse().ok()).map_or(CACHED, Duration::from_millis)
}

impl Cache {
    fn lasting(cached: Duration) -> Self {
        Self { of: HashMap::new(), cached }
    }

    /// Changes the rows of a store, with its lock held. Nothing is written where nothing changes.
    pub(super) fn update(
        &mut self,
        path: &Path,
        now: Time,
        change: impl FnOnce(&mut Rows),
    ) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let _lock = Lock::take(path, now, TIMEOUT)?;
        let before = self.read(path)?;
        let mut rows = before.clone();
        change(&mut rows);
        if rows != before {
            write(path, &rows)?;
            self.remember(path, rows);
        }
        Ok(())
    }

    fn read(&mut self, path: &Path) -> io::Result<Rows> {
        let is_current = |known: &&Known| {
            known.at.elapsed() < self.cached && Print::of(path).is_ok_and(|print| print == known.print)
        };
        if let Some(known) = self.of.get(path).filter(is_current) {
            return Ok(known.rows.clone());
        }
        let rows = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Rows::new(),
            text => serde_json::from_slice(&text?).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("it is no store: {error}"))
            })?,
        };
        self.remember(path, rows.clone());
        Ok(rows)
    }

    fn remember(&mut self, path: &Path, rows: Rows) {
        match Print::of(path) {
            Ok(print) => drop(self.of.insert(path.to_owned(), Known { print, at: Instant::now(), rows })),
            Err(_) => drop(self.of.remove(path)),
        }
    }
}

fn write(path: &Path, rows: &Rows) -> io::Result<()> {
    let temporary = path.with_extension(format!("json.{}.tmp", std::process::id()));
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(rows)?)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// `sessions.json.lock`, for as long as this lives.
struct Lock {
    path: PathBuf,
    inode: u64,
}

impl Lock {
    fn take(store: &Path, now: Time, timeout: Duration) -> io::Result<Lock> {
        let path = store.with_extension("json.lock");
        let until = Instant::now() + timeout;
        loop {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    let said = json!({"pid": std::process::id(), "createdAt": now.rfc3339()});
                    file.write_all(said.to_string().as_bytes())?;
                    return Ok(Lock { inode: file.metadata()?.ino(), path });
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if evict(&path)? => {}
                Err(_) if Instant::now() >= until => {
                    let why = format!("{} is held by somebody else", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Somebody who thought us dead may have taken it over.
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a lock that nobody holds any more; says whether it is worth trying again at once.
fn evict(path: &Path) -> io::Result<bool> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    let age = SystemTime::now().duration_since(found.modified()?).unwrap_or_default();
    if age < STALE {
        return Ok(false);
    }
    // Under a name of its own, so that of two who think so only one removes it, and nobody a fresh one.
    let aside = path.with_extension(format!("lock.{}", std::process::id()));
    match fs::rename(path, &aside) {
        Ok(()) if fs::metadata(&aside)?.ino() == found.ino() => fs::remove_file(&aside)?,
        Ok(()) => {
            // It was taken anew in between: given back, unless that too was answered by another one.
            let _ = fs::hard_link(&aside, path);
            fs::remove_file(&aside)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, sync::Arc};

    use super::*;

    fn set(rows: &mut Rows, key: &str, value: u64) {
        rows.insert(key.to_owned(), json!({"sessionId": key, "updatedAt": value}));
    }

    #[test]
    fn many_at_once_lose_nothing_of_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path: Arc<Path> = dir.path().join("agents/main/sessions/sessions.json").into();
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let path = path.clone();
                thread::spawn(move || {
                    let mut cache = Cache::default();
                    for round in 0..10 {
                        let set = |rows: &mut Rows| set(rows, &format!("agent:main:{n}:{round}"), round);
                        cache.update(&path, Time::from_micros(0), set).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let rows: Rows = serde_json::from_slice(&fs::read(&*path).unwrap()).unwrap();
        assert_eq!(rows.len(), 80);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "no lock and no temporary is left"
        );
    }

    #[test]
    fn what_somebody_else_writes_is_seen_whatever_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let mut cache = Cache::lasting(Duration::from_secs(45));
        cache.update(&path, Time::from_micros(0), |rows| set(rows, "one", 1)).unwrap();
        let mut theirs: Rows = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        set(&mut theirs, "theirs", 7);
        fs::write(&path, serde_json::to_vec(&theirs).unwrap()).unwrap();
        cache.update(&path, Time::from_micros(0), |rows| set(rows, "two", 2)).unwrap();
        let rows: Rows = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["one", "theirs", "two"]);
        // Nothing changes, nothing is written.
        let before = Print::of(&path).unwrap();
        cache.update(&path, Time::from_micros(0), |rows| set(rows, "two", 2)).unwrap();
        assert!(Print::of(&path).unwrap() == before);
    }

    /// Changes a store so that only reading it tells: the same file, as long and as old as before.
    fn change_unseen(path: &Path, from: &str, to: &str) {
        let before = Print::of(path).unwrap();
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        let text = fs::read_to_string(path).unwrap().replace(from, to);
        let mut file = File::options().write(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(modified).unwrap();
        assert!(Print::of(path).unwrap() == before);
    }

    #[test]
    fn what_is_remembered_is_believed_for_its_time_and_with_0_never() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let updated = |cache: &mut Cache| cache.read(&path).unwrap()["one"]["updatedAt"].as_u64().unwrap();
        let short = Duration::from_millis(200);
        for (lasting, waits, read) in [
            (Duration::from_secs(45), Duration::ZERO, 1),
            (Duration::ZERO, Duration::ZERO, 2),
            (short, short, 2),
        ] {
            let _ = fs::remove_file(&path);
            let mut cache = Cache::lasting(lasting);
            cache.update(&path, Time::from_micros(0), |rows| set(rows, "one", 1)).unwrap();
            change_unseen(&path, ": 1", ": 2");
            thread::sleep(waits);
            assert_eq!(updated(&mut cache), read, "{lasting:?}");
        }
        let usual = Duration::from_secs(45);
        let said = [
            (None, usual),
            (Some("0"), Duration::ZERO),
            (Some("1500"), Duration::from_millis(1_500)),
            (Some("x"), usual),
        ];
        for (said, lasting) in said {
            assert_eq!(lasts(said), lasting, "{said:?}");
        }
    }

    #[test]
    fn a_lock_that_nobody_gives_back_is_waited_for_10_s_and_is_nobody_s_after_30() {
        assert_eq!((TIMEOUT, STALE), (Duration::from_secs(10), Duration::from_secs(30)));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let held = path.with_extension("json.lock");
        let aged = |age: Duration| {
            fs::write(&held, "{}").unwrap();
            let file = File::options().write(true).open(&held).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        let take = || Lock::take(&path, Time::from_micros(0), POLL * 4);
        aged(Duration::ZERO);
        let refused = take().map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(refused.to_string().contains("held by somebody else"), "{refused}");
        aged(STALE - Duration::from_secs(5));
        assert!(take().is_err(), "it may still be somebody's");
        aged(STALE + Duration::from_secs(1));
        drop(take().unwrap());
        assert!(!held.exists());
    }

    #[test]
    fn a_store_that_is_none_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        fs::write(&path, "{ half").unwrap();
        let error =
            Cache::default().update(&path, Time::from_micros(0), |rows| set(rows, "one", 1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ half");
        assert!(!path.with_extension("json.lock").exists());
    }

    #[test]
    fn a_lock_is_waited_for_and_one_that_is_nobody_s_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        let held = path.with_extension("json.lock");
        fs::write(&held, "{}").unwrap();
        let waiting = {
            let path = path.clone();
            thread::spawn(move || {
                Cache::default().update(&path, Time::from_micros(0), |rows| set(rows, "one", 1))
            })
        };
        thread::sleep(POLL * 4);
        assert!(!path.exists(), "somebody holds it");
        fs::remove_file(&held).unwrap();
        waiting.join().unwrap().unwrap();
        assert!(path.exists());
        fs::write(&held, "{}").unwrap();
        let long_ago = SystemTime::now() - STALE * 2;
        File::options().write(true).open(&held).unwrap().set_modified(long_ago).unwrap();
        let begun = Instant::now();
        Cache::default().update(&path, Time::from_micros(0), |rows| set(rows, "two", 1)).unwrap();
        assert!(begun.elapsed() < TIMEOUT && !held.exists());
    }
}
