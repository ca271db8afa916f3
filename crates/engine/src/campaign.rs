//! Campaigns: registering directories, finding them again, letting them go.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use ostler_domain::{
    CampaignId, Event, Name, Policy, Reason, Refusal,
    campaign::{Campaign, Root, RootRefused, check_root},
    event::{CampaignPolicyChanged, CampaignRelinked, CampaignRemoved},
    hidden::Patterns,
    mission::Filter,
    policy::grant::Grant,
    query::{Page, Scope, SessionFilter},
};
use ostler_store::{Commit, CommitError, Urgency};

use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    clock::entropy,
    confine::found_presets,
};

impl Engine {
    /// Registers a directory. Asking again for the same directory gives the campaign that it is.
    pub async fn add_campaign(
        &self,
        path: &str,
        name: Option<Name>,
        change: Change,
    ) -> Result<Campaign, Refusal> {
        let root = find_root(path)?;
        let _naming = self.shared.naming.lock().await;
        let others = self.shared.store.campaigns().await?;
        if let Some(existing) = others.iter().find(|other| other.root.path == root.path) {
            return already(existing, &root, name.as_ref());
        }
        self.check_root(&root.path, &others)?;
        let name = match name {
            Some(name) if others.iter().any(|other| other.name == name) => return Err(name_taken(&name)),
            Some(name) => name,
            None => free_name(&root.path, &others),
        };
        // Their first `cargo test` is to work; whoever does not want it takes it away.
        let read = found_presets(self.shared.options.home_dir.as_deref());
        let policy = Policy { read, ..Policy::default() };
        let now = self.shared.clock.now().wall;
        let id = CampaignId::new(now, entropy());
        let campaign =
            Campaign { id, name, root, added: now, policy, tracked_hidden: Vec::new(), unwatched: None };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::CampaignAdded(Box::new(campaign.clone())))],
            session: None,
            request: change.done(&format!("add_campaign {path}"), campaign.id.to_string()),
        };
        match self.shared.store.commit(commit).await {
            Ok(_) => {
                self.note(&change, "campaign.add", &campaign, campaign.root.path.clone());
                Ok(campaign)
            }
            Err(CommitError::RequestDone { reply, .. }) => self.campaign(&reply).await,
            Err(error) => Err(error.into()),
        }
    }

    fn check_root(&self, path: &str, others: &[Campaign]) -> Result<(), Refusal> {
        let options = &self.shared.options;
        let text = |dir: &std::path::PathBuf| {
            fs::canonicalize(dir).unwrap_or_else(|_| dir.clone()).to_string_lossy().into_owned()
        };
        let own: Vec<String> = options.own_dirs.iter().map(text).collect();
        let home = options.home_dir.as_ref().map(text);
        check_root(path, home.as_deref(), &own, others).map_err(|refused| {
            let refusal =
                Refusal::new(Reason::CampaignRoot, format!("{refused}, so it cannot be a campaign"));
            match refused {
                RootRefused::Home(_) | RootRefused::FileSystemRoot(_) | RootRefused::SystemDirectory(_) => {
                    refusal.hint(
                        "ostler campaign add DIR",
                        "registers one project; agents may then read and write all of it",
                    )
                }
                RootRefused::InsideCampaign { name, .. } => {
                    refusal.hint(format!("ostler run -C {name} \"…\""), "starts a session in that one").hint(
                        format!("ostler campaign rm {name}"),
                        "forgets that one, and then this one can be added",
                    )
                }
                RootRefused::HoldsCampaign { name, .. } => refusal.hint(
                    format!("ostler campaign rm {name}"),
                    "forgets that one, and then this one can be added",
                ),
                RootRefused::HoldsState { .. } | RootRefused::InsideState { .. } => refusal,
            }
        })
    }

    /// Changes what a campaign's agents may do. Sessions that run go on as they were started.
    pub async fn set_campaign(
        &self,
        who: &str,
        settings: &[String],
        change: Change,
    ) -> Result<Campaign, Refusal> {
        let fingerprint = format!("set_campaign {who} {}", settings.join(" "));
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.campaign(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let mut campaign = self.campaign(who).await?;
        let before = campaign.policy.clone();
        campaign.policy = campaign.policy.changed_by(settings).map_err(|fault| {
            Refusal::invalid(fault.to_string())
                .hint(format!("ostler campaign show {}", campaign.name), "shows all keys and their values")
        })?;
        self.check_grants(&before, &campaign).await?;
        self.check_mirror(&campaign).await?;
        let changed = CampaignPolicyChanged {
            campaign: campaign.id,
            settings: settings.to_vec(),
            policy: campaign.policy.clone(),
            by: change.by.clone(),
        };
        let now = self.shared.clock.now().wall;
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::CampaignPolicyChanged(Box::new(changed)))],
            session: None,
            request: change.done(&fingerprint, campaign.id.to_string()),
        };
        self.shared.store.commit(commit).await?;
        self.shared.accounts.changed(campaign.id);
        self.note(&change, "campaign.set", &campaign, settings.join(" "));
        Ok(campaign)
    }

    /// Another directory is the campaign's: it was moved there, or lies where the old one did. Sessions that run go on
    /// where they are; what is started from now on works there, with the policy that the campaign has.
    pub async fn relink_campaign(
        &self,
        who: &str,
        path: Option<&str>,
        change: Change,
    ) -> Result<Campaign, Refusal> {
        let fingerprint = format!("relink_campaign {who} {}", path.unwrap_or_default());
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.campaign(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let mut campaign = self.campaign(who).await?;
        let to = find_root(path.unwrap_or(&campaign.root.path))?;
        if to == campaign.root {
            return Ok(campaign);
        }
        let mut others = self.shared.store.campaigns().await?;
        others.retain(|other| other.id != campaign.id);
        if let Some(taken) = others.iter().find(|other| other.root.path == to.path) {
            return Err(Refusal::new(
                Reason::CampaignExists,
                format!("{} is the campaign {}", to.path, taken.name),
            )
            .hint(format!("ostler campaign rm {}", taken.name), "forgets that one; its record stays"));
        }
        self.check_root(&to.path, &others)?;
        let from = std::mem::replace(&mut campaign.root, to.clone());
        let now = self.shared.clock.now().wall;
        let relinked = CampaignRelinked { campaign: campaign.id, from, to, by: change.by.clone() };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::CampaignRelinked(relinked))],
            session: None,
            request: change.done(&fingerprint, campaign.id.to_string()),
        };
        self.shared.store.commit(commit).await?;
        self.note(&change, "campaign.relink", &campaign, campaign.root.path.clone());
        Ok(campaign)
    }

    /// Refuses what a policy newly grants and nobody is to be given. What was granted before is looked at when a session
    /// starts: it may have gone since, and that is no reason to refuse another setting.
    async fn check_grants(&self, before: &Policy, campaign: &Campaign) -> Result<(), Refusal> {
        let machine = self.shared.machine(campaign).await?;
        let after = &campaign.policy;
        let granted = [
            ("read", Grant::Read, &before.read, &after.read),
            ("write", Grant::Write, &before.write, &after.write),
        ];
        for (key, grant, before, after) in granted {
            let new = after.iter().filter(|path| !path.starts_with('@') && !before.contains(path));
            for path in new {
                let Err(why) = machine.granted(path, grant, &campaign.root.path) else { continue };
                let shown = ostler_domain::text::one_line(path, 200);
                let refusal = Refusal::invalid(format!("{shown} cannot be granted: {why}"));
                return Err(if Path::new(path).exists() {
                    refusal.hint(
                        format!("ostler campaign set {} {key}+=DIR", campaign.name),
                        "grants a directory of nobody else's",
                    )
                } else {
                    refusal.hint(format!("mkdir -p {}", ostler_domain::text::shell_word(path)), "makes it")
                });
            }
        }
        Ok(())
    }

    /// Who changed what about a campaign.
    fn note(&self, change: &Change, action: &'static str, campaign: &Campaign, what: String) {
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(change),
            action,
            object: format!("{}: {what}", campaign.name),
            decision: Decision::Allowed,
            reason: String::new(),
            policy: Some(&campaign.policy),
        });
    }

    pub async fn campaigns(&self) -> Result<Vec<Campaign>, Refusal> {
        Ok(self.shared.store.campaigns().await?)
    }

    /// What campaigns are called, in the order of [`campaigns`](Self::campaigns).
    pub async fn campaign_names(&self) -> Result<Vec<(CampaignId, Name)>, Refusal> {
        Ok(self.shared.store.campaign_names().await?)
    }

    /// A campaign, with what is to be seen in its directory now.
    pub async fn look_at_campaign(&self, who: &str) -> Result<Campaign, Refusal> {
        let campaign = self.campaign(who).await?;
        let tracked_hidden = tracked_hidden(&campaign.root.path, &campaign.policy).await;
        let unwatched = self.shared.watcher.unwatched(Path::new(&campaign.root.path));
        Ok(Campaign { tracked_hidden, unwatched, ..campaign })
    }

    /// The campaign of a name, an id, or any path in it.
    pub async fn campaign(&self, who: &str) -> Result<Campaign, Refusal> {
        let all = self.shared.store.campaigns().await?;
        if let Some(found) =
            all.iter().find(|campaign| campaign.name.as_str() == who || campaign.id.to_string() == who)
        {
            return Ok(found.clone());
        }
        let path = Path::new(who);
        if path.is_absolute() {
            let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let text = canonical.to_string_lossy();
            let around = |campaign: &&Campaign| {
                campaign.root.path == text || ostler_domain::campaign::is_below(&text, &campaign.root.path)
            };
            // The innermost: campaigns may lie within others that were registered first.
            if let Some(found) = all.iter().filter(around).max_by_key(|campaign| campaign.root.path.len()) {
                return Ok(found.clone());
            }
            // Who stands in a work tree means the campaign that it is of.
            if let Some(row) = self.worktree_row_around(&text).await?
                && let Some(found) = all.iter().find(|campaign| campaign.id == row.campaign)
            {
                return Ok(found.clone());
            }
            return Err(Refusal::new(
                Reason::CampaignUnknown,
                format!("{} is in no campaign", ostler_domain::text::one_line(who, 200)),
            )
            .hint(
                format!("ostler campaign add {}", ostler_domain::text::shell_word(who)),
                "agents may then read and write there",
            ));
        }
        if let Some(fragment) = ostler_domain::id::Fragment::parse(who, CampaignId::PREFIX) {
            let fitting: Vec<_> =
                all.iter().filter(|campaign| fragment.fits(&campaign.id.to_string())).collect();
            match fitting.as_slice() {
                [one] => return Ok((*one).clone()),
                [] => {}
                several => return Err(ambiguous(who, several)),
            }
        }
        Err(Refusal::new(
            Reason::CampaignUnknown,
            format!("there is no campaign \"{}\"", ostler_domain::text::one_line(who, 64)),
        )
        .hint("ostler campaign ls", "lists those there are")
        .hint("ostler campaign add DIR", "registers a directory"))
    }

    /// Forgets a campaign. Its files and the record of its sessions stay.
    pub async fn remove_campaign(&self, who: &str, change: Change) -> Result<Campaign, Refusal> {
        let fingerprint = format!("remove_campaign {who}");
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return serde_json::from_str(&reply).map_err(|error| Refusal::internal(error.to_string()));
        }
        let campaign = self.campaign(who).await?;
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            campaigns: vec![campaign.id],
            ..SessionFilter::default()
        };
        let busy = self.shared.store.list_sessions(&filter, Page::of(1, None)).await?;
        if let Some(session) = busy.rows.first() {
            return Err(Refusal::new(
                Reason::CampaignBusy,
                format!("campaign {} has sessions that have not ended", campaign.name),
            )
            .because(format!("session {} is {}", session.id.short(), session.status.as_str()))
            .hint(format!("ostler stop {}", session.id.short()), "ends that one in an orderly way"));
        }
        let open = Filter { campaign: Some(campaign.id), ..Filter::default() };
        if let Some(mission) = self.missions(&open, Page::of(1, None)).await?.rows.first() {
            return Err(Refusal::new(
                Reason::CampaignBusy,
                format!("campaign {} has missions that are not over", campaign.name),
            )
            .because(format!("the mission {} is {}", mission.name, mission.status.as_str()))
            .hint(format!("ostler mission cancel {}", mission.name), "ends that one"));
        }
        let now = self.shared.clock.now().wall;
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(
                now,
                Event::CampaignRemoved(CampaignRemoved { id: campaign.id, by: change.by.clone() }),
            )],
            session: None,
            request: change.done(&fingerprint, serde_json::to_string(&campaign).unwrap_or_default()),
        };
        self.shared.store.commit(commit).await?;
        self.note(&change, "campaign.rm", &campaign, campaign.root.path.clone());
        Ok(campaign)
    }
}

