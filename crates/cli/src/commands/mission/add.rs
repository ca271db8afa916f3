//! `ostler mission add`.

use std::path::Path;

use clap::Args;
use ostler_domain::mission::plan::{Terms, read_members};

use super::{Who, source, told};
use crate::{app::App, exit_code, failure::Failure, input};

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    who: Who,
    /// A TOML file with nothing but [[agents]]; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
}

pub(super) async fn run(app: &App, args: AddArgs) -> Result<u8, Failure> {
    let text = if args.file == "-" { input::whole(&app.ui)? } else { input::file(Path::new(&args.file))? };
    let members =
        read_members(&text, &Terms::default()).map_err(|faults| source::refusal(&args.file, &faults.0))?;
    let client = app.client().await?;
    let mission = client.add_assignments(&args.who.who, &text).await?;
    let added = members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ");
    told(app, &client, &mission, &format!("added {added}")).await?;
    Ok(exit_code::OK)
}
