//! Git works, and what makes the host run code stays as it was; or it is said that it did not.

use std::fs;

use ostler_domain::confinement::Protect;

use crate::support::{Campaign, Way, each_way};

const GIT: &str = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";

fn repository(way: Way) -> Option<Campaign> {
    let campaign = Campaign::new(way);
    if campaign.run("command -v git || true").is_empty() {
        eprintln!("skipped: there is no git");
        return None;
    }
    campaign.run_outside(&format!("{GIT} init -q; echo a >a; {GIT} add a; {GIT} commit -qm first"));
    Some(campaign)
}

fn tampered(campaign: &Campaign, script: &str) -> Vec<String> {
    let ended = campaign.start(script).end();
    assert!(ended.status.success(), "{ended:?}");
    ended.tampered
}

#[test]
fn git_works() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        let work = format!(
            "set -e; echo b >b; {GIT} add b; {GIT} commit -qm second; {GIT} checkout -qb topic; echo c >>a
             {GIT} commit -qam third; {GIT} checkout -q main; {GIT} merge -q topic; {GIT} stash list; {GIT} gc -q
             {GIT} worktree add -q ../tree 2>/dev/null || {GIT} worktree add -q wt; {GIT} log --format=%s"
        );
        let ended = campaign.start(&work).end();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, "third\nsecond\nfirst\n");
        assert_eq!(ended.tampered, [""; 0]);
        campaign.run_outside(&format!(
            "{GIT} status --porcelain | grep -v '?? wt/' | grep . && exit 1; {GIT} fsck --no-progress"
        ));
        assert!(!campaign.path(".git/commondir").exists(), "removed by the last session");
    });
}

#[test]
fn what_the_hosts_git_runs_cannot_be_changed() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.write(".git/info/attributes", "");
        campaign.all_fail(&[
            "echo x >>.git/config",
            "git config alias.x '!sh'",
            "rm .git/config",
            "mv .git/config .git/config2",
            "echo x >.git/hooks/pre-commit",
            "mv .git/hooks .git/h",
            "rm -r .git/hooks",
            "mv .git .git2",
            "echo x >.git/info/attributes",
            "mv .git/info .git/i",
            "echo evil >.git/commondir",
            "rm .git/commondir",
        ]);
    });
}

#[test]
fn nested_repositories_and_git_files_are_protected() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.run_outside(&format!("mkdir -p sub/deep; cd sub/deep; {GIT} init -q"));
        campaign.write("linked/.git", "gitdir: /elsewhere\n");
        campaign.run_outside(&format!("{GIT} worktree add -q tree"));
        campaign.all_fail(&[
            "echo x >>sub/deep/.git/config",
            "mv sub/deep/.git/hooks sub/deep/.git/h",
            "echo x >linked/.git",
            "rm linked/.git",
            "echo x >.git/worktrees/tree/commondir",
            "mv .git/worktrees/tree .git/worktrees/t",
            "mv .git/worktrees .git/w",
        ]);
        assert_eq!(campaign.run("cd tree && git log --format=%s"), "first");
    });
}

#[test]
fn settings_of_editors_are_read_only_when_there() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.write(".vscode/settings.json", "{}");
        campaign.write(".envrc", "");
        campaign.write("sub/.envrc", "");
        campaign.all_fail(&["echo x >.vscode/tasks.json", "mv .vscode v", "echo x >.envrc", "rm .envrc"]);
        campaign.run("echo x >sub/.envrc");
        assert_eq!(campaign.run("cat .vscode/settings.json"), "{}");
    });
}

#[test]
fn what_is_new_is_reported() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        assert_eq!(tampered(&campaign, "echo x >file"), [""; 0]);
        assert_eq!(tampered(&campaign, "mkdir .idea; echo '{}' >.mcp.json"), [".idea", ".mcp.json"]);
    });
}

#[test]
fn always_leaves_nothing_to_be_made() {
    each_way(|way| {
        let Some(mut campaign) = repository(way) else { return };
        campaign.confinement.tooling.protect = Protect::Always;
        campaign.all_fail(&[
            "echo x >.vscode/tasks.json",
            "echo x >.mcp.json",
            "echo x >.git/config.worktree",
            "echo x >.git/modules/x",
        ]);
        assert_eq!(tampered(&campaign, "true"), [""; 0]);
        assert!(campaign.path(".idea").is_dir() && campaign.path(".gitmodules").is_file());
    });
}

#[test]
fn off_protects_nothing_and_says_so_at_the_end() {
    each_way(|way| {
        let Some(mut campaign) = repository(way) else { return };
        campaign.confinement.tooling.protect = Protect::Off;
        let names = tampered(&campaign, "git config alias.x '!sh'; echo x >.git/hooks/pre-push");
        assert_eq!(names, [".git/config", ".git/hooks"]);
    });
}

