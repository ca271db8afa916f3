//! What OpenClaw's store has beside dialogues, so that it goes out again as it came in: rows without a transcript, what was put
//! aside or copied, and the index itself. Rows become conversations; files lie beside the conversation that they are of.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::{
    ConversationId, Event, Refusal, Time,
    conversation::{Conversation, Entry, Notes},
    event::{ConversationChanged, ConversationOpened},
    history::{FileNews, News, Source, Store, Totals, Verdict, bits},
    limits::{IMPORT_KEPT_BYTES, IMPORT_KEPT_FILES, PAGE_MOST},
    query::{ConversationFilter, Page},
};

use super::{
    Run, Stopped,
    copies::Taken,
    lines, openclaw,
    openclaw::{INDEX, Row},
    stores::{self, Dialogue},
    time_of,
};
use crate::transcript::{FILES, TAIL_NAME};

/// How deep files lie below the directory of transcripts: `skills-prompts/sha256/ab/<hash>.txt`.
const DEPTH: usize = 5;

/// A file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Below the directory.
    pub(super) name: PathBuf,
    pub(super) size: u64,
    pub(super) written: Time,
}

/// What a directory has.
struct Looked {
    rows: Vec<Row>,
    /// There is an index, and it cannot be read.
    is_broken: bool,
    files: Vec<Found>,
    /// More is there than is kept.
    is_too_much: bool,
}

/// The conversations of a directory, by the ids that names of its files begin with.
#[derive(Default)]
struct Owners {
    by_id: Vec<(String, ConversationId)>,
    /// Whose the rest is: the agent's home where it has one.
    rest: Option<ConversationId>,
}

impl Owners {
    /// Whoever has a transcript.
    fn extend_with(&mut self, transcript: &Path, conversation: ConversationId) {
        let stem = dialogue(transcript).unwrap_or_default();
        self.add(&stem, conversation, false);
    }

    fn add(&mut self, id: &str, conversation: ConversationId, is_home: bool) {
        self.by_id.push((id.to_owned(), conversation));
        if is_home || self.rest.is_none() {
            self.rest = Some(conversation);
        }
    }

    /// By the longest id that the name begins with.
    fn of(&self, name: &str) -> Option<ConversationId> {
        let is_of = |id: &str| name.strip_prefix(id).is_some_and(|rest| rest.starts_with(['.', '-']));
        let mine = self.by_id.iter().filter(|(id, _)| is_of(id));
        mine.max_by_key(|(id, _)| id.len()).map(|(_, conversation)| *conversation)
    }
}

