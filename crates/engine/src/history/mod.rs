//! Brings in what agent programs did outside of Ostler, from their own stores. Those are read and never written to.
//!
//! One import at a time. A file becomes a session, in as many commits as it takes; each says how far the file was read, so that
//! whoever comes next, after whatever end, goes on there.

mod beside;
mod campaign;
mod copies;
mod going_on;
mod intake;
mod kept;
mod lines;
mod locks;
mod openclaw;
mod outside;
mod session;
mod stores;
mod unpacked;
mod watch;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use ostler_domain::{
    CampaignId, ConversationId, Reason, Refusal, SessionId, Time,
    conversation::Key,
    history::{
        FileNews, Found, Import, News, Source, Standing, Store, Totals, Verdict, is_at_work, standing,
    },
    text::one_line,
};
use ostler_store::{CommitError, Committed, KnownHistory};
use tokio::{
    sync::{MutexGuard, mpsc, oneshot},
    time::timeout,
};

use self::{
    intake::Taken,
    stores::{Dialogue, StoreFile},
};
use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
};

/// Longest title that is told.
const TITLE_CHARS: usize = 120;

/// What an import knows while it works.
struct Run<'a> {
    engine: &'a Engine,
    change: &'a Change,
    news: &'a mpsc::Sender<News>,
    dry_run: bool,
    /// Calls that this run has counted.
    counted: HashSet<(&'static str, String)>,
    /// Names that it has given, and the sessions of dialogues: they may not be in the record yet.
    named: HashSet<String>,
    keyed: HashSet<(CampaignId, Key)>,
    /// The key that the dialogue at hand could not have.
    clash: Option<Key>,
    sessions: HashMap<(Source, String), SessionId>,
}

/// A commit that was handed in and not answered yet.
type Answer = oneshot::Receiver<Result<Committed, CommitError>>;

/// How many commits are under way while the next file is read.
const UNDER_WAY: usize = 32;

/// How long whoever no longer follows stores may still be taken for one who does.
const LETS_GO: Duration = Duration::from_secs(1);

/// Whoever asked is gone.
struct Gone;

impl Run<'_> {
    async fn tell(&self, news: News) -> Result<(), Gone> {
        self.news.send(news).await.map_err(|_| Gone)
    }
}

impl Engine {
    /// One follows stores at a time. Who stopped doing so a moment ago has that moment to be noticed gone.
    async fn turn_to_watch(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        timeout(LETS_GO, self.shared.watching.lock()).await.map_err(|_| {
            Refusal::new(Reason::WrongState, "stores are followed already")
                .because("one does it at a time: this daemon with import.watch, or an import in a terminal")
                .hint("ostler ls", "shows the agents outside that are at work")
                .hint("ostler import all", "takes in once what is there")
        })
    }

    /// Imports what is asked for, and tells how it goes. Ends when everything has been taken in or, where it watches, when
    /// nobody listens any more.
    pub async fn import(
        &self,
        import: Import,
        change: Change,
        news: mpsc::Sender<News>,
    ) -> Result<(), Refusal> {
        let watches = import.watch && !import.dry_run;
        let _watching = match watches {
            true => Some(self.turn_to_watch().await?),
            false => None,
        };
        let _importing = if watches { None } else { Some(self.turn_to_import().await?) };
        if !import.dry_run {
            self.shared.audit.write(&Entry {
                time: self.shared.clock.now().wall,
                actor: Who::of(&change),
                action: "history.import",
                object: import.stores.iter().map(|store| store.dir.as_str()).collect::<Vec<_>>().join(" "),
                decision: Decision::Allowed,
                reason: "read only".to_owned(),
                policy: None,
            });
        }
        let mut run = Run {
            engine: self,
            change: &change,
            news: &news,
            dry_run: import.dry_run,
            counted: HashSet::new(),
            named: HashSet::new(),
            keyed: HashSet::new(),
            clash: None,
            sessions: HashMap::new(),
        };
        if watches {
            return run.watch(&import).await;
        }
        let mut totals = Totals::default();
        match run.all(&import, &mut totals).await {
            Err(Stopped::Gone) => Ok(()),
            Err(Stopped::Refused(refusal)) => Err(refusal),
            Ok(()) => {
                let _ = run.tell(News::Done(totals)).await;
                Ok(())
            }
        }
    }
}

impl Engine {
    /// Waits for whoever follows stores, who looks for a moment only, and for nobody else.
    async fn turn_to_import(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        match self.shared.importing.try_lock() {
            Ok(turn) => Ok(turn),
            Err(_) if self.are_stores_followed() => Ok(self.shared.importing.lock().await),
            Err(_) => Err(Refusal::new(Reason::WrongState, "an import is under way already")
                .because("one is made at a time, so that nothing comes in twice")
                .hint("ostler ls -a", "shows what has come in so far")),
        }
    }

    fn are_stores_followed(&self) -> bool {
        self.shared.watching.try_lock().is_err()
    }

