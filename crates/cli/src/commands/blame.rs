//! `ostler blame`: the session, turn and prompt that made a line what it is.

use clap::Args;
use ostler_domain::Refusal;

use ostler_form::tree::BlameForm;

use crate::{
    app::{App, absolute},
    exit_code,
    failure::Failure,
    screen,
};

#[derive(Debug, Args)]
pub(crate) struct BlameArgs {
    /// A line of a file of a campaign: src/login.rs:41
    #[arg(value_name = "FILE:LINE")]
    place: String,
}

pub(crate) async fn run(app: &App, args: BlameArgs) -> Result<u8, Failure> {
    let (path, line) = place(&args.place)?;
    let client = app.client().await?;
    let blamed = client.blame(&absolute(path)?, line).await?;
    let session = client.session(&blamed.snapshot.session.to_string()).await?;
    if app.ui.is_json() {
        app.ui.json(&BlameForm::new(&blamed, &session))?;
    } else {
        app.ui.fields(&screen::tree::blamed(&blamed, &session))?;
    }
    Ok(exit_code::OK)
}

fn place(typed: &str) -> Result<(&str, u32), Failure> {
    let parts = typed.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse::<u32>().ok()?)));
    parts.filter(|(path, line)| !path.is_empty() && *line > 0).ok_or_else(|| {
        Refusal::invalid(format!("\"{typed}\" is no line of a file"))
            .hint("ostler blame src/login.rs:41", "is one")
            .into()
    })
}
