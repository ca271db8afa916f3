//! Everything about one session, on one screen: what it is, why it ended, what it used, what to do next.

mod next;

use ostler_client::{Approval, Conversation, Session};
use ostler_domain::{
    Time,
    retention::{Stage, Standing},
    session::{Attention, Obituary, Restart},
    snapshot::Tree,
    text::one_line,
    usage_audit::{Agreement, Verdict},
};

pub(crate) use next::cure;

use super::{field, money, next_steps, retention, row, tree};
use crate::{
    output::{Line, Tone},
    words,
};

/// The command that would allow what was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) target: String,
    pub(crate) command: String,
}

impl Grant {
    /// So many are shown; `logs` has all that was denied.
    pub(crate) const SHOWN: usize = 3;
}

/// What is known beside the session itself.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) campaign: &'a str,
    /// Its place in its chain, and how many sessions that has, where that is known.
    pub(crate) place_in_chain: Option<(usize, usize)>,
    pub(crate) approvals: &'a [Approval],
    /// What its report and the wire say of its tokens, where that is known.
    pub(crate) counted: Option<&'a Agreement>,
    /// Its conversation, where that is known.
    pub(crate) conversation: Option<&'a Conversation>,
    pub(crate) home: Option<&'a str>,
    /// What it has made of its files, where that is known.
    pub(crate) work: Option<&'a Tree>,
    /// What was done to its record, where that is known.
    pub(crate) record: Option<&'a Standing>,
    /// What it was denied and could be allowed, the last first.
    pub(crate) grants: &'a [Grant],
}

impl<'a> Around<'a> {
    /// Where nothing is known but its campaign's name.
    pub(crate) fn of(campaign: &'a str) -> Self {
        Self {
            campaign,
            place_in_chain: None,
            approvals: &[],
            counted: None,
            conversation: None,
            home: None,
            work: None,
            record: None,
            grants: &[],
        }
    }
}

/// Most of an answer that the screen shows; `logs` has it whole.
const ANSWER: usize = 300;

pub(crate) fn lines(session: &Session, around: &Around<'_>, now: Time) -> Vec<Line> {
    let mut lines = facts(session, around, now);
    lines.extend(next_steps(&next::next(session, around)));
    lines
}

/// All but what to do next: not everybody who reads it may do it.
pub(crate) fn facts(session: &Session, around: &Around<'_>, now: Time) -> Vec<Line> {
    let mut lines = vec![title(session, around, now)];
    lines.extend(state(session, now));
    for approval in around.approvals {
        let asks = Line::of(one_line(&approval.asks, 200));
        lines.push(field("asks", asks.faint(format!("   apr {}", approval.id.short()))));
    }
    for grant in around.grants.iter().take(Grant::SHOWN) {
        let allow = Line::of(one_line(&grant.target, 80)).faint("   to allow it: ");
        lines.push(field("denied", allow.with(Tone::Accent, &grant.command)));
    }
    if let Some(last) = session.obituary.as_ref().and_then(|obituary| obituary.last.as_deref()) {
        lines.push(field("last", Line::of(last)));
    }
    if let Some(said) = session.last_completion.as_deref().filter(|said| !said.trim().is_empty()) {
        lines.push(field("said", Line::of(one_line(said, ANSWER))));
    }
    lines.push(field(
        "where",
        Line::of(words::path(&session.working_dir, around.home))
            .faint(" · sandbox ")
            .plain(session.sandbox.as_str())
            .append(branch(session)),
    ));
    lines.extend(around.work.and_then(|work| tree::work(session, work)).map(|work| field("work", work)));
    let is_news = |standing: &&Standing| standing.kept.stage() != Stage::Hot || standing.kept.held.is_some();
    if let Some(standing) = around.record.filter(is_news) {
        lines.push(field("record", retention::record(standing, now)));
    }
    lines.push(field("usage", usage(session, around)));
    lines.push(field("links", links(session, around)));
    lines
}

fn branch(session: &Session) -> Line {
    let branch = session.branch.as_deref();
    branch.map_or_else(Line::new, |branch| Line::new().faint(" · branch ").plain(one_line(branch, 80)))
}

