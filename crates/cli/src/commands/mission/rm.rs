//! `ostler mission rm`.

use clap::Args;

use ostler_client::Client;
use ostler_domain::{
    Time,
    mission::{Beside, State, Wait},
};

use super::{Who, form::MissionForm, show, told};
use crate::{
    app::App,
    commands::retention::MissionStepForm,
    consent::Consent,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    screen::{mission::show::moment, retention::cleared},
    words,
};

#[derive(Debug, Args)]
pub(super) struct RmArgs {
    #[command(flatten)]
    who: Who,
    /// Assignments that have not begun; none: what a mission that is over has left behind
    #[arg(value_name = "NAME")]
    which: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(app: &App, args: RmArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let meant = client.mission(&args.who.who).await?.mission;
    let (campaign, id) = (app.campaign_name(&client, &meant.campaign).await, meant.id.to_string());
    let deed = match args.which.as_slice() {
        [] => format!("remove what mission {} has left behind; its record stays", meant.name),
        which => format!("remove {} of mission {}", which.join(", "), meant.name),
    };
    if !args.consent.given(&app.ui, &deed, &MissionForm::new(&meant, &campaign))? {
        return Ok(exit_code::OK);
    }
    if args.which.is_empty() {
        return clear(app, &client, &id).await;
    }
    let before = show::state(&client, &id).await?;
    let mission = client.remove_assignments(&id, &args.which).await?;
    told(app, &client, &mission, &format!("removed {}", args.which.join(", "))).await?;
    let (after, _) = client.mission_state(&mission.id.to_string()).await?;
    for line in inherited(&before, &after, words::now()) {
        app.ui.remark(&line);
    }
    Ok(exit_code::OK)
}

/// Whoever needed what was removed now needs what that needed: who waits for what instead.
fn inherited(before: &State, after: &State, now: Time) -> Vec<Line> {
    let now = moment(now);
    let waits = after.waits(&now, &Beside::default());
    let one = |(place, wait): &(usize, Wait)| {
        let has_changed = before.graph().needs(*place) != after.graph().needs(*place);
        let is_told = has_changed && matches!(wait, Wait::Needs(_));
        let name = after.slots()[*place].assignment.name.as_str();
        is_told.then(|| Line::of("  ").strong(name).plain(format!(" now waits {}", wait.words(after, &now))))
    };
    waits.iter().filter_map(one).collect()
}

/// Its members' work trees and the directory that they shared; its record stays.
async fn clear(app: &App, client: &Client, who: &str) -> Result<u8, Failure> {
    let step = client.remove_mission(who).await?;
    if app.ui.is_json() {
        app.ui.json(&MissionStepForm::new(&step))?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(step.mission.to_string()))?;
    } else {
        let line = Line::toned(Tone::Good, "✓ ").strong(step.name.as_str());
        app.ui.data(&line.plain(format!("  {}", cleared(&step))))?;
    }
    Ok(exit_code::OK)
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        event::{AssignmentsRemoved, By, Event, MissionStarted},
        mission::plan::{Terms, read},
    };

    use super::*;
    use crate::{commands::mission::plan::imagined, output::Look};

    #[test]
    fn who_waits_for_something_else_now_is_told() {
        let agent = |name: &str, needs: &str| {
            format!("[[agents]]\nname = \"{name}\"\ntask = \"t\"\nneeds = [{needs}]\n")
        };
        let agents = [agent("a", ""), agent("b", "\"a\""), agent("c", "\"b\""), agent("d", "\"c\"")];
        let text = format!("objective = \"x\"\nstrategy = \"adaptive\"\n{}", agents.concat());
        let mut before = imagined(&read(&text, &Terms::default()).unwrap()).unwrap();
        let (mission, by, now) = (before.id(), By::ostler(), before.created_at());
        let started = MissionStarted { mission, by: by.clone(), deadline: None, forecast: None };
        before.apply(now, &Event::MissionStarted(started));
        let mut after = before.clone();
        let assignments = vec![before.slots()[2].assignment.id];
        after.apply(now, &Event::AssignmentsRemoved(AssignmentsRemoved { mission, assignments, by }));
        let told: Vec<String> =
            inherited(&before, &after, now).iter().map(|line| line.show(&Look::plain(None))).collect();
        assert_eq!(told, ["  d now waits for b"]);
    }
}
