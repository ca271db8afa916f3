//! Work trees: a session's own checkout of its campaign's repository, on a branch of its own. Here is what one is, how
//! git's answers about one are read, and when it may go; git itself is run by the engine, inside a sandbox.

use serde::{Deserialize, Serialize};

use crate::{CampaignId, Name, Reason, Refusal, SessionId, Time, limits::WORKTREE_NAMES, text::one_line};

/// The branches that are made for agents are below this.
pub const BRANCHES: &str = "agent/";

/// Longest name of a branch that is taken.
const BRANCH_BYTES: usize = 200;

/// That a session is to have one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// On this branch; without one, on one of its own.
    pub branch: Option<String>,
}

/// Where a session works, if not in its campaign's own directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    pub path: String,
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// The branch that the campaign had checked out then; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What the agent of this session is told of it first: that it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

impl Worktree {
    /// Its directory's name.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether its branch goes with it: the one that Ostler made for it does, one that somebody named is theirs.
    pub fn owns_branch(&self) -> bool {
        self.branch.strip_prefix(BRANCHES) == Some(self.name())
    }

    /// What its line of snapshots is called: nobody else's tree is in it.
    pub fn line(&self) -> String {
        format!("worktree-{}", self.name())
    }

    /// The same one for another session, which has heard nothing of it.
    pub fn untold(&self) -> Worktree {
        Worktree { told: None, ..self.clone() }
    }

    /// Whether a path is it, or in it.
    pub fn holds(&self, path: &str) -> bool {
        path == self.path || crate::campaign::is_below(path, &self.path)
    }
}

/// Why a text cannot be the name of a branch, by git's own rules.
pub fn branch_fault(name: &str) -> Option<&'static str> {
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    match name {
        "" => Some("it is empty"),
        "HEAD" | "@" => Some("git means something else by it"),
        _ if name.len() > BRANCH_BYTES => Some("it is too long"),
        _ if name.starts_with('-') => Some("it begins with a dash"),
        _ if name.chars().any(is_bad) => Some("it has a character that no branch can have"),
        _ if name.contains("..") || name.contains("@{") => Some("git would take it for something else"),
        _ if name.ends_with('.') || name.split('/').any(is_bad_part) => Some("one of its parts is no name"),
        _ => None,
    }
}

/// What git says of a campaign in which a work tree is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ground {
    has_git: bool,
    head: Option<String>,
    /// The branch that the campaign has checked out.
    branch: Option<String>,
    /// Branches below [`BRANCHES`].
    taken: Vec<String>,
    /// Where the branch that was asked for is, if there is one.
    tip: Option<String>,
    /// The directory that has it checked out.
    elsewhere: Option<String>,
}

/// Reads the answer of the script that looks.
pub fn ground(said: &str) -> Ground {
    let mut ground = Ground::default();
    for (word, rest) in words(said) {
        match word {
            "git" => ground.has_git = true,
            "head" => ground.head = Some(rest.to_owned()),
            "branch" => ground.branch = Some(rest.to_owned()),
            "taken" => ground.taken.push(rest.to_owned()),
            "tip" => ground.tip = Some(rest.to_owned()),
            "elsewhere" => ground.elsewhere = Some(rest.to_owned()),
            _ => {}
        }
    }
    ground
}

fn words(said: &str) -> impl Iterator<Item = (&str, &str)> {
    said.lines().map(|line| line.split_once(' ').unwrap_or((line, "")))
}

impl Ground {
    /// Somebody has the branch that is wanted, or is about to.
    pub fn is_held_by(&mut self, path: String) {
        self.elsewhere.get_or_insert(path);
    }

    /// The commit that the campaign has checked out; or why there can be no work tree of it at all.
    pub fn head(&self, campaign: &Name) -> Result<&str, Refusal> {
        if !self.has_git {
            return Err(Refusal::new(
                Reason::WorktreeRefused,
                "git is not installed, and a work tree is git's",
            )
            .hint("ostler run \"…\"", "works in the campaign's own directory"));
        }
        self.head.as_deref().ok_or_else(|| {
            let message =
                format!("campaign {campaign} has no commit yet that a work tree could be made from");
            Refusal::new(Reason::WorktreeRefused, message)
                .hint("git commit", "makes one")
                .hint(format!("ostler run -C {campaign} \"…\""), "works in the campaign's own directory")
        })
    }

