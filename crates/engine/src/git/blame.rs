//! Who made a line what it is: the session and the turn whose snapshot has it first.

use std::path::Path;

use ostler_domain::{
    Event, Kind, Reason, Refusal, SessionId,
    campaign::Campaign,
    limits::PAGE_MOST,
    price::Dollars,
    query::EventFilter,
    snapshot::{Blamed, Cause, Origin},
    text::one_line,
};

use super::snapshot::line;
use crate::{Engine, campaign::check_same};

/// How much git says of one line.
const MOST_SAID: usize = 64 * 1024;

impl Engine {
    /// Where a line of a file comes from: `path` is absolute.
    pub async fn blame(&self, path: &str, number: u32) -> Result<Blamed, Refusal> {
        let parent = Path::new(path).parent().map(|parent| parent.to_string_lossy().into_owned());
        let campaign = self.campaign(parent.as_deref().unwrap_or("/")).await?;
        check_same(&campaign)?;
        let tree = self.worktree_around(path).await?;
        let root = tree.as_ref().map_or(&campaign.root.path, |tree| &tree.path);
        let below = below(path, root, &campaign)?;
        let reference = format!("refs/trees/{}", line(tree.as_ref()));
        let range = format!("-L{number},{number}");
        let args = ["blame", "--porcelain", &range, &reference, "--"];
        let said = self.shared.ask_snapshots(campaign.id, &args, &[&below], MOST_SAID).await;
        let said = said.map_err(|refusal| {
            Refusal::new(
                Reason::SnapshotUnknown,
                format!("no snapshot has {}:{number}", one_line(&below, 200)),
            )
            .because(refusal.why.unwrap_or(refusal.message))
        })?;
        let unknown = || {
            Refusal::new(
                Reason::SnapshotUnknown,
                format!("nobody recorded where {}:{number} is from", one_line(&below, 200)),
            )
        };
        let origin = Origin::parse(&said.text()).ok_or_else(unknown)?;
        let snapshot =
            self.shared.store.snapshot_of(campaign.id, &origin.commit).await?.ok_or_else(unknown)?;
        let (prompt, cost) = match snapshot.cause {
            Cause::Turn => self.turn_facts(snapshot.session, snapshot.turn).await?,
            Cause::Start | Cause::Rewind | Cause::Removal => (None, None),
        };
        Ok(Blamed { path: below, line: number, text: origin.text, snapshot, prompt, cost })
    }

    /// What was said to the agent in a turn, and what the turn cost.
    async fn turn_facts(
        &self,
        session: SessionId,
        turn: u32,
    ) -> Result<(Option<String>, Option<Dollars>), Refusal> {
        let kinds = [
            Kind::MessageAccepted,
            Kind::MessageSeen,
            Kind::MessageAnswered,
            Kind::TurnStarted,
            Kind::TurnEnded,
            Kind::UsageRecorded,
        ];
        let filter = EventFilter { session: Some(session), kinds: kinds.to_vec(), ..EventFilter::default() };
        let (mut after, mut said, mut texts) = (0, Vec::new(), Vec::new());
        let (mut is_open, mut cost) = (false, None);
        loop {
            let page = self.shared.store.events_after(after, &filter, PAGE_MOST).await?;
            for recorded in &page.rows {
                match &recorded.event {
                    Event::MessageAccepted(accepted) => {
                        said.push((accepted.message.id, accepted.message.text.clone()));
                    }
                    Event::MessageSeen(mark) | Event::MessageAnswered(mark) if mark.turn == Some(turn) => {
                        let place = said.iter().position(|(id, _)| *id == mark.id);
                        texts.extend(place.map(|place| said.swap_remove(place).1));
                    }
                    Event::TurnStarted(started) => is_open = started.turn == turn,
                    Event::TurnEnded(_) => is_open = false,
                    Event::UsageRecorded(used) if is_open => {
                        if let Some(more) = used.cost {
                            cost = Some(Dollars(cost.map_or(0, |Dollars(before)| before) + more.0));
                        }
                    }
                    _ => {}
                }
            }
            match page.next_cursor {
                Some(cursor) => after = cursor,
                None => break,
            }
        }
        Ok(((!texts.is_empty()).then(|| texts.join("\n")), cost))
    }
}

/// A file's path below the root of its tree.
fn below(path: &str, root: &str, campaign: &Campaign) -> Result<String, Refusal> {
    let path = Path::new(path);
    let canonical = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
    let whole = canonical.and_then(|parent| Some(parent.join(path.file_name()?)));
    let below = whole.as_deref().and_then(|whole| whole.strip_prefix(root).ok());
    below.map(|below| below.to_string_lossy().into_owned()).ok_or_else(|| {
        Refusal::invalid(format!("{} is no file of campaign {}", path.display(), campaign.name))
    })
}
