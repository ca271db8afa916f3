//! `ostler mission add`: by a person, and by an agent that works for a mission.

use std::path::Path;

use clap::Args;
use ostler_domain::{
    call::Call,
    mission::plan::{Terms, read_members},
};

use super::{source, told};
use crate::{app::App, exit_code, failure::Failure, input};

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct AddArgs {
    /// Name, id, or part of an id; inside a session its own mission, which is not named
    #[arg(value_name = "MISSION")]
    who: Option<String>,
    /// A TOML file with nothing but [[agents]]; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
}

pub(super) async fn run(app: &App, args: AddArgs) -> Result<u8, Failure> {
    let Some(who) = &args.who else {
        let message = "which mission are they added to? ostler mission add MISSION FILE";
        return Err(Failure::usage(message.to_owned()));
    };
    let text = args.text(app)?;
    let members =
        read_members(&text, &Terms::default()).map_err(|faults| source::refusal(&args.file, &faults.0))?;
    let client = app.client().await?;
    let mission = client.add_assignments(who, &text).await?;
    let added = members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ");
    told(app, &client, &mission, &format!("added {added}")).await?;
    Ok(exit_code::OK)
}

impl AddArgs {
    /// What an agent means by it; none where it names a mission, of which it has no say.
    pub(super) fn call(&self, app: &App) -> Result<Option<Call>, Failure> {
        match self.who {
            Some(_) => Ok(None),
            None => Ok(Some(Call::Assign { agents: self.text(app)? })),
        }
    }

    fn text(&self, app: &App) -> Result<String, Failure> {
        if self.file == "-" { input::whole(&app.ui) } else { input::file(Path::new(&self.file)) }
    }
}
