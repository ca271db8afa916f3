//! A work tree whose repository lies elsewhere: commits are made, and nothing else of the repository is changed.

use std::fs;
use std::path::PathBuf;

use ostler_domain::confinement::GitDirectory;

use crate::support::{Campaign, Sandboxed, Way, each_way, eventually};

const GIT: &str = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";

/// A sandbox around a work tree, and the repository that it is one of.
fn work_tree(way: Way) -> Option<(Campaign, PathBuf)> {
    let campaign = Campaign::new(way);
    if campaign.run("command -v git || true").is_empty() {
        eprintln!("skipped: there is no git");
        return None;
    }
    let repository = campaign.outside().canonicalize().unwrap().join("repository");
    fs::create_dir(&repository).unwrap();
    campaign.give(&repository);
    campaign.run_outside(&format!(
        "cd {}; {GIT} init -q; echo a >a; {GIT} add a; {GIT} commit -qm first; echo u >u; echo s >.env
         {GIT} worktree add -q -b agent/x ../camp; {GIT} worktree add -q -b agent/y ../repository/other
         echo .env >>.git/info/exclude; echo s >../camp/.env
         : >.git/worktrees/camp/config.worktree; echo k >.git/id_rsa",
        repository.display()
    ));
    let git = GitDirectory { path: repository.join(".git"), entry: "camp".to_owned(), commits: true };
    Some((campaign.with(|confinement| confinement.git = Some(git)), repository))
}

#[test]
fn commits_are_made_and_the_checkout_is_not_there() {
    each_way(|way| {
        let Some((campaign, repository)) = work_tree(way) else { return };
        let shown = repository.display();
        let work = format!(
            "set -e; echo b >b; {GIT} add b; {GIT} commit -qm second; {GIT} checkout -qb topic; echo c >>a
             {GIT} commit -qam third; {GIT} checkout -q agent/x; {GIT} merge -q topic; echo d >d; {GIT} stash -qu
             {GIT} stash pop -q >/dev/null; {GIT} reset -q --soft HEAD~1; {GIT} commit -qm fourth; {GIT} log --format=%s
             {GIT} status --porcelain; ls -A {shown}"
        );
        let ended = campaign.start(&work).end();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, "fourth\nsecond\nfirst\n?? d\n.git\n");
        assert_eq!(ended.tampered, [""; 0]);
        campaign.run_outside(&format!(
            "cd {shown}; test \"$({GIT} log --format=%s agent/x | head -1)\" = fourth
             test \"$({GIT} log --format=%s)\" = first; {GIT} fsck --no-progress; test -z \"$({GIT} diff HEAD)\""
        ));
    });
}

#[test]
fn nothing_of_the_repository_is_changed_but_what_a_commit_writes() {
    each_way(|way| {
        let Some((campaign, repository)) = work_tree(way) else { return };
        let git = repository.join(".git");
        let (git, repository) = (git.display().to_string(), repository.display().to_string());
        let commands = [
            "echo x >>GIT/config",
            "rm GIT/config",
            "mv GIT/config GIT/config2",
            "git config alias.x '!sh'",
            "echo x >GIT/hooks/pre-commit",
            "rm -r GIT/hooks",
            "mkdir -p GIT/info && echo x >GIT/info/attributes",
            "echo x >GIT/config.worktree",
            "echo x >GIT/commondir",
            "echo x >GIT/HEAD",
            "rm GIT/index",
            "echo x >GIT/new",
            "echo x >GIT/logs/HEAD",
            "echo x >GIT/worktrees/other/HEAD",
            "echo x >GIT/worktrees/new",
            "mv GIT GIT2",
            "mv GIT/objects GIT/o",
            "echo x >GIT/worktrees/camp/commondir",
            "rm GIT/worktrees/camp/commondir",
            "mv GIT/worktrees/camp/gitdir GIT/worktrees/camp/g",
            "echo x >GIT/worktrees/camp/config.worktree",
            "rm -rf GIT/worktrees/camp",
            "echo x >.git",
            "rm .git",
            "mv .git g",
            "cat .env",
            "cat GIT/id_rsa",
            "cat REPOSITORY/u",
            "cat REPOSITORY/.env",
            "git worktree add ../y",
        ];
        let commands =
            commands.map(|command| command.replace("GIT", &git).replace("REPOSITORY", &repository));
        campaign.all_fail(&commands.each_ref().map(String::as_str));
        // What can be made around it is in memory, and gone with the sandbox.
        campaign.run(&format!("echo x >{repository}/u; mkdir {repository}/x; true"));
        assert_eq!(fs::read_to_string(format!("{repository}/u")).unwrap(), "u\n");
        assert!(!fs::exists(format!("{repository}/x")).unwrap());
    });
}

