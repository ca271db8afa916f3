//! `ostler exec`: decides whether a command may run in a campaign, resolves its sandbox, and keeps the record. The
//! caller's own process starts it, so that it ends with its caller and its descriptors are the caller's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Reason, Refusal,
    campaign::{Campaign, is_below},
    command::{self, CommandDocument, CommandRefused},
    denied::DeniedKind,
    mission::Membership,
    policy::NetMode,
    session::Sandbox,
    worktree::Worktree,
};

use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    confine::Confined,
    environment,
    git::worktree::move_into,
    mission::shared_dir,
};

/// A command that somebody wants to run.
#[derive(Debug, Clone)]
pub struct WantedCommand {
    /// The campaign: name, id, or any path in it.
    pub campaign: String,
    pub argv: Vec<String>,
    /// Whether a person said that the list does not matter.
    pub unlisted: bool,
    /// Where to run it, within the campaign; its root otherwise.
    pub directory: Option<String>,
    /// A session of the campaign, whose conversation's home it is to have, and whose work tree and mission's directory, if
    /// it has them.
    pub session: Option<String>,
}

impl Engine {
    /// Allows a command, with everything that its caller needs to start it; or says why not. Either is recorded.
    pub async fn prepare_command(
        &self,
        wanted: WantedCommand,
        change: Change,
    ) -> Result<CommandDocument, Refusal> {
        let campaign = self.campaign(&wanted.campaign).await?;
        self.check_workplace(&campaign)?;
        let decided = command::check(&wanted.argv, &campaign.policy, wanted.unlisted);
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(&change),
            action: if wanted.unlisted { "command.unlisted" } else { "command" },
            object: format!(
                "{}: {}",
                campaign.name,
                ostler_domain::text::one_line(&wanted.argv.join(" "), 1_000)
            ),
            decision: if decided.is_ok() { Decision::Allowed } else { Decision::Denied },
            reason: decided.as_ref().err().map(|refused| refused.rule().to_owned()).unwrap_or_default(),
            policy: Some(&campaign.policy),
        });
        if let Err(refused) = decided {
            let refusal = refusal(&refused, &campaign);
            let target = ostler_domain::text::one_line(&wanted.argv.join(" "), 200);
            self.record_denied(DeniedKind::Command, target, refused.rule(), &refusal).await;
            return Err(refusal);
        }
        self.shared.check_confinable().await?;
        self.document(&wanted, &campaign).await
    }

    /// Whose home the command has, in which work tree it runs, and for which mission: one home for all commands in the campaign,
    /// and the tree that the caller stands in; or those of a session.
    async fn place_of(
        &self,
        wanted: &WantedCommand,
        campaign: &Campaign,
    ) -> Result<(String, Option<Worktree>, Option<Membership>), Refusal> {
        let Some(who) = &wanted.session else {
            let standing = wanted.directory.as_ref().and_then(|directory| fs::canonicalize(directory).ok());
            let tree = match standing {
                Some(directory) => self.worktree_row_around(&directory.to_string_lossy()).await?,
                None => None,
            };
            let tree = tree.filter(|row| row.campaign == campaign.id).map(|row| row.worktree);
            return Ok((format!("exec-{}", campaign.id), tree, None));
        };
        let session = self.session(who).await?;
        if session.campaign != campaign.id {
            return Err(Refusal::invalid(format!("session {} is of another campaign", session.id.short())));
        }
        Ok((session.conversation.to_string(), session.worktree, session.mission))
    }

    async fn document(
        &self,
        wanted: &WantedCommand,
        campaign: &Campaign,
    ) -> Result<CommandDocument, Refusal> {
        // Commands have no gateway: they reach no network unless the host's own was granted.
        let net_mode =
            campaign.policy.net_mode.filter(|mode| *mode == NetMode::Host).unwrap_or(NetMode::None);
        let machine = self.shared.machine(campaign).await?;
        let (home, tree, member) = self.place_of(wanted, campaign).await?;
        let Confined { mut confinement, mut environment } = machine
            .confine(&campaign.policy, net_mode, &campaign.root, &home)
            .map_err(|not_started| Refusal::new(Reason::SandboxUnavailable, not_started.message))?;
        let root = tree.as_ref().map_or(&campaign.root.path, |tree| &tree.path);
        if let Some(tree) = &tree {
            move_into(&mut confinement, campaign, tree).map_err(|error| {
                Refusal::new(Reason::WorktreeRefused, format!("the work tree {} is not there", tree.name()))
                    .because(error.to_string())
                    .hint("ostler worktree ls", "lists those there are")
            })?;
        }
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let cwd = directory(wanted, root);
        let program = find_program(&wanted.argv[0], path.unwrap_or_default(), root, &cwd)?;
        environment.push(("OSTLER_CAMPAIGN".to_owned(), campaign.id.to_string()));
        environment.push(("OSTLER_CAMPAIGN_DIR".to_owned(), root.clone()));
        // Not the session's id: what bears it is ended as what the session has left behind.
        if let Some(member) = member {
            // What a mission that is over has shared may be cleared away, and its sessions' trees are still looked into.
            if let Ok(dir) =
                fs::canonicalize(shared_dir::shared(&self.shared.options.state_dir, member.mission))
            {
                environment.extend(environment::of_member(member.mission, &dir));
                confinement.kept.extend(shared_dir::kept(&dir));
                confinement.writable.push(dir);
            }
        }
        Ok(CommandDocument {
            program,
            args: wanted.argv[1..].to_vec(),
            env: environment,
            cwd,
            confinement: (self.shared.sandbox() == Sandbox::On).then_some(confinement),
        })
    }
}