/// Hidden files of a campaign that git tracks.
pub(crate) async fn tracked_hidden(root: &str, policy: &Policy) -> Vec<String> {
    let (root, patterns) = (root.to_owned(), Patterns::new(&policy.hide));
    let look = move || crate::campaign_files::tracked_hidden(Path::new(&root), &patterns);
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Looks at a path as it is now.
fn find_root(path: &str) -> Result<Root, Refusal> {
    let refuse = |why: String| {
        Refusal::new(Reason::CampaignRoot, why)
            .hint("ostler campaign add DIR", "takes a directory that exists")
    };
    if !Path::new(path).is_absolute() {
        return Err(Refusal::invalid("a campaign's path must be absolute"));
    }
    let shown = ostler_domain::text::one_line(path, 200);
    let canonical = fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refuse(format!("{shown} does not exist")),
        io::ErrorKind::NotADirectory => refuse(format!("{shown} is not a directory")),
        _ => refuse(format!("{shown} cannot be looked at: {error}")),
    })?;
    let facts =
        fs::metadata(&canonical).map_err(|error| refuse(format!("{shown} cannot be looked at: {error}")))?;
    if !facts.is_dir() {
        return Err(refuse(format!("{shown} is not a directory")));
    }
    let path = canonical.to_str().ok_or_else(|| refuse(format!("{shown} has a name that is not UTF-8")))?;
    Ok(Root { path: path.to_owned(), device: facts.dev(), inode: facts.ino() })
}

