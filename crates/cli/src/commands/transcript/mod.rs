//! `ostler transcript`: what was said in a conversation, whole.

mod append;
mod export;
mod image;
mod show;
mod verify;

use clap::{Args, Subcommand};
use ostler_client::{Client, Transcript};
use ostler_domain::{Refusal, transcript::Line};

use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct TranscriptArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Read what was said, the newest last
    #[command(alias = "get")]
    Show(show::ShowArgs),
    /// Write it as JSON lines, Markdown or one HTML page
    Export(export::ExportArgs),
    /// Write down what was delivered to people in the agent's name, outside of its sessions
    Append(append::AppendArgs),
    /// Write a picture that was shown in a conversation
    Image(image::ImageArgs),
    /// Look whether the files of transcripts say what the log says; exit 1 when one does not
    Verify(verify::VerifyArgs),
}

pub(crate) async fn run(app: &App, args: TranscriptArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Show(args) => show::run(app, args).await,
        Verb::Export(args) => export::run(app, args).await,
        Verb::Append(args) => append::run(app, args).await,
        Verb::Image(args) => image::run(app, args).await,
        Verb::Verify(args) => verify::run(app, args).await,
    }
}

async fn open(app: &App, client: &Client, who: &str) -> Result<Transcript, Failure> {
    Ok(client.transcript(&app.addressee(client, who).await?).await?)
}

fn read(line: &[u8]) -> Result<Line, Failure> {
    serde_json::from_slice(line).map_err(|error| {
        Refusal::internal("the daemon says a line that this version does not understand")
            .because(error.to_string())
            .into()
    })
}
