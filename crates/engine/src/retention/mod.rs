//! Retention: what rules say about the record of sessions that have ended, and doing it.
//!
//! Whatever is done is an event first. Files follow it ([`settle`]), with a place of their own in the log, so that whoever
//! dies in between leaves one form or both, and never none.

mod missions;
mod needed;
mod settle;
mod steps;

use std::{collections::VecDeque, time::Duration};

use ostler_domain::{
    CampaignId, Event, Reason, Refusal, SessionId, Time,
    event::{RetentionHeld, SessionRestored},
    query::{Listed, Page},
    retention::{Facts, Planned, Rules, Stage, Standing, Step, Verdict, decide},
    text::one_line,
};
use ostler_store::Candidate;

use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
};
use needed::Needed;

/// How often the daemon looks whether a rule has something to say.
const EVERY: Duration = Duration::from_secs(3_600);
/// After a daemon's start, when sessions that it adopts have come first.
const FIRST: Duration = Duration::from_secs(60);
/// Between two steps that nobody waits for: agents and people come first.
const PAUSE: Duration = Duration::from_millis(50);
/// Sessions that are looked at in one go.
const PAGE: u32 = 500;

/// One at a time changes what is kept.
#[derive(Default)]
pub(crate) struct Retention {
    at_work: tokio::sync::Mutex<()>,
    /// The last session whose words and files are gone.
    gone: tokio::sync::watch::Sender<Option<SessionId>>,
}

/// What rules want done now, session by session.
pub struct Planning {
    engine: Engine,
    now: Time,
    campaigns: VecDeque<(CampaignId, Rules)>,
    needed: Needed,
    found: VecDeque<Candidate>,
    after: u64,
}

impl Engine {
    /// What the rules come to now, in one campaign or in all.
    pub async fn plan_retention(&self, campaign: Option<&str>) -> Result<Planning, Refusal> {
        let only = match campaign {
            Some(campaign) => Some(self.campaign(campaign).await?.id),
            None => None,
        };
        let machine = self.shared.options.providers.retention()?;
        let has_marked = self.shared.store.has_marked_or_removed().await?;
        // The rules of one that was removed hold on: what was promised to go is not kept for that.
        let rows = self.shared.store.recorded_campaigns().await?;
        let campaigns = rows
            .into_iter()
            .filter(|row| only.is_none_or(|only| row.id == only))
            .map(|row| (row.id, row.policy.retention.or(machine)))
            .filter(|(_, rules)| has_marked || rules.do_something());
        Ok(Planning {
            engine: self.clone(),
            now: self.shared.clock.now().wall,
            campaigns: campaigns.collect(),
            needed: Needed::now(&self.shared.store).await?,
            found: VecDeque::new(),
            after: 0,
        })
    }

    /// Sessions that somebody or a rule touched, newest-created first.
    pub async fn retention(&self, page: Page) -> Result<Listed<Standing>, Refusal> {
        Ok(self.shared.store.retention(page).await?)
    }

    /// How one session stands.
    pub async fn retention_of(&self, who: &str) -> Result<Standing, Refusal> {
        Ok(self.retained(who).await?.standing)
    }

    async fn retained(&self, who: &str) -> Result<Candidate, Refusal> {
        let id = self.session(who).await?.id;
        let unknown =
            || Refusal::new(Reason::SessionUnknown, format!("there is no session \"{}\"", one_line(who, 64)));
        self.shared.store.retention_candidate(id).await?.ok_or_else(unknown)
    }

    /// Keeps all rules from a session, or lets them at it again.
    pub async fn hold_retention(
        &self,
        who: &str,
        is_held: bool,
        why: String,
        change: Change,
    ) -> Result<Standing, Refusal> {
        let fingerprint = format!("hold_retention {who} {is_held} {why}");
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some() {
            return self.retention_of(who).await;
        }
        let _at_work = self.shared.retention.at_work.lock().await;
        let standing = self.retained(who).await?.standing;
        check_not_deleted(&standing)?;
        let held = RetentionHeld {
            session: standing.session,
            is_held,
            why: one_line(&why, 400),
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, standing.session.to_string());
        self.record_nodes(vec![Event::RetentionHeld(held)], request).await?;
        let action = if is_held { "retention.hold" } else { "retention.release" };
        self.note_retention(&change, action, &standing, why);
        self.retention_of(&standing.session.to_string()).await
    }

