//! Where a plan comes from: a file, standard input, or a template.

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use ostler_client::PlanMission;
use ostler_domain::{
    Reason, Refusal,
    mission::{
        Fault,
        plan::{Template, templates},
    },
    text::{nearest, one_line, shell_word},
};

use super::flags::{CommonArgs, FlagArgs};
use crate::{app::App, failure::Failure, input, parse};

#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    /// A TOML file, - for standard input, or a template of `mission template ls`
    #[arg(value_name = "FILE|TEMPLATE", required_unless_present = "objective")]
    from: Option<String>,
    #[command(flatten)]
    flags: FlagArgs,
    #[command(flatten)]
    pub(super) common: CommonArgs,
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
    /// Where its lines come from, if it is no file.
    flags: Option<FlagArgs>,
}

impl SourceArgs {
    /// Reads the text. None where nothing has this name: it may be a mission's.
    pub(super) fn read(&self, app: &App) -> Result<Option<Source>, Failure> {
        let from = self.from();
        let path = Path::new(from);
        let by_flags = self.flags.plan().map(|plan| self.common.said(plan).to_toml());
        let flags = by_flags.is_some().then(|| self.flags.clone());
        let text = match (by_flags, Template::find(from)) {
            (Some(text), _) => text,
            _ if from == "-" => input::whole(&app.ui)?,
            (None, Some(template)) if !path.exists() => template.text.to_owned(),
            (None, None) if !path.exists() && !looks_like_a_path(from) => return Ok(None),
            _ => input::file(path)?,
        };
        Ok(Some(Source {
            name: if from == "-" { "plan".to_owned() } else { from.to_owned() },
            text,
            parameters: self.parameters.iter().cloned().collect(),
            campaign: app.campaign_operand(self.campaign.as_deref().unwrap_or("."))?,
            flags,
        }))
    }

    /// What was named; nothing where flags say the plan.
    pub(super) fn from(&self) -> &str {
        self.from.as_deref().unwrap_or_default()
    }

    /// The command that starts it; none where flags say the plan, which are typed already.
    pub(super) fn start(&self) -> Option<String> {
        let from = self.from.as_deref()?;
        let set = |(key, value): &(String, String)| format!(" -p {}", shell_word(&format!("{key}={value}")));
        let parameters: String = self.parameters.iter().map(set).collect();
        let common = self.common.typed();
        let campaign = self.campaign.as_ref().map(|campaign| format!(" -C {}", shell_word(campaign)));
        let campaign = campaign.unwrap_or_default();
        Some(format!("ostler mission start {}{parameters}{common}{campaign}", shell_word(from)))
    }

    /// Nothing has this name.
    pub(super) fn unknown(&self) -> Failure {
        let said = one_line(self.from(), 80);
        let refusal =
            Refusal::new(Reason::InvalidArgument, format!("\"{said}\" is neither a file nor a template"));
        let refusal = match nearest(self.from(), templates().iter().map(|template| template.name)) {
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
    /// What is asked of the daemon about it, with what the command line says of agents for whom it says nothing.
    pub(super) fn wanted(&self, common: &CommonArgs) -> PlanMission {
        PlanMission {
            campaign: self.campaign.clone(),
            plan: self.text.clone(),
            parameters: self.parameters.clone(),
            provider: common.provider.clone(),
            model: common.model.clone(),
        }
    }

    /// Everything that is wrong with it, each with its line: `plan.toml:12: …`.
    pub(super) fn refusal(&self, faults: &[Fault]) -> Failure {
        match &self.flags {
            None => refusal(&self.name, faults),
            Some(flags) => told("the plan", faults, |line| {
                line.map_or_else(String::new, |line| format!("{}: ", flags.of_line(&self.text, line)))
            }),
        }
    }
}

pub(super) fn refusal(name: &str, faults: &[Fault]) -> Failure {
    told(name, faults, |line| match line {
        Some(line) => format!("{name}:{line}: "),
        None => format!("{name}: "),
    })
}

fn told(name: &str, faults: &[Fault], place: impl Fn(Option<usize>) -> String) -> Failure {
    let one = |fault: &Fault| {
        let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        one_line(&format!("{}{}{hint}", place(fault.line), fault.message), 300)
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
