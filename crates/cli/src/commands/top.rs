//! `ostler top`: the live screen. Plain `ostler` is it too, where somebody sits before a terminal and there is something to see.

use std::process::Command;

use clap::Args;
use ostler_client::{
    Client, WantedNotices,
    query::{Page, Scope, SessionFilter},
};
use ostler_domain::{Refusal, SessionId, notice::Channel};
use ostler_tui::{Ended, Settings};

use super::{ls, price};
use crate::{
    app::{App, absolute},
    bell, exit_code,
    failure::Failure,
    listing,
    nodes::Where,
    signals::Asked,
    words,
};

/// As far back as failures are listed.
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

#[derive(Debug, Args)]
pub(crate) struct TopArgs {}

pub(crate) async fn run(app: &App) -> Result<u8, Failure> {
    if !is_possible(app) {
        return Err(Refusal::invalid("the live screen needs a terminal")
            .hint("ostler ls", "lists the sessions, those that need you first")
            .hint("ostler ls -w", "lists them again whenever something changes")
            .into());
    }
    let client = app.client().await?;
    // Whatever keeps a daemon from answering is said before the terminal is taken.
    client.status().await?;
    show(app, client).await
}

/// What is done when nothing is said.
pub(crate) async fn or_list(app: &App) -> Result<u8, Failure> {
    let is_here = !matches!(app.place()?, Where::Everywhere);
    if is_possible(app) && is_here && listing::is_table(app) && app.ui.format().is_none() {
        let client = app.client().await?;
        let scope = Scope::Current { failed_since: words::now().minus(DAY) };
        let seen = SessionFilter { scope, ..SessionFilter::default() };
        if !client.sessions(&seen, Page::of(1, None)).await?.rows.is_empty() {
            return show(app, client).await;
        }
    }
    ls::run(app, ls::LsArgs::default()).await
}

/// A person, and a terminal on which something can be drawn over something else.
fn is_possible(app: &App) -> bool {
    let terminals = app.ui.terminals();
    app.ui.has_person() && terminals.stdout_is_terminal && terminals.out.in_place
}

async fn show(app: &App, client: Client) -> Result<u8, Failure> {
    let near = match app.node() {
        None => client.campaign(&absolute(".")?).await.ok().map(|campaign| campaign.id),
        Some(_) => None,
    };
    let here = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let node = app.node().map(str::to_owned);
    let program = app.program.path.clone();
    let settings = Settings {
        client,
        look: app.ui.out_look().clone(),
        node: node.clone().unwrap_or_else(here),
        near,
        prices: price::prices(app)?,
        attach: Box::new(move |session: SessionId| {
            let mut command = Command::new(&program);
            command.args(node.iter().flat_map(|node| ["--node", node]));
            command.args(["attach", &session.to_string()]);
            command
        }),
        bell: Box::new(|| {
            let Channel { on, details, .. } = bell::terminal_channel(app)?;
            Some(WantedNotices { on, details, session: None })
        }),
        looked_at: app.node().is_none().then(|| app.home().map(|home| home.looked_at()).ok()).flatten(),
    };
    Ok(match ostler_tui::run(settings).await? {
        Ended::Quit => exit_code::OK,
        Ended::Interrupted => Asked::Interrupt.exit_code(),
        Ended::Terminated => Asked::Terminate.exit_code(),
    })
}
