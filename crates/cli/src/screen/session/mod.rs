//! Everything about one session, on one screen: what it is, why it ended, what it used, what to do next.

use ostler_client::{Approval, Conversation, Session};
use ostler_domain::{
    Time,
    event::AskKind,
    retention::{Stage, Standing},
    session::{Attention, Obituary, Outcome, Restart, Status},
    snapshot::Tree,
    text::one_line,
    usage_audit::{Agreement, Verdict},
};
use ostler_form::held::asked_by_mission;

use super::{field, full_context, hold, money, next_steps, retention, row, tree};
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
    /// Its place in its chain, and how many sessions that has.
    pub(crate) place_in_chain: (usize, usize),
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
            place_in_chain: (1, 1),
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
    lines.extend(next_steps(&next(session, around)));
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
    let (place, length) = around.place_in_chain;
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
        Line::of(format!("chain {place} of {length}")),
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

/// What lets one go on that needs a person.
pub(crate) fn cure(session: &Session, campaign: &str) -> String {
    let id = session.id.short();
    match (session.attention, &session.imported) {
        // What runs outside is answered where it runs.
        (_, Some(_)) => format!("ostler show {id}"),
        (Some(Attention::WaitingInput), None) => format!("ostler send {id} \"…\""),
        _ => {
            let steps = next(session, &Around::of(campaign));
            steps.into_iter().next().map_or_else(|| format!("ostler show {id}"), |(command, _)| command)
        }
    }
}

