//! Whether what several members have in their trees will merge.

use std::path::Path;

use ostler_domain::{
    AssignmentId, Refusal, SessionId,
    campaign::Campaign,
    limits::{COLLISION_PATHS, FORECAST_OTHERS, GIT_TIME},
    mission::forecast,
    session::View,
    snapshot::Cause,
};
use ostler_store::SeenWork;

use super::{
    diff::not_done,
    inside::{self, Access},
    snapshot::{Look, line},
};
use crate::{Engine, shared::Shared};

const FORECAST: &str = include_str!("forecast.sh");
/// Room for the paths that are told of each, and for some that are not.
const MOST_SAID: usize = FORECAST_OTHERS * COLLISION_PATHS * 256;

/// What a member's tree had after a turn, and the commit that it stood on.
#[derive(Debug, Clone)]
pub(crate) struct Stand {
    pub(crate) snapshot: String,
    pub(crate) head: String,
}

impl Engine {
    /// How far the newest of these sessions that was looked at has come.
    pub(crate) async fn stand(&self, sessions: &[SessionId]) -> Result<Option<Stand>, Refusal> {
        for session in sessions.iter().rev() {
            let taken = self.shared.store.snapshots(*session).await?;
            let Some(snapshot) = taken.iter().rev().find_map(|taken| taken.commit.clone()) else { continue };
            let head = self.shared.store.seen_work(*session).await?.head;
            return Ok(head.map(|head| Stand { snapshot, head }));
        }
        Ok(None)
    }
}

impl Shared {
    /// How far the tree of a session is in this moment, in the middle of a turn. Written down beside what turns have left,
    /// and recorded nowhere.
    pub(crate) async fn stand_now(&self, campaign: &Campaign, view: &View) -> Option<Stand> {
        let look = Look {
            session: view.id,
            campaign: campaign.id,
            tree: view.working_dir.clone(),
            line: line(view.worktree.as_ref()),
            is_worktree: view.worktree.is_some(),
            hidden: campaign.policy.hide.clone(),
            turn: view.turns,
            cause: Cause::Turn,
            put_back_to: None,
        };
        let _alone = self.git.alone(campaign.id).await;
        let _room = self.git.at_once.acquire().await;
        let report = self.looked(&look, None, &SeenWork::default()).await.ok()?;
        Some(Stand { snapshot: report.snapshot?, head: report.head? })
    }

    /// With which of the others one tree merges, and in which files it does not; those of whom git cannot say it are left
    /// out.
    pub(crate) async fn forecast(
        &self,
        campaign: &Campaign,
        one: &Stand,
        others: &[(AssignmentId, Stand)],
    ) -> Result<Vec<(AssignmentId, Vec<String>)>, Refusal> {
        let root = Path::new(&campaign.root.path);
        let broken = |error: std::io::Error| {
            Refusal::internal("the trees cannot be compared").because(error.to_string())
        };
        let repository = super::repository(&self.options.state_dir, campaign.id).map_err(broken)?;
        let hidden = &campaign.policy.hide;
        let confinement =
            inside::around(root, Access::ReadOnly, hidden, Some(&repository)).map_err(broken)?;
        let own = root.join(".git").to_string_lossy().into_owned();
        let mut args = vec![own, one.snapshot.clone(), one.head.clone()];
        for (id, stand) in others {
            args.extend([id.to_string(), stand.snapshot.clone(), stand.head.clone()]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let document = inside::script(confinement, FORECAST, &args);
        // Snapshots are packed now and then by whoever takes one.
        let _alone = self.git.alone(campaign.id).await;
        let _room = self.git.at_once.acquire().await;
        let said = inside::run(&self.program, &document, GIT_TIME, MOST_SAID).await.map_err(not_done)?;
        Ok(forecast::read(&said.text()))
    }
}
