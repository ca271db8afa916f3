//! `ostler stop`: ends sessions in an orderly way, and waits until they have.

use clap::Args;
use ostler_client::Client;

use super::{
    chosen::{Chosen, Deed},
    ended, interrupt,
    many::{self, Operands},
};
use crate::{app::App, exit_code, failure::Failure, output::Line, words};

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    chosen: Chosen,
    /// End the turn only; the session stays
    #[arg(long, conflicts_with = "now")]
    turn: bool,
    /// At once, without asking the agent first
    #[arg(long)]
    now: bool,
}

pub(crate) async fn run(app: &App, args: StopArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let deed = Deed { verb: "stop", done: "stopped", of_the_ended: false };
    let Some(operands) = args.chosen.sessions(app, &client, &deed).await? else { return Ok(exit_code::OK) };
    if args.turn {
        return interrupt::interrupt(app, &client, &operands).await;
    }
    stop(app, &client, &operands, args.now).await
}

pub(super) async fn stop(app: &App, client: &Client, operands: &Operands, now: bool) -> Result<u8, Failure> {
    let asked_at = words::now();
    // All are asked before the first is waited for: an orderly end may take many seconds.
    if operands.who.len() > 1 {
        for typed in &operands.who {
            if let Ok(who) = app.who(client, typed).await {
                // What is refused here is refused again below, where it is said.
                let _ = client.stop_session(&who, now).await;
            }
        }
    }
    let act = async |client: &Client, who: &str| {
        let session = client.stop_session(who, now).await?;
        app.ui.show_meanwhile(Line::new().faint(format!("{} ends …", session.name)));
        let session = ended::wait(client, session.id).await?;
        let done = match now {
            _ if many::had_ended(&session, asked_at) => "had ended before",
            true => "killed",
            false => "stopped",
        };
        Ok((done.to_owned(), session))
    };
    many::each(app, client, operands, act).await
}
