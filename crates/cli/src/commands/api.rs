//! `ostler api`: the protocol, for whoever writes a program of their own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use ostler_client::protocol;
use ostler_domain::Refusal;
use serde::Serialize;

use super::token::{self, TokenArgs};
use crate::{app::App, exit_code, failure::Failure, output::Line, words};

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the .proto files, or write them into a directory
    Proto {
        /// Write them below this directory, as `ostler/v1/….proto`
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// The protocol as a FileDescriptorSet in binary, for generators and for tools such as grpcurl
    Descriptor {
        /// Write it to this file instead of standard output
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// The HTTP API as OpenAPI describes such things, in JSON
    Openapi {
        /// Write it to this file instead of standard output
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Who may come in by HTTP: ls, add, rm
    Token(TokenArgs),
}

/// What the daemon serves: a test of `ostler-web` holds it to that.
const OPENAPI: &[u8] = include_bytes!("../../../../docs/openapi.json");

#[derive(Serialize)]
struct WrittenForm {
    /// What was written.
    files: Vec<String>,
}

pub(crate) async fn run(app: &App, args: ApiArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Proto { dir: None } => print(app)?,
        Verb::Proto { dir: Some(dir) } => {
            let files: Vec<_> =
                protocol::FILES.iter().map(|(name, text)| (dir.join(name), text.as_bytes())).collect();
            write(app, &files)?;
        }
        Verb::Descriptor { file: Some(file) } => write(app, &[(file, protocol::DESCRIPTORS)])?,
        Verb::Descriptor { file: None } if app.ui.terminals().stdout_is_terminal => {
            return Err(Refusal::invalid("the descriptors are binary, and this is a terminal")
                .hint("ostler api descriptor ostler.binpb", "writes them to a file")
                .hint("ostler api proto", "prints the protocol as text")
                .into());
        }
        Verb::Descriptor { file: None } => app.ui.bytes(protocol::DESCRIPTORS)?,
        Verb::Openapi { file: Some(file) } => write(app, &[(file, OPENAPI)])?,
        Verb::Openapi { file: None } => {
            app.ui.page();
            app.ui.bytes(OPENAPI)?;
        }
        Verb::Token(args) => return token::run(app, args).await,
    }
    Ok(exit_code::OK)
}

/// One after the other, each below its name: with several packages in one text it is for reading.
fn print(app: &App) -> Result<(), Failure> {
    app.ui.page();
    for (n, (name, text)) in protocol::FILES.iter().enumerate() {
        let gap = if n == 0 { "" } else { "\n" };
        app.ui.bytes(format!("{gap}// {name}\n\n{text}").as_bytes())?;
    }
    Ok(())
}

fn write(app: &App, files: &[(PathBuf, &[u8])]) -> Result<(), Failure> {
    for (path, bytes) in files {
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
        made.map_err(|error| {
            Refusal::invalid(format!("{} cannot be written", path.display())).because(error.to_string())
        })?;
    }
    let shown = |path: &Path| path.display().to_string();
    if app.ui.is_json() {
        return app.ui.json(&WrittenForm { files: files.iter().map(|(path, _)| shown(path)).collect() });
    }
    let what = match files {
        [(one, _)] => shown(one),
        several => words::plural(several.len() as u64, "file", "files"),
    };
    app.ui.remark(&Line::of(format!("{what} written")));
    Ok(())
}
