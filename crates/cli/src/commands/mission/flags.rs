//! A plan made of flags: the same one as a file would be.

use std::time::Duration;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use ostler_domain::{
    Name,
    budget::Amount,
    limits::MISSION_RETRIES_MOST,
    mission::{
        Member, Plan, Strategy,
        plan::{CompleteWhen, Merge, OnDepFailure, Settings, Worktree},
    },
    text::shell_word,
    time::span_text,
};

use crate::parse;

/// An example for the help.
pub(super) const EXAMPLE: &str = "\
Without a file, by flags:
  ostler mission start --objective \"Limit login attempts, with tests\" --strategy pipeline \\
    --agent \"plan@1=Divide the work into two parts\" --agent \"build*2:builder@2=Do the part that has your number\" \\
    --agent \"review@3=Review what the builders did\" --provider claude-code --budget 5usd --worktree \\
    --check \"cargo test\" --merge-into main
What differs from agent to agent beside that (provider, model, budget, inputs, paths) is said in a file.";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct FlagArgs {
    /// What the agents are to reach: a plan by flags, without a file
    #[arg(long, value_name = "TEXT", conflicts_with = "from", requires = "agent")]
    pub(super) objective: Option<String>,
    /// In which order they work: parallel, sequential, adaptive or pipeline [default: parallel]
    #[arg(long, value_parser = strategy(), hide_possible_values = true, requires = "objective", conflicts_with = "from")]
    strategy: Option<Strategy>,
    /// An agent, again for more; without a task its task is the objective
    #[arg(
        long,
        value_name = "NAME[*INSTANCES][:ROLE][@STAGE][<NEED,…][=TASK]",
        value_parser = Agent::read,
        requires = "objective",
        conflicts_with = "from"
    )]
    agent: Vec<Agent>,
    /// How long each agent may take: 30m
    #[arg(long, value_parser = parse::time_limit, value_name = "SPAN", requires = "objective", conflicts_with = "from")]
    agent_timeout: Option<Duration>,
    /// Each agent in a work tree of its own
    #[arg(long, requires = "objective", conflicts_with = "from")]
    worktree: bool,
    /// The command that says, in each agent's sandbox, whether its work is done [default: its turn ended]
    #[arg(long, value_parser = parse::shell_command, value_name = "COMMAND", requires = "objective", conflicts_with = "from")]
    check: Option<String>,
    /// How often an agent that came to nothing is tried again
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(..=i64::from(MISSION_RETRIES_MOST)), requires = "objective", conflicts_with = "from")]
    retries: Option<u32>,
    /// When something that an agent needs was not completed: skip it, block until you decide, or run it all the same
    #[arg(long, value_name = "RULE", value_parser = rule(), hide_possible_values = true, requires = "objective", conflicts_with = "from")]
    on_dep_failure: Option<OnDepFailure>,
    /// The branch that the agents' work is merged into in the end
    #[arg(long, value_name = "BRANCH", requires = "worktree", conflicts_with = "from")]
    merge_into: Option<String>,
    /// The command that must succeed on the merge
    #[arg(long, value_parser = parse::shell_command, value_name = "COMMAND", requires = "merge_into", conflicts_with = "from")]
    gate: Option<String>,
}

/// What may be said of a plan wherever it comes from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct CommonArgs {
    /// What people call it [default: the plan's, else made from its objective]
    #[arg(long)]
    pub(super) name: Option<Name>,
    /// What all of it may use: 20usd, 5M, or both with a comma between them [default: the plan's]
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    pub(super) budget: Option<Amount>,
    /// How long all of it may take: 2h; with nobody there to ask it then ends, exit 12 [default: the plan's `time`]
    #[arg(long, alias = "time", value_parser = parse::duration, value_name = "SPAN")]
    pub(super) timeout: Option<Duration>,
    /// The provider of agents for whom the plan names none
    #[arg(long)]
    pub(super) provider: Option<String>,
    /// The model of agents for whom the plan names none
    #[arg(short, long)]
    pub(super) model: Option<String>,
}

