//! A member's session: how it is started, and what it came to.

use std::collections::BTreeSet;

use ostler_domain::{
    Budget, Event, Kind, Name, Refusal, SessionId,
    budget::WhenUsedUp,
    conversation::Key,
    limits::NAME_BYTES,
    mission::{
        Membership, Product, SessionEnd, Spent, StartSession, State, TaskAnswer, Work, brief, plan::Worktree,
    },
    query::EventFilter,
    session::{Approve, Outcome, StopRule, View},
    ticket::{Output, OutputKind},
    worktree::Wanted,
};

use super::shared_dir;
use crate::{Change, Engine, NewSession, create::new_message, restart};

/// Outputs of a session that are handed on.
const OUTPUTS: u32 = 200;
/// What an agent said that is read at once: mostly the last of it is the answer.
const ANSWERS: u32 = 20;

/// What came of starting an attempt.
pub(super) enum Begun {
    As(SessionId),
    /// Nothing yet: this session, which somebody else asked for, has its conversation.
    Awaits(SessionId),
}

impl Engine {
    /// Creates the session of an attempt, unless it is there. It goes on with the attempt before it, where there was one.
    pub(super) async fn start_member(
        &self,
        state: &State,
        start: &StartSession,
        change: &Change,
    ) -> Result<Begun, Refusal> {
        if self.shared.store.session(start.session).await?.is_some() {
            return Ok(Begun::As(start.session));
        }
        let place = state
            .place_of(start.assignment)
            .ok_or_else(|| Refusal::internal("the mission has no such assignment"))?;
        let name = &state.slots()[place].assignment.name;
        if let Err(error) = shared_dir::make_own(&self.shared.options.state_dir, state.id(), name) {
            // Others may have put something else there; it works without.
            tracing::warn!(mission = %state.id(), %name, %error, "a member has no place in the mission's directory");
        }
        let member = Membership { mission: state.id(), assignment: start.assignment, attempt: start.attempt };
        if let Some(before) = start.continues
            && let Some(old) = self.shared.store.session(before).await?
        {
            let redone = brief::redone(state, place, old.created_at);
            let mut last = self.last_after(old).await?;
            // Two at once in one conversation would not know of each other.
            while last.outcome.is_some() {
                match self.start_again(&last, start, &redone, member, change).await {
                    Ok(session) => return Ok(Begun::As(session)),
                    Err(refusal) => match self.successor(last.id).await? {
                        // Somebody was faster, and goes on with it.
                        Some(next) => last = self.last_after(next).await?,
                        None => return Err(refusal),
                    },
                }
            }
            return Ok(Begun::Awaits(last.id));
        }
        let wanted = self.wanted(state, place, start, member).await?;
        match self.create(wanted, change, |_| None).await {
            // Somebody was faster.
            Err(_) if self.shared.store.session(start.session).await?.is_some() => {
                Ok(Begun::As(start.session))
            }
            created => created.map(|view| Begun::As(view.id)),
        }
    }

    /// The session that has its work now: people may have gone on with it when its mission had left it.
    async fn last_after(&self, session: View) -> Result<View, Refusal> {
        let mut last = session;
        while let Some(next) = self.shared.store.continued_by(last.id).await? {
            last = next;
        }
        Ok(last)
    }

    async fn start_again(
        &self,
        old: &View,
        start: &StartSession,
        redone: &str,
        member: Membership,
        change: &Change,
    ) -> Result<SessionId, Refusal> {
        let why = start.why.as_deref().unwrap_or("it ended before its work was done");
        let text = format!(
            "Your last attempt came to nothing: {why}\n{redone}\nSee what you have done already, and go on with your task."
        );
        let message = new_message(self.shared.clock.now().wall, &text);
        let other = restart::Other {
            message: Some(message.into()),
            id: Some(start.session),
            mission: Some(member),
            ..restart::Other::default()
        };
        match restart::after(self, old, other, change, |_| None).await {
            Err(_) if self.shared.store.session(start.session).await?.is_some() => Ok(start.session),
            created => created.map(|view| view.id),
        }
    }

    async fn wanted(
        &self,
        state: &State,
        place: usize,
        start: &StartSession,
        member: Membership,
    ) -> Result<NewSession, Refusal> {
        let work: &Work = state.work(place);
        let name = &state.slots()[place].assignment.name;
        let agent = work.agent.as_ref().map(ToString::to_string);
        // An agent's own conversations stay as they are.
        let key = agent.as_ref().map(|_| format!("mission:{}:{name}", state.id()).parse::<Key>());
        let key = key.transpose().map_err(|error| Refusal::internal(error.to_string()))?;
        Ok(NewSession {
            id: Some(start.session),
            mission: Some(member),
            campaign: state.campaign().to_string(),
            provider: work.provider.clone().unwrap_or_default(),
            model: work.model.clone(),
            name: agent.is_none().then(|| member_name(state.name(), name)),
            agent,
            key,
            prompt: Some(brief::brief(state, place)),
            budget: work.budget.map(|amount| Budget::new(amount, WhenUsedUp::Stop)),
            when_used_up: WhenUsedUp::Stop,
            timeout: work.timeout,
            approve: work.approve.unwrap_or(Approve::Policy),
            worktree: own_tree(&work.worktree),
            leases: work.paths.clone(),
            auth_profile: work.account.clone(),
            ends_with_turn: true,
            priority: work.priority,
            bounded_by: state.slots()[place].asked_by,
            ..NewSession::default()
        })
    }

