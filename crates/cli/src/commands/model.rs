//! `ostler model`: has a session go on with another model.

use clap::Args;

use super::many;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Session: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// Model, as the provider names it
    model: String,
}

pub(crate) async fn run(app: &App, args: ModelArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let (session, now) = client.set_model(&app.who(&client, &args.who).await?, &args.model).await?;
    app.touched(&session.id);
    let when = if now { "goes on with" } else { "has in its next session the model" };
    many::say(app, &client, &format!("{when} {}", args.model), &session).await?;
    if !now && !app.ui.is_quiet() {
        let restart = format!("ostler restart {}", session.id.short());
        let why =
            format!("   {} cannot change it while it lives; this starts the next session", session.provider);
        app.ui.remark(&Line::of("  ").with(Tone::Accent, restart).faint(why));
    }
    Ok(exit_code::OK)
}
