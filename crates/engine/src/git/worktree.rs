//! Work trees: making one for a session, making sure that it is there, and saying how it stands. Git does all of it inside
//! a sandbox, with nothing run that a repository is configured to run but its own filters.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use ostler_domain::{
    Event, Name, Reason, Refusal, SessionId,
    campaign::Campaign,
    confinement::{CampaignRoot, Confinement, GitDirectory},
    event::WorktreeMade,
    git_config::directory_named_by,
    limits::{GIT_TIME, WORKTREE_IGNORED, WORKTREE_TIME},
    session::{Created, Sandbox},
    worktree::{Condition, Ground, Worktree, branch_fault, condition, ground},
};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use super::{
    HEAD_BYTES,
    diff::not_done,
    fresh::FRESH,
    inside::{self, Access, NotDone},
};
use crate::{Engine, campaign::check_same, disk_use::taken, keeper::NotStarted, shared::Shared};

const LOOK: &str = include_str!("worktree_look.sh");
const MAKE: &str = include_str!("worktree_make.sh");
const STATE: &str = concat!(include_str!("left.sh"), include_str!("worktree_state.sh"));

/// What a look may say: branches of agents, or ignored files.
const MOST_SAID: usize = 1024 * 1024;

/// Why `git worktree prune` of somebody else leaves it alone.
const REASON: &str =
    "an agent of Ostler works here: ostler worktree gc removes it when nothing would be lost";

/// A work tree that is there.
pub(crate) struct Made {
    /// What is checked out.
    pub(crate) head: String,
    /// It was not there, or its repository had forgotten it.
    pub(crate) is_new: bool,
}

impl Engine {
    /// What git says of a campaign in which a work tree is wanted. Nobody needs to be kept waiting for names meanwhile.
    pub(crate) async fn worktree_ground(
        &self,
        campaign: &Campaign,
        branch: Option<&str>,
    ) -> Result<Ground, Refusal> {
        if self.shared.sandbox() == Sandbox::Off {
            return Err(Refusal::new(Reason::WorktreeRefused, "agents here run without a sandbox")
                .because("git is run inside a sandbox only, and so no work tree can be made")
                .hint("ostler doctor", "says what is in the way of the sandbox"));
        }
        if let Some(fault) = branch.and_then(branch_fault) {
            return Err(Refusal::invalid(format!(
                "\"{}\" cannot be a branch: {fault}",
                ostler_domain::text::one_line(branch.unwrap_or_default(), 64)
            )));
        }
        let root = Path::new(&campaign.root.path);
        check_repository(campaign, root)?;
        let confinement = inside::around(root, Access::ReadOnly, &campaign.policy.hide, None);
        let confinement = confinement.map_err(|error| not_done(NotDone::because(error)))?;
        let document =
            inside::script(confinement, LOOK, &[campaign.root.path.as_str(), branch.unwrap_or_default()]);
        let said = inside::run(&self.shared.program, &document, GIT_TIME, MOST_SAID).await;
        let mut ground = ground(&said.map_err(not_done)?.text());
        // Of one that is not made yet git knows nothing.
        let rows = self.shared.store.worktrees().await?;
        let holder = rows
            .into_iter()
            .find(|row| row.campaign == campaign.id && Some(row.worktree.branch.as_str()) == branch);
        if let Some(holder) = holder {
            ground.is_held_by(holder.worktree.path);
        }
        Ok(ground)
    }

    /// A work tree for a session of this name, that nobody has. Names are being chosen by nobody else meanwhile.
    pub(crate) async fn plan_worktree(
        &self,
        ground: &Ground,
        campaign: &Campaign,
        name: &Name,
        branch: Option<&str>,
    ) -> Result<Worktree, Refusal> {
        let dir = self.shared.worktrees_of(campaign)?;
        let rows = self.shared.store.worktrees().await?;
        let is_used = |name: &str| {
            let path = dir.join(name);
            path.symlink_metadata().is_ok() || rows.iter().any(|row| Path::new(&row.worktree.path) == path)
        };
        ground.worktree(&campaign.name, &dir.to_string_lossy(), name, branch, is_used)
    }
}

