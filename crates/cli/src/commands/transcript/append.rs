//! `ostler transcript append`: what was delivered in an agent's name, by somebody else.

use clap::Args;
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// Conversation or session: name, id or part of one; - for the last of this terminal
    who: String,
    /// What was said; may be left out where there are media
    #[arg(default_value = "", hide_default_value = true)]
    text: String,
    /// Address of what was sent along; may be said several times
    #[arg(long, value_name = "URL")]
    media: Vec<String>,
    /// To whom it was delivered: user:U1, #builds
    #[arg(long, value_name = "WHOM")]
    to: Option<String>,
}

#[derive(Serialize)]
struct Appended {
    conversation: String,
    name: String,
}

pub(crate) async fn run(app: &App, args: AppendArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let who = app.addressee(&client, &args.who).await?;
    let (id, name) = client.mirror_delivery(&who, &args.text, args.media, args.to.as_deref()).await?;
    if app.ui.is_json() {
        app.ui.json(&Appended { conversation: id.to_string(), name })?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(id.to_string()))?;
    } else {
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain("in the transcript of ").strong(name))?;
    }
    Ok(exit_code::OK)
}
