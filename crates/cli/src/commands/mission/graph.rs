//! `ostler mission graph`: the drawn graph alone.

use clap::Args;
use serde::Serialize;

use super::{Who, show};
use crate::{app::App, exit_code, failure::Failure, screen::mission::show::Seen, words};

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    #[command(flatten)]
    who: Who,
}

/// The graph for programs.
#[derive(Serialize)]
struct GraphForm<'a> {
    nodes: Vec<NodeForm<'a>>,
    waves: Vec<Vec<&'a str>>,
}

#[derive(Serialize)]
struct NodeForm<'a> {
    name: &'a str,
    role: &'a str,
    status: &'static str,
    needs: Vec<&'a str>,
}

pub(super) async fn run(app: &App, args: GraphArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let state = show::state(&client, &args.who.who).await?;
    if app.ui.is_json() {
        let name = |place: usize| state.slots()[place].assignment.name.as_str();
        let node = |place: usize| NodeForm {
            name: name(place),
            role: state.slots()[place].assignment.role.as_str(),
            status: state.status_of(place).as_str(),
            needs: state.graph().needs(place).iter().map(|need| name(*need as usize)).collect(),
        };
        let waves = state.graph().waves();
        let waves = waves.iter().map(|wave| wave.iter().map(|place| name(*place)).collect()).collect();
        app.ui.json(&GraphForm { nodes: (0..state.slots().len()).map(node).collect(), waves })?;
        return Ok(exit_code::OK);
    }
    let sessions = show::sessions(&client, state.id()).await?;
    let seen = Seen { state: &state, sessions: &sessions, whole: None, now: words::now() };
    app.ui.page();
    app.ui.data_lines(&seen.graph(app.ui.out_look().width))?;
    Ok(exit_code::OK)
}