impl Run<'_> {
    /// Takes in what lies beside dialogues. Those have been taken in before.
    pub(super) async fn beside(&mut self, store: &Store, totals: &mut Totals) -> Result<(), Stopped> {
        if store.source != Source::OpenClaw || self.dry_run {
            return Ok(());
        }
        for dir in session_dirs(Path::new(&store.dir)) {
            let looked = dir.clone();
            let looked = tokio::task::spawn_blocking(move || look(&looked)).await;
            let looked = looked.map_err(|_| Refusal::internal("looking through a store failed"))?;
            self.keep(&dir, looked, totals).await?;
        }
        Ok(())
    }

    async fn keep(&mut self, dir: &Path, mut looked: Looked, totals: &mut Totals) -> Result<(), Stopped> {
        let agent = openclaw::agent_of(dir);
        let mut owners = Owners::default();
        let Taken { read, copies, own, origin } = self.taken(&looked.files).await?;
        for (name, conversation) in read.iter().map(|(name, (id, _))| (name, id)).chain(&copies) {
            owners.extend_with(name, *conversation);
        }
        // A copy of a store that is still where it came from brings what is new, and changes nothing.
        let is_copy = read.is_empty() && !copies.is_empty();
        let rows_of = origin.as_deref().filter(|_| is_copy).unwrap_or(dir);
        // What came in with an index that could be read is not touched by one that cannot.
        let before = match looked.is_broken {
            true => self.index_before(dir, &owners).await?,
            false => None,
        };
        let has_index_before = before.is_some();
        if let Some(before) = before {
            looked.rows = before;
            looked.files.retain(|file| file.name != Path::new(INDEX));
        }
        let covered: HashSet<ConversationId> =
            read.values().map(|(conversation, _)| *conversation).chain(copies.values().copied()).collect();
        let mut rows = Vec::new();
        for row in &looked.rows {
            let named = row.file().map(PathBuf::from);
            let here =
                |name: &PathBuf| read.get(name).map(|(id, _)| *id).or_else(|| copies.get(name).copied());
            let here = named.as_ref().and_then(here);
            if here.is_some_and(|id| own.contains(&id)) {
                continue;
            }
            let by_file = match here {
                Some(id) => self.engine.shared.store.conversation(id).await?,
                None => None,
            };
            // Several rows may name one transcript; it came in as one of them.
            let is_its = |found: &Conversation| found.key.as_str() == row.key || says(found, row);
            let found = match by_file.filter(is_its) {
                Some(found) => Some(found),
                None => self.row_alone(rows_of, row, &covered).await?,
            };
            let Some(found) = found else { continue };
            let is_home = row.key.eq_ignore_ascii_case(&format!("agent:{agent}:main"));
            owners.add(row.session_id().unwrap_or(&row.key), found.id, is_home);
            rows.push((row, found));
        }
        if owners.rest.is_none() && !looked.files.is_empty() {
            let nobody = Row { key: format!("agent:{agent}:recovered:files"), entry: Default::default() };
            let found = self.row_alone(rows_of, &nobody, &covered).await?;
            owners.rest = found.map(|found| found.id);
        }
        if looked.is_broken {
            let why = match has_index_before {
                true => "it cannot be read as an index: what came in before stays as it is",
                false => "it cannot be read as an index, so transcripts came in without their keys",
            };
            let mut news = news(dir, "");
            (news.verdict, news.why) = (Verdict::Failed, Some(why.to_owned()));
            self.told(news, totals).await?;
        }
        if !is_copy {
            self.follow_index(&owners, &rows).await?;
        }
        // Lines of a copy are kept already, and where they came from says what stands behind them.
        looked.files.retain(|file| !copies.contains_key(&file.name));
        let kept = self.keep_files(looked.files, &owners, read, is_copy).await;
        let why = match kept {
            Err(error) => Some(error.to_string()),
            Ok(()) if looked.is_too_much => {
                Some("there is more beside its dialogues than is kept".to_owned())
            }
            Ok(()) => None,
        };
        match why {
            Some(why) => {
                let mut news = news(dir, "");
                (news.verdict, news.why) = (Verdict::Failed, Some(why));
                self.told(news, totals).await
            }
            None => Ok(()),
        }
    }

    /// The rows of the last index of a directory that could be read: it was kept beside a conversation that came from there.
    async fn index_before(&self, dir: &Path, owners: &Owners) -> Result<Option<Vec<Row>>, Refusal> {
        let mut came: Vec<ConversationId> = owners.by_id.iter().map(|(_, id)| *id).collect();
        let campaign = Some(self.engine.campaign_around(None).await?.id);
        let filter = ConversationFilter { campaign, ..ConversationFilter::default() };
        let (dir, mut page) = (dir.to_string_lossy(), Page::of(PAGE_MOST, None));
        loop {
            let listed = self.engine.conversations(&filter, page).await?;
            let is_its = |found: &&Conversation| found.id == row_id(&dir, found.key.as_str());
            came.extend(listed.rows.iter().filter(is_its).map(|found| found.id));
            match listed.next_cursor {
                Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                None => break,
            }
        }
        let kept: Vec<PathBuf> = came.into_iter().map(|id| self.dir_of(id).join(FILES).join(INDEX)).collect();
        let found = move || kept.iter().find_map(|path| openclaw::read_rows(path));
        let found = tokio::task::spawn_blocking(found).await;
        found.map_err(|_| Refusal::internal("looking for an index failed"))
    }

    /// The conversation of a row that has no dialogue. None where somebody has closed it here.
    async fn row_alone(
        &mut self,
        dir: &Path,
        row: &Row,
        covered: &HashSet<ConversationId>,
    ) -> Result<Option<Conversation>, Stopped> {
        let engine = self.engine;
        let text = dir.to_string_lossy();
        let id = row_id(&text, &row.key);
        if let Some(known) = engine.shared.store.conversation(id).await? {
            return Ok(Some(known).filter(|known| known.closed.is_none()));
        }
        let campaign = engine.campaign_around(None).await?;
        // Another dialogue, or another installation, may have the key.
        let own = row.key();
        let keyed = match &own {
            Some(key) => engine.shared.store.conversation_keyed(campaign.id, None, key).await?,
            None => None,
        };
        let is_same = |keyed: &Conversation| says(keyed, row) || is_about_the_same(keyed, row);
        if let Some(same) = keyed.clone().filter(|keyed| is_same(keyed) && !covered.contains(&keyed.id)) {
            return Ok(Some(same));
        }
        let name = format!("row-{:032x}", bits(&[text.as_bytes(), row.key.as_bytes()]));
        let clash = own.as_ref().filter(|_| keyed.is_some()).map(super::clash);
        let key = match own.filter(|_| keyed.is_none()) {
            Some(own) => own,
            None => openclaw::other_key(dir, &name),
        };
        let title =
            ["label", "displayName", "subject"].iter().find_map(|name| row.entry.get(*name)?.as_str());
        let last = row.key.rsplit(':').next();
        let name =
            self.free_name(&[title, last, Some("openclaw")], row.session_id().unwrap_or(&row.key)).await?;
        let opened =
            ConversationOpened { notes: row.notes(), ..ConversationOpened::new(id, campaign.id, key, name) };
        let now = engine.shared.clock.now().wall;
        engine.record_node(now, Event::ConversationOpened(Box::new(opened))).await?;
        let mut news = news(dir, row.session_id().unwrap_or_default());
        (news.verdict, news.title, news.why) = (Verdict::New, row.key.clone(), clash);
        // A conversation in which nothing was said has no session.
        self.tell(News::File(Box::new(news))).await?;
        Ok(engine.shared.store.conversation(id).await?)
    }

    /// The conversation that was opened for a row when it had no dialogue yet.
    pub(super) async fn opened_for_row(
        &self,
        dialogue: &Dialogue,
        row: &Row,
    ) -> Result<Option<Conversation>, Refusal> {
        let Some(dir) = dialogue.file.path.parent() else { return Ok(None) };
        let opened = self.engine.shared.store.conversation(row_id(&dir.to_string_lossy(), &row.key)).await?;
        Ok(opened.filter(|opened| opened.closed.is_none()))
    }

    /// Where a row has changed there and nobody has changed it here, it is here what it is there.
    async fn follow_index(&self, owners: &Owners, rows: &[(&Row, Conversation)]) -> Result<(), Stopped> {
        let Some(rest) = owners.rest else { return Ok(()) };
        let before = self.dir_of(rest).join(FILES).join(INDEX);
        let before = tokio::task::spawn_blocking(move || openclaw::rows(&before)).await.unwrap_or_default();
        let before: HashMap<String, Row> = before.into_iter().map(|row| (row.key.clone(), row)).collect();
        for (row, conversation) in rows {
            let Some(before) = before.get(&row.key) else { continue };
            // A row that has lost its dialogue's id is a damaged one.
            let is_damaged = row.session_id().is_none() && before.session_id().is_some();
            if is_damaged || !says(conversation, before) || says(conversation, row) {
                continue;
            }
            let notes = Notes { entry: Entry::of_row(&row.entry), ..conversation.notes.clone() };
            let (id, by) = (conversation.id, self.change.by.clone());
            let changed = ConversationChanged { id, settings: Vec::new(), notes, by };
            self.engine.record_nodes(vec![Event::ConversationChanged(Box::new(changed))], None).await?;
        }
        Ok(())
    }

    async fn keep_files(
        &self,
        files: Vec<Found>,
        owners: &Owners,
        read: BTreeMap<PathBuf, (ConversationId, u64)>,
        is_copy: bool,
    ) -> io::Result<()> {
        let mut work = Vec::new();
        for file in files {
            if let Some((conversation, to)) = read.get(&file.name) {
                work.push((file, self.dir_of(*conversation), Keep::Tail { from: *to }, Vec::new()));
                continue;
            }
            let own = owners.of(&file.name.to_string_lossy());
            let Some(owner) = own.or(owners.rest) else { continue };
            // Whose the rest is may have changed since the last time.
            let others = owners.by_id.iter().map(|(_, id)| *id).filter(|id| own.is_none() && *id != owner);
            let others = others.map(|id| self.dir_of(id)).collect();
            work.push((file, self.dir_of(owner), Keep::Whole, others));
        }
        let kept = tokio::task::spawn_blocking(move || -> io::Result<()> {
            for (file, dir, keep, others) in work {
                match keep {
                    Keep::Tail { from } => keep_tail(&file, &dir, from)?,
                    Keep::Whole if is_copy && dir.join(FILES).join(&file.name).exists() => {}
                    Keep::Whole => keep_whole(&file, &dir)?,
                }
                others.iter().for_each(|other| drop(fs::remove_file(other.join(FILES).join(&file.name))));
            }
            Ok(())
        });
        kept.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn dir_of(&self, conversation: ConversationId) -> PathBuf {
        self.engine.shared.options.state_dir.join("conversations").join(conversation.to_string())
    }

    async fn told(&self, news: FileNews, totals: &mut Totals) -> Result<(), Stopped> {
        totals.add(&news);
        Ok(self.tell(News::File(Box::new(news))).await?)
    }
}