/// Only of a repository that lies in the campaign: what an agent writes to is never anywhere else.
fn check_repository(campaign: &Campaign, root: &Path) -> Result<(), Refusal> {
    let (name, path) = (&campaign.name, &campaign.root.path);
    let refuse = |message: String| Refusal::new(Reason::WorktreeRefused, message);
    let without = || (format!("ostler run -C {name} \"…\""), "works in the campaign's own directory");
    match fs::symlink_metadata(root.join(".git")) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            let (command, effect) = without();
            Err(refuse(format!("the repository of campaign {name} lies elsewhere"))
                .because(format!(
                    "{path}/.git is no directory, and an agent is given nothing outside of its campaign"
                ))
                .hint("ostler campaign add DIR", "registers the directory that has the repository")
                .hint(command, effect))
        }
        Err(_) => {
            let above = root.ancestors().skip(1).find(|above| above.join(".git").is_dir());
            let refusal = refuse(format!("campaign {name} is no git repository"));
            let (command, effect) = without();
            Err(match above {
                Some(above) => refusal
                    .because(format!("it is a directory in one: {}", above.display()))
                    .hint("ostler campaign add DIR", "registers the directory that has the repository"),
                None => refusal.hint(
                    format!("git -C {} init", ostler_domain::text::shell_word(path)),
                    "makes one; a work tree needs a commit too",
                ),
            }
            .hint(command, effect))
        }
    }
}

impl Shared {
    /// Where the work trees of a campaign are.
    fn worktrees_of(&self, campaign: &Campaign) -> Result<PathBuf, Refusal> {
        let dir = self.options.state_dir.join("worktrees").join(campaign.name.as_str());
        let make = || -> io::Result<PathBuf> {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            fs::canonicalize(&dir)
        };
        make().map_err(|error| {
            Refusal::internal(format!("{} cannot be made", dir.display())).because(error.to_string())
        })
    }

    /// Where whoever goes on with a session works: in its work tree, if it had one, else in the campaign.
    pub(crate) fn place_to_go_on(
        &self,
        campaign: &Campaign,
        before: Option<&Worktree>,
    ) -> (String, Option<Worktree>) {
        let Some(tree) = before else { return (campaign.root.path.clone(), None) };
        let told = is_gone(tree).then(|| {
            format!(
                "Your working directory was gone. It has been made again, with what branch {} has; what was not \
                 committed is not in it.",
                tree.branch
            )
        });
        (tree.path.clone(), Some(Worktree { told, ..tree.clone() }))
    }

    /// Makes sure that the work tree of a session is there before its agent is started.
    pub(crate) async fn ensure_worktree(&self, created: &Created) -> Result<(), NotStarted> {
        let Some(tree) = &created.config.worktree else { return Ok(()) };
        let refused = |refusal: Refusal| NotStarted::refused("worktree", refusal);
        let campaign = self.store.campaign(created.campaign).await.map_err(|error| refused(error.into()))?;
        let Some(campaign) = campaign.map(|row| row.campaign) else {
            return Err(NotStarted::at(
                "campaign",
                format!("campaign {} is not recorded", created.campaign.short()),
            ));
        };
        let _alone = self.git.alone(created.campaign).await;
        self.make_for(&campaign, created, tree).await.map_err(refused)
    }

    async fn make_for(&self, campaign: &Campaign, created: &Created, tree: &Worktree) -> Result<(), Refusal> {
        // Where the last one left it; its branch may be gone, when all of it was merged.
        let last = match created.continues {
            Some(before) => self.store.seen_work(before).await?.head,
            None => None,
        };
        self.make_recorded(campaign, created.id, tree, last).await
    }

    /// Makes the work tree of a session again that is gone, from where it was last seen. The caller is alone with the
    /// repository.
    pub(super) async fn make_again(
        &self,
        campaign: &Campaign,
        session: SessionId,
        tree: &Worktree,
    ) -> Result<(), Refusal> {
        let last = self.store.seen_work(session).await?.head;
        self.make_recorded(campaign, session, tree, last).await
    }