    /// What a member has left for others beside what it said: files in its own directory, and commits in a tree of its own.
    async fn handed_on(&self, view: &View, name: &Name) -> Vec<Output> {
        let mut outputs = Vec::new();
        if let Some(member) = view.mission {
            let files = shared_dir::files_of(&self.shared.options.state_dir, member.mission, name);
            let named = |path: String| Output {
                name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
                kind: OutputKind::Path,
                value: format!("$OSTLER_MISSION_DIR/{path}"),
            };
            outputs.extend(files.into_iter().map(named));
        }
        if let (Some(branch), Some(_)) = (&view.branch, &view.worktree) {
            if let Err(refusal) = self.see_last_turn(view).await {
                tracing::warn!(session = %view.id, %refusal, "what its last turn left is not known");
            }
            let commits = self.made(view).await.commits;
            // Where they are is where its tree is now: it may have left its branch.
            let on = match self.shared.store.seen_work(view.id).await {
                Ok(seen) if seen.head.is_some() => seen.branch.unwrap_or_else(|| "no branch".to_owned()),
                _ => branch.clone(),
            };
            let named = |value| Output { name: on.clone(), kind: OutputKind::Commit, value };
            outputs.extend(commits.into_iter().map(named));
        }
        outputs
    }

    /// What a session's agent said to its task.
    async fn answer_to_task(&self, session: SessionId, asides: &BTreeSet<u32>) -> Result<String, Refusal> {
        let kinds = vec![Kind::TurnStarted, Kind::AgentCompletion];
        let filter = EventFilter { session: Some(session), kinds, ..EventFilter::default() };
        let (mut answer, mut before) = (TaskAnswer::new(asides), None);
        loop {
            let listed = self.shared.store.events_before(before, &filter, ANSWERS).await?;
            let is_found = listed.rows.into_iter().any(|recorded| answer.take(recorded.event));
            match listed.next_cursor.filter(|_| !is_found) {
                Some(next) => before = Some(next),
                None => return Ok(answer.text()),
            }
        }
    }

    /// What an attempt has used: its last session, and those of all that the assignment had which worked on it before.
    pub(super) async fn spent_on_attempt(&self, view: &View, all: &[SessionId]) -> Result<Spent, Refusal> {
        let prices = self.shared.prices.current();
        let of = |view: &View| {
            let (cost, unknown) = view.cost.settled(&prices);
            Spent { usage: view.usage, cost, unpriced: unknown.is_some() }
        };
        let mut spent = of(view);
        for session in all.iter().rev().filter(|session| **session != view.id) {
            match self.shared.store.session(*session).await? {
                Some(before) if before.mission == view.mission => spent += of(&before),
                _ => break,
            }
        }
        Ok(spent)
    }

    /// How an ended session of a member stands to its assignment, which is called so and had all these sessions. Its turns
    /// among `asides` answer nothing of the task.
    pub(super) async fn session_end(
        &self,
        view: &View,
        name: &Name,
        asides: &BTreeSet<u32>,
        all: &[SessionId],
    ) -> Result<SessionEnd, Refusal> {
        let outcome = view.outcome.unwrap_or(Outcome::Lost);
        let of = |kinds: &[Kind]| EventFilter {
            session: Some(view.id),
            kinds: kinds.to_vec(),
            ..EventFilter::default()
        };
        let store = &self.shared.store;
        let text = self.answer_to_task(view.id, asides).await?;
        let obituary = view.obituary.as_ref();
        // A person may have said it in the place of its agent.
        let said_done = obituary.is_some_and(|obituary| obituary.rule == Some(StopRule::Done))
            || !store.events_before(None, &of(&[Kind::DoneReported]), 1).await?.rows.is_empty();
        let mut outputs = Vec::new();
        for recorded in store.events_before(None, &of(&[Kind::OutputAdded]), OUTPUTS).await?.rows {
            if let Event::OutputAdded(added) = recorded.event {
                outputs.push(Output { name: added.name, kind: added.kind, value: added.value });
            }
        }
        outputs.reverse();
        outputs.extend(self.handed_on(view, name).await);
        let spent = self.spent_on_attempt(view, all).await?;
        Ok(SessionEnd {
            outcome,
            why: obituary.map(|obituary| obituary.sentence.clone()).unwrap_or_default(),
            said_done,
            // Whoever refused its key refuses the next one's as well.
            is_final: obituary.is_some_and(|obituary| !obituary.cures.is_empty()),
            product: Product { text, outputs },
            spent,
        })
    }
}

fn own_tree(wanted: &Worktree) -> Option<Wanted> {
    match wanted {
        Worktree::None => None,
        Worktree::Own => Some(Wanted { branch: None }),
        Worktree::Branch(branch) => Some(Wanted { branch: Some(branch.clone()) }),
    }
}

/// `checkout-v2-plan`: told apart from those of other missions, as far as a name has room.
fn member_name(mission: &Name, assignment: &Name) -> Name {
    let whole = format!("{mission}-{assignment}");
    if whole.len() <= NAME_BYTES {
        whole.parse().unwrap_or_else(|_| assignment.clone())
    } else {
        assignment.clone()
    }
}