enum Keep {
    Whole,
    /// What is behind the last whole line.
    Tail {
        from: u64,
    },
}

/// The same row is the same conversation: it cannot come in twice.
fn row_id(dir: &str, key: &str) -> ConversationId {
    ConversationId::new(Time::default(), bits(&[b"openclaw row", dir.as_bytes(), key.as_bytes()]))
}

/// Whether what is noted about a conversation is what the row says.
fn says(conversation: &Conversation, row: &Row) -> bool {
    conversation.notes.entry == Entry::of_row(&row.entry)
}

/// Whether a row is of what the conversation was opened for, whatever has been noted about it since.
fn is_about_the_same(conversation: &Conversation, row: &Row) -> bool {
    let own = conversation.notes.entry.other.get("sessionId").and_then(serde_json::Value::as_str);
    own.is_some() && own == row.session_id()
}

fn news(dir: &Path, dialogue: &str) -> FileNews {
    FileNews {
        source: Source::OpenClaw,
        file: dir.join(INDEX).to_string_lossy().into_owned(),
        dialogue: dialogue.to_owned(),
        title: String::new(),
        verdict: Verdict::Empty,
        why: None,
        session: None,
        last: None,
        read: Totals::default(),
    }
}

/// What a transcript's dialogue is called; none for any other file.
pub(super) fn dialogue(name: &Path) -> Option<String> {
    let is_beside = name.components().count() == 1;
    let text = name.to_str().filter(|text| is_beside && stores::is_dialogue(Source::OpenClaw, text))?;
    Some(text.strip_suffix(".jsonl")?.to_owned())
}

