//! The daemon about itself, and its record.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    ConversationId, MessageId, NodeId, Reason, Recorded, Refusal, Time,
    budget::{DayBudgets, Today},
    id::Fragment,
    query::{EventFilter, Listed, Page, UsageBy, UsageFilter, UsageSum},
    reboot::MachineRestart,
    text::one_line,
};
use ostler_store::{
    Among, ApprovalRow, BackupProgress, CheckDepth, CheckReport, Drain, Halt, MessageRow, Reindexed, Stats,
    Vacuumed,
};
use tokio::sync::broadcast;

use crate::{Delta, DiskRoom, Engine, VERSION, audit::Verified, sessions::Count, watch::Fits};

/// As many sessions are named to a search; among more, their hits are picked out of all.
const FEW_SESSIONS: u32 = 200;
/// A search waits so long for the index to reach what was recorded before it.
const INDEX_PATIENCE: Duration = Duration::from_secs(2);

/// What the daemon says about itself.
#[derive(Debug, Clone)]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: &'static str,
    pub node: NodeId,
    pub epoch: u64,
    pub sessions: u64,
    /// Those that are cut off from their keeper.
    pub sessions_detached: u64,
    /// Keepers that are connected.
    pub keepers: u64,
    /// The same by the version of their program.
    pub keeper_versions: BTreeMap<String, u64>,
    /// What holds sessions to their memory limit.
    pub memory_held_by: &'static str,
    pub halt: Option<Halt>,
    pub drain: Option<Drain>,
    pub stats: Stats,
    pub schema_version: u32,
    /// Sessions that wait to start.
    pub waiting: u64,
    /// Sessions whose agent runs, or is about to: those that end and have nothing left of it are none.
    pub running: u64,
    pub disk: DiskRoom,
    /// What a person is to be told of.
    pub machine_restart: Option<MachineRestart>,
}

impl Engine {
    pub async fn status(&self) -> Result<DaemonStatus, Refusal> {
        let Count { known, attached, keepers, keeper_versions } = self.shared.sessions.count();
        let (sessions, running) = match self.shared.line.is_complete() {
            true => (known, self.shared.at_large()),
            // Those that the daemon before us left are still being looked for.
            false => {
                let unended = known.max(self.shared.store.unended_sessions().await?.len() as u64);
                (unended, unended)
            }
        };
        Ok(DaemonStatus {
            pid: std::process::id(),
            version: VERSION,
            node: self.shared.store.node_id(),
            epoch: self.shared.epoch.current(),
            sessions,
            sessions_detached: sessions.saturating_sub(attached),
            keepers,
            keeper_versions,
            memory_held_by: self.shared.cgroups.memory_held_by(),
            halt: self.halted(),
            drain: self.drained(),
            stats: self.shared.store.stats().await?,
            schema_version: ostler_store::SCHEMA_VERSION,
            waiting: self.shared.line.waiting(),
            running,
            disk: self.shared.disk_room(),
            machine_restart: self.machine_restart().await?,
        })
    }

