//! `ostler mission start`.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, CreateMission, Mission, reply::PlannedMission};
use ostler_domain::{
    Name, Reason, Refusal,
    budget::{Amount, WhenUsedUp},
    mission::{Plan, Status},
};

use super::{
    follow::{self, Followed},
    source::{Source, SourceArgs},
    told,
};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    parse,
};

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Do not watch it: print its id and return
    #[arg(short, long)]
    detach: bool,
    /// What people call it [default: the plan's, else made from its objective]
    #[arg(long)]
    name: Option<Name>,
    /// What all of it may use: 20usd, 5M, or both with a comma between them [default: the plan's]
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// How long it may run: 2h [default: the plan's]
    #[arg(long, value_parser = parse::duration, value_name = "SPAN")]
    time: Option<Duration>,
    /// The provider of agents for whom the plan names none
    #[arg(long)]
    provider: Option<String>,
    /// The model of agents for whom the plan names none
    #[arg(short, long)]
    model: Option<String>,
}

pub(super) async fn run(app: &App, args: StartArgs) -> Result<u8, Failure> {
    let source = args.source.read(app)?;
    let client = app.client().await?;
    let mission = match source {
        Some(source) => create(app, &client, &args, &source).await?,
        None => begin(&client, &args).await?,
    };
    if args.detach {
        told(app, &client, &mission, "started").await?;
        let show = format!("ostler mission show {}", mission.name);
        app.ui.remark(&Line::of("  ").with(Tone::Accent, show).faint("   how far it is"));
        return Ok(exit_code::OK);
    }
    let ctrl_c = if app.ui.has_person() { " · Ctrl-C to cancel or detach" } else { "" };
    let (id, strategy) = (mission.id.short(), mission.strategy.as_str());
    let header = Line::of(format!("mission {id} · ")).strong(mission.name.as_str());
    app.ui.remark(&header.plain(format!(" · {strategy}")).faint(ctrl_c));
    match follow::start(app, &client, mission.id).await? {
        Followed::Over(code) => Ok(code),
        Followed::Left => Ok(exit_code::OK),
    }
}

async fn create(app: &App, client: &Client, args: &StartArgs, source: &Source) -> Result<Mission, Failure> {
    let planned = client.plan_mission(&source.campaign, &source.text, &source.parameters).await?;
    let (plan, price) = match planned {
        PlannedMission::Faulty(faults) => return Err(source.refusal(&faults)),
        PlannedMission::Sound { plan, price, .. } => (*plan, price),
    };
    app.ui.remark(&Line::new().faint(format!("price: {}", price.words)));
    let wanted = CreateMission {
        campaign: source.campaign.clone(),
        plan: said(plan, args, app.ui.has_person()).to_toml(),
        starts: true,
        ..CreateMission::default()
    };
    Ok(client.create_mission(wanted).await?)
}

/// The plan with what the command line says.
fn said(mut plan: Plan, args: &StartArgs, has_person: bool) -> Plan {
    if args.name.is_some() {
        plan.name.clone_from(&args.name);
    }
    plan.budget = args.budget.map(|budget| budget.or(plan.budget.unwrap_or_default())).or(plan.budget);
    if let Some(time) = args.time {
        plan.time_us = Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
    // Whoever waits without anybody there to ask wants an end.
    if !args.detach && !has_person {
        plan.when_used_up = WhenUsedUp::Stop;
    }
    let defaults = &mut plan.defaults;
    defaults.provider = defaults.provider.take().or_else(|| args.provider.clone());
    defaults.model = defaults.model.take().or_else(|| args.model.clone());
    plan
}

/// Begins a mission that was made and not started.
async fn begin(client: &Client, args: &StartArgs) -> Result<Mission, Failure> {
    let mission = match client.mission(&args.source.from).await.map_err(Failure::from) {
        Ok(whole) => whole.mission,
        Err(failure) if failure.reason() == Some(Reason::MissionUnknown) => {
            return Err(args.source.unknown());
        }
        Err(failure) => return Err(failure),
    };
    let name = &mission.name;
    let (verb, effect) = match mission.status {
        Status::Created => return Ok(client.start_mission(&mission.id.to_string()).await?),
        Status::Running => ("show -w", "watches it"),
        Status::Paused => ("resume", "lets it go on"),
        Status::Completed => ("report", "what came of it"),
        Status::Partial | Status::Failed | Status::Cancelled => ("retry", "does what was not completed"),
    };
    let message = format!("the mission {name} was started before, and is {}", mission.status.as_str());
    let refusal = Refusal::new(Reason::WrongState, message);
    Err(refusal.hint(format!("ostler mission {verb} {name}"), effect).into())
}
