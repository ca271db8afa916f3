//! `ostler mission plan`: what a plan would come to.

use clap::Args;
use ostler_client::reply::PlannedMission;
use ostler_domain::{
    CampaignId, MissionId, Refusal,
    event::By,
    mission::{self, Context, Plan, State, lease::Turn},
};

use super::{form::PlanForm, source::SourceArgs};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    screen::mission::show::{Seen, moment},
    words,
};

/// Of those that take turns for a lease.
const TURNS_SHOWN: usize = 12;

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Print the plan itself, with its parameters filled in, as TOML
    #[arg(long)]
    toml: bool,
}

pub(super) async fn run(app: &App, args: PlanArgs) -> Result<u8, Failure> {
    let source = args.source.read(app)?.ok_or_else(|| args.source.unknown())?;
    let client = app.client().await?;
    let planned = client.plan_mission(source.wanted(&args.source.common)).await?;
    let (plan, waves, price, eta) = match &planned {
        PlannedMission::Faulty(faults) => return Err(source.refusal(faults)),
        PlannedMission::Sound { plan, waves, price, eta } => (plan, waves, price, eta),
    };
    let plan = &args.source.common.said((**plan).clone());
    if let (true, Some(form)) = (app.ui.is_json(), PlanForm::new(&planned)) {
        app.ui.json(&form)?;
        return Ok(exit_code::OK);
    }
    if args.toml || app.ui.is_quiet() {
        app.ui.text(&plan.to_toml())?;
        return Ok(exit_code::OK);
    }
    let state = imagined(plan)?;
    let seen = Seen { state: &state, sessions: &[], whole: None, now: state.created_at() };
    let look = app.ui.out_look();
    let agents = words::plural(plan.assignments() as u64, "assignment", "assignments");
    let in_waves = words::plural(waves.len() as u64, "wave", "waves");
    let head = Line::new()
        .strong(plan.named().as_str())
        .plain(format!("  {} · {agents} in {in_waves}", plan.strategy.as_str()));
    let mut lines = vec![head];
    lines.push(Line::of(format!("“{}”", ostler_domain::text::one_line(&plan.objective, 400))));
    lines.extend(seen.graph(look.width));
    for (n, wave) in waves.iter().enumerate() {
        lines.push(Line::new().faint(format!("wave {:<3} ", n + 1)).plain(names(wave)));
    }
    for Turn { later, earlier, path } in state.lease_turns(TURNS_SHOWN) {
        let name = |place: usize| state.slots()[place].assignment.name.to_string();
        let waits = format!("{} waits for {}: both could write {path}", name(later), name(earlier));
        lines.push(Line::new().faint("lease    ").plain(waits));
    }
    lines.push(Line::new().faint("price    ").plain(&price.words));
    lines.push(Line::new().faint("time     ").plain(&eta.words));
    for line in lines {
        app.ui.data_lines(&line.folded(look.width, 9))?;
    }
    let nothing = Line::of("nothing was started");
    app.ui.remark(&match args.source.start() {
        Some(start) => nothing.plain("   ").with(Tone::Accent, start).faint("   starts it"),
        None => nothing.faint("   start with the same flags starts it"),
    });
    Ok(exit_code::OK)
}

/// Names, as many as are read.
pub(super) fn names(all: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", "))
}

/// The mission that a plan would become, to be drawn.
pub(super) fn imagined(plan: &Plan) -> Result<State, Failure> {
    let now = words::now();
    let context = Context {
        now: moment(now),
        entropy: 0,
        used: Default::default(),
        paused_by_hand: Default::default(),
        halted: false,
    };
    let (id, campaign) = (MissionId::new(now, 0), CampaignId::new(now, 0));
    let created = mission::create(plan.clone(), id, campaign, plan.named(), By::ostler(), &context)?;
    let state = State::replay([(now, &created)]);
    Ok(state.ok_or_else(|| Refusal::internal("a plan came to no mission"))?)
}

#[cfg(test)]
mod tests {
    use ostler_domain::mission::plan::{Terms, read};

    use super::*;

    /// The plans of the page about missions, each between its fences.
    fn documented() -> Vec<&'static str> {
        let page = include_str!("../../../../../docs/howto/missions.md");
        let mut plans = Vec::new();
        let mut rest = page;
        while let Some((_, after)) = rest.split_once("\n```toml\n") {
            // A plan may have a fence within a text, which its last lines come after.
            let end = after
                .match_indices("\n```\n")
                .map(|(at, _)| at)
                .find(|at| read(&after[..*at], &Terms::default()).is_ok());
            let end = end.unwrap_or_else(|| panic!("{:?}", read(after, &Terms::default())));
            plans.push(&after[..end]);
            rest = &after[end..];
        }
        plans
    }

    #[test]
    fn the_documented_plans_are_plans() {
        let plans = documented();
        assert_eq!(plans.len(), 2);
        let drawn: Vec<usize> = plans
            .iter()
            .map(|text| imagined(&read(text, &Terms::default()).unwrap()).unwrap().slots().len())
            .collect();
        assert_eq!(drawn, [4, 3]);
    }

    #[test]
    fn many_names_are_counted() {
        let all: Vec<String> = (0..14).map(|n| format!("a{n}")).collect();
        assert!(names(&all).ends_with("a11 and 2 more"));
    }
}