#[test]
fn a_path_can_be_excepted() {
    each_way(|way| {
        let Some(mut campaign) = repository(way) else { return };
        campaign.write(".vscode/settings.json", "{}");
        campaign.confinement.tooling.except = vec![".git/config".into(), ".vscode".into()];
        assert_eq!(tampered(&campaign, "git config alias.x status; echo x >.vscode/tasks.json"), [""; 0]);
        campaign.all_fail(&["echo x >.git/hooks/pre-commit"]);
    });
}

#[test]
fn sessions_of_a_campaign_share_their_placeholder() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        let mut first = campaign.start("echo ready; read go; ! echo evil 2>/dev/null >.git/commondir");
        assert_eq!(first.line(), "ready");
        campaign.run("true");
        assert!(campaign.path(".git/commondir").exists(), "the first still needs it");
        first.say("go");
        assert!(first.end().status.success());
        assert!(!campaign.path(".git/commondir").exists());
        assert_eq!(fs::read_dir(campaign.root()).unwrap().count(), 2);
    });
}

#[test]
fn a_placeholder_is_nothing_that_anybody_tampered_with() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        // It goes with whoever made it, and comes with whoever starts next.
        let mut session = campaign.start("echo ready; read go");
        assert_eq!(session.line(), "ready");
        fs::remove_file(campaign.path(".git/commondir")).unwrap();
        session.say("go");
        assert_eq!(session.end().tampered, [""; 0]);
        // What has more in it than ours is told.
        let mut session = campaign.start("echo ready; read go");
        assert_eq!(session.line(), "ready");
        campaign.replace(".git/commondir", "elsewhere\n");
        session.say("go");
        assert_eq!(session.end().tampered, [".git/commondir"]);
    });
}

#[test]
fn sessions_that_start_at_once_find_nothing_tampered() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        std::thread::scope(|scope| {
            let many: Vec<_> = (0..12)
                .map(|_| scope.spawn(|| (0..4).map(|_| campaign.start("true").end()).collect::<Vec<_>>()))
                .collect();
            for ended in many.into_iter().flat_map(|one| one.join().unwrap()) {
                assert!(ended.status.success() && ended.tampered.is_empty(), "{ended:?}");
            }
        });
        assert!(!campaign.path(".git/commondir").exists());
    });
}

#[test]
fn links_that_git_on_the_host_would_follow_are_removed_and_told() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.write("victim", "mine\n");
        let script = "rm -f .git/COMMIT_EDITMSG; ln -s ../victim .git/COMMIT_EDITMSG
            mkdir -p sub/.git; ln -s ../victim .git/logs/new; ln -s victim link";
        assert_eq!(tampered(&campaign, script), [".git/COMMIT_EDITMSG", ".git/logs/new", "sub/.git"]);
        assert!(campaign.path("link").is_symlink(), "the campaign's own are nobody's concern");
        campaign.run_outside(&format!("{GIT} commit -q --allow-empty -m second"));
        assert_eq!(fs::read_to_string(campaign.path("victim")).unwrap(), "mine\n");
    });
}

#[test]
fn a_directory_above_a_nested_repository_stays_where_it_is() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign
            .run_outside(&format!("mkdir -p n/b/c; cd n/b/c; {GIT} init -q; echo x >.env; echo y >plain"));
        campaign.all_fail(&["mv n/b/c n/b/d", "mv n/b n/x", "mv n x", "cat n/b/c/.env"]);
        campaign.run("set -e; mv n/b/c/plain n/plain; mv n/plain n/b/c/plain; echo z >>n/b/c/plain");
    });
}

#[test]
fn a_repository_that_is_elsewhere_is_protected_there() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.run_outside(&format!(
            "mkdir deep; {GIT} init -q --separate-git-dir=$PWD/deep/sep fileproj; {GIT} init -q real; mv real/.git realgit
             mkdir linkproj; ln -s ../realgit linkproj/.git"
        ));
        campaign.all_fail(&[
            "echo x >>deep/sep/config",
            "echo x >deep/sep/hooks/pre-commit",
            "mv deep deeper",
            "mv deep/sep deep/s",
            "echo x >fileproj/.git",
            "mv fileproj f",
            "echo x >>realgit/config",
            "mv realgit r",
        ]);
        let work = format!(
            "cd linkproj && echo a >a && {GIT} add a && {GIT} commit -qm one && {GIT} log --format=%s"
        );
        assert_eq!(campaign.run(&work), "one");
        let evil =
            "rm linkproj/.git; mkdir -p linkproj/.git/hooks; mkdir evil; ln -s ../evil x; mkdir -p new/.git";
        let mut names = tampered(&campaign, evil);
        names.sort_unstable();
        assert_eq!(names, ["linkproj/.git", "new/.git"]);
        assert_eq!(
            fs::read_link(campaign.path("linkproj/.git")).unwrap(),
            std::path::Path::new("../realgit")
        );
    });
}

