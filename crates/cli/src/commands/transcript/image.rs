//! `ostler transcript image`: a picture that was shown in a conversation.

use std::{io::IsTerminal, path::PathBuf};

use clap::Args;
use ostler_domain::Refusal;
use serde::Serialize;

use super::export::Fresh;
use crate::{app::App, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// The SHA-256 that events and transcripts name it by, or the first digits of it, at least eight
    sha256: String,
    /// Into this file, readable by you alone; without, to standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Written {
    file: String,
    bytes: u64,
}

pub(crate) async fn run(app: &App, args: ImageArgs) -> Result<u8, Failure> {
    let Some(path) = &args.file else {
        if std::io::stdout().is_terminal() || app.ui.is_json() {
            return Err(Refusal::invalid("a picture is no text")
                .hint(format!("ostler transcript image {} --file FILE", args.sha256), "writes it there")
                .into());
        }
        let client = app.client().await?;
        let mut pieces = client.image(&args.sha256).await?;
        while let Some(piece) = pieces.next().await {
            app.ui.bytes(&piece?)?;
        }
        return Ok(exit_code::OK);
    };
    let client = app.client().await?;
    let mut pieces = client.image(&args.sha256).await?;
    let (mut fresh, mut bytes) = (Fresh::begin(path)?, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        bytes += piece.len() as u64;
        fresh.write(&piece)?;
    }
    let file = fresh.finish()?;
    if app.ui.is_json() {
        app.ui.json(&Written { file, bytes })?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(file))?;
    } else {
        app.ui.data(&Line::of("wrote ").strong(file))?;
    }
    Ok(exit_code::OK)
}
