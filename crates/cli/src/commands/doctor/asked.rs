//! Which agents answer: the scripted one is always tried, since it costs nothing; others where a person wants it.

use std::{collections::BTreeMap, time::Duration};

use ostler_client::{Campaign, Client, NodeStatus};
use ostler_domain::provider::{SCRIPT, Status};

use crate::{
    app::absolute,
    commands::provider::trial::{self, READY_WITHIN},
    failure::Failure,
    words,
};

/// The scripted agent starts in a moment, and nobody who looks at a machine waits longer for it.
const SCRIPT_READY_WITHIN: Duration = Duration::from_secs(10);

/// What came of asking one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Within(Duration),
    /// Why there was none.
    None(String),
}

/// `answered in 0.9 s inside the sandbox`
pub(super) fn within(took: Duration) -> String {
    format!("answered in {} inside the sandbox", words::took(took))
}

/// Asks those that can work, in the campaign of this directory, else in the first. Nobody is asked where nothing new starts.
pub(super) async fn answers(
    client: &Client,
    status: &NodeStatus,
    all: &[Status],
    campaigns: &[Campaign],
    asks_all: bool,
) -> Result<BTreeMap<String, Answer>, Failure> {
    let mut answers = BTreeMap::new();
    let Some(campaign) = campaign(campaigns).filter(|_| starts_sessions(status)) else { return Ok(answers) };
    let is_asked = |one: &&Status| one.lacks.is_none() && (asks_all || one.name == SCRIPT);
    for one in all.iter().filter(is_asked) {
        let ready_within = if one.name == SCRIPT { SCRIPT_READY_WITHIN } else { READY_WITHIN };
        let answer = match trial::run(client, &one.name, &campaign.id.to_string(), true, ready_within).await {
            // Others are before it in the line: nothing is known of it.
            Ok(tried) if tried.waits => continue,
            Ok(tried) => match (&tried.asked, &tried.problem) {
                (_, Some(problem)) => Answer::None(problem.clone()),
                (Some(asked), None) if asked.is_ok() => {
                    Answer::Within(Duration::from_millis(asked.answered_ms.unwrap_or_default()))
                }
                _ => Answer::None("not all of it works".to_owned()),
            },
            Err(Failure::Refused(refusal)) => Answer::None(refusal.message),
            Err(failure) => return Err(failure),
        };
        answers.insert(one.name.clone(), answer);
    }
    Ok(answers)
}

fn starts_sessions(status: &NodeStatus) -> bool {
    let has_room = status.disk.is_none_or(|disk| !disk.is_short());
    status.halt.is_none() && status.drain.is_none() && status.waiting_sessions == 0 && has_room
}

fn campaign(all: &[Campaign]) -> Option<&Campaign> {
    let here = absolute(".").unwrap_or_default();
    let around = all.iter().filter(|one| std::path::Path::new(&here).starts_with(&one.root.path));
    around.max_by_key(|one| one.root.path.len()).or_else(|| all.first())
}
