//! `ostler seance`: asks those who are gone. What they said and did is in the record, and the record is asked first.

use clap::Args;
use ostler_client::{Client, ListEvents, Place, Received, Session, query::EventFilter, reply::Hit};
use ostler_domain::{
    Event, Kind,
    budget::Amount,
    limits::PAGE_MOST,
    query::{Page, SessionFilter},
    seance::{fit, keywords, stem},
};
use serde::Serialize;

use super::ended;
use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_outcome},
    output::{Line, Tone},
    parse,
    screen::money::CostForm,
    words,
};

/// What is cited at most.
const CITED: usize = 6;
/// What is looked at for it.
const LOOKED_AT: usize = 40;
/// Pages of hits that are looked through for that.
const PAGES: usize = 20;

/// What sessions say and do, as far as it answers questions.
const TELLING: &[Kind] = &[
    Kind::AgentCompletion,
    Kind::AgentThinking,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::MessageAccepted,
    Kind::AgentStatus,
];

#[derive(Debug, Args)]
pub(crate) struct SeanceArgs {
    /// A session of the chain: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// What is to be known
    #[arg(required = true)]
    question: Vec<String>,
    /// Then ask a copy of it too: without tools, and with an end to what it may use
    #[arg(long)]
    ask: bool,
    /// What the answer may use: 0.5usd, 200k, or both with a comma [default: 0.5usd and 250k tokens]
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT", requires = "ask")]
    budget: Option<Amount>,
}

#[derive(Serialize)]
struct SeanceForm {
    question: String,
    words: Vec<String>,
    citations: Vec<CitationForm>,
    /// What its copy said, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerForm>,
}

#[derive(Serialize)]
struct AnswerForm {
    session: String,
    outcome: &'static str,
    text: String,
    tokens: u64,
    cost: CostForm,
}

#[derive(Serialize)]
struct CitationForm {
    session: String,
    agent: String,
    seq: u64,
    time: String,
    kind: String,
    text: String,
}

pub(crate) async fn run(app: &App, args: SeanceArgs) -> Result<u8, Failure> {
    let question = args.question.join(" ");
    let wanted = keywords(&question);
    if wanted.is_empty() && !args.ask {
        return Err(Failure::usage(
            "the question has no word that could be looked for; name what it is about",
        ));
    }
    let client = app.client().await?;
    let session = app.session(&client, &args.who).await?;
    let chain = client.chain(&session.id.to_string()).await?;
    let hits = if wanted.is_empty() { Vec::new() } else { find(&client, &session, &wanted).await? };
    let name = |hit: &Hit| {
        let of = hit.event.session().and_then(|id| chain.iter().find(|one| one.id == id));
        of.map_or_else(|| "–".to_owned(), |one| one.name.to_string())
    };
    let ui = &app.ui;
    if ui.is_json() {
        let citations = hits.iter().map(|hit| CitationForm {
            session: hit.event.session().map(|id| id.to_string()).unwrap_or_default(),
            agent: name(hit),
            seq: hit.event.seq(),
            time: words::rfc3339(hit.event.time()),
            kind: hit.event.kind().to_owned(),
            text: hit.snippet.clone(),
        });
        let citations = citations.collect();
        let answered = match args.ask {
            true => Some(answered(app, &client, &session, &question, args.budget).await?),
            false => None,
        };
        let code = answered.as_ref().map_or(exit_code::OK, |(copy, _)| code(copy));
        let answer = answered.map(|(copy, text)| AnswerForm {
            session: copy.id.to_string(),
            outcome: copy.outcome.map_or("", |outcome| outcome.as_str()),
            text,
            tokens: copy.usage.total(),
            cost: CostForm::new(&copy.cost),
        });
        ui.json(&SeanceForm { question, words: wanted, citations, answer })?;
        return Ok(code);
    }
    if hits.is_empty() && !wanted.is_empty() {
        let lives = words::plural(chain.len() as u64, "session", "sessions");
        ui.remark(&Line::of(format!("Nothing in {lives} of this chain speaks of {}.", wanted.join(", "))));
        if !args.ask {
            ui.remark(&Line::of("  ").with(Tone::Accent, "ostler search \"…\"").faint("   looks everywhere"));
            return Ok(exit_code::OK);
        }
    }
    for (n, hit) in hits.iter().enumerate() {
        let short = hit.event.session().map(|id| id.short()).unwrap_or_default();
        let ago = words::age(words::now().since(hit.event.time()));
        let head = Line::new().faint(format!("[{}] ", n + 1)).strong(name(hit)).faint(format!(
            " {short} · {} · {ago} ago · event {}",
            speaker(&hit.event),
            hit.event.seq()
        ));
        ui.data(&head)?;
        ui.data(&Line::of("    ").plain(&hit.snippet))?;
    }
    if !args.ask {
        let ask = format!("ostler seance {} \"…\" --ask", session.id.short());
        ui.remark(
            &Line::of("  ").with(Tone::Accent, ask).faint("   asks a copy of it itself; that costs tokens"),
        );
        return Ok(exit_code::OK);
    }
    ui.flush()?;
    let (copy, text) = answered(app, &client, &session, &question, args.budget).await?;
    if !text.is_empty() {
        ui.data(
            &Line::new()
                .strong(session.name.as_str())
                .faint(format!(" {} · asked itself, without tools", copy.id.short())),
        )?;
        ui.text(&text)?;
    }
    if code(&copy) != exit_code::OK {
        let why = copy.obituary.as_ref().map_or("it did not answer", |obituary| obituary.sentence.as_str());
        ui.remark(&Line::toned(Tone::Bad, "✗ ").plain(why));
    }
    ui.remark(&Line::new().faint(format!("  {} tokens", words::count(copy.usage.total()))));
    Ok(code(&copy))
}

