//! `ostler mission report`.

use clap::Args;
use serde::Serialize;

use super::Who;
use crate::{app::App, exit_code, failure::Failure, words};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    #[command(flatten)]
    who: Who,
}

#[derive(Serialize)]
struct ReportForm {
    id: String,
    name: String,
    status: &'static str,
    /// In markdown.
    report: String,
}

pub(super) async fn run(app: &App, args: ReportArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let (state, report) = client.mission_report(&args.who.who, words::now()).await?;
    if app.ui.is_json() {
        let (id, name) = (state.id().to_string(), state.name().to_string());
        app.ui.json(&ReportForm { id, name, status: state.status().as_str(), report })?;
    } else {
        app.ui.page();
        app.ui.text(&report)?;
    }
    Ok(exit_code::OK)
}