#[test]
fn what_a_configuration_brings_in_is_protected_too() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.write("tools/more.conf", "[user]\nname=x\n");
        campaign.write(".githooks/pre-commit", "#!/bin/sh\n");
        campaign.run_outside(&format!(
            "rm -r .git/hooks; {GIT} config core.hooksPath .githooks; {GIT} config extensions.worktreeConfig true
             {GIT} config include.path ../tools/more.conf; {GIT} config --add include.path ../later.conf"
        ));
        campaign.all_fail(&[
            "echo x >>.githooks/pre-commit",
            "echo x >.githooks/post-commit",
            "mv .githooks h",
            "echo x >>tools/more.conf",
            "mv tools t",
            "echo x >later.conf",
            "echo x >.git/config.worktree",
            "mkdir .git/hooks",
            "echo x >.git/hooks/pre-commit",
        ]);
        assert_eq!(campaign.run(&format!("echo b >b; {GIT} add b; {GIT} log --format=%s")), "first");
        for placeholder in ["later.conf", ".git/config.worktree", ".git/hooks", ".git/commondir"] {
            assert!(!campaign.path(placeholder).exists(), "{placeholder} is removed by the last session");
        }
    });
}

#[test]
fn what_is_brought_in_by_others_in_turn_is_protected_too() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.write("tools/one.conf", "[include]\n\tpath = two.conf\n");
        campaign.write(
            "tools/two.conf",
            "[core]\n\thooksPath = .githooks\n[includeIf \"gitdir:/nowhere/\"]\npath=~/elsewhere\n",
        );
        campaign.write(".githooks/pre-commit", "#!/bin/sh\n");
        campaign.write("scripts/push.sh", "#!/bin/sh\n");
        campaign.run_outside(&format!(
            "{GIT} config include.path ../tools/one.conf; ln -s ../../scripts/push.sh .git/hooks/pre-push
             {GIT} worktree add -q tree; mkdir tree/.githooks; echo x >tree/.githooks/post-commit
             {GIT} init -q --bare store; {GIT} init -q real; mv real/.git realgit; ln -s realgit hop
             mkdir linkproj fileproj; ln -s ../hop linkproj/.git; echo 'gitdir: ../hop' >fileproj/.git"
        ));
        campaign.all_fail(&[
            "echo x >>tools/two.conf",
            "mv tools t",
            "echo x >.githooks/pre-commit",
            "echo x >tree/.githooks/post-commit",
            "echo x >scripts/push.sh",
            "mv scripts s",
            "echo x >>store/config",
            "echo x >store/hooks/update",
            "mv store s",
            "echo x >>realgit/config",
        ]);
        assert_eq!(campaign.run(&format!("echo b >b; {GIT} add b; {GIT} commit -qm b; {GIT} push -q store HEAD:x; {GIT} log --format=%s")), "b\nfirst");
        let mut names = tampered(&campaign, "rm hop; mkdir -p hop/hooks");
        names.sort_unstable();
        assert_eq!(names, ["hop"]);
        assert_eq!(fs::read_link(campaign.path("hop")).unwrap(), std::path::Path::new("realgit"));
        assert!(!campaign.path(".git/~").exists() && !campaign.path("tools/~").exists());
    });
}

#[test]
fn new_repositories_are_told_wherever_they_hide() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        let bare = format!("{GIT} init -q --bare store");
        assert_eq!(tampered(&campaign, &bare), ["store"]);
        let inner =
            format!("{GIT} init -q --bare .git/evil; mkdir sub; echo 'gitdir: ../.git/evil' >sub/.git");
        let mut names = tampered(&campaign, &inner);
        names.sort_unstable();
        assert_eq!(names, [".git/evil", "sub/.git"]);
        let tree = format!("{GIT} worktree add -q tree");
        assert_eq!(
            tampered(&campaign, &tree),
            [""; 0],
            "it obeys the configuration of the one it belongs to"
        );
        campaign.run_outside(&format!("{GIT} config extensions.worktreeConfig true"));
        let own = format!("{GIT} worktree add -q other; echo x >.git/worktrees/other/config.worktree");
        assert_eq!(tampered(&campaign, &own), ["other/.git"]);
    });
}

#[test]
fn what_is_made_later_where_git_looks_is_told() {
    each_way(|way| {
        let Some(campaign) = repository(way) else { return };
        campaign.write("dangling/.git", "gitdir: ../later\n");
        assert_eq!(tampered(&campaign, "true"), [""; 0]);
        assert_eq!(tampered(&campaign, "mkdir -p later/hooks; echo x >later/config"), ["dangling/.git"]);
        let hide = format!("{GIT} init -q n; mv n b.key; sleep 0.1");
        assert_eq!(tampered(&campaign, &hide), ["b.key/.git"]);
        assert_eq!(
            tampered(&campaign, "true"),
            [""; 0],
            "what is hidden from the start was made by somebody else"
        );
        campaign.run_outside(&format!("{GIT} config core.hooksPath ."));
        campaign.write("pre-push", "#!/bin/sh\n");
        campaign.all_fail(&["echo x >pre-push", "rm pre-push"]);
        assert_eq!(tampered(&campaign, "echo x >pre-commit"), ["pre-commit"]);
    });
}