    /// There is the branch that was asked for.
    pub fn has_branch(&self) -> bool {
        self.tip.is_some()
    }

    /// The branch that the campaign has checked out.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// The work tree of a session of this name, below `dir`; or why there can be none. `is_used` knows the names of
    /// directories that are there.
    pub fn worktree(
        &self,
        campaign: &Name,
        dir: &str,
        name: &Name,
        branch: Option<&str>,
        is_used: impl Fn(&str) -> bool,
    ) -> Result<Worktree, Refusal> {
        let head = self.head(campaign)?;
        if let Some(place) = &self.elsewhere {
            let branch = one_line(branch.unwrap_or_default(), BRANCH_BYTES);
            return Err(Refusal::new(
                Reason::WorktreeRefused,
                format!("the branch {branch} is checked out elsewhere"),
            )
            .because(format!("{} has it, and a branch is checked out once", one_line(place, 300)))
            .hint("ostler run --worktree \"…\"", "makes a branch of its own")
            .hint("ostler worktree ls", "lists work trees, and whose they are"));
        }
        if branch.is_none() && self.taken.iter().any(|taken| format!("{taken}/") == BRANCHES) {
            let message =
                "a branch named agent is in the way of agents' branches, which are named agent/NAME";
            return Err(Refusal::new(Reason::WorktreeRefused, message)
                .hint("git branch -m agent NAME", "renames it")
                .hint("ostler run --worktree=BRANCH \"…\"", "takes another branch"));
        }
        let is_taken = |candidate: &str| {
            let own = format!("{BRANCHES}{candidate}");
            is_used(candidate) || (branch.is_none() && self.taken.iter().any(|taken| blocks(taken, &own)))
        };
        let free = (1..=WORKTREE_NAMES)
            .map(|n| if n == 1 { name.to_string() } else { name.numbered(n).to_string() })
            .find(|candidate| !is_taken(candidate));
        let Some(free) = free else {
            return Err(Refusal::new(
                Reason::WorktreeRefused,
                format!("there are {WORKTREE_NAMES} work trees or branches named {name} already"),
            )
            .hint("ostler worktree gc", "removes those whose work is merged")
            .hint("ostler run --worktree --name NAME \"…\"", "takes another name"));
        };
        let branch = branch.map_or_else(|| format!("{BRANCHES}{free}"), str::to_owned);
        if let Some(fault) = branch_fault(&branch) {
            return Err(Refusal::invalid(format!("{branch} cannot be a branch: {fault}"))
                .hint("ostler run --worktree=BRANCH \"…\"", "takes another branch"));
        }
        Ok(Worktree {
            path: format!("{dir}/{free}"),
            branch,
            base: self.tip.clone().unwrap_or_else(|| head.to_owned()),
            from: self.branch.clone(),
            told: None,
        })
    }
}

/// Whether a branch keeps another one from being made: git keeps them as files and directories.
fn blocks(taken: &str, wanted: &str) -> bool {
    taken == wanted
        || taken.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
        || wanted.strip_prefix(taken).is_some_and(|rest| rest.starts_with('/'))
}

/// What git says of a work tree now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// Absent where it is not there.
    pub head: Option<String>,
    /// What is checked out; absent where that is no branch.
    pub branch: Option<String>,
    /// Commits since it was made.
    pub commits: u64,
    /// Of what its branch has and what is checked out, the commits that no other branch has.
    pub unmerged: u64,
    /// One of these that is on no branch: it was left when something else was checked out.
    pub left: Option<String>,
    /// Files that differ from the last commit, new ones among them.
    pub uncommitted: u64,
    /// What it is in the middle of, or has in it that only a person can judge.
    pub busy: Option<String>,
    /// Files and directories that git is told to ignore; not all of them, if they are many.
    pub ignored: Vec<String>,
    pub bytes: u64,
}

/// Reads the answer of the script that looks at one. None where it did not come to its end.
pub fn condition(said: &str) -> Option<Condition> {
    let mut found = Condition::default();
    let mut is_whole = false;
    for (word, rest) in words(said) {
        match word {
            "head" => found.head = Some(rest.to_owned()),
            "branch" => found.branch = Some(rest.to_owned()),
            "commits" => found.commits = rest.parse().ok()?,
            "unmerged" => found.unmerged = rest.parse().ok()?,
            "left" => drop(found.left.get_or_insert_with(|| rest.to_owned())),
            "uncommitted" => found.uncommitted += rest.parse::<u64>().ok()?,
            "busy" => found.busy = Some(rest.to_owned()),
            "ignored" => found.ignored.push(rest.to_owned()),
            "whole" => is_whole = true,
            _ => {}
        }
    }
    is_whole.then_some(found)
}

