//! `ostler demo`: a mission of five scripted agents, the daemon killed with -9 among them, one of them killed and
//! continued, and every line that they said accounted for afterwards. Everything happens in a directory of its own, which
//! is removed.

mod account;
mod dashboard;
mod escape;
mod finale;
mod kills;
mod place;
mod play;
mod stage;
mod team;

use std::time::Duration;

use ostler_client::{AddCampaign, Client, CreateMission};
use ostler_domain::{Reason, Refusal, readiness::Trial};
use tokio::time::timeout;

use crate::{
    app::App,
    commands::{trial, with_runtime},
    exit_code,
    failure::Failure,
    signals::Signals,
    words,
};
use place::Place;
use play::Play;
use stage::Stage;

/// The demo takes a quarter of this. More means that something hangs.
const LONGEST: Duration = Duration::from_secs(120);

pub(crate) fn run(app: &App, keep: bool, dashboard: bool) -> Result<u8, Failure> {
    let place = Place::make()?;
    let outcome = with_runtime(async {
        let mut signals = Signals::catch()?;
        let outcome = tokio::select! {
            outcome = timeout(LONGEST, show(app, &place, dashboard)) => outcome.unwrap_or_else(|_| {
                let message = format!("the demo did not end within {}", words::span(LONGEST));
                Err(Refusal::new(Reason::TimedOut, message).into())
            }),
            asked = signals.next() => Ok(asked.exit_code()),
        };
        app.ui.flush()?;
        let is_shown = dashboard && outcome.as_ref().is_ok_and(|code| *code == exit_code::OK);
        // Where nobody can say that they have seen enough, it stays.
        let keep = keep || (is_shown && !app.ui.has_person());
        if is_shown && !keep {
            dashboard::wait(&app.ui, &mut signals).await?;
        }
        if keep {
            place.say_kept(&app.ui)?;
        } else {
            place.clean(&app.program.path).await;
        }
        outcome
    });
    if outcome.as_ref().is_ok_and(|code| *code == exit_code::OK) && !app.ui.is_json() {
        finale::say_next(&app.ui)?;
    }
    outcome
}

async fn show(app: &App, place: &Place, dashboard: bool) -> Result<u8, Failure> {
    let stage = Stage::new(&app.ui);
    let readiness = trial::try_sandbox(&app.program.path);
    stage.open(place, &readiness)?;
    place.make_repository()?;
    place.set_prices()?;
    let is_confined = matches!(readiness.trial, Trial::Ran { .. });
    if !is_confined {
        // Only here: these agents do nothing but what is written in this program.
        place.run_unconfined()?;
    }
    let client = Client::connect_or_start(place.home(), &app.program.path).await?;
    let path = place.repository().display().to_string();
    let campaign = client.add_campaign(AddCampaign { path, name: None }).await?;
    let plan = team::plan(&place.record(), is_confined);
    let wanted =
        CreateMission { campaign: campaign.id.to_string(), plan, starts: true, ..CreateMission::default() };
    let mission = client.create_mission(wanted).await?;
    let mut play = Play::begin(app, place, &client, mission.id, &stage).await?;
    play.watch().await?;
    let played = play.over().await?;
    let code = finale::play(app, &client, &stage, &played, is_confined).await?;
    if dashboard && code == exit_code::OK {
        dashboard::open(app, &client, mission.id).await?;
    }
    Ok(code)
}
