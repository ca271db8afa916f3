//! `ostler conversation prune`: removes what nobody uses any more.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, Conversation, Session};
use ostler_domain::{
    Refusal,
    conversation::CloseReason,
    limits::PAGE_MOST,
    query::{Page, SessionFilter},
    session::Status,
};
use serde::Serialize;

use super::filter;
use crate::{
    app::{App, campaign_names},
    exit_code,
    failure::Failure,
    form::ConversationForm,
    input,
    output::Line,
    parse, words,
};

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Nothing was said in them for so long: 90d, 12h
    #[arg(long, value_parser = parse::time_limit, value_name = "SPAN")]
    idle: Duration,
    /// In this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// Of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Close them only: all of it stays readable
    #[arg(long)]
    archive: bool,
    /// Say which they are, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Removes what nobody uses any more. Whose session works is used, whatever was said to it.
pub(super) async fn run(app: &App, client: &Client, args: PruneArgs) -> Result<u8, Failure> {
    let ui = &app.ui;
    if !(args.dry_run || args.yes || ui.has_person()) {
        return Err(Refusal::invalid("conversations would be closed, and there is nobody to ask")
            .hint("ostler conversation prune --idle SPAN --dry-run", "says which they are")
            .hint("ostler conversation prune --idle SPAN -y", "does it without asking")
            .into());
    }
    let filter = filter(app, client, args.campaign.as_deref(), args.agent.as_deref()).await?;
    let until = words::now().minus(args.idle);
    let mut idle = Vec::new();
    let mut page = Page::of(PAGE_MOST, None);
    loop {
        let listed = client.conversations(&filter, page).await?;
        for found in listed.rows.into_iter().filter(|found| found.active < until && found.closed.is_none()) {
            let newest = SessionFilter { conversation: Some(found.id), ..SessionFilter::default() };
            let last = client.sessions(&newest, Page::of(1, None)).await?.rows.pop();
            let is_used = |last: &Session| {
                last.outcome.is_none() && (last.status != Status::Running || last.messages_waiting > 0)
            };
            if !last.as_ref().is_some_and(is_used) {
                idle.push(found);
            }
        }
        match listed.next_cursor {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let names = campaign_names(client).await?;
    let why = if args.archive { CloseReason::Archived } else { CloseReason::Removed };
    let count = words::plural(idle.len() as u64, "conversation", "conversations");
    let verb = if args.archive { "archive" } else { "remove" };
    let is_wanted = idle.is_empty() || args.dry_run || args.yes || {
        for found in &idle {
            let ago = words::age(words::now().since(found.active));
            ui.data(
                &Line::of("  ")
                    .strong(found.name.as_str())
                    .faint(format!(" {} · {ago} ago", found.id.short())),
            )?;
        }
        input::agrees(ui, &format!("{verb} {count}?"))
    };
    let is_done = is_wanted && !args.dry_run;
    for found in idle.iter_mut().filter(|_| is_done) {
        *found = client.close_conversation(&found.id.to_string(), why).await?;
    }
    if ui.is_json() {
        let forms: Vec<_> =
            idle.iter().map(|found| ConversationForm::new(found, &names.of(&found.campaign))).collect();
        ui.json(&PrunedForm { is_done, conversations: forms })?;
        return Ok(exit_code::OK);
    }
    if args.dry_run || args.yes {
        let line = |found: &Conversation| {
            Line::of("  ").strong(found.name.as_str()).faint(format!(" {}", found.id.short()))
        };
        ui.data_lines(&idle.iter().map(line).collect::<Vec<_>>())?;
    }
    let became = match (idle.is_empty(), args.dry_run, is_done) {
        (true, _, _) => "no conversation has been idle for so long".to_owned(),
        (_, true, _) => format!("{count} would be {verb}d"),
        (_, _, true) => format!("{count} {verb}d"),
        (_, _, false) => "nothing was changed".to_owned(),
    };
    ui.remark(&Line::of(became));
    Ok(exit_code::OK)
}

#[derive(Serialize)]
struct PrunedForm<'a> {
    is_done: bool,
    conversations: Vec<ConversationForm<'a>>,
}