/// Has a copy of a session answer, and waits for it: the copy when it has ended, and all that it said.
async fn answered(
    app: &App,
    client: &Client,
    session: &Session,
    question: &str,
    budget: Option<Amount>,
) -> Result<(Session, String), Failure> {
    let asked = client.ask_session(&session.id.to_string(), question, budget.unwrap_or_default()).await?;
    app.ui.show_meanwhile(Line::new().faint(format!("{} is asked …", session.name)));
    let copy = ended::wait(client, asked.id).await?;
    let kinds = vec![Kind::AgentCompletion];
    let filter = EventFilter { session: Some(copy.id), kinds, ..EventFilter::default() };
    let page = client.events(&ListEvents { filter, from: Place::After(0), limit: PAGE_MOST }).await?;
    let said = page.events.iter().filter_map(|event| {
        let Received::Known(recorded) = event else { return None };
        match &recorded.event {
            Event::AgentCompletion(said) if said.subagent.is_none() => Some(said.text.as_str()),
            _ => None,
        }
    });
    let text = said.collect::<Vec<_>>().join("\n\n");
    Ok((copy, text))
}

fn code(copy: &Session) -> u8 {
    copy.outcome.map_or(exit_code::SESSION_FAILED, of_outcome)
}

/// What in the chain fits best: events with all the words before those with some, the newest first among equals.
async fn find(client: &Client, session: &Session, wanted: &[String]) -> Result<Vec<Hit>, Failure> {
    let sessions = SessionFilter { chain: Some(session.chain), ..SessionFilter::default() };
    let filter =
        EventFilter { kinds: TELLING.to_vec(), sessions: Some(Box::new(sessions)), ..EventFilter::default() };
    let begin = |word: &String| format!("{}*", stem(word));
    let all = wanted.iter().map(begin).collect::<Vec<_>>().join(" ");
    let mut hits = search(client, &all, &filter).await?;
    if hits.len() < CITED && wanted.len() > 1 {
        for word in wanted {
            hits.extend(search(client, &begin(word), &filter).await?);
        }
    }
    hits.sort_by_key(|hit| {
        let text = whole(&hit.event).unwrap_or(&hit.snippet);
        std::cmp::Reverse((fit(text, wanted), weight(&hit.event), hit.event.seq()))
    });
    let mut seen = std::collections::HashSet::new();
    hits.retain(|hit| seen.insert(hit.event.seq()));
    hits.truncate(CITED);
    Ok(hits)
}

/// Goes through hits of others too, and passes them over: it is not to take for ever.
async fn search(client: &Client, text: &str, filter: &EventFilter) -> Result<Vec<Hit>, Failure> {
    let mut hits = Vec::new();
    let mut page = Page::of(PAGE_MOST, None);
    for _ in 0..PAGES {
        let found = client.search(text, filter, page).await?;
        hits.extend(found.rows);
        match found.next_cursor {
            Some(next) if hits.len() < LOOKED_AT => page.cursor = Some(next),
            _ => break,
        }
    }
    Ok(hits)
}

fn whole(event: &Received) -> Option<&str> {
    let Received::Known(recorded) = event else { return None };
    match &recorded.event {
        Event::AgentCompletion(text) | Event::AgentThinking(text) | Event::AgentStatus(text) => {
            Some(&text.text)
        }
        Event::MessageAccepted(accepted) => Some(&accepted.message.text),
        Event::AgentToolCall(call) => Some(&call.summary),
        Event::AgentToolResult(result) => Some(&result.output),
        _ => None,
    }
}

/// What was said answers more than what a tool printed.
fn weight(event: &Received) -> u8 {
    match event.kind() {
        "AGENT_COMPLETION" | "MESSAGE_ACCEPTED" => 3,
        "AGENT_STATUS" | "AGENT_THINKING" => 2,
        "AGENT_TOOL_CALL" => 1,
        _ => 0,
    }
}

fn speaker(event: &Received) -> &'static str {
    match event.kind() {
        "AGENT_COMPLETION" => "said",
        "AGENT_THINKING" => "thought",
        "AGENT_STATUS" => "noted",
        "AGENT_TOOL_CALL" => "did",
        "AGENT_TOOL_RESULT" => "saw",
        "MESSAGE_ACCEPTED" => "was told",
        _ => "recorded",
    }
}
