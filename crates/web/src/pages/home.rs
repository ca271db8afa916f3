//! Who needs you: a card for each, the oldest first.

use std::time::Duration;

use askama::Template;
use ostler_client::{Approval, ListEvents, Place, Session};
use ostler_domain::{
    Kind, Time,
    event::AskKind,
    limits::PAGE_MOST,
    query::{EventFilter, Page, Scope, SessionFilter},
    session::{Attention, Rank, Status},
    text::{shell_word, visible},
};
use ostler_form::{
    held::{asked_by_mission, budget_cure, larger_budget, shared_budget_cure},
    words,
};

use super::{
    View, activity, patch,
    row::{self, Row},
};
use crate::{
    api::{Names, names},
    clock,
    guard::Visitor,
    reply::Failure,
};

/// How long failures are shown here.
const FAILED_SHOWN: Duration = Duration::from_secs(86_400);
/// Deeds that are shown of whoever asks.
const LAST: usize = 3;
/// How long what was answered stays, and how many of them are looked at.
const SETTLED_SHOWN: Duration = Duration::from_secs(60);
const SETTLED: u32 = 20;
/// Cards on the page; who has more works them off from the top.
const CARDS: usize = 50;
/// Rows of those who work, and of those who ended today.
const WORKING: usize = 50;
const ENDED_TODAY: u32 = 10;

struct Card {
    kind: &'static str,
    /// Of the approval, or of the session.
    id: String,
    id_short: String,
    session: String,
    short: String,
    name: String,
    campaign: String,
    campaign_id: String,
    provider: String,
    tone: &'static str,
    sign: &'static str,
    word: String,
    waits: String,
    asks: String,
    why: String,
    input: String,
    /// Of an edit, line by line.
    diff: Vec<patch::Line>,
    /// Answers that the agent offers.
    options: Vec<Choice>,
    last: Vec<String>,
    cli: String,
    since: Time,
    /// Where an answer in words goes, under which name, and with what beside it.
    reply_to: String,
    reply_as: &'static str,
    reply_with: &'static str,
}

/// An answer that the agent offers, and the request that gives it.
struct Choice {
    word: String,
    body: String,
    cli: String,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    cards: Vec<Card>,
    /// Cards that found no room.
    further: usize,
    rows: Vec<Row>,
    /// Those that ended today, where nobody waits.
    today: Vec<Row>,
    working_words: String,
}

pub(super) async fn view(visitor: &Visitor) -> Result<View, Failure> {
    let client = &visitor.client;
    let (now, names) = (clock::now(), names(client).await?);
    let sessions = of_interest(visitor, now).await?;
    let approvals = open_approvals(visitor).await?;
    let mut cards = Vec::new();
    for session in &sessions {
        let campaign = names.of(&session.campaign);
        let own: Vec<_> = approvals.iter().filter(|approval| approval.session == session.id).collect();
        cards.extend(own.iter().map(|approval| Card::of_approval(session, approval, &campaign, now)));
        if own.is_empty() {
            cards.extend(Card::of_session(session, &campaign, now));
        }
    }
    cards.sort_by_key(|card| card.since);
    let further = cards.len().saturating_sub(CARDS);
    cards.truncate(CARDS);
    cards.extend(settled(visitor, &sessions, &names, now).await?);
    for card in cards.iter_mut().filter(|card| card.kind != "settled") {
        card.last = last_deeds(visitor, &card.session).await?;
    }
    let working: Vec<_> = sessions.iter().filter(|session| session.rank() == Rank::AtWork).collect();
    let working_words = match working.len() {
        0 => "Nobody is at work.".to_owned(),
        n => format!("{} at work.", words::plural(n as u64, "agent is", "agents are")),
    };
    let row = |session: &Session| Row::new(session, names.of(&session.campaign), now);
    let rows = working.iter().take(WORKING).map(|session| row(session)).collect();
    let today = match cards.is_empty() {
        true => ended_today(visitor, now).await?.iter().map(row).collect(),
        false => Vec::new(),
    };
    View::new("Needs you", &Home { cards, further, rows, today, working_words })
}

/// All that need somebody, that work, or that failed within a day and that nobody went on with.
async fn of_interest(visitor: &Visitor, now: Time) -> Result<Vec<Session>, Failure> {
    let attention = Attention::ALL.iter().copied();
    let attention =
        attention.filter(|attention| attention.needs_you() || *attention == Attention::Working).collect();
    let live = SessionFilter { scope: Scope::NotEnded, attention, ..SessionFilter::default() };
    let failed = SessionFilter {
        scope: Scope::Current { failed_since: now.minus(FAILED_SHOWN) },
        statuses: vec![Status::Failed],
        ..SessionFilter::default()
    };
    let mut sessions = Vec::new();
    for filter in [live, failed] {
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = visitor.client.sessions(&filter, page).await?;
            sessions.extend(listed.rows);
            match listed.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => break,
            }
        }
    }
    Ok(sessions)
}

