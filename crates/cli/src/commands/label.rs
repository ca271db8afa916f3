//! `ostler label`: one line about a conversation, shown and found with it.

use clap::Args;

use super::conversation;
use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    /// Session or conversation: name, id, part of an id, or - for the last one of this terminal
    #[arg(value_name = "WHO")]
    who: String,
    /// One line; an empty one takes the label away
    #[arg(value_name = "TEXT")]
    label: String,
}

pub(crate) async fn run(app: &App, args: LabelArgs) -> Result<u8, Failure> {
    conversation::label(app, &args.who, &args.label).await
}