/// The directories of transcripts: one for each agent, or the one that was named exactly. Nothing else of an installation is
/// anybody's past: its settings and keys are not looked at.
pub(super) fn session_dirs(dir: &Path) -> Vec<PathBuf> {
    let agents = dir.join("agents");
    let is_dir = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    if !is_dir(&agents) {
        let is_one = dir.join(INDEX).is_file();
        return is_one.then(|| dir.to_owned()).into_iter().collect();
    }
    let entries = fs::read_dir(agents).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("sessions")).filter(|path| is_dir(path)).collect();
    dirs.sort();
    dirs
}

fn look(dir: &Path) -> Looked {
    let index = dir.join(INDEX);
    let rows = openclaw::read_rows(&index);
    let is_broken = rows.is_none() && index.exists();
    let rows = rows.unwrap_or_default();
    let mut looked = Looked { rows, is_broken, files: Vec::new(), is_too_much: false };
    let mut bytes = 0;
    walk(dir, Path::new(""), 0, &mut bytes, &mut looked);
    looked.files.sort_by(|one, other| one.name.cmp(&other.name));
    looked
}

/// Links are not followed, and locks are nobody's past.
fn walk(dir: &Path, below: &Path, depth: usize, bytes: &mut u64, looked: &mut Looked) {
    for entry in fs::read_dir(dir.join(below)).into_iter().flatten().flatten() {
        let (Ok(kind), name) = (entry.file_type(), below.join(entry.file_name())) else { continue };
        if kind.is_dir() && depth < DEPTH {
            walk(dir, &name, depth + 1, bytes, looked);
        } else if kind.is_file() && name.extension().is_none_or(|ending| ending != "lock") {
            let Ok(about) = entry.metadata() else { continue };
            let is_transcript = dialogue(&name).is_some();
            let kept = if is_transcript { 0 } else { about.len() };
            if looked.files.len() >= IMPORT_KEPT_FILES || *bytes + kept > IMPORT_KEPT_BYTES {
                looked.is_too_much = true;
                continue;
            }
            *bytes += kept;
            let written = about.modified().map(time_of).unwrap_or_default();
            looked.files.push(Found { path: entry.path(), name, size: about.len(), written });
        }
    }
}

