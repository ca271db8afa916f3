//! Questions of agents: one, and all that wait.

use ostler_client::{AnswerGiven, Approval, Session};
use ostler_domain::{
    ApprovalId, SessionId, Time,
    approval::{Applied, NO_RULES, goes_by_rules},
    event::{Answer, ApprovalRequested, AskKind},
    session::Attention,
    text::{one_line, visible},
};

use super::{field, next_steps};
use crate::{Column, Line, Table, Tone, row, words};

/// How much of a question in words the list shows.
const QUESTION: usize = 60;

/// How much of why somebody cannot go on: `show` has it whole.
const HELD: usize = 80;

/// A question, and the name of the agent whose it is.
#[derive(Debug)]
pub struct Asked {
    pub approval: Approval,
    pub agent: String,
}

/// What agents want leave for, and what becomes of it.
pub fn table(asked: &[&Asked], now: Time) -> Table {
    let columns = [
        Column::new("ID"),
        Column::new("AGENT"),
        Column::new("ASKS").gives_way_to(30),
        Column::new("WHY IT ASKS").goes(1),
        Column::new("WAITS").right().goes(2),
        Column::new("ELSE"),
        Column::new("SESSION").extra(),
        Column::new("APPROVAL").extra(),
    ];
    let mut table = Table::new(columns);
    for Asked { approval, agent } in asked {
        let until = approval.answer.as_ref().map_or(now, |answered| answered.at);
        table.row(vec![
            Line::toned(Tone::Accent, approval.id.short()),
            Line::new().strong(agent.as_str()),
            Line::of(&approval.asks),
            Line::of(&approval.why),
            Line::of(words::age(until.since(approval.asked))),
            otherwise(approval, now),
            Line::of(approval.session.to_string()),
            Line::of(approval.id.to_string()),
        ]);
    }
    table
}

/// What becomes of it when nobody answers, or has become of it.
fn otherwise(approval: &Approval, now: Time) -> Line {
    match (&approval.answer, approval.deadline) {
        (Some(answered), _) => Line::of(format!("{} by {}", word(answered.answer), answered.by.0)),
        (None, Some(deadline)) => Line::of(format!("denied in {}", words::span(deadline.since(now)))),
        (None, None) => Line::new().faint("waits while paused"),
    }
}

/// Agents that want an answer in words.
pub fn also_waiting(questions: &[&Asked]) -> Vec<Line> {
    let line = |Asked { approval: question, agent }: &&Asked| {
        Line::of("also waiting: ")
            .strong(agent.as_str())
            .plain(format!(" asks \"{}\"", one_line(&question.input, QUESTION)))
            .faint(" (answer: ")
            .with(Tone::Accent, format!("ostler send {} \"…\"", question.session.short()))
            .faint(")")
    };
    questions.iter().map(line).collect()
}

/// An agent that needs a person and has asked for nothing: what is so, and what lets it go on.
pub fn held(session: &Session, cure: &str, now: Time) -> Line {
    Line::of("also waiting: ")
        .strong(session.name.as_str())
        .plain(" ")
        .append(row::now(session, now).cut(HELD))
        .faint(" (")
        .with(Tone::Accent, cure)
        .faint(")")
}

/// Whom whoever waits for a session waits for, too.
pub fn somebody_is_asked(session: &Session) -> Option<Line> {
    let id = session.approvals_open.first()?;
    let kind = match session.attention? {
        Attention::WaitingApproval => AskKind::Leave,
        Attention::WaitingInput => AskKind::Question,
        _ => return None,
    };
    Some(asked_meanwhile(&session.id, id, kind, &session.evidence))
}

/// The same, of a question that comes while somebody waits. None where a rule answers it.
pub fn somebody_is_asked_now(session: &SessionId, asked: &ApprovalRequested) -> Option<Line> {
    let words = match asked.kind {
        AskKind::Leave => asked.asks(),
        AskKind::Question => asked.input.clone(),
    };
    asked.waits().then(|| asked_meanwhile(session, &asked.id, asked.kind, &words))
}

fn asked_meanwhile(session: &SessionId, id: &ApprovalId, kind: AskKind, words: &str) -> Line {
    let short = id.short();
    let (what, commands) = match kind {
        AskKind::Leave => (
            format!("waits for approval {short}: {}", one_line(words, QUESTION)),
            vec![format!("ostler allow {short}"), format!("ostler deny {short} -m \"…\"")],
        ),
        AskKind::Question => (
            format!("waits for an answer ({short}): \"{}\"", one_line(words, QUESTION)),
            vec![format!("ostler allow {short} -m \"…\"")],
        ),
    };
    let said = Line::toned(Tone::Warn, format!("{} {what}", session.short()));
    let commands = commands.into_iter().map(|command| Line::toned(Tone::Accent, command));
    Line::joined(std::iter::once(said).chain(commands))
}

