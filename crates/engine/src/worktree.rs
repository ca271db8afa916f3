//! Where a new session works: in its campaign's own directory, in the work tree of whom it goes on with or helps, or in a
//! new one.

use ostler_domain::{
    Name, Refusal,
    campaign::Campaign,
    session::Created,
    worktree::{Ground, Worktree},
};

use crate::{Engine, NewSession, place::Whose};

/// What a session wants of a work tree.
pub(crate) enum Wish {
    /// The campaign's own directory.
    Nothing,
    /// The one that another session had.
    Same(Worktree),
    New {
        ground: Ground,
        branch: Option<String>,
        /// The commit that it begins with, where that is not the campaign's.
        start: Option<String>,
    },
}

impl Engine {
    /// What a new session wants, looked at before anybody is kept waiting for names.
    pub(crate) async fn wish_for_worktree(
        &self,
        wanted: &NewSession,
        whose: &Whose,
        campaign: &Campaign,
    ) -> Result<Wish, Refusal> {
        let there = self.worktree_before(wanted, whose, campaign).await?;
        let Some(asked) = &wanted.worktree else { return Ok(there.map_or(Wish::Nothing, Wish::Same)) };
        let fits = |there: &Worktree| asked.branch.as_ref().is_none_or(|branch| *branch == there.branch);
        if let Some(there) = there.filter(fits) {
            return Ok(Wish::Same(there));
        }
        let ground = self.worktree_ground(campaign, asked.branch.as_deref()).await?;
        Ok(Wish::New { ground, branch: asked.branch.clone(), start: None })
    }

    /// The work tree of whom it goes on with, or helps: whoever helps reaches what the one it helps does, and no more.
    async fn worktree_before(
        &self,
        wanted: &NewSession,
        whose: &Whose,
        campaign: &Campaign,
    ) -> Result<Option<Worktree>, Refusal> {
        if let Some(handed) = &wanted.handed {
            return Ok(handed.old.created().config.worktree.clone());
        }
        let store = &self.shared.store;
        let before = match (&whose.agent, wanted.spawned_by) {
            (Some(agent), _) => {
                match store.conversation_keyed(campaign.id, Some(agent.id), &whose.key).await? {
                    Some(conversation) => self.last_session(conversation.id).await?,
                    None => None,
                }
            }
            (None, Some(asker)) if wanted.helper.is_some() => store.session(asker).await?,
            (None, _) => None,
        };
        Ok(before.and_then(|view| view.worktree))
    }

    /// Where a session of this name works. Names are being chosen by nobody else meanwhile.
    pub(crate) async fn place_to_work(
        &self,
        campaign: &Campaign,
        name: &Name,
        wish: Wish,
    ) -> Result<(String, Option<Worktree>), Refusal> {
        match wish {
            Wish::Nothing => Ok(self.shared.place_to_go_on(campaign, None)),
            Wish::Same(tree) => Ok(self.shared.place_to_go_on(campaign, Some(&tree))),
            Wish::New { ground, branch, start } => {
                let mut tree = self.plan_worktree(&ground, campaign, name, branch.as_deref()).await?;
                tree.base = start.unwrap_or(tree.base);
                Ok((tree.path.clone(), Some(tree)))
            }
        }
    }

    /// The checkout whose repository knows what a session's directory has: a work tree may not be made yet.
    pub(crate) async fn checkout_of(&self, created: &Created) -> String {
        let campaign = match created.config.worktree {
            Some(_) => self.shared.store.campaign(created.campaign).await.ok().flatten(),
            None => None,
        };
        campaign.map_or_else(|| created.config.working_dir.clone(), |row| row.campaign.root.path)
    }
}
