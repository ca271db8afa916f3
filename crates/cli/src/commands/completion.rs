//! `ostler completion`: the script that teaches a shell.

use clap::{Args, builder::PossibleValuesParser};
use ostler_domain::Refusal;

use crate::{app::App, complete, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell: bash, elvish, fish, powershell, zsh
    #[arg(value_parser = PossibleValuesParser::new(complete::shells()), hide_possible_values = true)]
    shell: String,
}

pub(crate) fn run(app: &App, args: &CompletionArgs) -> Result<u8, Failure> {
    let script = complete::registration(&args.shell)
        .map_err(|error| Refusal::internal(format!("the script cannot be made: {error}")))?;
    app.ui.bytes(&script)?;
    if app.ui.terminals().stdout_is_terminal {
        let how = match args.shell.as_str() {
            "fish" => "ostler completion fish > ~/.config/fish/completions/ostler.fish".to_owned(),
            shell => format!("source <(ostler completion {shell})"),
        };
        app.ui.remark(&Line::new().faint("this is a script for your shell; to use it: ").plain(how));
    }
    Ok(exit_code::OK)
}