/// Says whether the directory is still there to work in.
pub(crate) fn check_unmoved(working_dir: &str) -> Result<(), String> {
    match fs::metadata(working_dir) {
        Ok(facts) if facts.is_dir() => Ok(()),
        Ok(_) => Err(format!("{working_dir} is no longer a directory")),
        Err(error) => Err(format!("{working_dir} is gone: {error}")),
    }
}

impl Engine {
    /// Refuses to let an agent in where nobody has: into another directory that now lies at the campaign's path, or into the
    /// one of what was imported from directories that nobody has registered.
    pub(crate) fn check_workplace(&self, campaign: &Campaign) -> Result<(), Refusal> {
        if self.is_elsewhere(campaign) {
            return Err(Refusal::new(
                Reason::CampaignUnknown,
                format!("campaign {} has what was imported, and nobody works there", campaign.name),
            )
            .because("an agent works in a directory that you have registered, and nowhere else")
            .hint("ostler campaign add DIR", "agents may then read and write there"));
        }
        check_same(campaign)
    }
}

/// Refuses to start in another directory that now lies at the campaign's path.
pub(crate) fn check_same(campaign: &Campaign) -> Result<(), Refusal> {
    let now = find_root(&campaign.root.path).map_err(|gone| {
        Refusal::new(gone.reason, gone.message).hint(
            format!("ostler campaign relink {} DIR", campaign.name),
            "says where it is now, if it was moved",
        )
    })?;
    if (now.device, now.inode) == (campaign.root.device, campaign.root.inode) {
        return Ok(());
    }
    Err(Refusal::new(
        Reason::CampaignMoved,
        format!("{} is another directory than the one that was registered", campaign.root.path),
    )
    .because("it was replaced since; what was allowed for the old one is not allowed for this one")
    .hint(
        format!("ostler campaign relink {}", campaign.name),
        "says that this one is the campaign's now: what was allowed there is allowed here",
    ))
}