#[test]
fn links_that_git_would_follow_are_taken_away() {
    each_way(|way| {
        let Some((campaign, repository)) = work_tree(way) else { return };
        let git = repository.join(".git");
        let script = format!(
            "ln -s /etc/passwd {0}/refs/heads/evil; ln -s /etc/passwd {0}/worktrees/camp/COMMIT_EDITMSG
             ln -s /etc/passwd {0}/logs/refs/heads/evil",
            git.display()
        );
        let mut tampered = campaign.start(&script).end().tampered;
        tampered.sort();
        let links = ["logs/refs/heads/evil", "refs/heads/evil", "worktrees/camp/COMMIT_EDITMSG"];
        assert_eq!(tampered, links.map(|link| git.join(link).display().to_string()));
        assert!(links.iter().all(|link| !git.join(link).is_symlink()));
    });
}

#[test]
fn a_part_that_is_a_link_is_no_way_out() {
    each_way(|way| {
        let Some((campaign, repository)) = work_tree(way) else { return };
        let outside = campaign.outside().join("private");
        fs::create_dir_all(outside.join("refs")).unwrap();
        campaign.run_outside(&format!(
            "cd {}; rm -r .git/logs; ln -s {} .git/logs",
            repository.display(),
            outside.display()
        ));
        let ended = campaign.start("echo in").end();
        assert!(!ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    });
}

#[test]
fn whoever_only_looks_changes_nothing() {
    each_way(|way| {
        let Some((campaign, repository)) = work_tree(way) else { return };
        let git = repository.join(".git").display().to_string();
        let campaign = campaign.with(|confinement| {
            confinement.root.read_only = true;
            confinement.git.as_mut().unwrap().commits = false;
        });
        assert_eq!(campaign.run(&format!("{GIT} log --format=%s")), "first");
        campaign.all_fail(&[
            &format!("echo x >{git}/objects/x"),
            &format!("echo x >{git}/worktrees/camp/x"),
            &format!("{GIT} commit --allow-empty -qm x"),
            "echo x >x",
        ]);
    });
}

#[test]
fn who_works_in_the_checkout_does_not_reach_into_other_trees() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run("command -v git || true").is_empty() {
            eprintln!("skipped: there is no git");
            return;
        }
        let outside = campaign.outside().canonicalize().unwrap();
        for name in ["before", "meanwhile"] {
            fs::create_dir(outside.join(name)).unwrap();
            campaign.give(&outside.join(name));
        }
        campaign.run_outside(&format!(
            "{GIT} init -q; echo a >a; {GIT} add a; {GIT} commit -qm first; {GIT} worktree add -q -b x ../before"
        ));
        campaign.all_fail(&[
            "echo x >.git/worktrees/before/commondir",
            "echo x >.git/worktrees/before/HEAD",
            "rm .git/worktrees/before/index",
            "rm -rf .git/worktrees/before",
        ]);
        let mut agent = campaign.start("while read -r line; do eval \"$line\"; done 2>/dev/null");
        campaign.run_outside(&format!("{GIT} worktree add -q -b y ../meanwhile"));
        eventually("the new one to be closed", || {
            agent.say("echo x >.git/worktrees/meanwhile/probe && echo open || echo closed");
            (agent.line() == "closed").then_some(())
        });
        agent.say("echo y >>a; echo b >b; git add b 2>&1 && echo works");
        assert_eq!(agent.line(), "works");
        campaign.run_outside(
            "rm -r ../meanwhile/* ../meanwhile/.git; git worktree prune; git worktree add -q ../meanwhile y",
        );
        eventually("another one of the same name to be closed", || {
            agent.say("echo x >.git/worktrees/meanwhile/probe && echo open || echo closed");
            (agent.line() == "closed").then_some(())
        });
    });
}