    async fn make_recorded(
        &self,
        campaign: &Campaign,
        session: SessionId,
        tree: &Worktree,
        last: Option<String>,
    ) -> Result<(), Refusal> {
        let was_made = self.store.worktree(&tree.path).await?.is_some_and(|row| row.made.is_some());
        let made = self.make_worktree(campaign, tree, last.as_deref()).await?;
        if !made.is_new {
            return Ok(());
        }
        let event = WorktreeMade {
            session,
            campaign: campaign.id,
            worktree: tree.untold(),
            commit: made.head,
            again: was_made,
        };
        self.record_tree(Event::WorktreeMade(event)).await
    }

    /// Makes a work tree, or makes sure that it is one. The caller is alone with the repository. A branch that is gone
    /// begins at `last`, or with what the tree was made from.
    pub(crate) async fn make_worktree(
        &self,
        campaign: &Campaign,
        tree: &Worktree,
        last: Option<&str>,
    ) -> Result<Made, Refusal> {
        check_same(campaign)?;
        let root = Path::new(&campaign.root.path);
        check_repository(campaign, root)?;
        let path = Path::new(&tree.path);
        make_directory(path, root).map_err(|error| {
            Refusal::internal(format!("{} cannot be made", tree.path)).because(error.to_string())
        })?;
        let confinement =
            with_tree(root, Access::Writable, path).map_err(|error| not_done(NotDone::because(error)))?;
        let start = last.unwrap_or(&tree.base);
        let args = [campaign.root.path.as_str(), &tree.path, &tree.branch, start, REASON, &tree.base];
        let document = inside::script(confinement, MAKE, &args);
        let said = inside::run(&self.program, &document, WORKTREE_TIME, MOST_SAID).await;
        let said = said.map_err(|why| {
            // An empty directory would be in the way of the next one of this name.
            let _ = fs::remove_dir(path);
            match why {
                NotDone::Failed(why) => Refusal::new(
                    Reason::WorktreeRefused,
                    format!("the work tree {} cannot be made", tree.name()),
                )
                .because(why)
                .hint("ostler worktree ls", "lists work trees, and whose they are"),
                too_long => not_done(too_long),
            }
        })?;
        let text = said.text();
        let head = text.lines().find_map(|line| line.strip_prefix("head ")).unwrap_or_default();
        Ok(Made { head: head.to_owned(), is_new: text.lines().any(|line| line == "made") })
    }

    /// What is in a work tree and on none of these branches; nothing of one that is gone, which it is only when nothing was
    /// lost with it.
    pub(crate) async fn left_in(
        &self,
        campaign: &Campaign,
        tree: &Worktree,
        branches: &[String],
    ) -> Result<Left, NotDone> {
        check_same(campaign).map_err(NotDone::because)?;
        let (root, path) = (Path::new(&campaign.root.path), Path::new(&tree.path));
        if fs::symlink_metadata(path.join(".git")).is_err() {
            return Ok(Left::default());
        }
        let confinement = with_tree(root, Access::ReadOnly, path).map_err(NotDone::because)?;
        let args: Vec<&str> = [&tree.path].into_iter().chain(branches).map(String::as_str).collect();
        let document = inside::script(confinement, FRESH, &args);
        let said = inside::run(&self.program, &document, GIT_TIME, MOST_SAID).await?.text();
        Ok(Left {
            files: said.lines().filter_map(|line| line.strip_prefix("file ")).map(str::to_owned).collect(),
            elsewhere: said.lines().find_map(|line| Elsewhere::read(line.strip_prefix("elsewhere ")?)),
            beside: said.lines().filter_map(|line| Elsewhere::read(line.strip_prefix("beside ")?)).collect(),
        })
    }

