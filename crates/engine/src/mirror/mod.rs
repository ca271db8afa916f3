//! A campaign's conversations, kept in the store of files of OpenClaw: `mirror=DIR` of `ostler campaign set`.
//!
//! A projection with a place of its own in the log. Rows are written from what holds now, so that writing them twice does
//! nothing; whoever dies in between is helped on by the next one.

mod file;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_domain::{
    CampaignId, ConversationId, Event, Kind, Name, Recorded, Refusal, SessionId,
    campaign::Campaign,
    conversation::Conversation,
    event::StopReason,
    exchange::openclaw::{self, Said},
    limits::{PAGE_MOST, TRANSCRIPT_GATHER},
    query::{ConversationFilter, EventFilter, Page},
    session::View,
    text::one_line,
    transcript,
};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::{Engine, Watch, fault};
use file::Cache;

/// Whose place in the log this is.
const NAME: &str = "mirror";
/// Pause before the log is looked at again when something could not be written.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Events that are taken together.
const BATCH: usize = 512;
/// So far the log is followed before its place is remembered, where there is no mirror.
const UNMIRRORED: u64 = 10_000;
/// After these a row may say something else.
const KINDS: [Kind; 13] = [
    Kind::ConversationOpened,
    Kind::ConversationChanged,
    Kind::ConversationClosed,
    Kind::ConversationReopened,
    Kind::CampaignPolicyChanged,
    Kind::SessionCreated,
    Kind::SessionStarted,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::TurnEnded,
    Kind::ModelChanged,
    Kind::MessageAccepted,
    Kind::SessionDeleted,
];

/// What is to be written.
#[derive(Default)]
struct Due {
    conversations: BTreeSet<ConversationId>,
    /// The conversations of these.
    sessions: BTreeSet<SessionId>,
    /// All conversations of these: somebody has just asked for it, or it could not be done before.
    campaigns: BTreeSet<CampaignId>,
}

/// A campaign that has a mirror.
struct Mirrored {
    name: String,
    dir: PathBuf,
}

