//! Agents that ask for leave: who answers, and until when.

use std::{collections::BTreeMap, time::Duration};

use super::Draft;
use crate::{
    ApprovalId, Message, MessageId, Mode, Reason, Refusal,
    approval::{Applied, Judgement, NO_RULES, Place, Verdict, judge, must_ask},
    event::{Action, Answer, ApprovalAnswered, ApprovalRequested, AskKind, By, Event, MessageAccepted},
    redact::redacted,
    session::{AgentRequest, Approve, Desired, Effect, Report, Sandbox, input},
    time::Deadline,
};

/// What the rules say of a request for leave; none where they are not asked.
pub(super) fn judged(draft: &Draft<'_>, report: &Report) -> Option<Judgement> {
    let Report::ApprovalAsked { tool, action, kind: AskKind::Leave, .. } = report else { return None };
    let created = draft.state.created();
    if !matches!(created.config.approve, Approve::Policy | Approve::Nobody) {
        return None;
    }
    let place = place(draft);
    let unread = || Judgement {
        verdict: Verdict::Ask,
        rules: Vec::new(),
        why: "the campaign's rules could not be read".to_owned(),
    };
    let judgement =
        draft.context.policy.as_ref().map_or_else(unread, |policy| judge(policy, &place, tool, action));
    Some(Judgement { why: redacted(judgement.why), ..judgement })
}

fn place<'a>(draft: &'a Draft<'_>) -> Place<'a> {
    let created = draft.state.created();
    Place { root: &created.config.working_dir, is_confined: created.sandbox == Sandbox::On }
}

/// Says whether an agent must ask for leave that might go on without. Nothing is recorded: if it must, its request
/// follows, and is what rules and people answer.
pub(super) fn announced(draft: &mut Draft<'_>, ask: String, tool: &str, action: &Action) {
    let rules_want_it = || {
        let policy = draft.context.policy.as_ref();
        policy.is_none_or(|policy| must_ask(policy, &place(draft), tool, action))
    };
    let must_ask = match draft.state.created().config.approve {
        Approve::Ask => true,
        Approve::Policy | Approve::Nobody => rules_want_it(),
        Approve::All => false,
    };
    draft.effect(Effect::Tell(AgentRequest::Proceed { ask, must_ask }));
}

/// Takes in a request, and answers it where nobody needs to be waited for.
pub(super) fn asked(draft: &mut Draft<'_>, mut asked: ApprovalRequested, judgement: Option<Judgement>) {
    let answered = |allow: bool, message: String, rules: Vec<Applied>| Some((allow, message, rules));
    let approve = draft.state.created().config.approve;
    let answer = match (approve, judgement) {
        _ if draft.state.created().config.no_tools => {
            answered(false, "this session has no tools: it is only to answer".to_owned(), Vec::new())
        }
        // Nobody but a person has an answer to a question.
        (Approve::All, _) if asked.kind == AskKind::Leave => answered(true, String::new(), Vec::new()),
        (_, Some(Judgement { verdict: Verdict::Allow, rules, .. })) => answered(true, String::new(), rules),
        (_, Some(Judgement { verdict: Verdict::Deny, rules, why })) => {
            answered(false, format!("this is denied here, by {why}"), rules)
        }
        (Approve::Nobody, Some(Judgement { why, .. })) => {
            asked.why.clone_from(&why);
            let message = format!("nobody is there to answer, so this was denied ({why})");
            answered(false, message, Vec::new())
        }
        (Approve::Nobody, None) => {
            answered(false, "nobody is there to answer, so this was denied".to_owned(), Vec::new())
        }
        (_, Some(Judgement { why, .. })) => {
            asked.why = why;
            None
        }
        (_, None) => {
            if approve == Approve::Ask && asked.kind == AskKind::Leave {
                asked.why = NO_RULES.to_owned();
            }
            None
        }
    };
    if answer.is_none() && draft.state.desired() != Desired::Pause {
        asked.deadline = Some(Deadline::after(&draft.context.now, limit(draft)));
    }
    let (id, ask) = (asked.id, asked.ask.clone());
    draft.record(Event::ApprovalRequested(Box::new(asked)));
    if let Some((allow, message, rules)) = answer {
        record(draft, id, ask, allow, By::ostler(), message, rules);
    }
}