fn refusal(refused: &CommandRefused, campaign: &Campaign) -> Refusal {
    let refusal = Refusal::new(Reason::PermissionDenied, refused.to_string())
        .because(format!("rule: {}", refused.rule()));
    match refused {
        CommandRefused::Unlisted(name) => refusal
            .hint(format!("ostler campaign set {} commands+={name}", campaign.name), "puts it on the list")
            .hint("ostler exec --unlisted -- …", "runs it once, in the same sandbox"),
        CommandRefused::GitOption(_) | CommandRefused::GitVerb(_) | CommandRefused::Path(_) => {
            refusal.hint("ostler exec --unlisted -- …", "runs it once, in the same sandbox")
        }
        CommandRefused::Empty | CommandRefused::Malformed => refusal,
    }
}

/// The program of a name, never one that the campaign itself brings along: an agent could have written it.
fn find_program(name: &str, path: &str, root: &str, cwd: &Path) -> Result<PathBuf, Refusal> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        // As a shell there would look for it.
        vec![cwd.join(name)]
    } else {
        path.split(':').map(|dir| Path::new(dir).join(name)).collect()
    };
    let is_own = |path: &Path| {
        let canonical = fs::canonicalize(path).unwrap_or_default();
        let text = canonical.to_string_lossy();
        text == root || is_below(&text, root)
    };
    let found = candidates.into_iter().find(|path| path.is_file() && (name.contains('/') || !is_own(path)));
    found.ok_or_else(|| {
        let shown = ostler_domain::text::one_line(name, 80);
        if name.contains('/') {
            Refusal::invalid(format!("there is no program \"{shown}\""))
                .because(format!("the command would start in {}", cwd.display()))
        } else {
            Refusal::invalid(format!("there is no program \"{shown}\" here")).because(
                "programs are looked for in the system's directories and in the campaign's toolchains",
            )
        }
    })
}

/// Where the command starts.
fn directory(wanted: &WantedCommand, root: &str) -> PathBuf {
    let Some(directory) = &wanted.directory else { return root.into() };
    let canonical = fs::canonicalize(directory).unwrap_or_else(|_| directory.into());
    let text = canonical.to_string_lossy();
    if text == root || is_below(&text, root) { canonical } else { root.into() }
}