/// Says whether the sandbox sees a copy of what its repository knows of a work tree.
fn is_copied(agent: &mut Sandboxed, entry: &str) -> bool {
    agent.say(&format!(
        "test \"$(stat -c %d .git/worktrees/{entry})\" = \"$(stat -c %d .git)\" && echo no || echo copied"
    ));
    agent.line() == "copied"
}

#[test]
fn a_tree_in_memory_is_gone_on_with_in_memory() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run("command -v git || true").is_empty() {
            eprintln!("skipped: there is no git");
            return;
        }
        campaign.run_outside(&format!("{GIT} init -q; echo a >a; {GIT} add a; {GIT} commit -qm first"));
        let mut agent = campaign.start("while read -r line; do eval \"$line\"; done 2>&1");
        agent
            .say("(git worktree add -q --detach /tmp/wt && cd /tmp/wt && touch b && git add b && echo made)");
        assert_eq!(agent.line(), "made");
        let head = fs::read_to_string(campaign.path(".git/worktrees/wt/HEAD")).unwrap();
        eventually("the copy", || is_copied(&mut agent, "wt").then_some(()));
        agent.say(&format!(
            "(cd /tmp/wt && touch c && git add c && {GIT} commit -qm second && {GIT} log --format=%s | tr '\\n' ' '; {GIT} status -s; echo)"
        ));
        assert_eq!(agent.line(), "second first ");
        agent.say("touch .git/worktrees/wt/probe && echo written");
        assert_eq!(agent.line(), "written");
        assert_eq!(agent.end().tampered, [""; 0]);
        assert_eq!(fs::read_to_string(campaign.path(".git/worktrees/wt/HEAD")).unwrap(), head);
        assert!(!campaign.path(".git/worktrees/wt/probe").exists(), "nothing of it is seen outside");
    });
}

#[test]
fn who_claims_another_s_tree_writes_a_copy() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run("command -v git || true").is_empty() {
            eprintln!("skipped: there is no git");
            return;
        }
        campaign.run_outside(&format!("{GIT} init -q; echo a >a; {GIT} add a; {GIT} commit -qm first"));
        let theirs = campaign.outside().canonicalize().unwrap().join("theirs");
        fs::create_dir(&theirs).unwrap();
        campaign.give(&theirs);
        let entry = campaign.path(".git/worktrees/theirs");
        let mut agent = campaign.start("while read -r line; do eval \"$line\"; done 2>/dev/null");
        agent.say(&format!(
            "mkdir -p {0} && echo 'gitdir: {1}' >{0}/.git && echo claimed",
            theirs.display(),
            entry.display()
        ));
        assert_eq!(agent.line(), "claimed");
        campaign.run_outside("git worktree add -q -b y ../theirs");
        let before = |name: &str| fs::read_to_string(entry.join(name)).unwrap();
        let was = ["HEAD", "commondir", "gitdir"].map(before);
        eventually("the copy", || is_copied(&mut agent, "theirs").then_some(()));
        agent.say("cd .git/worktrees/theirs; for name in HEAD commondir gitdir new; do echo evil >$name; done; rm index; echo done");
        assert_eq!(agent.line(), "done");
        assert_eq!(["HEAD", "commondir", "gitdir"].map(before), was);
        assert!(entry.join("index").exists() && !entry.join("new").exists());
        agent.say("cd ../../..; mv .git/worktrees/theirs .git/worktrees/mine && echo moved; rm -rf .git/worktrees/theirs; echo gone");
        assert_eq!(agent.line(), "gone");
        assert_eq!(["HEAD", "commondir", "gitdir"].map(before), was);
    });
}