/// A person's answer.
pub(super) fn answer(
    draft: &mut Draft<'_>,
    id: ApprovalId,
    allow: bool,
    message: String,
    hears_why: bool,
    by: By,
) -> Result<(), Refusal> {
    let Some(open) = draft.state.approvals().iter().find(|open| open.id == id) else {
        return Err(Refusal::new(
            Reason::ApprovalAnswered,
            format!("approval {} no longer waits for an answer", id.short()),
        )
        .hint(format!("ostler show {}", id.short()), "says how it was answered"));
    };
    if allow && open.kind == AskKind::Question && message.trim().is_empty() {
        return Err(Refusal::invalid("a question wants an answer in words")
            .because(open.words())
            .hint(format!("ostler allow {} -m \"…\"", id.short()), "answers it")
            .hint(format!("ostler deny {}", id.short()), "gives none"));
    }
    let (ask, asked) = (open.ask.clone(), open.words());
    let unheard = (!allow && !hears_why && !message.trim().is_empty()).then(|| told_why(&asked, &message));
    record(draft, id, ask, allow, by.clone(), message, Vec::new());
    if let Some(text) = unheard {
        let id = MessageId::new(draft.context.now.wall, draft.context.entropy);
        let message = Message { id, text, mode: Mode::Followup };
        let conversation = draft.state.created().conversation;
        draft.record(Event::MessageAccepted(MessageAccepted::new(message, conversation, by)));
    }
    draft.deliver();
    Ok(())
}

/// What an agent reads whose protocol has no room for it.
fn told_why(asked: &str, why: &str) -> String {
    format!("What you asked leave for was denied ({asked}). The reason: {why}")
}

fn record(
    draft: &mut Draft<'_>,
    id: ApprovalId,
    ask: String,
    allow: bool,
    by: By,
    message: String,
    rules: Vec<Applied>,
) {
    let answer = input::answer(allow);
    let rules = rules.into_iter().map(|rule| Applied { text: redacted(rule.text), ..rule }).collect();
    draft.record(Event::ApprovalAnswered(ApprovalAnswered {
        id,
        answer,
        by,
        message: message.clone(),
        rules,
    }));
    draft.effect(Effect::Tell(AgentRequest::Answer { ask, allow, message }));
}

/// Nobody answered, and nobody is waited for any more: the agent has gone on, or is gone.
pub(super) fn expire(draft: &mut Draft<'_>, open: Vec<ApprovalId>) {
    for id in open {
        draft.record(Event::ApprovalAnswered(ApprovalAnswered {
            id,
            answer: Answer::Expired,
            by: By::ostler(),
            message: String::new(),
            rules: Vec::new(),
        }));
    }
}

/// Denies what has waited too long.
pub(super) fn time_out(draft: &mut Draft<'_>) {
    let now = &draft.context.now;
    let has_passed = |deadline: &Option<Deadline>| deadline.as_ref().is_some_and(|at| at.has_passed(now));
    let due: Vec<_> = draft
        .state
        .approvals()
        .iter()
        .filter(|open| has_passed(&open.deadline))
        .map(|open| (open.id, open.ask.clone()))
        .collect();
    let message = format!("nobody answered within {}, so this was denied", words(limit(draft)));
    for (id, ask) in due {
        record(draft, id, ask, false, By::ostler(), message.clone(), Vec::new());
    }
    draft.deliver();
}

/// What is left to open requests when a session is paused.
pub(super) fn time_left(draft: &Draft<'_>) -> BTreeMap<ApprovalId, u64> {
    let left = |deadline: &Deadline| {
        u64::try_from(deadline.remaining(&draft.context.now).as_micros()).unwrap_or(u64::MAX)
    };
    let open = draft.state.approvals().iter();
    open.filter_map(|open| Some((open.id, left(open.deadline.as_ref()?)))).collect()
}

/// Until when they wait when it goes on.
pub(super) fn deadlines(draft: &Draft<'_>) -> BTreeMap<ApprovalId, Deadline> {
    let after = |left: Option<u64>| {
        Deadline::after(&draft.context.now, left.map_or_else(|| limit(draft), Duration::from_micros))
    };
    draft.state.approvals().iter().map(|open| (open.id, after(open.left_us))).collect()
}

fn limit(draft: &Draft<'_>) -> Duration {
    Duration::from_micros(draft.state.created().config.approval_us)
}

/// A span in its largest whole unit.
fn words(span: Duration) -> String {
    match span.as_secs() {
        0 => format!("{} ms", span.as_millis()),
        seconds if seconds % 3_600 == 0 => format!("{} h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}
