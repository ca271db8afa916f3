//! `ostler allow` and `ostler deny`: answers to agents that ask for leave.

use clap::Args;
use ostler_client::{AnswerApproval, AnswerGiven, Client};
use ostler_domain::{Reason, Refusal};

use super::many;
use crate::{
    app::App,
    failure::Failure,
    form::ApprovalForm,
    output::{Line, Rows, Tone},
    screen::approval,
};

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Approvals, or sessions that ask one thing
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// The answer to a question
    #[arg(short, long, value_name = "ANSWER", default_value = "", hide_default_value = true)]
    message: String,
    /// And from now on: makes a rule of the campaign, and shows it
    #[arg(long)]
    always: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// Approvals, or sessions that ask one thing
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// What the agent is told
    #[arg(short, long, value_name = "REASON", default_value = "", hide_default_value = true)]
    message: String,
}

pub(crate) async fn allow(app: &App, args: AllowArgs) -> Result<u8, Failure> {
    let said = Said { allow: true, always: args.always, message: &args.message };
    answer(app, &args.ids, said).await
}

pub(crate) async fn deny(app: &App, args: DenyArgs) -> Result<u8, Failure> {
    answer(app, &args.ids, Said { allow: false, always: false, message: &args.message }).await
}

/// What is said to each of them.
#[derive(Debug, Clone, Copy)]
struct Said<'a> {
    allow: bool,
    always: bool,
    message: &'a str,
}

async fn answer(app: &App, ids: &[String], said: Said<'_>) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mut ends = many::Ends::default();
    let rows = many::rows(app, ids.len() > 1, "approvals");
    for typed in ids {
        match answer_one(app, &client, typed, said).await {
            Ok(given) => {
                match &rows {
                    Some(rows) => rows.row(&ApprovalForm::new(&given.approval).with_rules(&given.rules))?,
                    None => say(app, &client, &given, said.allow).await?,
                }
                ends.done();
            }
            Err(failure) if ids.len() == 1 => return Err(failure),
            Err(failure) => ends.failed(failure)?,
        }
    }
    rows.map_or(Ok(()), Rows::end)?;
    Ok(ends.say(app))
}

async fn answer_one(app: &App, client: &Client, typed: &str, said: Said<'_>) -> Result<AnswerGiven, Failure> {
    let Said { allow, always, message } = said;
    let request = |approval: String| AnswerApproval { approval, allow, always, message: message.to_owned() };
    let unknown = if typed == "-" {
        None
    } else {
        match client.answer_approval(request(typed.to_owned())).await.map_err(Failure::from) {
            Err(failure) if failure.reason() == Some(Reason::ApprovalUnknown) => Some(failure),
            answered => return answered,
        }
    };
    let session = match (app.session(client, typed).await, unknown) {
        (Ok(session), _) => session,
        (Err(_), Some(unknown)) => return Err(unknown),
        (Err(failure), None) => return Err(failure),
    };
    match session.approvals_open.as_slice() {
        [one] => Ok(client.answer_approval(request(one.to_string())).await?),
        [] => Err(Refusal::new(Reason::WrongState, format!("{} asks for nothing", session.name))
            .hint("ostler ls --needs-me", "lists who waits for you")
            .into()),
        several => {
            Err(Refusal::new(Reason::Ambiguous, format!("{} asks {} things", session.name, several.len()))
                .hint(format!("ostler show {}", session.id.short()), "lists them")
                .into())
        }
    }
}

async fn say(app: &App, client: &Client, given: &AnswerGiven, allow: bool) -> Result<(), Failure> {
    let approval = &given.approval;
    if app.ui.is_json() {
        return app.ui.json(&ApprovalForm::new(approval).with_rules(&given.rules));
    }
    let (tone, word) = if allow { (Tone::Good, "allowed") } else { (Tone::Bad, "denied") };
    app.ui.data(
        &Line::toned(tone, word)
            .plain(format!("  {}", approval.asks))
            .faint(format!("   session {}", approval.session.short())),
    )?;
    let (kept, undo) = kept(app, client, given).await;
    kept.iter().try_for_each(|line| app.ui.data(line))?;
    undo.iter().for_each(|line| app.ui.remark(line));
    Ok(())
}

/// The rules that allow the same from now on, and how to take them away again.
pub(super) async fn kept(app: &App, client: &Client, given: &AnswerGiven) -> (Vec<Line>, Vec<Line>) {
    if given.rules.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let session = client.session(&given.approval.session.to_string()).await;
    let campaign = match &session {
        Ok(session) => app.campaign_name(client, &session.campaign).await,
        Err(_) => "CAMPAIGN".to_owned(),
    };
    (approval::rules(given, &campaign), approval::about_rules(given, &campaign))
}