/// Copies a file, unless it is there as it is.
fn keep_whole(file: &Found, dir: &Path) -> io::Result<()> {
    let to = dir.join(FILES).join(&file.name);
    let is_there = fs::metadata(&to).is_ok_and(|about| {
        about.len() == file.size && about.modified().is_ok_and(|at| time_of(at) == file.written)
    });
    if is_there {
        return Ok(());
    }
    let from = lines::open(&file.path)?;
    let written = from.metadata()?.modified()?;
    put(&to, from.take(file.size), Some(written))
}

/// What a transcript has behind its last whole line; nothing of one that has nothing there.
fn keep_tail(file: &Found, dir: &Path, from: u64) -> io::Result<()> {
    let to = dir.join(TAIL_NAME);
    if file.size <= from {
        return match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let mut lines = lines::open(&file.path)?;
    lines.seek(SeekFrom::Start(from))?;
    put(&to, lines.take(file.size - from), None)
}

/// A file for our eyes only, there when it is whole.
fn put(to: &Path, mut from: impl Read, written: Option<std::time::SystemTime>) -> io::Result<()> {
    let dir = to.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let part = to.with_file_name(".coming");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    io::copy(&mut from, &mut file)?;
    file.flush()?;
    if let Some(written) = written {
        file.set_modified(written)?;
    }
    file.sync_all()?;
    fs::rename(&part, to)?;
    fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_of_whom_they_are_named_after_and_the_rest_is_the_homes() {
        let id = |n: u128| ConversationId::new(Time::from_micros(1), n);
        let mut owners = Owners::default();
        owners.add("aa", id(1), false);
        owners.add("aa-topic-7", id(2), false);
        owners.add("bb", id(3), true);
        assert_eq!(owners.of("aa.jsonl.reset.2026-11-15T18-19-54.412Z"), Some(id(1)));
        assert_eq!(owners.of("aa-topic-7.checkpoint.x.jsonl"), Some(id(2)));
        assert_eq!(owners.of("aab.jsonl"), None);
        assert_eq!((owners.of("sessions.json"), owners.rest), (None, Some(id(3))));
    }

    #[test]
    fn all_but_locks_and_links_is_seen_and_kept_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("agents/main/sessions");
        fs::create_dir_all(store.join("skills-prompts/sha256/ab")).unwrap();
        for (name, text) in [
            ("sessions.json", "{}"),
            ("a.jsonl", "one\ntorn"),
            ("a.jsonl.lock", "{}"),
            ("a.jsonl.deleted.2026-11-15T18-19-54.412Z", "old\n"),
            ("skills-prompts/sha256/ab/abcd.txt", "skill"),
        ] {
            fs::write(store.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", store.join("link.json")).unwrap();
        assert_eq!(session_dirs(dir.path()), std::slice::from_ref(&store));
        assert_eq!(session_dirs(&store), std::slice::from_ref(&store), "named exactly");
        let bare = dir.path().join("bare");
        fs::create_dir(&bare).unwrap();
        fs::write(bare.join("openclaw.json"), "{\"token\":\"secret\"}").unwrap();
        assert!(session_dirs(&bare).is_empty(), "an installation without a store of files");
        let looked = look(&store);
        let names: Vec<&str> = looked.files.iter().map(|file| file.name.to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "a.jsonl",
                "a.jsonl.deleted.2026-11-15T18-19-54.412Z",
                "sessions.json",
                "skills-prompts/sha256/ab/abcd.txt"
            ]
        );
        let beside = dir.path().join("conversations/c");
        keep_whole(&looked.files[3], &beside).unwrap();
        keep_whole(&looked.files[3], &beside).unwrap();
        let kept = beside.join(FILES).join("skills-prompts/sha256/ab/abcd.txt");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "skill");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept), mode(kept.parent().unwrap())), (0o600, 0o700));
        keep_tail(&looked.files[0], &beside, 4).unwrap();
        assert_eq!(fs::read_to_string(beside.join(TAIL_NAME)).unwrap(), "torn");
        keep_tail(&looked.files[0], &beside, 8).unwrap();
        assert!(!beside.join(TAIL_NAME).exists());
    }
}