/// How a work tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A session works in it.
    Live,
    /// It cannot be looked at, so that nobody knows.
    Unknown,
    /// Its directory is gone.
    Gone,
    Uncommitted,
    Unmerged,
    /// Nothing would be lost with it.
    Clean,
}

impl Standing {
    pub const ALL: &'static [Standing] = &[
        Standing::Live,
        Standing::Unknown,
        Standing::Gone,
        Standing::Uncommitted,
        Standing::Unmerged,
        Standing::Clean,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Live => "live",
            Standing::Unknown => "unknown",
            Standing::Gone => "gone",
            Standing::Uncommitted => "uncommitted",
            Standing::Unmerged => "unmerged",
            Standing::Clean => "clean",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|standing| standing.as_str() == text)
    }

    /// Decides by who works in it and what git says; `found` is absent where git could not say.
    pub fn of(is_live: bool, found: Option<&Condition>) -> Standing {
        match found {
            _ if is_live => Standing::Live,
            None => Standing::Unknown,
            Some(found) if found.uncommitted > 0 || found.busy.is_some() => Standing::Uncommitted,
            Some(found) if found.unmerged > 0 => Standing::Unmerged,
            Some(found) if found.head.is_none() => Standing::Gone,
            Some(_) => Standing::Clean,
        }
    }

    /// Whether it may be removed: nothing would be lost with it.
    pub const fn may_go(self) -> bool {
        matches!(self, Standing::Clean | Standing::Gone)
    }
}

/// A work tree, whose it is, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub worktree: Worktree,
    pub campaign: CampaignId,
    pub campaign_name: String,
    /// The last session that worked in it.
    pub session: SessionId,
    pub session_name: String,
    /// When it was made; absent while it is being made.
    pub made: Option<Time>,
    /// When it was removed.
    pub removed: Option<Time>,
    pub standing: Standing,
    pub condition: Condition,
    /// Why git could not say.
    pub why: Option<String>,
}

impl Kept {
    /// What keeps it, in words; none if nothing does.
    pub fn kept_by(&self) -> Option<String> {
        let found = &self.condition;
        let files = || plural(found.uncommitted, "file", "files");
        match self.standing {
            Standing::Clean | Standing::Gone => None,
            Standing::Live => Some("a session works in it".to_owned()),
            Standing::Unknown => {
                Some(self.why.clone().unwrap_or_else(|| "it cannot be looked at".to_owned()))
            }
            Standing::Unmerged => {
                let on = found.branch.as_ref().filter(|on| **on != self.worktree.branch);
                let on = on.map(|on| format!(", on {on}")).unwrap_or_default();
                let left = found.left.as_ref().map(|commit| format!(", {} on no branch", short(commit)));
                let left = left.unwrap_or_default();
                Some(format!("{} unmerged{on}{left}", plural(found.unmerged, "commit", "commits")))
            }
            Standing::Uncommitted => Some(match &found.busy {
                Some(busy) if found.uncommitted == 0 => busy.clone(),
                Some(busy) => format!("{} uncommitted, {busy}", files()),
                None => format!("{} uncommitted", files()),
            }),
        }
    }
}

/// A commit's name as people say it.
pub fn short(commit: &str) -> &str {
    const SHOWN: usize = 12;
    commit.get(..SHOWN).unwrap_or(commit)
}

/// A work tree that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedWorktree {
    /// As it stood before.
    pub kept: Kept,
    /// It was made for it, and others have all of its commits, so its branch is gone too.
    pub branch_deleted: bool,
    /// The snapshot that was taken before; absent where it was gone already.
    pub snapshot: Option<String>,
}

pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKED: &str = "git\nhead 1111\nbranch trunk\ntaken agent/fix\ntaken agent/fix-2/deep\n";

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn planned(said: &str, branch: Option<&str>, used: &[&str]) -> Result<Worktree, Refusal> {
        let is_used = |name: &str| used.contains(&name);
        ground(said).worktree(&name("shop"), "/s/worktrees/shop", &name("fix"), branch, is_used)
    }

    #[test]
    fn a_name_that_is_taken_is_numbered() {
        let tree = planned(LOOKED, None, &["fix-3"]).unwrap();
        assert_eq!((tree.path.as_str(), tree.branch.as_str()), ("/s/worktrees/shop/fix-4", "agent/fix-4"));
        assert_eq!((tree.base.as_str(), tree.from.as_deref()), ("1111", Some("trunk")));
        assert_eq!((tree.name(), tree.line().as_str()), ("fix-4", "worktree-fix-4"));
        assert!(tree.holds("/s/worktrees/shop/fix-4/src") && !tree.holds("/s/worktrees/shop/fix-40"));
    }

    #[test]
    fn a_branch_that_was_asked_for_stays_when_the_tree_goes() {
        assert!(planned(LOOKED, None, &["fix-3"]).unwrap().owns_branch());
        for named in ["release/1.0", "new", "agent/other"] {
            assert!(!planned(LOOKED, Some(named), &[]).unwrap().owns_branch(), "{named}");
        }
    }

    #[test]
    fn a_branch_that_was_asked_for_begins_where_it_is() {
        let tree = planned(&format!("{LOOKED}tip 2222\n"), Some("old"), &[]).unwrap();
        assert_eq!((tree.branch.as_str(), tree.base.as_str()), ("old", "2222"));
        assert_eq!(tree.name(), "fix", "its directory is the session's");
        let tree = planned(LOOKED, Some("new"), &[]).unwrap();
        assert_eq!((tree.branch.as_str(), tree.base.as_str()), ("new", "1111"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_something_to_try() {
        for (said, branch, word) in [
            ("", None, "not installed"),
            ("git\n", None, "no commit"),
            ("git\nhead 1\nelsewhere /srv/shop\n", Some("trunk"), "checked out elsewhere"),
            ("git\nhead 1\ntaken agent\n", None, "in the way"),
        ] {
            let refusal = planned(said, branch, &[]).unwrap_err();
            assert!(refusal.message.contains(word), "{refusal}");
            assert!(refusal.reason == Reason::WorktreeRefused && !refusal.hints.is_empty(), "{refusal}");
        }
    }

    #[test]
    fn names_of_branches_are_git_s() {
        for good in ["a", "agent/x", "feature/a-b_c.d", "ünïcode"] {
            assert_eq!(branch_fault(good), None, "{good}");
        }
        let bad = [
            "", "-b", "a b", "a..b", "a/.b", "a/", "/a", "a.lock", "a.lock/b", "@", "HEAD", "a@{1}", "a:b",
            "a.",
        ];
        for bad in bad.into_iter().chain(["a\u{1b}", "a*", "a[b", "a\\b"]) {
            assert!(branch_fault(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn only_what_is_merged_and_committed_may_go() {
        let clean = "head 1\nbranch agent/x\ncommits 2\nunmerged 0\nuncommitted 0\nignored target/\nwhole\n";
        let found = condition(clean).unwrap();
        assert_eq!((found.commits, found.ignored.as_slice()), (2, ["target/".to_owned()].as_slice()));
        assert_eq!(Standing::of(false, Some(&found)), Standing::Clean);
        assert_eq!(Standing::of(true, Some(&found)), Standing::Live);
        assert_eq!(condition(clean.strip_suffix("whole\n").unwrap()), None, "half an answer is none");
        assert_eq!(Standing::of(false, None), Standing::Unknown);
        let with = |more: &str| Standing::of(false, condition(&format!("{clean}{more}")).as_ref());
        assert_eq!(with("uncommitted 1"), Standing::Uncommitted);
        assert_eq!(with("busy a rebase"), Standing::Uncommitted);
        assert_eq!(with("unmerged 3"), Standing::Unmerged);
        let left = condition("left 0123456789abcdef\nleft 1\nunmerged 2\nwhole").unwrap();
        assert_eq!(left.left.as_deref().map(short), Some("0123456789ab"), "the newest");
        assert_eq!(Standing::of(false, condition("unmerged 0\nwhole").as_ref()), Standing::Gone);
        assert_eq!(Standing::of(false, condition("unmerged 1\nwhole").as_ref()), Standing::Unmerged);
        let may_go: Vec<_> = Standing::ALL.iter().filter(|standing| standing.may_go()).collect();
        assert_eq!(may_go, [&Standing::Gone, &Standing::Clean]);
        for standing in Standing::ALL {
            assert_eq!(Standing::parse(standing.as_str()), Some(*standing));
        }
    }
}
