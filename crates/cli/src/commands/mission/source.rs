//! Where a plan comes from: a file, standard input, or a template.

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use ostler_domain::{
    Reason, Refusal,
    mission::{
        Fault,
        plan::{Template, templates},
    },
    text::{nearest, one_line},
};

use crate::{app::App, failure::Failure, input, parse};

#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    /// A TOML file, - for standard input, or a template of `mission template ls`
    #[arg(value_name = "FILE|TEMPLATE")]
    pub(super) from: String,
    /// The value of a parameter of the plan; again for more
    #[arg(short = 'p', long = "set", value_name = "KEY=VALUE", value_parser = parse::variable)]
    pub(super) parameters: Vec<(String, String)>,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
}

/// A plan's text, and what people call it.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) campaign: String,
}

impl SourceArgs {
    /// Reads the text. None where nothing has this name: it may be a mission's.
    pub(super) fn read(&self, app: &App) -> Result<Option<Source>, Failure> {
        let path = Path::new(&self.from);
        let text = match Template::find(&self.from) {
            _ if self.from == "-" => input::whole(&app.ui)?,
            Some(template) if !path.exists() => template.text.to_owned(),
            None if !path.exists() && !looks_like_a_path(&self.from) => return Ok(None),
            _ => input::file(path)?,
        };
        Ok(Some(Source {
            name: if self.from == "-" { "plan".to_owned() } else { self.from.clone() },
            text,
            parameters: self.parameters.iter().cloned().collect(),
            campaign: app.campaign_operand(self.campaign.as_deref().unwrap_or("."))?,
        }))
    }

    /// Nothing has this name.
    pub(super) fn unknown(&self) -> Failure {
        let said = one_line(&self.from, 80);
        let refusal =
            Refusal::new(Reason::InvalidArgument, format!("\"{said}\" is neither a file nor a template"));
        let refusal = match nearest(&self.from, templates().iter().map(|template| template.name)) {
            Some(meant) => refusal.hint(format!("ostler mission start {meant}"), "may be what you meant"),
            None => refusal,
        };
        refusal.hint("ostler mission template ls", "lists the templates").into()
    }
}

fn looks_like_a_path(text: &str) -> bool {
    text.contains(['/', '.'])
}

impl Source {
    /// Everything that is wrong with it, each with its line: `plan.toml:12: …`.
    pub(super) fn refusal(&self, faults: &[Fault]) -> Failure {
        refusal(&self.name, faults)
    }
}

pub(super) fn refusal(name: &str, faults: &[Fault]) -> Failure {
    let place = |fault: &Fault| match fault.line {
        Some(line) => format!("{name}:{line}: "),
        None => format!("{name}: "),
    };
    let one = |fault: &Fault| {
        let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        one_line(&format!("{}{}{hint}", place(fault), fault.message), 300)
    };
    let count = match faults.len() {
        1 => "a mistake".to_owned(),
        n => format!("{n} mistakes"),
    };
    Refusal::invalid(format!("{name} has {count}; nothing was started"))
        .because(faults.iter().map(one).collect::<Vec<_>>().join("\n"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_by_file_and_line() {
        let faults = [
            Fault::new(Some(12), "there is no agent \"buidl\"").hint("did you mean build?"),
            Fault::new(None, "the parameter goal has no value"),
        ];
        let refusal = refusal("plan.toml", &faults).to_refusal();
        assert_eq!(refusal.message, "plan.toml has 2 mistakes; nothing was started");
        assert_eq!(
            refusal.why.as_deref(),
            Some(
                "plan.toml:12: there is no agent \"buidl\" (did you mean build?)\n\
                 plan.toml: the parameter goal has no value"
            )
        );
    }
}
