//! Gas Town's files: `.events.jsonl`, `.sessions/index.jsonl` and `.sessions/<id>.json`.

use std::collections::HashMap;

use ostler_client::{Client, ListEvents, Place, Received, Session, query::EventFilter};
use ostler_domain::{
    Kind, Recorded,
    exchange::gastown::{self, Around},
    limits::PAGE_MOST,
};

use super::{Chosen, Count, target::Target};
use crate::{app::App, failure::Failure, output::Line};

/// What the feed and the steps are made from.
const KINDS: [Kind; 7] = [
    Kind::SessionStarted,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::HandoffRequested,
    Kind::DoneReported,
    Kind::StepStarted,
    Kind::StepEnded,
];

pub(super) async fn write(
    app: &App,
    client: &Client,
    chosen: &Chosen,
    target: &mut Target,
) -> Result<Count, Failure> {
    let sessions = chosen.sessions(client).await?;
    let names = app.campaign_names(client).await?;
    let children: HashMap<_, _> =
        sessions.iter().filter_map(|session| Some((session.continues?, session.id))).collect();
    let mut index = target.file(".sessions/index.jsonl")?;
    // The feed is in the order of the log, whichever session is written first.
    let mut feed = Vec::new();
    for (n, session) in sessions.iter().enumerate() {
        app.ui.show_meanwhile(Line::new().faint(format!("{} of {}", n + 1, sessions.len())));
        let events = events(client, session).await?;
        let mut steps = Vec::new();
        events.iter().for_each(|recorded| gastown::step(&mut steps, recorded));
        let tree = client.tree(&session.id.to_string()).await?;
        let rig = names.of(&session.campaign);
        let around = Around {
            rig: &rig,
            child: children.get(&session.id).copied(),
            branch: tree.branch.as_deref(),
            commits: &tree.commits,
            steps: &steps,
        };
        let made = gastown::Session::new(session, &around);
        index.write(made.index_line().as_bytes())?;
        target.write(&format!(".sessions/{}.json", session.id), made.file())?;
        feed.extend(events.iter().filter_map(|recorded| Some((recorded.seq, made.feed_line(recorded)?))));
    }
    target.close(index)?;
    feed.sort_unstable_by_key(|(seq, _)| *seq);
    let mut events = target.file(".events.jsonl")?;
    for (_, line) in feed {
        events.write(line.as_bytes())?;
    }
    target.close(events)?;
    Ok(Count { conversations: 0, sessions: sessions.len() as u64 })
}

async fn events(client: &Client, session: &Session) -> Result<Vec<Recorded>, Failure> {
    let filter = EventFilter { session: Some(session.id), kinds: KINDS.to_vec(), ..EventFilter::default() };
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let ask = ListEvents { filter: filter.clone(), from: Place::After(after), limit: PAGE_MOST };
        let page = client.events(&ask).await?;
        all.extend(page.events.into_iter().filter_map(|received| match received {
            Received::Known(recorded) => Some(*recorded),
            Received::Unknown(_) => None,
        }));
        match page.next {
            Some(next) => after = next,
            None => return Ok(all),
        }
    }
}
