//! `ostler fork`: a new conversation that begins as a copy of another one.

use clap::Args;
use ostler_domain::{Name, text::one_line};

use super::many;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session or conversation: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// The last turn that both have: its number, of the session that is named, else of the last one that has it; or a
    /// checkpoint of the session's ticket [default: all there was]
    #[arg(long, value_name = "TURN")]
    at: Option<String>,
    /// Name of the new conversation [default: the other one's, numbered]
    #[arg(long)]
    name: Option<Name>,
}

pub(crate) async fn run(app: &App, args: ForkArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let origin = app.session(&client, &args.who).await?;
    let at = args.at.as_deref();
    // Whoever names a conversation may mean a turn of any of its sessions.
    let is_session =
        args.who.rsplit('/').next() != Some(origin.name.as_str()) && !args.who.starts_with("cnv_");
    let who = if is_session { origin.id.to_string() } else { origin.conversation.to_string() };
    let session = client.fork_session(&who, args.name.as_ref(), at).await?;
    app.touched(&session.id);
    let at = at.map(|at| format!(" at {}", one_line(at, 64))).unwrap_or_default();
    many::say(app, &client, &format!("is a fork of {}{at}, which stays as it is", origin.name), &session)
        .await?;
    if !app.ui.is_quiet() {
        let send = format!("ostler send {} \"…\"", session.id.short());
        app.ui.remark(&Line::of("  ").with(Tone::Accent, send).faint("   says something to it"));
    }
    Ok(exit_code::OK)
}
