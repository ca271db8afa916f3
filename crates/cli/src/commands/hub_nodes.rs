//! The sessions of the other machines of this machine's hub, for `ls --node all`.

use ostler_client::Session;
use ostler_domain::{Time, hub};

use super::config;
use crate::{app::App, output::Line};

/// One of them, with its sessions and their campaigns.
pub(super) struct Listed {
    pub(super) node: String,
    pub(super) sessions: Vec<(Session, String)>,
    /// Since when nothing was heard of the machine, where it is away.
    pub(super) stale: Option<Time>,
}

/// Not this machine itself, nor any of those that are listed already. Whoever has no hub has none at all.
pub(super) async fn listed(app: &App, known: &[String]) -> Vec<Listed> {
    let has_hub = config::current(app).is_ok_and(|config| matches!(config.hub(), Ok(Some(_))));
    if !has_hub {
        return Vec::new();
    }
    match ask(app, known).await {
        Ok(listed) => listed,
        Err(failure) => {
            let refusal = failure.to_refusal();
            app.ui.remark(
                &Line::of("the hub does not answer")
                    .faint(format!("   {}", refusal.why.unwrap_or(refusal.message))),
            );
            Vec::new()
        }
    }
}

async fn ask(app: &App, known: &[String]) -> Result<Vec<Listed>, crate::failure::Failure> {
    let client = app.client_here().await?;
    let own = client.status().await?.node.to_string();
    let nodes = client.hub_lists().await?;
    let others = nodes.into_iter().filter(|node| node.node != own && !known.contains(&node.name));
    // What cannot be read is a newer machine's.
    let session = |row: hub::Row| {
        let campaign = row.session["campaign"].as_str().unwrap_or_default().to_owned();
        Some((serde_json::from_value(row.view).ok()?, campaign))
    };
    let listed = others.map(|node| Listed {
        node: node.name,
        sessions: node.rows.into_iter().filter_map(session).collect(),
        stale: node.stale_since.as_deref().and_then(Time::from_rfc3339),
    });
    Ok(listed.collect())
}
