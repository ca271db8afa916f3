//! Starting a provider in a campaign's sandbox to see whether it works, and ending it again.

use std::time::{Duration, Instant};

use ostler_client::{AnswerApproval, Client, CreateSession, ListEvents, Place, Received, query::EventFilter};
use ostler_domain::{
    Budget, Recorded, SessionId,
    budget::WhenUsedUp,
    limits::PAGE_MOST,
    provider::trial::{Asked, is_what_was_asked, prompt},
    query::TRIAL_TICKET,
    session::{Approve, Attention, Phase, View},
};

use crate::failure::Failure;

/// How long a program may take to say that it is ready: large ones start slowly on a busy machine.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long it may take for its one answer then.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// How long it is waited for when it was told to end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// What that answer may take: three calls with all that an agent tells its model beside the question.
const TOKENS: u64 = 300_000;
/// How often the session is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// What came of a trial.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) session: SessionId,
    pub(crate) ready: Option<Duration>,
    /// What came of the question, where one was asked.
    pub(crate) asked: Option<Asked>,
    /// What went wrong.
    pub(crate) problem: Option<String>,
    /// It was never its turn to start.
    pub(crate) waits: bool,
}

impl Tried {
    pub(crate) fn is_ok(&self) -> bool {
        self.problem.is_none() && self.asked.as_ref().is_none_or(Asked::is_ok)
    }
}

/// Starts it, waits until it is ready, asks it one small thing if it is to be asked, and ends it.
pub(crate) async fn run(
    client: &Client,
    provider: &str,
    campaign: &str,
    asks: bool,
    ready_within: Duration,
) -> Result<Tried, Failure> {
    let began = Instant::now();
    let mut wanted =
        CreateSession { ticket: Some(TRIAL_TICKET.to_owned()), ..CreateSession::new(campaign, provider) };
    if asks {
        wanted.initial_message = Some(prompt(provider));
        wanted.approve = Approve::Ask;
        wanted.timeout = Some(ready_within + ANSWERS_WITHIN);
        wanted.budget = Some(Budget { tokens: Some(TOKENS), dollars: None, when_used_up: WhenUsedUp::Stop });
    }
    let mut view = client.create_session(wanted).await?;
    let id = view.id.to_string();
    while !has_started(&view) && began.elapsed() < ready_within {
        tokio::time::sleep(LOOK).await;
        view = client.session(&id).await?;
    }
    let ready = view.started_at.map(|at| at.since(view.created_at));
    if asks && ready.is_some() {
        view = answered(client, view).await?;
    }
    if view.outcome.is_none() {
        client.stop_session(&id, ready.is_none()).await?;
    }
    let asked = match asks {
        true => {
            ended(client, &id).await?;
            Some(Asked::of(&events(client, view.id).await?))
        }
        false => None,
    };
    let problem = problem(&view, ready, asked.as_ref());
    let waits = ready.is_none() && view.phase == Phase::Created;
    Ok(Tried { session: view.id, ready, asked, problem, waits })
}

fn has_started(view: &View) -> bool {
    view.phase == Phase::Live || view.outcome.is_some()
}

/// Waits for the answer, and gives leave for what was asked for and nothing else.
async fn answered(client: &Client, mut view: View) -> Result<View, Failure> {
    let began = Instant::now();
    let id = view.id.to_string();
    while !is_over(&view) && began.elapsed() < ANSWERS_WITHIN {
        for approval in &view.approvals_open {
            let question = client.approval(&approval.to_string()).await?;
            let allow = is_what_was_asked(&question.asks);
            let message = if allow { "" } else { "this is a trial: nothing else is allowed" }.to_owned();
            let approval = approval.to_string();
            client.answer_approval(AnswerApproval { approval, allow, message, always: false }).await?;
        }
        tokio::time::sleep(LOOK).await;
        view = client.session(&id).await?;
    }
    Ok(view)
}

/// Waits for the end: what the gateway saw of the last call may be told after the turn.
async fn ended(client: &Client, id: &str) -> Result<(), Failure> {
    let began = Instant::now();
    while client.session(id).await?.outcome.is_none() && began.elapsed() < ENDS_WITHIN {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn is_over(view: &View) -> bool {
    let rests = matches!(
        view.attention,
        Some(Attention::Idle | Attention::TurnFailed | Attention::BudgetHold | Attention::Paused)
    );
    view.outcome.is_some() || (view.turns > 0 && rests)
}

fn problem(view: &View, ready: Option<Duration>, asked: Option<&Asked>) -> Option<String> {
    match (ready, asked, view.outcome) {
        (Some(_), None, _) => None,
        (Some(_), Some(asked), _) if asked.answered_ms.is_some() => None,
        (_, _, Some(_)) => Some(view.evidence.clone()),
        (None, ..) if view.phase == Phase::Created => Some(view.evidence.clone()),
        (None, ..) => Some("it was not ready in time".to_owned()),
        (Some(_), ..) if is_over(view) => Some(view.evidence.clone()),
        (Some(_), ..) => Some(format!("it did not answer within {} s", ANSWERS_WITHIN.as_secs())),
    }
}

async fn events(client: &Client, session: SessionId) -> Result<Vec<Recorded>, Failure> {
    let filter = EventFilter { session: Some(session), ..EventFilter::default() };
    let question = ListEvents { filter, from: Place::After(0), limit: PAGE_MOST };
    let page = client.events(&question).await?;
    let known = page.events.into_iter().filter_map(|received| match received {
        Received::Known(recorded) => Some(*recorded),
        Received::Unknown(_) => None,
    });
    Ok(known.collect())
}
