//! `ostler exec`: runs a command in a campaign's sandbox, with the caller's input and output, and ends with its caller.

use std::{
    fs::File,
    io::Write,
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::Path,
    process::Command,
};

use clap::Args;
use ostler_client::{Client, PrepareCommand};
use ostler_domain::Refusal;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::run::campaign_here;
use crate::{
    app::{App, absolute},
    failure::Failure,
};

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// Make this git root a campaign if it is not one yet
    #[arg(long, conflicts_with = "campaign")]
    here: bool,
    /// Run what is not on the list of commands, in the same sandbox
    #[arg(long)]
    unlisted: bool,
    /// Give it a terminal of its own: for editors, shells and whatever draws on the screen
    #[arg(long)]
    tty: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    argv: Vec<String>,
}

pub(crate) async fn run(app: &App, args: ExecArgs) -> Result<u8, Failure> {
    if args.tty && !app.ui.terminals().stdin_is_terminal {
        return Err(Refusal::invalid("there is no terminal to give the command one for")
            .because("standard input is a file, a pipe or closed")
            .hint("ostler exec -- …", "runs it with the input and output that there are")
            .into());
    }
    let client = app.client().await?;
    if args.here {
        campaign_here(app, &client, true).await?;
    }
    let document = prepare(&client, campaign(app, args.campaign)?, args.argv, args.unlisted).await?;
    let file = in_memory(&document)
        .map_err(|error| Refusal::internal(format!("the command's document cannot be kept: {error}")))?;
    app.ui.flush()?;
    // This process becomes the one that waits for the command: signals and the exit code are its own.
    let error = Command::new(&app.program.path)
        .args(["internal", "command"])
        .args(args.tty.then_some("--tty"))
        .arg(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .exec();
    Err(Refusal::internal(format!("{} cannot be run: {error}", app.program.path.display())).into())
}

/// The campaign that is meant: the one that was typed, or that of the environment, or the one around this directory.
pub(super) fn campaign(app: &App, typed: Option<String>) -> Result<String, Failure> {
    let named = typed.or_else(|| std::env::var("OSTLER_CAMPAIGN").ok().filter(|name| !name.is_empty()));
    match named {
        Some(typed) => app.campaign_operand(&typed),
        None => absolute("."),
    }
}

/// Has a command allowed. It runs in the directory that names the campaign, or else in this one.
pub(super) async fn prepare(
    client: &Client,
    campaign: String,
    argv: Vec<String>,
    unlisted: bool,
) -> Result<String, Failure> {
    let directory = Some(if Path::new(&campaign).is_absolute() { campaign.clone() } else { absolute(".")? });
    Ok(client.prepare_command(PrepareCommand { campaign, argv, unlisted, directory, session: None }).await?)
}

/// A document that nobody can change, and that stays open over the exec.
pub(super) fn in_memory(document: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("ostler-command", MemfdFlags::ALLOW_SEALING)?);
    file.write_all(document.as_bytes())?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}