/// One `--agent`, and how it was typed.
#[derive(Debug, Clone)]
struct Agent {
    said: String,
    member: Member,
}

impl Agent {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Self { said: text.to_owned(), member: Member::from_flag(text)? })
    }
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let words = Strategy::ALL.iter().map(|one| one.as_str());
    PossibleValuesParser::new(words).map(|word| Strategy::parse(&word).unwrap_or_default())
}

fn rule() -> impl TypedValueParser<Value = OnDepFailure> {
    let words = OnDepFailure::ALL.iter().map(|one| one.as_str());
    PossibleValuesParser::new(words).map(|word| OnDepFailure::parse(&word).unwrap_or_default())
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl CommonArgs {
    /// The same flags again, as they are typed behind a command.
    pub(super) fn typed(&self) -> String {
        let flags = [
            ("--name", self.name.as_ref().map(ToString::to_string)),
            ("--budget", self.budget.map(|budget| budget.to_string())),
            ("--timeout", self.timeout.map(span_text)),
            ("--provider", self.provider.clone()),
            ("--model", self.model.clone()),
        ];
        let one = |(flag, value): (&str, Option<String>)| Some(format!(" {flag} {}", shell_word(&value?)));
        flags.into_iter().filter_map(one).collect()
    }

    /// The plan with what the command line says.
    pub(super) fn said(&self, mut plan: Plan) -> Plan {
        if self.name.is_some() {
            plan.name.clone_from(&self.name);
        }
        plan.budget = self.budget.or(plan.budget);
        plan.time_us = self.timeout.map(micros).or(plan.time_us);
        let defaults = &mut plan.defaults;
        defaults.provider = defaults.provider.take().or_else(|| self.provider.clone());
        defaults.model = defaults.model.take().or_else(|| self.model.clone());
        plan
    }
}

impl FlagArgs {
    /// The plan that the flags say; none where they say none.
    pub(super) fn plan(&self) -> Option<Plan> {
        let objective = self.objective.clone()?;
        let agents = self.agent.iter().map(|agent| agent.member.clone());
        let with_task = |mut member: Member| {
            if member.task.is_empty() {
                member.task.clone_from(&objective);
            }
            member
        };
        Some(Plan {
            strategy: self.strategy.unwrap_or_default(),
            defaults: Settings {
                timeout_us: self.agent_timeout.map(micros),
                worktree: self.worktree.then_some(Worktree::Own),
                complete_when: self.check.clone().map(CompleteWhen::Check),
                retries: self.retries,
                on_dep_failure: self.on_dep_failure,
                ..Settings::default()
            },
            merge: self.merge_into.clone().map(|into| Merge {
                into,
                from: Vec::new(),
                gate: self.gate.clone(),
            }),
            agents: agents.map(with_task).collect(),
            objective,
            ..Plan::default()
        })
    }

    /// The flag that a line of the plan's file comes from.
    pub(super) fn of_line(&self, file: &str, line: usize) -> String {
        let (mut section, mut agents) = ("", 0);
        let mut key = "";
        for text in file.lines().take(line) {
            if text.starts_with('[') {
                (section, key) = (text, "");
                agents += usize::from(text == "[[agents]]");
            } else if let Some((said, _)) = text.split_once(" = ") {
                key = said;
            }
        }
        match (section, self.agent.get(agents.saturating_sub(1))) {
            ("[[agents]]", Some(agent)) => format!("--agent \"{}\"", agent.said),
            (_, _) if key.is_empty() => "--objective".to_owned(),
            (_, _) => match (section, key) {
                ("[defaults]", "timeout") => "--agent-timeout".to_owned(),
                ("", "time") => "--timeout".to_owned(),
                (_, "complete_when") => "--check".to_owned(),
                (_, "on_dep_failure") => "--on-dep-failure".to_owned(),
                (_, "into") => "--merge-into".to_owned(),
                (_, key) => format!("--{key}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use ostler_domain::mission::plan::{Terms, read};

    use super::*;
    use crate::commands::mission::source::SourceArgs;

    fn flags() -> (FlagArgs, CommonArgs) {
        let agent = |text: &str| Agent::read(text).unwrap();
        let flags = FlagArgs {
            objective: Some("Do it".to_owned()),
            strategy: Some(Strategy::Pipeline),
            agent: vec![agent("plan@1=Plan it"), agent("build*2:builder@2")],
            agent_timeout: Some(Duration::from_secs(1_800)),
            worktree: true,
            check: Some("make test".to_owned()),
            retries: Some(3),
            on_dep_failure: Some(OnDepFailure::Run),
            merge_into: Some("main".to_owned()),
            gate: Some("make".to_owned()),
        };
        let common = CommonArgs {
            provider: Some("script".to_owned()),
            budget: Some(parse::budget("5usd").unwrap()),
            timeout: Some(Duration::from_secs(7_200)),
            ..CommonArgs::default()
        };
        (flags, common)
    }

    #[test]
    fn flags_make_the_plan_that_a_file_would() {
        let file = "objective = \"Do it\"\nstrategy = \"pipeline\"\nbudget = \"5usd\"\ntime = \"2h\"\n[defaults]\n\
                    provider = \"script\"\ntimeout = \"30m\"\nworktree = true\nretries = 3\n\
                    complete_when = { check = \"make test\" }\non_dep_failure = \"run\"\n\
                    [merge]\ninto = \"main\"\ngate = \"make\"\n[[agents]]\nname = \"plan\"\n\
                    stage = 1\ntask = \"Plan it\"\n[[agents]]\nname = \"build\"\nrole = \"builder\"\n\
                    instances = 2\nstage = 2\ntask = \"Do it\"\n";
        let (flags, common) = flags();
        assert_eq!(common.said(flags.plan().unwrap()), read(file, &Terms::default()).unwrap());
        assert_eq!(FlagArgs::default().plan(), None);
    }

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        source: SourceArgs,
    }

    #[test]
    fn a_file_says_all_of_the_plan_or_nothing_of_it() {
        for flags in [
            &["--agent", "a=t"][..],
            &["--strategy", "parallel"],
            &["--check", "make"],
            &["--worktree"],
            &["--retries", "1"],
            &["--agent-timeout", "1m"],
            &["--on-dep-failure", "run"],
            &["--merge-into", "main"],
        ] {
            let typed = ["plan", "plan.toml"].iter().chain(flags);
            let error = Typed::try_parse_from(typed).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{flags:?}: {error}");
        }
    }

    #[test]
    fn what_starts_a_plan_has_what_was_said_of_it() {
        let flags =
            ["--name", "n", "--budget", "5usd", "--timeout", "2h", "--provider", "script", "-p", "k=a b"];
        let typed = Typed::try_parse_from(["plan", "plan.toml", "-C", "shop"].iter().chain(&flags)).unwrap();
        let start = typed.source.start().unwrap();
        assert_eq!(
            start,
            "ostler mission start plan.toml -p 'k=a b' --name n --budget 5usd --timeout 2h --provider script -C shop"
        );
    }

    #[test]
    fn every_line_has_its_flag() {
        let (flags, common) = flags();
        let file = common.said(flags.plan().unwrap()).to_toml();
        let line = |what: &str| file.lines().position(|line| line.starts_with(what)).unwrap() + 1;
        let flag = |what: &str| flags.of_line(&file, line(what));
        assert_eq!(
            [flag("strategy"), flag("provider"), flag("budget")],
            ["--strategy", "--provider", "--budget"]
        );
        assert_eq!([flag("time ="), flag("timeout")], ["--timeout", "--agent-timeout"]);
        assert_eq!(
            [flag("complete_when"), flag("on_dep_failure"), flag("into"), flag("gate"), flag("retries")],
            ["--check", "--on-dep-failure", "--merge-into", "--gate", "--retries"]
        );
        assert_eq!(flag("role"), "--agent \"build*2:builder@2\"");
        assert_eq!(flag("[[agents]]"), "--agent \"plan@1=Plan it\"");
    }
}