    /// Follows stores for as long as the daemon runs: agents outside are rows while they work.
    pub fn follow_stores(&self, stores: Vec<Store>) {
        let engine = self.clone();
        self.shared.tasks.spawn(async move {
            let shutdown = engine.shared.shutdown.clone();
            let import = Import { stores, watch: true, live: true, ..Import::default() };
            while !shutdown.is_cancelled() {
                let (news, mut told) = mpsc::channel(NEWS);
                let following = engine.import(import.clone(), Change::of_ostler(), news);
                let listening = async { while told.recv().await.is_some() {} };
                if let (Err(refusal), ()) = tokio::join!(following, listening) {
                    tracing::warn!(%refusal, "agents outside are not seen; trying again");
                }
                tokio::select! {
                    () = tokio::time::sleep(FOLLOWED_AGAIN) => {}
                    () = shutdown.cancelled() => {}
                }
            }
        });
    }
}

/// Pause before stores are followed again, when that ended.
const FOLLOWED_AGAIN: Duration = Duration::from_secs(30);
/// News that wait for somebody to hear them.
const NEWS: usize = 64;

/// Why an import did not come to its end.
enum Stopped {
    Gone,
    Refused(Refusal),
}

impl From<Gone> for Stopped {
    fn from(_: Gone) -> Self {
        Stopped::Gone
    }
}

impl<E: Into<Refusal>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Refused(error.into())
    }
}

impl Run<'_> {
    /// Everything that lies in the stores, in the order in which it began.
    async fn all(&mut self, import: &Import, totals: &mut Totals) -> Result<(), Stopped> {
        let (mut dialogues, mut looked_through) = (Vec::new(), Vec::new());
        for store in &import.stores {
            let looked = store.clone();
            let (since, live) = (import.since, import.live);
            let state_dir = self.engine.shared.options.state_dir.clone();
            let found = tokio::task::spawn_blocking(move || {
                refused_by_lock(&looked, live)?;
                unpacked::look(&looked, since, &stores::Seen::new(), &state_dir)
            });
            let found = found.await;
            let found = found.map_err(|_| Refusal::internal("looking through a store failed"))?;
            let (mut these, why_not) = match found {
                Ok(looked) => {
                    looked_through.extend(looked.stores);
                    (looked.dialogues, looked.why_not)
                }
                Err(why) => (Vec::new(), Some(why)),
            };
            let bytes = these.iter().map(|dialogue| dialogue.file.size).sum();
            let (source, dir, files) = (store.source, store.dir.clone(), these.len() as u64);
            let running = outside::running(source).await;
            self.tell(News::Found(Found { source, dir, files, bytes, why_not, running })).await?;
            dialogues.append(&mut these);
        }
        // Whoever was copied from comes before the copy, and those who asked before those who were asked for.
        dialogues.sort_by_key(|dialogue| (dialogue.about.first, dialogue.file.path.clone()));
        let mut under_way = VecDeque::new();
        for dialogue in dialogues {
            if self.engine.shared.shutdown.is_cancelled() {
                return Err(Refusal::new(Reason::ShuttingDown, "the daemon is shutting down").into());
            }
            // Two files may have the same dialogue: the second sees what was read of the first.
            let name = dialogue.about.dialogue.clone();
            let is_under_way =
                name.is_some_and(|name| self.sessions.contains_key(&(dialogue.file.source, name)));
            while under_way.len() >= UNDER_WAY || (is_under_way && !under_way.is_empty()) {
                self.settle(under_way.pop_front(), totals).await?;
            }
            // Whoever follows the stores ends what is followed.
            let follow = self.engine.are_stores_followed()
                && is_at_work(dialogue.file.written, self.engine.shared.clock.now().wall);
            let (news, taken) = self.one(dialogue, follow).await?;
            under_way.push_back((news, taken));
        }
        while let Some(first) = under_way.pop_front() {
            self.settle(Some(first), totals).await?;
        }
        for store in &looked_through {
            self.beside(store, totals).await?;
        }
        Ok(())
    }

    /// Waits for what was handed in, and tells of it.
    async fn settle(
        &self,
        handed_in: Option<(FileNews, Option<Taken>)>,
        totals: &mut Totals,
    ) -> Result<(), Stopped> {
        let Some((mut news, taken)) = handed_in else { return Ok(()) };
        if let Some(taken) = taken {
            news = settled(news, taken.answer).await?;
        }
        totals.add(&news);
        self.tell(News::File(Box::new(news))).await?;
        Ok(())
    }

    /// The conversation of Ostler's own that an export calls so.
    async fn own_conversation(&self, dialogue: &str) -> Result<Option<ConversationId>, Stopped> {
        let id = dialogue.split_once("-topic-").map_or(dialogue, |(id, _)| id);
        let Ok(id) = id.parse::<ConversationId>() else { return Ok(None) };
        Ok(self.engine.shared.store.conversation(id).await?.map(|own| own.id))
    }

    /// An agent without a sandbox keeps its dialogues where people do, and so does whoever exports ours.
    async fn is_own(&self, dialogue: &str) -> Result<bool, Stopped> {
        if self.own_conversation(dialogue).await?.is_some() {
            return Ok(true);
        }
        let known = self.engine.shared.store.sessions_with_provider_id(dialogue, 1).await?;
        Ok(known.iter().any(|view| view.imported.is_none()))
    }

    /// One file: what there is to be read of it becomes a session. `follow`: which is not ended, because more may come.
    async fn one(&mut self, dialogue: Dialogue, follow: bool) -> Result<(FileNews, Option<Taken>), Stopped> {
        let Dialogue { file, about, .. } = &dialogue;
        let title = about.title.clone().or_else(|| about.prompt.clone()).unwrap_or_default();
        let mut news = FileNews {
            source: file.source,
            file: file.path.to_string_lossy().into_owned(),
            dialogue: about.dialogue.clone().unwrap_or_default(),
            title: one_line(&title, TITLE_CHARS),
            verdict: Verdict::Empty,
            why: None,
            session: None,
            last: about.last,
            read: Totals::default(),
        };
        let Some(name) = about.dialogue.clone() else {
            let says_nothing = about.prompt.is_none() && about.model.is_none();
            let nameless = "neither its lines nor its name say which dialogue it is";
            return Ok((if says_nothing { news } else { failed(news, nameless) }, None));
        };
        let known = self.engine.shared.store.known_history(file.source, &name).await?;
        if known.is_none() && self.is_own(&name).await? {
            news.why = Some("Ostler ran it itself, and has it already".to_owned());
            news.verdict = Verdict::Same;
            return Ok((news, None));
        }
        let standing = match stand(file.clone(), known.as_ref()).await {
            Ok(standing) => standing,
            Err(error) => return Ok((failed(news, &error.to_string()), None)),
        };
        news.verdict = standing.into();
        news.session = known.as_ref().map(|known| known.session.id);
        let from = match standing {
            Standing::New => 0,
            Standing::Grown { from } => from,
            Standing::Same => return Ok((news, None)),
            Standing::Cut | Standing::Rewritten => {
                news.why = Some("what was imported stays; nothing more is taken from this file".to_owned());
                return Ok((news, None));
            }
        };
        if self.dry_run {
            news.read.bytes = file.size - from;
            return Ok((news, None));
        }
        match self.take_in(&dialogue, &name, known, from, follow, &mut news.read).await {
            Ok(None) => {
                // Nothing whole has come to it.
                news.verdict = if from == 0 { Verdict::Empty } else { Verdict::Same };
                Ok((news, None))
            }
            Ok(Some(taken)) => {
                news.session = Some(taken.session);
                news.why = self.clash.take().map(|key| clash(&key));
                Ok((news, Some(taken)))
            }
            Err(refusal) => Ok((not_taken(news, refusal)?, None)),
        }
    }
}

