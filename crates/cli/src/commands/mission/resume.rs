//! `ostler mission resume`.

use std::time::Duration;

use clap::Args;
use ostler_client::{MissionAction, ResumeMission};
use ostler_domain::budget::Amount;

use super::{Who, priced::Consent, told};
use crate::{app::App, exit_code, failure::Failure, parse};

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    who: Who,
    /// Only these of the assignments that wait for you [default: all]
    #[arg(value_name = "NAME")]
    which: Vec<String>,
    /// Allow it this much in all, what is used included: 20usd, 5M, or both with a comma between them
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// Give it this much more time: 30m
    #[arg(long, value_parser = parse::duration, value_name = "SPAN")]
    time: Option<Duration>,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(app: &App, args: ResumeArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let wanted =
        ResumeMission { who: args.who.who, budget: args.budget, more_time: args.time, which: args.which };
    if args.consent.given(app, &client, MissionAction::Resume, &wanted).await? {
        let mission = client.resume_mission(wanted).await?;
        told(app, &client, &mission, "goes on").await?;
    }
    Ok(exit_code::OK)
}
