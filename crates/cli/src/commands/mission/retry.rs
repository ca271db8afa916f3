//! `ostler mission retry`.

use std::time::Duration;

use clap::Args;
use ostler_client::{MissionAction, ResumeMission, RetryMission};
use ostler_domain::budget::Amount;

use super::{Who, priced::Consent, told};
use crate::{app::App, exit_code, failure::Failure, parse};

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    who: Who,
    /// Only these assignments, and what they need and what follows from them [default: all that were not completed]
    #[arg(value_name = "NAME")]
    which: Vec<String>,
    /// Allow the mission this much in all, what is used included: 20usd, 5M, or both with a comma between them
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// Give it this much more time; one that is over has this long for it [default: the plan's]
    #[arg(long, value_parser = parse::duration, value_name = "SPAN")]
    time: Option<Duration>,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(app: &App, args: RetryArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let wanted =
        ResumeMission { who: args.who.who, budget: args.budget, more_time: args.time, which: args.which };
    if args.consent.given(app, &client, MissionAction::Retry, &wanted).await? {
        let ResumeMission { who, budget, more_time, which } = wanted;
        let mission = client.retry_mission(RetryMission { who, which, budget, more_time }).await?;
        told(app, &client, &mission, "goes on").await?;
    }
    Ok(exit_code::OK)
}