fn title(session: &Session, around: &Around<'_>, now: Time) -> Line {
    let (tone, sign) = row::sign(session);
    let outcome = session.outcome.map(|outcome| format!(" {}", outcome.as_str())).unwrap_or_default();
    let model = row::model(session);
    let life = match session.ended_at {
        Some(ended) => format!(
            "ended {} ago after {}",
            words::age(now.since(ended)),
            words::span(ended.since(session.created_at))
        ),
        None => format!("for {}", words::span(now.since(session.created_at))),
    };
    Line::toned(tone, sign)
        .plain(" ")
        .strong(session.name.as_str())
        .plain("   ")
        .with(tone, format!("{}{outcome}", session.status.as_str()))
        .plain("   ")
        .append(Line::joined([
            Line::of(around.campaign),
            Line::of(format!("{}{model}", session.provider)),
            Line::of(session.id.to_string()),
            Line::of(life),
        ]))
}

fn state(session: &Session, now: Time) -> Vec<Line> {
    let Some(obituary) = &session.obituary else {
        let Some(attention @ Attention::TurnFailed) = session.attention else {
            return vec![field("now", row::now(session, now))];
        };
        let since = words::span(now.since(session.attention_since));
        let now = Line::of(format!("{} {since} ago", attention.as_str()));
        return vec![field("now", now), field("why", Line::of(&session.evidence))];
    };
    let mut lines = vec![field("why", Line::of(&obituary.sentence))];
    let facts = Line::joined([
        Line::of(obituary.exit_code.map(|code| format!("exit code {code}")).unwrap_or_default()),
        Line::of(obituary.signal.map(|signal| format!("signal {signal}")).unwrap_or_default()),
        Line::of(asked_by(obituary)),
        Line::of(memory(obituary)),
        Line::of(match obituary.leftovers.as_slice() {
            [] => String::new(),
            left => {
                let names: Vec<_> =
                    left.iter().map(|process| format!("{} ({})", process.name, process.pid)).collect();
                format!("outlived it and were ended: {}", names.join(", "))
            }
        }),
    ]);
    if !facts.is_empty() {
        lines.push(field("", facts));
    }
    match &session.restart {
        _ if session.continued_by.is_some() => {
            let next = session.continued_by.map(|next| next.short()).unwrap_or_default();
            lines.push(field("then", Line::of(format!("session {next} goes on with it"))));
        }
        _ if let Some(refused) = &session.restart_refused => {
            let since = words::span(now.since(refused.since));
            let why = format!("cannot go on: {}", one_line(&refused.why, 300));
            lines.push(field("then", Line::toned(Tone::Warn, why)));
            lines.push(field("", Line::new().faint(format!("for {since}; tried again by itself"))));
        }
        Some(Restart::At(deadline)) => {
            let wait = deadline.wall().since(now);
            let when = if wait.is_zero() {
                "a new session is about to go on with it".to_owned()
            } else {
                format!("a new session starts in {}", words::span(wait))
            };
            lines.push(field("then", Line::of(when)));
        }
        Some(Restart::Quarantined { short_lives }) => lines.push(field(
            "then",
            Line::toned(
                Tone::Warn,
                format!("quarantined: {short_lives} short lives in a row; nothing starts until you say so"),
            ),
        )),
        None => {}
    }
    lines
}

