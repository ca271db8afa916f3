//! `ostler demo --dashboard`: the finished mission in a browser, for as long as somebody looks at it.

use std::thread;

use ostler_client::Client;
use ostler_domain::MissionId;
use tokio::sync::oneshot;

use crate::{
    app::App,
    commands::open,
    failure::Failure,
    output::{Line, Ui},
    signals::Signals,
};

pub(super) async fn open(app: &App, client: &Client, mission: MissionId) -> Result<(), Failure> {
    let way = client.open_http(&format!("/missions/{mission}")).await?;
    app.ui.data(&Line::new())?;
    open::lead_in(app, &way, false)
}

/// Waits until whoever looks has seen enough.
pub(super) async fn wait(ui: &Ui, signals: &mut Signals) -> Result<(), Failure> {
    ui.remark(&Line::of("Enter closes it and removes everything; --keep leaves it"));
    let (seen_enough, heard) = oneshot::channel();
    // A thread of its own: nothing can interrupt somebody who waits for a key.
    thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = seen_enough.send(());
    });
    tokio::select! {
        _ = heard => {}
        _ = signals.next() => {}
    }
    Ok(())
}
