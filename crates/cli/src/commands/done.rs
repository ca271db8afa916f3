//! `ostler done`: says that the work of sessions is done, which ends them in an orderly way. An agent says it of itself.

use clap::Args;
use ostler_client::{Client, Session};
use ostler_domain::{
    Refusal,
    text::{one_line, shell_word},
    ticket::Whole,
};

use super::{
    ended, inside,
    many::{self, Operands},
};
use crate::{app::App, failure::Failure, output::Line, words};

#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    /// Sessions: name, id, part of an id, or - for the last one of this terminal. Inside a session: itself
    #[arg(value_name = "WHO")]
    who: Vec<String>,
    /// What was achieved, in the words of the agent
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

impl DoneArgs {
    /// What an agent says of its own work.
    pub(super) fn of_itself(self) -> Option<String> {
        self.who.is_empty().then_some(self.message)
    }
}

pub(crate) async fn run(app: &App, args: DoneArgs) -> Result<u8, Failure> {
    if args.who.is_empty() {
        return Err(inside::outside("done"));
    }
    if !args.message.is_empty() {
        let who: Vec<String> = args.who.iter().map(|who| shell_word(who)).collect();
        let (first, who) = (who.first().cloned().unwrap_or_default(), who.join(" "));
        return Err(Refusal::invalid("-m is what an agent says of its own work")
            .hint(
                format!("ostler label {first} {}", shell_word(&args.message)),
                "gives it a label that is listed and found",
            )
            .hint(format!("ostler done {who}"), "ends it as done")
            .into());
    }
    let client = app.client().await?;
    let asked_at = words::now();
    let act = async |client: &Client, who: &str| {
        let session = client.finish_session(who).await?;
        app.ui.show_meanwhile(Line::new().faint(format!("{} ends …", session.name)));
        let session = ended::wait(client, session.id).await?;
        let done = if many::had_ended(&session, asked_at) { "had ended before" } else { "done" };
        Ok((format!("{done}{}", of_ticket(client, &session).await), session))
    };
    many::each(app, &client, &Operands { who: args.who, are_found: false }, act).await
}

/// How the ticket of a session stands after that: others may still work on it.
async fn of_ticket(client: &Client, session: &Session) -> String {
    let Some(id) = session.ticket_id else { return String::new() };
    let Ok(Whole { ticket, .. }) = client.ticket(&id.to_string()).await else { return String::new() };
    let name = one_line(&ticket.shown(), 80);
    match ticket.status {
        status if status.is_open() => {
            format!(" · ticket {name} is {} (ostler ticket done {name})", status.as_str())
        }
        status => format!(" · ticket {name} is {}", status.as_str()),
    }
}
