//! `ostler retention run`: does what the rules say, after saying how much that is.

use std::collections::HashSet;

use clap::Args;
use ostler_client::Client;
use ostler_domain::Refusal;

use super::{Of, Planning, form::StepForm, planned};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    input,
    listing::{self, Object},
    output::{Format, Line},
    screen::retention::{self as screen, Entry},
    words,
};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    of: Of,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(app: &App, client: &Client, args: RunArgs) -> Result<u8, Failure> {
    let campaign = args.of.campaign(app)?;
    let Planning { steps, waiting } = planned(client, campaign.as_deref()).await?;
    let wanted: HashSet<String> =
        steps.iter().filter(|step| step.spared().is_none()).map(Entry::id).collect();
    if args.dry_run || wanted.is_empty() {
        show(app, &steps)?;
        let remarks = match steps.is_empty() {
            true => screen::nothing(&waiting, words::now()),
            false => {
                app.ui.remark(&Line::of(screen::sum(&steps)));
                screen::marked(&waiting, words::now())
            }
        };
        remarks.iter().for_each(|line| app.ui.remark(line));
        return Ok(exit_code::OK);
    }
    if !args.yes {
        if !app.ui.has_person() {
            let count = words::plural(wanted.len() as u64, "record", "records");
            return Err(Refusal::invalid(format!("{count} would be changed, and there is nobody to ask"))
                .because(screen::sum(&steps))
                .hint("ostler retention run -y", "does it without asking")
                .hint("ostler retention plan", "shows which they are")
                .into());
        }
        show(app, &steps)?;
        if !input::agrees(&app.ui, &format!("{}?", screen::sum(&steps))) {
            app.ui.remark(&Line::of("nothing was changed"));
            return Ok(exit_code::OK);
        }
    }
    follow(app, client, campaign.as_deref(), &wanted).await
}

async fn follow(
    app: &App,
    client: &Client,
    campaign: Option<&str>,
    wanted: &HashSet<String>,
) -> Result<u8, Failure> {
    let ui = &app.ui;
    let mut done = Vec::new();
    let mut take = |step: Entry| -> Result<u64, Failure> {
        let is_wanted = wanted.contains(&step.id());
        let failed = u64::from(is_wanted && step.spared().is_some());
        match ui.format() {
            Some(Format::Jsonl) => ui.json(&StepForm::new(&step))?,
            _ if ui.is_json() => {}
            _ if ui.is_quiet() => ui.data(&Line::of(step.id()))?,
            _ if is_wanted || step.spared().is_none() => ui.data(&screen::done(&step, words::now()))?,
            _ => {}
        }
        done.push(step);
        ui.show_meanwhile(Line::new().faint(format!("{} of {}", done.len(), wanted.len())));
        Ok(failed)
    };
    let mut failed = 0;
    let mut answers = client.run_retention(campaign).await?;
    while let Some(step) = answers.next().await {
        failed += take(Entry::Session(step?))?;
    }
    for step in client.archive_missions(campaign).await? {
        failed += take(Entry::Mission(step))?;
    }
    if ui.format() == Some(Format::Json) {
        ui.json(&Object {
            name: "steps",
            rows: done.iter().map(StepForm::new).collect(),
            next_cursor: None,
        })?;
    }
    Ok(if failed == 0 { exit_code::OK } else { exit_code::PARTLY })
}

fn show(app: &App, steps: &[Entry]) -> Result<(), Failure> {
    let ui = &app.ui;
    if ui.is_json() {
        let rows = steps.iter().map(StepForm::new).collect();
        return ui.json(&Object { name: "steps", rows, next_cursor: None });
    }
    if !listing::is_table(app) {
        return steps.iter().try_for_each(|step| ui.data(&Line::of(step.id())));
    }
    if steps.is_empty() {
        return Ok(());
    }
    ui.data_lines(&screen::plan(steps, words::now()).lines(ui.out_look()))
}
