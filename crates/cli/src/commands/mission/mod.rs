//! `ostler mission`: teams of agents with one objective.

mod add;
mod cancel;
mod flags;
mod follow;
mod graph;
mod logs;
mod ls;
mod pause;
mod plan;
mod priced;
mod report;
mod resume;
mod retry;
mod rm;
mod show;
mod source;
mod start;
mod template;

use clap::{Args, Subcommand};
use ostler_client::{Client, Mission};
use ostler_domain::call::Call;

use ostler_form::mission as form;

use crate::{
    app::App,
    failure::Failure,
    output::{Format, Line},
};
use form::MissionForm;

pub(super) use form::WholeForm;
pub(super) use pause::stood_still;
pub(super) use show::{by_id, lines};
pub(crate) use show::{sessions, still_at_work};
pub(super) use template::table as template_table;

#[derive(Debug, Args)]
pub(crate) struct MissionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a mission from a plan, and watch it; -d leaves it to itself
    #[command(alias = "create", after_help = flags::EXAMPLE)]
    Start(start::StartArgs),
    /// What a plan would come to: its graph, its waves, its price; changes nothing
    #[command(after_help = flags::EXAMPLE)]
    Plan(plan::PlanArgs),
    /// List missions, the newest first
    #[command(alias = "list")]
    Ls(ls::LsArgs),
    /// Show a mission: how far it is, its graph, who waits for what; -w draws it live
    #[command(alias = "get")]
    Show(show::ShowArgs),
    /// Short for `mission show -w`
    #[command(hide = true)]
    Watch(Who),
    /// The graph alone
    Graph(graph::GraphArgs),
    /// What happened to it, transition by transition; -f follows
    Logs(logs::LogsArgs),
    /// Freeze what runs, and begin nothing new
    Pause(pause::PauseArgs),
    /// Let it go on; says first what will run and what that costs
    Resume(resume::ResumeArgs),
    /// End it before its work is done
    Cancel(cancel::CancelArgs),
    /// Do again what was not completed, never what was; says first what will run and what that costs
    Retry(retry::RetryArgs),
    /// Add agents to an adaptive one that is not over
    Add(add::AddArgs),
    /// Take assignments away that have not begun; of one that is over, clear away what it left behind
    #[command(aliases = ["delete", "remove"])]
    Rm(rm::RmArgs),
    /// What came of it, in markdown
    Report(report::ReportArgs),
    /// Plans that come with Ostler: ls, show
    Template(template::TemplateArgs),
}

#[derive(Debug, Args)]
struct Who {
    /// Name, id, or part of an id
    #[arg(value_name = "MISSION")]
    who: String,
}

pub(crate) async fn run(app: &App, args: MissionArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Start(args) => start::run(app, args).await,
        Verb::Plan(args) => plan::run(app, args).await,
        Verb::Ls(args) => ls::run(app, args).await,
        Verb::Show(args) => show::run(app, args).await,
        Verb::Watch(who) => show::run(app, show::ShowArgs::watching(who)).await,
        Verb::Graph(args) => graph::run(app, args).await,
        Verb::Logs(args) => logs::run(app, args).await,
        Verb::Pause(args) => pause::run(app, args).await,
        Verb::Resume(args) => resume::run(app, args).await,
        Verb::Cancel(args) => cancel::run(app, args).await,
        Verb::Retry(args) => retry::run(app, args).await,
        Verb::Add(args) => add::run(app, args).await,
        Verb::Rm(args) => rm::run(app, args).await,
        Verb::Report(args) => report::run(app, args).await,
        Verb::Template(args) => template::run(app, args).await,
    }
}

impl MissionArgs {
    /// What an agent means by it; none for what only people may do.
    pub(super) fn call(&self, app: &App) -> Result<Option<Call>, Failure> {
        match &self.verb {
            Verb::Add(args) => args.call(app),
            _ => Ok(None),
        }
    }
}

/// One line about what a mission is now.
async fn told(app: &App, client: &Client, mission: &Mission, word: &str) -> Result<(), Failure> {
    if app.ui.is_json() {
        let name = app.campaign_name(client, &mission.campaign).await;
        return app.ui.json(&MissionForm::new(mission, &name));
    }
    if app.ui.format() == Some(Format::Name) {
        return app.ui.data(&Line::of(mission.name.as_str()));
    }
    if app.ui.is_quiet() {
        return app.ui.data(&Line::of(mission.id.to_string()));
    }
    let status = Line::new().faint(format!("  {}", mission.status.as_str()));
    app.ui.data(&Line::of(format!("{word}: mission ")).strong(mission.name.as_str()).append(status))
}