    /// How a work tree stands, as git says now.
    pub(crate) async fn worktree_condition(
        &self,
        campaign: &Campaign,
        tree: &Worktree,
    ) -> Result<Condition, NotDone> {
        check_same(campaign).map_err(NotDone::because)?;
        let root = Path::new(&campaign.root.path);
        let path = PathBuf::from(&tree.path);
        let confinement = with_tree(root, Access::ReadOnly, &path).map_err(NotDone::because)?;
        let most = WORKTREE_IGNORED.to_string();
        let args = [&campaign.root.path, &tree.path, &tree.branch, &tree.base, &most];
        let document = inside::script(confinement, STATE, &args.map(String::as_str));
        let said = inside::run(&self.program, &document, GIT_TIME, MOST_SAID).await?;
        let unread = || NotDone::Failed("git did not say how it stands".to_owned());
        let found = condition(&said.text()).filter(|_| !said.is_cut).ok_or_else(unread)?;
        let bytes = tokio::task::spawn_blocking(move || taken(path).bytes).await.unwrap_or_default();
        Ok(Condition { bytes, ..found })
    }
}

/// Whether there is no work tree where one was.
pub(super) fn is_gone(tree: &Worktree) -> bool {
    fs::symlink_metadata(Path::new(&tree.path).join(".git")).is_err()
}

/// What is in a work tree and not on its branch.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Files that differ from the last commit, new ones among them.
    pub(crate) files: Vec<String>,
    /// What is checked out.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// What was, and other branches or tags have.
    pub(crate) beside: Vec<Elsewhere>,
}

/// Commits that were made in a work tree and that its branch is without.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    pub(crate) commits: u64,
    pub(crate) head: String,
    /// The branch or tag that has them; absent where none is checked out.
    pub(crate) branch: Option<String>,
}

impl Elsewhere {
    fn read(words: &str) -> Option<Self> {
        let mut words = words.split_whitespace();
        let (commits, head) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        Some(Self { commits, head, branch: words.next().map(str::to_owned) })
    }
}

/// A sandbox with a campaign and a work tree of it in which nothing is hidden, so that git sees what differs.
fn with_tree(root: &Path, access: Access, tree: &Path) -> io::Result<Confinement> {
    let mut confinement = inside::around(root, access, &[], None)?;
    if tree.is_dir() {
        confinement.writable.push(tree.to_owned());
    }
    Ok(confinement)
}

/// The directory, of whoever owns the campaign: the agent is to be able to write it.
fn make_directory(path: &Path, root: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    match DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    let (own, owner) = (fs::symlink_metadata(path)?, fs::symlink_metadata(root)?);
    if own.uid() != owner.uid() && own.uid() == 0 {
        std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Has a sandbox be around a work tree in place of its campaign's own directory, of which nothing but the repository is
/// there then.
pub(crate) fn move_into(
    confinement: &mut Confinement,
    campaign: &Campaign,
    tree: &Worktree,
) -> io::Result<()> {
    let path = Path::new(&tree.path);
    let found = fs::symlink_metadata(path)?;
    let (device, inode) = (found.dev(), found.ino());
    confinement.root =
        CampaignRoot { path: path.to_owned(), device, inode, read_only: false, leased: Vec::new() };
    confinement.git = Some(git_directory(campaign, path, true)?);
    Ok(())
}

/// The repository of a work tree, as its sandbox is to have it.
pub(crate) fn git_directory(campaign: &Campaign, tree: &Path, commits: bool) -> io::Result<GitDirectory> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = openat2(File::open(tree)?, ".git", flags, Mode::empty(), resolve)?;
    let mut text = String::new();
    File::from(file).take(HEAD_BYTES * 8).read_to_string(&mut text)?;
    let path = Path::new(&campaign.root.path).join(".git");
    // Whatever it says, it is a work tree of this campaign's repository, or none.
    let below = path.join("worktrees");
    let entry = directory_named_by(&text)
        .map(Path::new)
        .filter(|own| own.parent().is_some_and(|above| above == below));
    let entry = entry.and_then(|own| own.file_name()).and_then(|name| name.to_str());
    let entry = entry.ok_or_else(|| io::Error::other("it is no work tree of the campaign's repository"))?;
    Ok(GitDirectory { path, entry: entry.to_owned(), commits })
}