impl Engine {
    /// Begins to keep mirrors.
    pub async fn begin_mirrors(&self) -> Result<(), Refusal> {
        let store = &self.shared.store;
        let place = match store.cursor(NAME).await? {
            Some(place) => place,
            None => {
                let end = store.last_seq();
                store.set_cursor(NAME, end).await.map_err(Refusal::from)?;
                end
            }
        };
        let engine = self.clone();
        self.shared.tasks.spawn(async move {
            let shutdown = engine.shared.shutdown.clone();
            tokio::select! {
                () = engine.keep_mirrors(place) => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Refuses a mirror where an agent could write: it could lead what is written there elsewhere.
    pub(crate) async fn check_mirror(&self, campaign: &Campaign) -> Result<(), Refusal> {
        let Some(dir) = &campaign.policy.mirror else { return Ok(()) };
        let campaigns = self.shared.store.campaigns().await?;
        let of_agents = campaigns
            .iter()
            .chain([campaign])
            .flat_map(|one| one.policy.write.iter().chain([&one.root.path]).map(PathBuf::from));
        let own = self.shared.options.own_dirs.iter().cloned();
        let real = real(Path::new(dir));
        let taken = of_agents.chain(own).find(|taken| real.starts_with(self::real(taken)));
        let Some(taken) = taken else { return Ok(()) };
        Err(Refusal::invalid(format!("{} cannot be a mirror", one_line(dir, 200)))
            .because(format!("{} is an agent's to write, or Ostler's own", taken.display()))
            .hint(
                format!("ostler campaign set {} mirror=DIR", campaign.name),
                "names a directory of nobody's",
            ))
    }

    async fn keep_mirrors(&self, mut place: u64) {
        let cache = Arc::new(Mutex::new(Cache::default()));
        loop {
            if let Err(refusal) = self.mirror_on(&mut place, &cache).await {
                tracing::warn!(%refusal, "mirrors cannot be kept; trying again");
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    async fn mirror_on(&self, place: &mut u64, cache: &Arc<Mutex<Cache>>) -> Result<(), Refusal> {
        let filter = EventFilter { kinds: KINDS.to_vec(), ..EventFilter::default() };
        let mut watch = self.watch(filter, Some(*place));
        let mut due = Due::default();
        loop {
            gather(&mut watch, &mut due).await?;
            let mirrored = self.mirrored().await?;
            let failed = self.write_mirrors(std::mem::take(&mut due), &mirrored, cache).await?;
            let is_worth_it = !mirrored.is_empty() || watch.cursor() > *place + UNMIRRORED;
            if failed.is_empty() && is_worth_it {
                fault::point("mirror");
                *place = watch.cursor();
                self.shared.store.set_cursor(NAME, *place).await.map_err(Refusal::from)?;
            }
            // The place stays where something failed: whoever begins anew begins before it.
            due.campaigns = failed;
        }
    }

    /// Writes what is due; the campaigns whose mirrors could not be written.
    async fn write_mirrors(
        &self,
        mut due: Due,
        mirrored: &HashMap<CampaignId, Mirrored>,
        cache: &Arc<Mutex<Cache>>,
    ) -> Result<BTreeSet<CampaignId>, Refusal> {
        if mirrored.is_empty() {
            return Ok(BTreeSet::new());
        }
        for id in due.sessions {
            due.conversations.extend(self.shared.store.session(id).await?.map(|view| view.conversation));
        }
        let mut of: BTreeMap<CampaignId, Vec<Conversation>> = BTreeMap::new();
        for id in due.conversations {
            let found = self.shared.store.conversation(id).await?;
            if let Some(conversation) = found.filter(|found| !due.campaigns.contains(&found.campaign)) {
                of.entry(conversation.campaign).or_default().push(conversation);
            }
        }
        for campaign in due.campaigns {
            of.insert(campaign, self.all_open(campaign).await?);
        }
        let mut failed = BTreeSet::new();
        for (campaign, conversations) in of {
            let Some(to) = mirrored.get(&campaign) else { continue };
            if let Err(refusal) = self.write_mirror(to, conversations, cache).await {
                tracing::warn!(%refusal, dir = %to.dir.display(), "a mirror is behind; trying again");
                failed.insert(campaign);
            }
        }
        Ok(failed)
    }

    async fn mirrored(&self) -> Result<HashMap<CampaignId, Mirrored>, Refusal> {
        let rows = self.shared.store.campaigns().await?;
        let mirrored = rows.into_iter().filter_map(|row| {
            let dir = PathBuf::from(row.policy.mirror?);
            Some((row.id, Mirrored { name: row.name.to_string(), dir }))
        });
        Ok(mirrored.collect())
    }

    async fn all_open(&self, campaign: CampaignId) -> Result<Vec<Conversation>, Refusal> {
        let filter = ConversationFilter { campaign: Some(campaign), ..ConversationFilter::default() };
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.shared.store.conversations(&filter, Page::of(PAGE_MOST, cursor)).await?;
            all.extend(page.rows);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    async fn write_mirror(
        &self,
        to: &Mirrored,
        conversations: Vec<Conversation>,
        cache: &Arc<Mutex<Cache>>,
    ) -> Result<(), Refusal> {
        let mut stores: BTreeMap<PathBuf, Vec<Row>> = BTreeMap::new();
        for conversation in conversations {
            let agent = self.name_of_agent(&conversation).await?;
            let dir = to
                .dir
                .join("agents")
                .join(openclaw::agent_of(&conversation, agent.as_ref()))
                .join("sessions");
            let row = self.mirrored_row(conversation, agent.as_ref(), &to.name).await?;
            stores.entry(dir).or_default().push(row);
        }
        let now = self.shared.clock.now().wall;
        let cache = cache.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            let mut faults = Vec::new();
            for (dir, rows) in stores {
                let file = dir.join("sessions.json");
                let written = cache
                    .update(&file, now, |there| rows.iter().for_each(|row| row.put_into(there)))
                    .and_then(|()| rows.iter().try_for_each(|row| row.link(&dir)));
                // One agent's file says nothing of the others'.
                faults.extend(written.err().map(|error| format!("{}: {error}", file.display())));
            }
            faults
        });
        let faults = written.await.unwrap_or_else(|error| vec![error.to_string()]);
        match faults.as_slice() {
            [] => Ok(()),
            faults => Err(Refusal::internal("a mirror cannot be written").because(faults.join("; "))),
        }
    }

    async fn name_of_agent(&self, conversation: &Conversation) -> Result<Option<Name>, Refusal> {
        Ok(match conversation.agent {
            Some(id) => self.shared.store.agent(id).await?.map(|agent| agent.name),
            None => None,
        })
    }

    async fn mirrored_row(
        &self,
        conversation: Conversation,
        agent: Option<&Name>,
        campaign: &str,
    ) -> Result<Row, Refusal> {
        let store = &self.shared.store;
        let sessions = store.sessions_of_conversation(conversation.id, PAGE_MOST).await?;
        // What was run elsewhere is said by the row that it came with.
        let own = sessions.iter().filter(|session| session.imported.is_none());
        let compactions = own.map(|session| u64::from(session.compactions)).sum();
        let last = sessions.into_iter().next().filter(|last| last.imported.is_none());
        let last_turn = match &last {
            Some(last) => self.last_turn_of(last.id).await?,
            None => None,
        };
        let parent = match conversation.spawned_by {
            Some(session) => match store.session(session).await? {
                Some(view) => store.conversation(view.conversation).await?,
                None => None,
            },
            None => None,
        };
        let spawned_by = match &parent {
            Some(parent) => Some(openclaw::key(parent, self.name_of_agent(parent).await?.as_ref())),
            None => None,
        };
        let state = &self.shared.options.state_dir;
        let own = state.join("conversations").join(conversation.id.to_string());
        Ok(Row {
            key: openclaw::key(&conversation, agent),
            transcript: own.join(transcript::file_name(&conversation.key)),
            campaign: campaign.to_owned(),
            conversation,
            last,
            last_turn,
            compactions,
            spawned_by,
        })
    }

    /// How the last turn of a session ended.
    async fn last_turn_of(&self, session: SessionId) -> Result<Option<StopReason>, Refusal> {
        let filter =
            EventFilter { session: Some(session), kinds: vec![Kind::TurnEnded], ..EventFilter::default() };
        let last = self.shared.store.events_before(None, &filter, 1).await?.rows.pop();
        Ok(last.and_then(|recorded| match recorded.event {
            Event::TurnEnded(ended) => Some(ended.stop_reason),
            _ => None,
        }))
    }
}

/// Waits for events, and a moment longer for more of them; or a while, where something is still to be written.
async fn gather(watch: &mut Watch, due: &mut Due) -> Result<(), Refusal> {
    let mut until = match due.campaigns.is_empty() {
        true => None,
        false => Some(Instant::now() + AFTER_FAILURE),
    };
    let mut count = 0;
    while count < BATCH {
        let events = match until {
            None => watch.next().await?,
            Some(until) => match timeout_at(until, watch.next()).await {
                Ok(events) => events?,
                Err(_) => break,
            },
        };
        count += events.len();
        events.iter().for_each(|published| due.add(published));
        until = until.or_else(|| Some(Instant::now() + TRANSCRIPT_GATHER));
    }
    Ok(())
}

impl Due {
    fn add(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::CampaignPolicyChanged(changed) => {
                if changed.policy.mirror.is_some() {
                    self.campaigns.insert(changed.campaign);
                }
            }
            Event::ConversationOpened(opened) => drop(self.conversations.insert(opened.id)),
            Event::ConversationChanged(changed) => drop(self.conversations.insert(changed.id)),
            Event::ConversationClosed(closed) => drop(self.conversations.insert(closed.id)),
            Event::ConversationReopened(reopened) => drop(self.conversations.insert(reopened.id)),
            Event::SessionDeleted(deleted) => drop(self.sessions.insert(deleted.session)),
            _ => self.sessions.extend(recorded.session),
        }
    }
}

/// Where a path leads, as far as it is there.
fn real(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|there| Some(fs::canonicalize(there).ok()?.join(path.strip_prefix(there).ok()?)))
        .unwrap_or_else(|| path.to_owned())
}

/// What a conversation's row is made from.
struct Row {
    key: String,
    campaign: String,
    conversation: Conversation,
    last: Option<View>,
    last_turn: Option<StopReason>,
    compactions: u64,
    spawned_by: Option<String>,
    transcript: PathBuf,
}

impl Row {
    /// Brings the row up to date. One of somebody else's under the same key is left alone.
    fn put_into(&self, rows: &mut file::Rows) {
        let folded = self.key.to_lowercase();
        let key = rows.keys().find(|key| key.to_lowercase() == folded).cloned();
        let there = key.as_ref().and_then(|key| rows.get(key)).and_then(Value::as_object).cloned();
        if there.as_ref().is_some_and(|row| !openclaw::is_ours(row, &self.conversation)) {
            return;
        }
        if self.conversation.closed.is_some() {
            // A fresh one may have the key by now.
            let is_its =
                there.as_ref().is_some_and(|row| openclaw::conversation(row) == Some(self.conversation.id));
            if let Some(key) = key.filter(|_| is_its) {
                rows.remove(&key);
            }
            return;
        }
        let said = Said {
            conversation: &self.conversation,
            campaign: &self.campaign,
            last: self.last.as_ref(),
            last_turn: self.last_turn,
            compactions: self.compactions,
            spawned_by: self.spawned_by.as_deref(),
        };
        let row = openclaw::merged(&said, there.as_ref());
        rows.insert(key.unwrap_or_else(|| self.key.clone()), row.into());
    }

    /// Lets the transcript be found where the row says that it is.
    fn link(&self, dir: &Path) -> io::Result<()> {
        let link = dir.join(openclaw::transcript_name(&self.conversation));
        match std::os::unix::fs::symlink(&self.transcript, link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
