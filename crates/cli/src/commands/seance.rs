//! `ostler seance`: asks those who are gone. What they said and did is in the record, and the record is asked first.

use clap::Args;
use ostler_client::{Client, ListEvents, Place, Received, Session, query::EventFilter};
use ostler_domain::{Event, Kind, budget::Amount, limits::PAGE_MOST, seance::keywords};
use ostler_form::{
    CostForm,
    seance::{SeanceForm, cite, speaker},
};
use serde::Serialize;

use super::ended;

use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_outcome},
    output::{Line, Tone},
    parse, words,
};

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
struct AskedForm {
    #[serde(flatten)]
    record: SeanceForm,
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

pub(crate) async fn run(app: &App, args: SeanceArgs) -> Result<u8, Failure> {
    let question = args.question.join(" ");
    if keywords(&question).is_empty() && !args.ask {
        return Err(Failure::usage(
            "the question has no word that could be looked for; name what it is about",
        ));
    }
    let client = app.client().await?;
    let session = app.session(&client, &args.who).await?;
    let found = cite(&client, &session, &question).await?;
    let ui = &app.ui;
    if ui.is_json() {
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
        ui.json(&AskedForm { record: found.form(&question), answer })?;
        return Ok(code);
    }
    if found.hits.is_empty() && !found.words.is_empty() {
        let lives = words::plural(found.lives.len() as u64, "session", "sessions");
        let words = found.words.join(", ");
        ui.remark(&Line::of(format!("Nothing in {lives} of this chain speaks of {words}.")));
        if !args.ask {
            ui.remark(&Line::of("  ").with(Tone::Accent, "ostler search \"…\"").faint("   looks everywhere"));
            return Ok(exit_code::OK);
        }
    }
    for (n, hit) in found.hits.iter().enumerate() {
        let short = hit.event.session().map(|id| id.short()).unwrap_or_default();
        let ago = words::age(words::now().since(hit.event.time()));
        let head = Line::new().faint(format!("[{}] ", n + 1)).strong(found.name(hit)).faint(format!(
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