async fn open_approvals(visitor: &Visitor) -> Result<Vec<Approval>, Failure> {
    let (mut approvals, mut page) = (Vec::new(), Page::of(PAGE_MOST, None));
    loop {
        let listed = visitor.client.approvals(true, page).await?;
        approvals.extend(listed.rows);
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(approvals),
        }
    }
}

async fn ended_today(visitor: &Visitor, now: Time) -> Result<Vec<Session>, Failure> {
    let filter = SessionFilter {
        scope: Scope::All,
        statuses: vec![Status::Stopped, Status::Failed],
        since: Some(now.minus(FAILED_SHOWN)),
        ..SessionFilter::default()
    };
    Ok(visitor.client.sessions(&filter, Page::of(ENDED_TODAY, None)).await?.rows)
}

/// The answers that a question offers, as providers write them behind it: `Which one? (this | that)`.
fn options(question: &str) -> Vec<String> {
    let offered = question.trim().strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    match offered {
        Some((question, offered)) if !question.contains('\n') && offered.contains(" | ") => {
            offered.split(" | ").map(|option| option.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

impl Choice {
    fn new(word: String, approval: &str) -> Choice {
        let body = serde_json::json!({ "allow": true, "message": word }).to_string();
        let word = visible(&word);
        Choice { cli: format!("ostler allow {approval} -m {}", shell_word(&word)), word, body }
    }
}

impl Card {
    fn of_approval(session: &Session, approval: &Approval, campaign: &str, now: Time) -> Card {
        let is_question = approval.kind == AskKind::Question;
        let left = approval.deadline.map(|at| format!(", denied in {}", words::span(at.since(now))));
        let short = approval.id.short();
        Card {
            kind: if is_question { "question" } else { "approval" },
            id: approval.id.to_string(),
            word: if is_question { "asks".to_owned() } else { "waiting_approval".to_owned() },
            waits: format!("{}{}", words::span(now.since(approval.asked)), left.unwrap_or_default()),
            asks: visible(&approval.asks),
            why: approval.why.clone(),
            diff: patch::of_edit(&approval.input),
            input: visible(&approval.input),
            options: match is_question {
                true => options(&approval.input).into_iter().map(|word| Choice::new(word, &short)).collect(),
                false => Vec::new(),
            },
            cli: if is_question {
                format!("ostler send {} \"…\"", session.id.short())
            } else {
                format!("ostler allow {short}")
            },
            id_short: short,
            since: approval.asked,
            reply_to: format!("/v1/approvals/{}/answer", approval.id),
            reply_as: "message",
            reply_with: r#"{"allow":true}"#,
            ..Card::blank(session, campaign)
        }
    }

    /// One that needs somebody without having asked for leave.
    fn of_session(session: &Session, campaign: &str, now: Time) -> Option<Card> {
        let short = session.id.short();
        let (kind, cli) = match session.attention {
            _ if session.status == Status::Failed => ("failed", format!("ostler show {short}")),
            Some(Attention::WaitingInput) => ("question", format!("ostler send {short} \"…\"")),
            Some(Attention::BudgetHold) => match budget_cure(session) {
                cure if cure.starts_with("ostler campaign ") => ("campaign held", cure),
                cure if cure.starts_with("ostler mission ") => ("mission held", cure),
                cure if cure.starts_with("ostler agent ") => {
                    ("agent held", shared_budget_cure(session, campaign))
                }
                cure => {
                    let larger = larger_budget(session);
                    ("held", larger.map_or(cure, |larger| format!("ostler resume {short} --budget {larger}")))
                }
            },
            Some(attention) if attention.needs_you() => {
                let command = asked_by_mission(session).map(|(command, _)| command.to_owned());
                ("stalled", command.unwrap_or_else(|| format!("ostler resume {short}")))
            }
            _ => return None,
        };
        let since = session.ended_at.unwrap_or(session.attention_since);
        let obituary = session.obituary.as_ref().map(|obituary| obituary.sentence.as_str());
        // What a mission wants done stands below, as a command.
        let stands = asked_by_mission(session).map_or(&*session.evidence, |(_, why)| why);
        let word = session.outcome.map(|outcome| outcome.as_str());
        let word = word.or(session.attention.map(|attention| attention.as_str())).unwrap_or_default();
        Some(Card {
            kind,
            id: session.id.to_string(),
            word: word.to_owned(),
            waits: words::span(now.since(since)),
            why: visible(obituary.unwrap_or(stands)),
            cli,
            since,
            ..Card::blank(session, campaign)
        })
    }

    fn blank(session: &Session, campaign: &str) -> Card {
        let (tone, sign) = row::sign(session);
        Card {
            kind: "",
            id: String::new(),
            id_short: String::new(),
            session: session.id.to_string(),
            short: session.id.short(),
            name: session.name.to_string(),
            campaign: campaign.to_owned(),
            campaign_id: session.campaign.to_string(),
            provider: session.provider.clone(),
            tone,
            sign,
            word: String::new(),
            waits: String::new(),
            asks: String::new(),
            why: String::new(),
            input: String::new(),
            diff: Vec::new(),
            options: Vec::new(),
            last: Vec::new(),
            cli: String::new(),
            since: session.attention_since,
            reply_to: format!("/v1/sessions/{}/messages", session.id),
            reply_as: "text",
            reply_with: "{}",
        }
    }
}

/// What was answered a moment ago, perhaps by somebody else: whoever was about to answer sees that it is done.
async fn settled(
    visitor: &Visitor,
    sessions: &[Session],
    names: &Names,
    now: Time,
) -> Result<Vec<Card>, Failure> {
    let approvals = visitor.client.approvals(false, Page::of(SETTLED, None)).await?.rows;
    let mut cards = Vec::new();
    for approval in &approvals {
        let recent = approval.answer.as_ref().filter(|answered| now.since(answered.at) < SETTLED_SHOWN);
        // Rules answer all the time, and nobody waits for that.
        let Some(answered) = recent.filter(|answered| answered.rules.is_empty()) else { continue };
        let session = match sessions.iter().find(|session| session.id == approval.session) {
            Some(session) => session.clone(),
            // Who has the answer may have nothing more to do.
            None => visitor.client.session(&approval.session.to_string()).await?,
        };
        let ago = words::span(now.since(answered.at));
        cards.push(Card {
            kind: "settled",
            tone: "settled",
            sign: "✓",
            word: format!("{} by {}, {ago} ago", activity::word(&answered.answer), answered.by.0),
            waits: String::new(),
            cli: format!("ostler approval show {}", approval.id.short()),
            ..Card::of_approval(&session, approval, &names.of(&session.campaign), now)
        });
    }
    Ok(cards)
}

async fn last_deeds(visitor: &Visitor, session: &str) -> Result<Vec<String>, Failure> {
    let filter = EventFilter {
        session: session.parse().ok(),
        kinds: vec![Kind::AgentToolCall, Kind::AgentCompletion, Kind::AgentThinking],
        ..EventFilter::default()
    };
    let request = ListEvents { filter, from: Place::End, limit: LAST as u32 };
    let mut events = visitor.client.events(&request).await?.events;
    events.reverse();
    let items = activity::items(&events);
    Ok(items.into_iter().map(|item| format!("{:<8}{}", item.verb, item.text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mission_wants_of_a_person_is_the_card_s_command_and_why_its_reason() {
        let now = ostler_screen::testing::NOW;
        let mut session = ostler_screen::testing::fleet().remove(2);
        let card = |session: &Session| Card::of_session(session, "shop", now).unwrap();
        session.attention = Some(Attention::Stalled);
        session.evidence = "ostler mission resume site: docs does not get on".to_owned();
        let stalled = card(&session);
        assert_eq!((stalled.kind, &*stalled.why), ("stalled", "docs does not get on"));
        assert_eq!(stalled.cli, "ostler mission resume site");
        session.attention = Some(Attention::BudgetHold);
        session.evidence = "ostler mission resume site --budget AMOUNT: $2.00 of $2.00 used".to_owned();
        let held = card(&session);
        assert_eq!((held.kind, &*held.why), ("mission held", "$2.00 of $2.00 used"));
        assert_eq!(held.cli, "ostler mission resume site --budget AMOUNT");
    }

    #[test]
    fn a_question_s_choices_are_those_behind_it() {
        assert_eq!(options("Keep the old form? (keep it | drop it)"), ["keep it", "drop it"]);
        assert!(options("Keep it (the old form)?").is_empty());
        assert!(options("Keep it (the old form)").is_empty(), "one is no choice");
        assert!(options("Which? (a | b)\nAnd then? (c | d)").is_empty(), "two questions want words");
    }
}