fn already(existing: &Campaign, root: &Root, name: Option<&Name>) -> Result<Campaign, Refusal> {
    let moved = (existing.root.device, existing.root.inode) != (root.device, root.inode);
    match name {
        _ if moved => check_same(existing).map(|()| existing.clone()),
        Some(name) if *name != existing.name => Err(Refusal::new(
            Reason::CampaignExists,
            format!("{} is already the campaign {}", root.path, existing.name),
        )
        .hint(format!("ostler campaign show {}", existing.name), "shows it")),
        _ => Ok(existing.clone()),
    }
}

fn name_taken(name: &Name) -> Refusal {
    Refusal::new(Reason::NameTaken, format!("there is already a campaign named {name}"))
        .hint(format!("ostler campaign show {name}"), "shows it")
}

fn free_name(path: &str, others: &[Campaign]) -> Name {
    let last =
        Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let first = last.parse().ok().or_else(|| Name::slug(&last)).or_else(|| Name::slug("campaign"));
    let first = first.unwrap_or_else(|| unreachable!("\"campaign\" is a name"));
    let is_free = |name: &Name| others.iter().all(|other| other.name != *name);
    std::iter::once(first.clone()).chain((2..).map(|n| first.numbered(n))).find(is_free).unwrap_or(first)
}

fn ambiguous(who: &str, several: &[&Campaign]) -> Refusal {
    let names: Vec<_> = several.iter().map(|campaign| campaign.name.as_str()).collect();
    Refusal::new(Reason::Ambiguous, format!("\"{who}\" fits {} campaigns", several.len()))
        .because(names.join(", "))
}
