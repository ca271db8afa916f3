//! `ostler mission start`.

use clap::Args;
use ostler_client::{Client, CreateMission, Mission, reply::PlannedMission};
use ostler_domain::{
    Reason, Refusal,
    budget::WhenUsedUp,
    mission::{Plan, Status, plan::OnDepFailure},
    session::Approve,
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
};

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Do not watch it: say that it was started and return; -q prints its id, -o name its name
    #[arg(short, long)]
    detach: bool,
    /// Exit 13 when a question of an agent was answered no, or a rule did not allow something
    #[arg(long, conflicts_with = "detach")]
    fail_on_denied: bool,
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
    match follow::start(app, &client, mission.id, args.fail_on_denied).await? {
        Followed::Over(code) => Ok(code),
        Followed::Left => Ok(exit_code::OK),
    }
}

async fn create(app: &App, client: &Client, args: &StartArgs, source: &Source) -> Result<Mission, Failure> {
    let planned = client.plan_mission(source.wanted(&args.source.common)).await?;
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
fn said(plan: Plan, args: &StartArgs, has_person: bool) -> Plan {
    let mut plan = args.source.common.said(plan);
    // Whoever waits without anybody there to ask wants an end.
    if !args.detach && !has_person {
        plan.when_used_up = WhenUsedUp::Stop;
        answered_by_nobody(&mut plan);
        blocked_by_nobody(&mut plan);
    }
    plan
}

/// What would be a person's to answer is denied at once. Who is told to ask in any case waits all the same.
fn answered_by_nobody(plan: &mut Plan) {
    plan.defaults.approve = plan.defaults.approve.or(Some(Approve::Policy));
    let all = plan.agents.iter_mut().map(|member| &mut member.settings).chain([&mut plan.defaults]);
    for settings in all.filter(|settings| settings.approve == Some(Approve::Policy)) {
        settings.approve = Some(Approve::Nobody);
    }
}

/// What would wait for a person to decide is skipped, and says why.
fn blocked_by_nobody(plan: &mut Plan) {
    let all = plan.agents.iter_mut().map(|member| &mut member.settings).chain([&mut plan.defaults]);
    for settings in all.filter(|settings| settings.on_dep_failure == Some(OnDepFailure::Block)) {
        settings.on_dep_failure = Some(OnDepFailure::Skip);
    }
}

/// Begins a mission that was made and not started.
async fn begin(client: &Client, args: &StartArgs) -> Result<Mission, Failure> {
    let mission = match client.mission(args.source.from()).await.map_err(Failure::from) {
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

#[cfg(test)]
mod tests {
    use ostler_domain::mission::plan::{Terms, read};

    use super::*;

    #[test]
    fn where_nobody_is_there_nobody_blocks() {
        let file = "objective = \"Do it\"\nstrategy = \"adaptive\"\n[defaults]\non_dep_failure = \"block\"\n\
                    [[agents]]\nname = \"a\"\ntask = \"a\"\non_dep_failure = \"run\"\n[[agents]]\nname = \"b\"\n\
                    task = \"b\"\nneeds = [\"a\"]\non_dep_failure = \"block\"\n";
        let mut plan = read(file, &Terms::default()).unwrap();
        blocked_by_nobody(&mut plan);
        let said: Vec<_> = plan.agents.iter().map(|member| member.settings.on_dep_failure).collect();
        assert_eq!(said, [Some(OnDepFailure::Run), Some(OnDepFailure::Skip)]);
        assert_eq!(plan.defaults.on_dep_failure, Some(OnDepFailure::Skip));
    }

    #[test]
    fn where_nobody_is_there_nobody_is_asked() {
        let file = "objective = \"Do it\"\n[[agents]]\nname = \"a\"\ntask = \"a\"\n[[agents]]\nname = \"b\"\n\
                    task = \"b\"\napprove = \"policy\"\n[[agents]]\nname = \"c\"\ntask = \"c\"\napprove = \"ask\"\n";
        let mut plan = read(file, &Terms::default()).unwrap();
        answered_by_nobody(&mut plan);
        let said: Vec<_> = plan.agents.iter().map(|member| member.settings.approve).collect();
        assert_eq!(said, [None, Some(Approve::Nobody), Some(Approve::Ask)]);
        assert_eq!(plan.defaults.approve, Some(Approve::Nobody));
        // It is the text of the plan that is sent.
        assert_eq!(read(&plan.to_toml(), &Terms::default()).unwrap(), plan);
    }
}