/// What to do about them.
pub fn next(approvals: &[&Approval]) -> Option<Line> {
    let (first, last) = (approvals.first()?.id.short(), approvals.last()?.id.short());
    let ruled = approvals.iter().find(|approval| goes_by_rules(&approval.why));
    let mut commands = vec![format!("ostler allow {first}")];
    commands.extend(ruled.map(|approval| format!("ostler allow --always {}", approval.id.short())));
    commands.extend([format!("ostler deny {last} -m \"…\""), "ostler approval -i".to_owned()]);
    Some(Line::joined(commands.into_iter().map(|command| Line::toned(Tone::Accent, command))))
}

pub fn nobody(working: u64) -> Line {
    let work = match working {
        0 => String::new(),
        1 => " 1 agent works.".to_owned(),
        n => format!(" {n} agents work."),
    };
    Line::of(format!("Nobody is waiting for you.{work}"))
}

pub fn lines(approval: &Approval, now: Time) -> Vec<Line> {
    let id = approval.id.short();
    let session = approval.session.short();
    let state = match &approval.answer {
        None => Line::toned(Tone::Warn, "! waits"),
        Some(answered) => Line::of(word(answered.answer)),
    };
    let mut lines = vec![
        Line::new().strong(format!("approval {id}   ")).append(state).plain("   ").append(Line::joined([
            Line::of(approval.id.to_string()),
            Line::of(format!("asked {} ago by session {session}", words::age(now.since(approval.asked)))),
        ])),
        field("tool", Line::of(&approval.tool)),
    ];
    if !approval.why.is_empty() {
        lines.push(field("why", Line::of(&approval.why)));
    }
    if approval.answer.is_none() {
        lines.push(field("else", otherwise(approval, now)));
    }
    for (n, line) in visible(&approval.input).lines().enumerate() {
        lines.push(field(if n == 0 { "asks" } else { "" }, Line::of(line)));
    }
    match &approval.answer {
        Some(answered) => {
            let when = format!(
                "{} by {}, {} ago",
                word(answered.answer),
                answered.by.0,
                words::age(now.since(answered.at))
            );
            let message =
                if answered.message.is_empty() { String::new() } else { format!(": {}", answered.message) };
            lines.push(field("answer", Line::of(format!("{when}{message}"))));
            for rule in &answered.rules {
                lines.push(field("", Line::of(rule.to_string())));
            }
            lines.extend(next_steps(&[(format!("ostler show {session}"), "the session")]));
        }
        None if approval.kind == AskKind::Question => lines.extend(next_steps(&[
            (format!("ostler allow {id} -m \"…\""), "answers it"),
            (format!("ostler deny {id}"), "gives no answer"),
        ])),
        None => lines.extend(next_steps(&[
            (format!("ostler allow {id}"), "lets the agent"),
            (format!("ostler allow --always {id}"), "and from now on, by a rule"),
            (format!("ostler deny {id} -m \"…\""), "does not, and says why"),
        ])),
    }
    lines
}

/// The rules that allow the same from now on.
pub fn rules(given: &AnswerGiven, campaign: &str) -> Vec<Line> {
    given.rules.iter().map(|rule| rule_line(rule, campaign)).collect()
}

/// Where they do not hold, and how to take them away again.
pub fn about_rules(given: &AnswerGiven, campaign: &str) -> Vec<Line> {
    let not_here = not_here(&given.approval.why, &given.approval.session.short());
    not_here.into_iter().chain(undo(&given.rules, campaign)).collect()
}

/// Where a person answers everything, no rule does.
fn not_here(why: &str, session: &str) -> Option<Line> {
    let words = format!("not in session {session}, where {NO_RULES}: it will ask again");
    (why == NO_RULES).then(|| Line::toned(Tone::Warn, words))
}

fn rule_line(rule: &Applied, campaign: &str) -> Line {
    let number = rule.number.map_or_else(|| "built in".to_owned(), |number| format!("rule {number}"));
    Line::of(format!("from now on in {campaign}:  ")).strong(number).plain(format!("  {}", rule.text))
}

/// From the last on, so that none moves the place of the next.
fn undo(rules: &[Applied], campaign: &str) -> Option<Line> {
    let mut numbers: Vec<u32> = rules.iter().filter_map(|rule| rule.number).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let settings: Vec<String> = numbers.iter().map(|number| format!("approve.rule-={number}")).collect();
    (!settings.is_empty()).then(|| {
        Line::of("undo: ")
            .with(Tone::Accent, format!("ostler campaign set {campaign} {}", settings.join(" ")))
    })
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Allowed => "allowed",
        Answer::Denied => "denied",
        Answer::Expired => "expired",
    }
}

#[cfg(test)]
mod tests {
    use ostler_client::reply::Answered;
    use ostler_domain::event::By;

    use super::*;
    use crate::{
        Look,
        testing::{NOW, ago},
    };