    /// Events after a place in the log, oldest first.
    pub async fn events_after(
        &self,
        after: u64,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<Listed<Recorded>, Refusal> {
        Ok(self.shared.store.events_after(after, filter, limit).await?)
    }

    /// Events before a place in the log, or before its end, newest first.
    pub async fn events_before(
        &self,
        before: Option<u64>,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<Listed<Recorded>, Refusal> {
        Ok(self.shared.store.events_before(before, filter, limit).await?)
    }

    /// Partial text of all sessions, as it comes; lossy.
    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.shared.deltas.subscribe()
    }

    /// The message of an id or a part of one.
    pub async fn message(&self, id: &str) -> Result<MessageRow, Refusal> {
        let unknown =
            || Refusal::new(Reason::MessageUnknown, format!("there is no message \"{}\"", one_line(id, 64)));
        if let Ok(id) = id.parse::<MessageId>() {
            return self.shared.store.message(id).await?.ok_or_else(unknown);
        }
        let fragment = Fragment::parse(id, MessageId::PREFIX).ok_or_else(unknown)?;
        match self.shared.store.find_messages(&fragment).await?.as_slice() {
            [] => Err(unknown()),
            [one] => Ok(one.clone()),
            several => {
                let shown =
                    several.iter().map(|row| format!("{} {}", row.id.short(), one_line(&row.head, 40)));
                Err(Refusal::new(Reason::Ambiguous, format!("\"{id}\" fits {} messages", several.len()))
                    .because(shown.collect::<Vec<_>>().join(" · ")))
            }
        }
    }

    /// The messages of a session's conversation, newest first.
    pub async fn messages(&self, who: &str, page: Page) -> Result<Listed<MessageRow>, Refusal> {
        let conversation = self.conversation_of(who).await?;
        Ok(self.shared.store.messages_of_conversation(conversation, page).await?)
    }

    /// The conversation of a session, or of an id or name of its own.
    pub(crate) async fn conversation_of(&self, who: &str) -> Result<ConversationId, Refusal> {
        match self.session(who).await {
            Ok(view) => Ok(view.conversation),
            Err(refusal) if refusal.reason == Reason::SessionUnknown => {
                Ok(self.find_conversation(who).await?.ok_or(refusal)?.id)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Agents' questions: those that wait, oldest first, or all there ever were, newest first.
    pub async fn approvals(&self, only_open: bool, page: Page) -> Result<Listed<ApprovalRow>, Refusal> {
        if !only_open {
            return Ok(self.shared.store.approvals(page).await?);
        }
        // Those that wait are few, so they are looked at together and cut to the page.
        let open = self.shared.store.open_approvals().await?;
        let mut rows: Vec<_> =
            open.into_iter().filter(|row| page.cursor.is_none_or(|after| row.seq > after)).collect();
        let has_more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let next_cursor = rows.last().filter(|_| has_more).map(|row| row.seq);
        Ok(Listed { rows, next_cursor })
    }

    pub async fn usage(&self, filter: &UsageFilter, by: UsageBy) -> Result<Vec<UsageSum>, Refusal> {
        Ok(self.shared.store.usage(filter, by).await?)
    }

    /// What all sessions used today, for who had midnight then.
    pub async fn today(&self, midnight: Time) -> Result<Today, Refusal> {
        let budgets = DayBudgets::among(self.shared.store.campaign_budgets().await?);
        let since = budgets.since(self.shared.clock.now().wall, midnight);
        let filter = UsageFilter { since: Some(since), ..UsageFilter::default() };
        let campaigns = self.usage(&filter, UsageBy::Campaign).await?;
        let models = match campaigns.iter().all(|row| row.unpriced.is_zero()) {
            true => Vec::new(),
            false => self.usage(&filter, UsageBy::Model).await?,
        };
        Ok(budgets.today(&campaigns, &models, &self.shared.prices.current()))
    }

    /// Events that have all the words, newest first, each with the text around them.
    pub async fn search(
        &self,
        text: &str,
        filter: &EventFilter,
        page: Page,
    ) -> Result<Listed<(Recorded, String)>, Refusal> {
        let store = &self.shared.store;
        if page.cursor.is_none() {
            // What was recorded before the question is found, unless there is very much of it.
            let _ = tokio::time::timeout(INDEX_PATIENCE, store.searchable(store.last_seq())).await;
        }
        let found = store.search(text, self.among(filter).await?, page).await?;
        let mut rows = Vec::with_capacity(found.rows.len());
        let mut fits = filter.sessions.as_deref().map(|sessions| Fits::new(self, sessions));
        for hit in found.rows {
            let is_of_fitting = match (&mut fits, hit.ticket) {
                (Some(fits), Some(ticket)) => fits.ticket(ticket).await?,
                (Some(fits), None) => fits.session(hit.session).await?,
                (None, _) => true,
            };
            if is_of_fitting
                && filter.fits(hit.kind, hit.session, hit.time)
                && let Some(event) = store.event(hit.seq).await?
            {
                rows.push((event, hit.snippet));
            }
        }
        Ok(Listed { rows, next_cursor: found.next_cursor })
    }

    /// The sessions that a search is about, where they are few: then it does not go through what others said.
    async fn among(&self, filter: &EventFilter) -> Result<Option<Among>, Refusal> {
        if let Some(session) = filter.session {
            return Ok(Some(Among { sessions: vec![session], tickets: false }));
        }
        let Some(sessions) = &filter.sessions else { return Ok(None) };
        let fitting = self.shared.store.list_sessions(sessions, Page::of(FEW_SESSIONS, None)).await?;
        let is_all = fitting.next_cursor.is_none();
        let ids = fitting.rows.iter().map(|view| view.id);
        Ok(is_all.then(|| Among { sessions: ids.collect(), tickets: sessions.may_be_tickets() }))
    }

    pub async fn check(&self, depth: CheckDepth) -> Result<CheckReport, Refusal> {
        Ok(self.shared.store.check(depth).await?)
    }

    pub async fn reindex(&self) -> Result<Reindexed, Refusal> {
        Ok(self.shared.store.reindex().await?)
    }

    pub async fn vacuum(&self) -> Result<Vacuumed, Refusal> {
        Ok(self.shared.store.vacuum().await?)
    }

    /// Looks through the audit log.
    pub async fn verify_audit(&self) -> Result<Verified, Refusal> {
        let shared = self.shared.clone();
        let verified = tokio::task::spawn_blocking(move || shared.audit.verify()).await;
        let verified = verified.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        verified.map_err(|error| Refusal::internal("the audit log cannot be read").because(error.to_string()))
    }

    pub async fn backup(
        &self,
        destination: &std::path::Path,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<(), Refusal> {
        Ok(self.shared.store.backup(destination, progress).await?)
    }
}
