//! Which campaign an imported session belongs to: the one around the directory that its agent worked in. What was done
//! anywhere else is in a campaign of its own, whose directory is empty: importing must never let an agent into a directory.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use ostler_domain::{
    CampaignId, Event, Name, Policy, Refusal,
    campaign::{Campaign, Root},
    history::IMPORTED_DIR,
};

use crate::{Engine, clock::entropy};

impl Engine {
    pub(super) async fn campaign_around(&self, cwd: Option<&str>) -> Result<Campaign, Refusal> {
        let all = self.shared.store.campaigns().await?;
        let inside =
            |campaign: &&Campaign| cwd.is_some_and(|cwd| Path::new(cwd).starts_with(&campaign.root.path));
        match all.iter().filter(inside).max_by_key(|campaign| campaign.root.path.len()) {
            Some(campaign) => Ok(campaign.clone()),
            None => self.elsewhere(&all).await,
        }
    }

    /// The campaign of what was done in no campaign.
    pub(crate) fn is_elsewhere(&self, campaign: &Campaign) -> bool {
        let dir = self.shared.options.state_dir.join(IMPORTED_DIR);
        fs::canonicalize(dir).is_ok_and(|dir| Path::new(&campaign.root.path) == dir)
    }

    async fn elsewhere(&self, all: &[Campaign]) -> Result<Campaign, Refusal> {
        let dir = self.shared.options.state_dir.join(IMPORTED_DIR);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        let made = made.and_then(|()| fs::canonicalize(&dir)).and_then(|dir| {
            let about = fs::metadata(&dir)?;
            Ok((dir, about))
        });
        let (dir, about) = made.map_err(|error| {
            Refusal::internal(format!("the directory for what was imported cannot be made: {error}"))
        })?;
        let root = Root { path: dir.to_string_lossy().into_owned(), device: about.dev(), inode: about.ino() };
        if let Some(known) = all.iter().find(|campaign| campaign.root.path == root.path) {
            return Ok(known.clone());
        }
        let _naming = self.shared.naming.lock().await;
        let is_taken = |name: &Name| all.iter().any(|campaign| campaign.name == *name);
        let first: Name = IMPORTED_DIR.parse().unwrap_or_else(|_| unreachable!("it is a name"));
        let name = std::iter::once(first.clone())
            .chain((2..).map(|number| first.numbered(number)))
            .find(|name| !is_taken(name))
            .unwrap_or(first);
        let now = self.shared.clock.now().wall;
        let campaign = Campaign {
            id: CampaignId::new(now, entropy()),
            name,
            root,
            added: now,
            policy: Policy::default(),
            tracked_hidden: Vec::new(),
            unwatched: None,
        };
        self.record_node(now, Event::CampaignAdded(Box::new(campaign.clone()))).await?;
        Ok(campaign)
    }
}