    /// Keeps a session as it was: plain again, and not to be deleted. Rules count from now on.
    pub async fn restore_retention(&self, who: &str, change: Change) -> Result<Standing, Refusal> {
        let fingerprint = format!("restore_retention {who}");
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some() {
            return self.retention_of(who).await;
        }
        let _at_work = self.shared.retention.at_work.lock().await;
        let standing = self.retained(who).await?.standing;
        check_not_deleted(&standing)?;
        if standing.kept.stage() == Stage::Hot {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("{} is neither archived nor to be deleted", standing.name),
            )
            .hint(format!("ostler retention hold {}", standing.session.short()), "keeps all rules from it"));
        }
        let restored = SessionRestored {
            session: standing.session,
            why: String::new(),
            by_rule: false,
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, standing.session.to_string());
        self.record_nodes(vec![Event::SessionRestored(restored)], request).await?;
        self.note_retention(&change, "retention.restore", &standing, String::new());
        self.retention_of(&standing.session.to_string()).await
    }

    fn note_retention(&self, change: &Change, action: &'static str, standing: &Standing, reason: String) {
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(change),
            action,
            object: format!("{} {}", standing.session, standing.name),
            decision: Decision::Allowed,
            reason,
            policy: None,
        });
    }

    /// Begins to follow the rules, and to have files follow what was decided.
    pub async fn begin_retention(&self) -> Result<(), Refusal> {
        let settling = self.settling().await?;
        let shutdown = self.shared.shutdown.clone();
        let (engine, rules) = (self.clone(), self.clone());
        self.shared.tasks.spawn({
            let shutdown = shutdown.clone();
            async move {
                tokio::select! {
                    () = engine.settle_for_ever(settling) => {}
                    () = shutdown.cancelled() => {}
                }
            }
        });
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = rules.follow_for_ever() => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(())
    }

    async fn follow_for_ever(&self) {
        tokio::time::sleep(FIRST).await;
        loop {
            if let Err(refusal) = self.follow_rules().await {
                tracing::warn!(%refusal, "the rules of retention cannot be followed");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn follow_rules(&self) -> Result<(), Refusal> {
        let mut plan = self.plan_retention(None).await?;
        while let Some(planned) = plan.next().await? {
            if planned.spared.is_some() {
                continue;
            }
            let done = self.follow(planned, &Change::of_ostler()).await?;
            if let Some(why) = done.spared {
                tracing::warn!(session = %done.standing.session, step = done.step.as_str(), why, "a rule is not followed");
            }
            tokio::time::sleep(PAUSE).await;
        }
        for step in self.archive_missions(None, &Change::of_ostler()).await? {
            if let Some(why) = step.spared {
                tracing::info!(mission = %step.mission, why, "what a mission left behind stays");
            }
        }
        self.shared.store.drop_garbage().await.map_err(Refusal::from)
    }
}

impl Planning {
    /// The next session of which a rule says something; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Planned>, Refusal> {
        loop {
            let Some((campaign, rules)) = self.campaigns.front().copied() else { return Ok(None) };
            while let Some(candidate) = self.found.pop_front() {
                let planned = self.engine.judge(&candidate, &rules, &self.needed, self.now).await?;
                if planned.is_some() {
                    return Ok(planned);
                }
            }
            let until = rules.least().map(|least| self.now.minus(least));
            let store = &self.engine.shared.store;
            if self.after == u64::MAX {
                self.campaigns.pop_front();
                self.after = 0;
                continue;
            }
            let page = store.retention_candidates(campaign, until, self.after, PAGE).await?;
            self.found.extend(page.rows);
            self.after = page.next.unwrap_or(u64::MAX);
        }
    }
}

impl Engine {
    async fn judge(
        &self,
        candidate: &Candidate,
        rules: &Rules,
        needed: &Needed,
        now: Time,
    ) -> Result<Option<Planned>, Refusal> {
        let standing = &candidate.standing;
        let mut facts = Facts {
            ended: standing.ended,
            kept: standing.kept.clone(),
            removed: candidate.removed,
            is_needed: candidate.is_waited_for || needed.has(candidate),
            has_work_tree: false,
        };
        if let Verdict::Do(Step::Mark { .. } | Step::Delete, _) = decide(&facts, rules, now) {
            facts.has_work_tree = self.has_work_tree(standing).await?;
        }
        let planned = |step, rule, spared| Planned { standing: standing.clone(), step, rule, spared };
        Ok(match decide(&facts, rules, now) {
            Verdict::Nothing => None,
            Verdict::Do(step, rule) => Some(planned(step, rule, None)),
            Verdict::Spare(step, why) => Some(planned(step, String::new(), Some(why.words().to_owned()))),
        })
    }

    /// Whether it had a work tree of its own that is still there: what is in it may never have been committed.
    async fn has_work_tree(&self, standing: &Standing) -> Result<bool, Refusal> {
        let Some(view) = self.shared.store.session(standing.session).await? else { return Ok(false) };
        Ok(view.worktree.is_some_and(|tree| std::path::Path::new(&tree.path).exists()))
    }
}

fn check_not_deleted(standing: &Standing) -> Result<(), Refusal> {
    if standing.kept.deleted.is_none() {
        return Ok(());
    }
    Err(Refusal::new(Reason::WrongState, format!("what was said in {} is deleted", standing.name))
        .because(standing.kept.rule.clone().unwrap_or_default())
        .hint(
            format!("ostler show {}", standing.session.short()),
            "shows what is left: how it ended, and its cost",
        ))
}