    #[test]
    fn whoever_waits_is_told_whom_for_and_how_to_answer() {
        let mut session = crate::testing::fleet().remove(0);
        let said = |session: &Session| somebody_is_asked(session).map(|line| line.show(&Look::plain(None)));
        let (short, id) = (session.id.short(), session.approvals_open[0].short());
        assert_eq!(
            said(&session).unwrap(),
            format!(
                "{short} waits for approval {id}: run: cargo add governor · ostler allow {id} · ostler deny {id} -m \"…\""
            )
        );
        session.attention = Some(Attention::WaitingInput);
        assert!(said(&session).unwrap().ends_with(&format!("ostler allow {id} -m \"…\"")));
        session.attention = Some(Attention::Working);
        assert_eq!(said(&session), None);
    }

    #[test]
    fn who_is_held_says_why_in_short_and_what_lets_it_go_on() {
        let mut session = crate::testing::fleet().remove(2);
        session.attention = Some(Attention::TurnFailed);
        session.evidence = "why ".repeat(60);
        let line = held(&session, "ostler resume 00003", NOW).show(&Look::plain(None));
        assert!(line.starts_with("also waiting: triage turn_failed 9m · why why"), "{line}");
        assert!(line.ends_with("… (ostler resume 00003)") && line.chars().count() < 130, "{line}");
    }

    #[test]
    fn open_and_answered() {
        let mut approval = Approval {
            id: ApprovalId::new(NOW, 7),
            session: SessionId::new(NOW, 8),
            tool: "run".to_owned(),
            input: "{\n  \"argv\": [\"cargo\", \"add\"]\n}".to_owned(),
            asks: "run: cargo add governor".to_owned(),
            kind: AskKind::Leave,
            why: "no rule allows cargo add governor".to_owned(),
            asked: ago(180),
            deadline: Some(NOW.plus(std::time::Duration::from_secs(43_020))),
            answer: None,
        };
        let shown = |approval: &Approval| {
            let look = Look::plain(None);
            lines(approval, NOW).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        let in_all_looks = |approval: &Approval| {
            crate::testing::in_all_looks(|look| crate::testing::folded(&lines(approval, NOW), look))
        };
        let open = shown(&approval);
        insta::assert_snapshot!("one_that_waits_in_all_looks", in_all_looks(&approval));
        let message = "open a branch instead".to_owned();
        approval.answer = Some(Answered {
            answer: Answer::Denied,
            by: By("ann".to_owned()),
            message,
            at: ago(60),
            rules: vec![],
        });
        insta::assert_snapshot!(format!("{open}\n\n{}", shown(&approval)));
    }

    #[test]
    fn all_that_wait() {
        let approval = |n: u128, asks: &str, why: &str, left: u64| Approval {
            id: ApprovalId::new(NOW, n),
            session: SessionId::new(NOW, n),
            tool: "Bash".to_owned(),
            input: asks.to_owned(),
            asks: asks.to_owned(),
            kind: AskKind::Leave,
            why: why.to_owned(),
            asked: ago(43_200 - i64::try_from(left).unwrap()),
            deadline: Some(NOW.plus(std::time::Duration::from_secs(left))),
            answer: None,
        };
        let waiting = [
            approval(7, "run: cargo add governor", "no rule allows cargo add governor", 43_020),
            approval(8, "run: git push origin main", "rule 4: ask run git push *", 43_180),
            Approval {
                deadline: None,
                ..approval(9, "write: /etc/hosts", "outside the campaign: write /etc/hosts", 40_000)
            },
        ];
        let question =
            Approval { kind: AskKind::Question, ..approval(10, "Keep the old snapshot form?", "", 43_000) };
        let asked = |(approval, agent): (Approval, &str)| Asked { approval, agent: agent.to_owned() };
        let unknown = waiting[2].session.short();
        let rows: Vec<Asked> =
            waiting.clone().into_iter().zip(["api-auth", "migrate", unknown.as_str()]).map(asked).collect();
        let rows: Vec<&Asked> = rows.iter().collect();
        let question = asked((question, "dash-tests"));
        let look = Look::plain(None);
        let waiting: Vec<_> = waiting.iter().collect();
        let mut lines = table(&rows, NOW).lines(&look);
        lines.extend(also_waiting(&[&question]));
        lines.extend(next(&waiting));
        lines.extend([nobody(0), nobody(1), nobody(4)]);
        let narrow = table(&rows, NOW).lines(&Look::plain(Some(70)));
        let shown: Vec<_> = lines.iter().chain(&narrow).map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
        insta::assert_snapshot!(crate::testing::in_all_looks(|look| {
            let mut lines = table(&rows, NOW).lines(look);
            lines.extend(also_waiting(&[&question]).iter().flat_map(|line| line.folded(look.width, 0)));
            lines.extend(next(&waiting).iter().flat_map(|line| line.folded(look.width, 0)));
            lines
        }));
    }

    #[test]
    fn a_rule_is_said_not_to_hold_where_a_person_answers_everything() {
        let look = Look::plain(None);
        let said = not_here(NO_RULES, "k7q4x").map(|line| line.show(&look));
        assert!(said.is_some_and(|said| said.contains("not in session k7q4x")));
        assert!(not_here("rule 4: git push asks", "k7q4x").is_none());
    }
}
