//! `ostler version`

use clap::Args;
use serde::Serialize;

use crate::{app::App, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {}

#[derive(Serialize)]
struct VersionForm {
    version: &'static str,
}

pub(crate) fn run(app: &App, _: &VersionArgs) -> Result<u8, Failure> {
    let version = app.program.version;
    if app.ui.is_json() {
        app.ui.json(&VersionForm { version })?;
    } else {
        app.ui.data(&Line::of(format!("ostler {version}")))?;
    }
    Ok(exit_code::OK)
}