fn next<'a>(session: &'a Session, around: &Around<'_>) -> Vec<(String, &'a str)> {
    let id = session.id.short();
    let cures = session.obituary.iter().flat_map(|obituary| &obituary.cures);
    let mut steps: Vec<(String, &str)> =
        cures.map(|cure| (cure.command.clone(), cure.effect.as_str())).collect();
    if let Some(approval) = around.approvals.first() {
        let short = approval.id.short();
        if approval.kind == AskKind::Question {
            steps.push((format!("ostler send {id} \"…\""), "answers it"));
            steps.push((format!("ostler deny {short}"), "gives no answer"));
        } else {
            steps.push((format!("ostler allow {short}"), "lets the agent"));
            steps.push((format!("ostler deny {short} -m \"…\""), "does not, and says why"));
        }
    }
    if let Some(cures) = full_context::steps(session) {
        steps.extend(cures);
        steps.push((format!("ostler logs {id} --tail 50"), "what happened before"));
        return steps;
    }
    if let Some(refused) = &session.restart_refused {
        steps.extend(refused.cures.iter().map(|cure| (cure.command.clone(), cure.effect.as_str())));
        let resume = format!("ostler resume {id}");
        if steps.iter().all(|(command, _)| *command != resume) {
            steps.push((resume, "tries it now"));
        }
        steps.push((format!("ostler logs {id} --tail 50"), ""));
        return steps;
    }
    if let Some(next) = session.continued_by {
        steps.push((format!("ostler show {}", next.short()), "the session that goes on with it"));
        steps.push((format!("ostler logs {id} --tail 50"), ""));
        return steps;
    }
    match (session.status, session.attention) {
        (Status::Failed, _) => {
            steps.push((format!("ostler resume {id}"), "goes on in a new session of the same conversation"));
            steps.push((format!("ostler logs {id} --tail 50"), ""));
        }
        (Status::Stopped, _) if session.outcome == Some(Outcome::Budget) => {
            match session.budget {
                Some(budget) => {
                    let larger = hold::larger_budget(session).unwrap_or(budget.amount());
                    steps.push((
                        format!("ostler resume {id} --budget {larger}"),
                        "allows that much in all, and goes on in a new session",
                    ));
                }
                None => steps.push((
                    row::shared_budget_cure(session, around.campaign),
                    "allows more, as in 50usd/day; then resume it",
                )),
            }
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (Status::Stopped, _) if session.outcome == Some(Outcome::Handoff) => {
            steps.push((format!("ostler chain show {id}"), "who goes on with its work"));
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (Status::Stopped, _) => {
            let tell = "goes on in a new session of the same conversation";
            // What ran outside is only read until somebody goes on with it here.
            steps.push(match session.imported {
                Some(_) => (format!("ostler resume {id}"), tell),
                None => (format!("ostler send {id} \"…\""), tell),
            });
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (_, Some(Attention::BudgetHold | Attention::Stalled)) if asked_by_mission(session).is_some() => {
            steps.extend(asked_by_mission(session).map(|(command, _)| (command.to_owned(), "lets it go on")));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::BudgetHold)) => {
            let amount = session.budget.map(|budget| budget.amount()).unwrap_or_default();
            match session.cost.unpriced.keys().find(|model| !model.is_empty()) {
                _ if !hold::is_own(session) => steps.push((
                    row::shared_budget_cure(session, around.campaign),
                    "allows more, as in 50usd/day; its sessions go on",
                )),
                Some(model) if amount.dollars.is_some() => steps.push((
                    format!("ostler price set {model} input=DOLLARS output=DOLLARS && ostler resume {id}"),
                    "says what a million of its tokens cost, and goes on",
                )),
                _ => steps.push((row::raise(session), "allows that much in all, and goes on")),
            }
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::Paused)) => {
            steps.push((format!("ostler resume {id}"), "lets it go on"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::Stalled)) => {
            steps.push((format!("ostler interrupt {id}"), "ends the turn, not the session"));
            steps.push((format!("ostler restart {id}"), "replaces the process"));
        }
        (_, Some(Attention::TurnFailed)) => {
            steps
                .push((format!("ostler resume {id}"), "tries again: the agent is told that its turn failed"));
            steps.push((format!("ostler send {id} \"…\""), "says something else to it"));
            steps.push((format!("ostler logs {id} --tail 50"), "what happened before"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        _ => {
            steps.push((format!("ostler logs -f {id}"), "follows what it does"));
            steps.push((format!("ostler attach {id}"), "follows, answers and talks to it"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{
        history::{Origin, Source},
        session::{LargestProcess, OutOfMemory},
    };

    use super::*;
    use crate::{
        output::Look,
        testing::{self, NOW},
    };

    fn shown(session: &Session, approvals: &[Approval]) -> String {
        let around = Around { approvals, home: Some("/home/ann"), ..Around::of("shop") };
        let look = Look::plain(None);
        lines(session, &around, NOW).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_was_imported_is_gone_on_with_and_not_spoken_to() {
        let mut session = testing::fleet().remove(6);
        session.status = Status::Stopped;
        session.outcome = Some(Outcome::Done);
        session.imported = Some(Origin {
            source: Source::Claude,
            dialogue: "d1".to_owned(),
            file: "/x/d1.jsonl".to_owned(),
            from: 0,
        });
        let text = shown(&session, &[]);
        assert!(text.contains("ostler resume") && !text.contains("ostler send"), "{text}");
    }

    #[test]
    fn a_held_session_without_a_budget_of_its_own_is_told_where_an_amount_belongs() {
        let mut session = testing::fleet().remove(2);
        session.attention = Some(Attention::BudgetHold);
        session.budget = None;
        let text = shown(&session, &[]);
        assert!(text.contains("--budget AMOUNT"), "{text}");
    }

    #[test]
    fn whom_a_mission_keeps_frozen_is_let_go_on_by_the_mission() {
        let mut session = testing::fleet().remove(2);
        session.attention = Some(Attention::Stalled);
        session.evidence = "ostler mission resume site: docs does not get on".to_owned();
        assert_eq!(cure(&session, "shop"), "ostler mission resume site");
    }

    #[test]
    fn whoever_handed_its_work_on_is_not_offered_to_be_spoken_to() {
        let mut session = testing::fleet().remove(6);
        session.status = Status::Stopped;
        session.outcome = Some(Outcome::Handoff);
        let text = shown(&session, &[]);
        assert!(text.contains("ostler chain show") && !text.contains("ostler send"), "{text}");
    }

    #[test]
    fn in_all_looks() {
        let mut session = testing::fleet().remove(6);
        session.obituary.as_mut().unwrap().last = Some("run: cargo build --workspace -j 8".to_owned());
        let around = Around {
            campaign: "shop",
            place_in_chain: (1, 2),
            approvals: &[],
            counted: None,
            conversation: None,
            home: Some("/home/ann"),
            work: None,
            record: None,
            grants: &[Grant {
                target: "run: git push".into(),
                command: "ostler campaign set shop 'approve.rule+=allow run git push'".into(),
            }],
        };
        assert_snapshot!(testing::in_all_looks(|look| {
            testing::folded(&lines(&session, &around, NOW), look)
        }));
    }

    #[test]
    fn one_that_failed() {
        let mut session = testing::fleet().remove(6);
        let obituary = session.obituary.as_mut().unwrap();
        obituary.signal = Some(9);
        obituary.memory = Some(OutOfMemory {
            limit_bytes: Some(4 << 30),
            used_bytes: Some(4 << 30),
            largest: Some(LargestProcess { name: "rustc".to_owned(), bytes: (2 << 30) + (900 << 20) }),
            oom_kills: 1,
        });
        obituary.last = Some("run: cargo build --workspace -j 8".to_owned());
        session.restart = Some(Restart::Quarantined { short_lives: 5 });
        assert_snapshot!(shown(&session, &[]));
    }

    #[test]
    fn one_that_cannot_go_on_by_itself_says_what_is_in_the_way_until_another_does() {
        let refused = testing::refused(testing::fleet().remove(6));
        let text = shown(&refused, &[]);
        let next = text.split_once("next ").unwrap().1;
        assert!(text.contains("cannot go on: /srv/shop does not exist"), "{text}");
        assert!(next.trim_start().starts_with("ostler campaign relink shop DIR"), "{text}");
        let other = testing::fleet().remove(1).id;
        let text = shown(&Session { continued_by: Some(other), restart_refused: None, ..refused }, &[]);
        assert!(text.contains(&format!("session {} goes on with it", other.short())), "{text}");
        assert!(!text.contains("ostler resume"), "{text}");
    }

    #[test]
    fn one_that_could_not_start_says_what_would_let_it() {
        let mut session = testing::fleet().remove(6);
        let obituary = session.obituary.as_mut().unwrap();
        obituary.sentence = "The agent could not be started (provider): no key.".to_owned();
        obituary.cures = vec![ostler_domain::Hint {
            command: "export KEY=…".to_owned(),
            effect: "brings it".to_owned(),
        }];
        let shown = shown(&session, &[]);
        let next = shown.split_once("next ").unwrap().1;
        assert!(next.trim_start().starts_with("export KEY=…"), "{shown}");
        assert!(!shown.contains("try:"), "{shown}");
    }

    #[test]
    fn one_that_asks() {
        let session = testing::fleet().remove(0);
        let approval = Approval {
            id: session.approvals_open[0],
            session: session.id,
            tool: "run".to_owned(),
            input: "cargo add governor".to_owned(),
            asks: "run: cargo add governor".to_owned(),
            kind: ostler_domain::event::AskKind::Leave,
            why: "no rule allows cargo add governor".to_owned(),
            asked: testing::ago(180),
            deadline: None,
            answer: None,
        };
        assert_snapshot!(shown(&session, &[approval]));
    }

    #[test]
    fn one_whose_turn_failed() {
        let mut session = testing::fleet().remove(2);
        session.attention = Some(Attention::TurnFailed);
        session.evidence = "503: no model is loaded".to_owned();
        assert_snapshot!(shown(&session, &[]));
    }

    #[test]
    fn one_whose_conversation_no_longer_fits() {
        let mut session = testing::fleet().remove(2);
        session.attention = Some(Attention::TurnFailed);
        session.evidence = format!("{}: prompt is too long", ostler_domain::event::CONTEXT_FULL);
        let shown = shown(&session, &[]);
        assert!(shown.contains("ostler handoff") && shown.contains("ostler conversation reset"), "{shown}");
        assert!(!shown.contains("ostler resume"), "it would only fail again: {shown}");
    }

    #[test]
    fn one_that_works_and_one_that_is_done() {
        let mut fleet = testing::fleet();
        fleet[7].last_completion = Some("Login attempts are limited;\ntwo tests added.".to_owned());
        assert_snapshot!(format!("{}\n\n{}", shown(&fleet[1], &[]), shown(&fleet[7], &[])));
    }
}
