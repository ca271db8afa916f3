//! `ostler allow` and `ostler deny`: answers to agents that ask for leave.

use clap::Args;
use ostler_client::{AnswerApproval, Approval, Client};
use ostler_domain::{Reason, Refusal, text::one_line};

use super::many;
use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_many},
    form::ApprovalForm,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Approvals, or sessions that ask one thing
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// The answer to a question
    #[arg(short, long, value_name = "ANSWER", default_value = "", hide_default_value = true)]
    message: String,
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
    answer(app, &args.ids, true, &args.message).await
}

pub(crate) async fn deny(app: &App, args: DenyArgs) -> Result<u8, Failure> {
    answer(app, &args.ids, false, &args.message).await
}

async fn answer(app: &App, ids: &[String], allow: bool, message: &str) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mut codes = Vec::new();
    for typed in ids {
        match answer_one(app, &client, typed, allow, message).await {
            Ok(approval) => {
                say(app, &approval, allow)?;
                codes.push(exit_code::OK);
            }
            Err(failure) if ids.len() == 1 => return Err(failure),
            Err(failure) => codes.push(many::said(app, failure)?),
        }
    }
    Ok(of_many(&codes))
}

async fn answer_one(
    app: &App,
    client: &Client,
    typed: &str,
    allow: bool,
    message: &str,
) -> Result<Approval, Failure> {
    let request = |approval: String| AnswerApproval { approval, allow, message: message.to_owned() };
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

fn say(app: &App, approval: &Approval, allow: bool) -> Result<(), Failure> {
    if app.ui.is_json() {
        return app.ui.json(&ApprovalForm::new(approval));
    }
    let (tone, word) = if allow { (Tone::Good, "allowed") } else { (Tone::Bad, "denied") };
    let what = one_line(&format!("{}: {}", approval.tool, approval.input), 200);
    app.ui.data(
        &Line::toned(tone, word)
            .plain(format!("  {what}"))
            .faint(format!("   session {}", approval.session.short())),
    )
}