/// What is known of the memory of one that was ended for it.
fn memory(obituary: &Obituary) -> String {
    let Some(memory) = &obituary.memory else {
        return if obituary.oom { "it had more memory than it may".to_owned() } else { String::new() };
    };
    let kills = match memory.oom_kills {
        0 => String::new(),
        kills => format!("memory events: oom_kill {kills}"),
    };
    let largest = memory.largest.as_ref().map(|largest| {
        format!("largest process: {} {}", one_line(&largest.name, 40), words::bytes(largest.bytes))
    });
    [kills, largest.unwrap_or_default()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Who asked for the end, where the sentence does not say it.
fn asked_by(obituary: &Obituary) -> String {
    let by = obituary.by.as_deref().map(|by| format!("asked by {by}"));
    by.filter(|_| !obituary.sentence.contains("asked by ")).unwrap_or_default()
}

fn usage(session: &Session, around: &Around<'_>) -> Line {
    let usage = &session.usage;
    let bucket = |name: &str, n: u64| {
        Line::of(format!("{name} {}", if n == 0 { "–".to_owned() } else { words::count(n) }))
    };
    let budget = match &session.budget {
        Some(budget) => {
            let tokens = budget
                .tokens
                .map(|most| format!("{} of {} tokens", words::count(usage.budgeted()), words::count(most)));
            let dollars = budget.dollars.map(|most| format!("{} of {most}", session.cost.paid));
            let parts: Vec<String> = dollars.into_iter().chain(tokens).collect();
            if parts.is_empty() { String::new() } else { format!("budget {}", parts.join(", ")) }
        }
        None => String::new(),
    };
    Line::joined([
        bucket("input", usage.input),
        bucket("cache read", usage.cache_read),
        bucket("cache write", usage.cache_write),
        bucket("output", usage.output),
        bucket("reasoning", usage.reasoning),
        Line::of(money::long(&session.cost)),
        Line::of(around.counted.map(|counted| counted_words(session, counted)).unwrap_or_default()),
        Line::of(budget),
        Line::of(
            session
                .context
                .map(|context| format!("context {}", words::context(&context)))
                .unwrap_or_default(),
        ),
    ])
}

/// Where the tokens come from, and whether both say the same.
fn counted_words(session: &Session, counted: &Agreement) -> String {
    match counted.verdict {
        Verdict::Agree => "wire and report agree".to_owned(),
        Verdict::ReportOnly => "from its report, not seen on the wire".to_owned(),
        Verdict::WireOnly => "from the wire, not reported".to_owned(),
        Verdict::Cut => {
            let cut = words::plural(counted.cut_calls, "cut answer", "cut answers");
            format!("{cut} counted from the agent's report")
        }
        Verdict::CutUnknown => {
            let cut = words::plural(counted.cut_calls, "cut answer", "cut answers");
            format!(
                "wire and report agree, what {cut} took is unknown: ostler usage audit {}",
                session.id.short()
            )
        }
        Verdict::WireMore | Verdict::ReportMore | Verdict::Differ => {
            let (wire, report) = (words::count(counted.wire), words::count(counted.report));
            format!("wire {wire}, report {report}: ostler usage audit {}", session.id.short())
        }
    }
}

fn links(session: &Session, around: &Around<'_>) -> Line {
    let chain = around.place_in_chain.map(|(place, length)| format!("chain {place} of {length}"));
    let waiting = match session.messages_waiting {
        0 => String::new(),
        n => words::plural(u64::from(n), "message waits", "messages wait"),
    };
    let denied = if session.denied == 0 { String::new() } else { format!("{} denied", session.denied) };
    let redacted = match session.redacted {
        0 => String::new(),
        n => format!("{} redacted", words::plural(u64::from(n), "secret", "secrets")),
    };
    Line::joined([
        Line::of(conversation(session, around)),
        Line::of(chain.unwrap_or_default()),
        Line::of(session.ticket.as_deref().map(|ticket| format!("ticket {ticket}")).unwrap_or_default()),
        Line::of(session.mission.map(|of| format!("mission {}", of.mission.short())).unwrap_or_default()),
        Line::of(format!("restarts {}, policy {}", session.restart_count, session.restart_policy.as_str())),
        Line::of(words::plural(u64::from(session.turns), "turn", "turns")),
        Line::of(waiting),
        Line::of(denied),
        Line::of(redacted),
        Line::of(session.provider_id.as_deref().map(|id| format!("provider id {id}")).unwrap_or_default()),
        Line::of(session.process.as_ref().map(|process| format!("pid {}", process.pid)).unwrap_or_default()),
    ])
}

/// `conversation main (open)`; one that nobody gave a key, by its id.
fn conversation(session: &Session, around: &Around<'_>) -> String {
    let short = session.conversation.short();
    let Some(known) = around.conversation else { return format!("conversation {short}") };
    let state = known.closed.map_or("open", |closed| closed.why.as_str());
    let is_named = !known.key.as_str().starts_with("adhoc:");
    let key = if is_named { known.key.as_str() } else { &short };
    format!("conversation {} ({state})", one_line(key, 80))
}

#[cfg(test)]
mod tests;