/// What is said where another conversation has a key already.
fn clash(key: &Key) -> String {
    format!("another conversation has its key {key}, so it has one of its own here")
}

/// What became of a file whose last commit was handed in.
async fn settled(news: FileNews, answer: Answer) -> Result<FileNews, Stopped> {
    match answer.await.unwrap_or(Err(CommitError::Closed)) {
        Ok(_) => Ok(news),
        Err(error) => not_taken(news, session::refused(error)),
    }
}

/// One file that cannot be taken in keeps no other from it; a record that cannot be written to does.
fn not_taken(news: FileNews, refusal: Refusal) -> Result<FileNews, Stopped> {
    if matches!(refusal.reason, Reason::DiskFull | Reason::StoreReadOnly | Reason::ShuttingDown) {
        return Err(refusal.into());
    }
    let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
    Ok(failed(news, &format!("{}{why}", refusal.message)))
}

fn failed(news: FileNews, why: &str) -> FileNews {
    FileNews { verdict: Verdict::Failed, why: Some(one_line(why, 300)), ..news }
}

/// What is to be done with a file.
async fn stand(file: StoreFile, known: Option<&KnownHistory>) -> std::io::Result<Standing> {
    let mark = known.map(|known| known.mark.clone());
    let looked = move || standing(mark.as_ref(), file.size, |to| lines::prints(&file.path, to));
    tokio::task::spawn_blocking(looked).await.unwrap_or_else(|_| Err(std::io::Error::other("looking failed")))
}

/// A store that somebody writes to is not read, unless whoever asks says so.
fn refused_by_lock(store: &Store, live: bool) -> Result<(), String> {
    if store.source != Source::OpenClaw || live {
        return Ok(());
    }
    let dirs = beside::session_dirs(std::path::Path::new(&store.dir));
    match locks::held(std::path::Path::new("/proc"), &dirs, std::time::SystemTime::now()) {
        Some(held) => Err(format!("{held}; stop OpenClaw, or say --live to read it as it is")),
        None => Ok(()),
    }
}

/// When a file was written to, as the record counts time.
fn time_of(moment: std::time::SystemTime) -> Time {
    let since = moment.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::default().plus(since)
}
