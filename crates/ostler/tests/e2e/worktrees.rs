//! Work trees of sessions' own: what an agent commits there is the repository's, the campaign's own checkout stays as it is,
//! and nothing goes that is nowhere else.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use ostler_client::{Client, CreateSession, SendMessage};
use ostler_domain::{
    Event, Reason,
    session::{Attention, View},
    worktree::{Kept, Standing, Wanted},
};
use ostler_testkit::{TestHome, scenario};
use serde_json::{Value, json};

use crate::OSTLER;

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A campaign whose repository has a commit, with a file in it that agents are not to read.
async fn in_repository() -> (TestHome, Client) {
    let home = TestHome::new(OSTLER);
    let root = home.campaign_dir();
    git(&root, &["init", "-q", "-b", "trunk"]);
    for key in ["user.name", "user.email"] {
        git(&root, &["config", key, "ann@example.org"]);
    }
    fs::write(root.join("a.txt"), "one\n").unwrap();
    fs::write(root.join(".gitignore"), "*.log\n").unwrap();
    fs::write(root.join(".env"), "SECRET=1\n").unwrap();
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    fs::write(root.join("own.txt"), "nobody's business\n").unwrap();
    home.begin().await;
    let client = home.client().await;
    (home, client)
}

fn sh(script: &str) -> Value {
    json!({"run": ["sh", "-c", script]})
}

fn wanted(name: &str, script: &str) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some(name.parse().unwrap());
    wanted.initial_message = Some(scenario::of(vec![sh(script)]));
    wanted.worktree = Some(Wanted::default());
    wanted
}

/// A session in a work tree whose first turn has ended, and its tree.
async fn started(home: &TestHome, client: &Client, name: &str, script: &str) -> (View, PathBuf) {
    let view = client.create_session(wanted(name, script)).await.unwrap();
    let view = rests(home, client, &view.id.to_string(), 1).await;
    let path = PathBuf::from(view.worktree.as_ref().unwrap().path.clone());
    (view, path)
}

async fn rests(home: &TestHome, client: &Client, who: &str, turns: u32) -> View {
    let is_idle = |view: &View| {
        assert!(view.outcome.is_none(), "{:?}", view.obituary);
        view.turns == turns && view.attention == Some(Attention::Idle)
    };
    let view = home.reaches(who, "its turn to end", is_idle).await;
    // What it left is looked at beside the work.
    client.tree(who).await.unwrap();
    view
}

async fn says(home: &TestHome, client: &Client, view: &View, script: &str) -> View {
    let text = scenario::of(vec![sh(script)]);
    client
        .send_message(SendMessage { who: view.id.to_string(), text, ..SendMessage::default() })
        .await
        .unwrap();
    rests(home, client, &view.id.to_string(), view.turns + 1).await
}

/// Says something to a conversation that has no process, and waits for the answer.
async fn woken(home: &TestHome, client: &Client, who: &str) -> View {
    let text = "and now?".to_owned();
    client.send_message(SendMessage { who: who.to_owned(), text, ..SendMessage::default() }).await.unwrap();
    rests(home, client, who, 1).await
}

async fn stopped(home: &TestHome, client: &Client, view: &View) {
    client.stop_session(&view.id.to_string(), false).await.unwrap();
    home.ended(&view.id.to_string()).await;
}

/// What the commands of a session printed, each with its exit code.
async fn printed(home: &TestHome, client: &Client, view: &View) -> Vec<String> {
    let events = home.events(client, view.id).await;
    let results = events.into_iter().filter_map(|recorded| match recorded.event {
        Event::AgentToolResult(result) => Some(result.output),
        _ => None,
    });
    results.collect()
}

async fn stands(client: &Client, name: &str) -> Option<Kept> {
    client.worktrees(None).await.unwrap().into_iter().find(|kept| kept.worktree.name() == name)
}

fn run(home: &TestHome, args: &[&str]) -> (i32, String, String) {
    let output = home.run(args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let (code, out, err) = run(home, &[args, &["--json"]].concat());
    assert_eq!(code, 0, "{args:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[tokio::test]
async fn what_is_committed_there_is_the_repository_s_and_the_checkout_stays_as_it_was() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let shown = root.display();
    let script = format!(
        "echo two > b.txt && git add b.txt && git commit -qm second && echo three > c.txt
         git rev-parse --abbrev-ref HEAD; pwd; echo $OSTLER_CAMPAIGN_DIR; echo \"seen: $(ls -A {shown})\"
         cat .env 2>&1; cat {shown}/.env {shown}/own.txt {shown}/a.txt 2>&1
         echo x > {shown}/a.txt; echo x > {shown}/.git/HEAD; echo x > {shown}/.git/config; echo x > {shown}/.git/index
         mkdir {shown}/.git/hooks; echo x > {shown}/.git/hooks/pre-commit; echo x > {shown}/.git/worktrees/fix/commondir
         rm -f {shown}/.git/worktrees/fix/gitdir .git; git config core.fsmonitor evil"
    );
    let before = fs::read(root.join(".git/index")).unwrap();
    let (view, path) = started(&home, &client, "fix", &script).await;
    assert_eq!(view.working_dir, path.to_string_lossy());
    assert!(path.starts_with(home.home.state().canonicalize().unwrap().join("worktrees/shop")), "{path:?}");
    assert_eq!(view.branch.as_deref(), Some("agent/fix"));
    let said = printed(&home, &client, &view).await.join("\n");
    assert!(said.contains("agent/fix\n") && said.contains(&format!("{0}\n{0}\n", path.display())), "{said}");
    assert!(
        !said.contains("SECRET") && !said.contains("nobody's business") && !said.contains("\none\n"),
        "{said}"
    );
    assert!(said.contains("seen: .git\n"), "of the campaign only the repository is there: {said}");

    assert_eq!(git(&root, &["log", "--format=%s", "agent/fix"]), "second\nfirst");
    assert_eq!(git(&root, &["log", "--format=%s", "trunk"]), "first");
    assert_eq!(git(&root, &["show", "agent/fix:b.txt"]), "two");
    assert_eq!(git(&root, &["status", "--porcelain"]), "?? own.txt");
    assert_eq!(git(&root, &["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    assert_eq!(fs::read(root.join(".git/index")).unwrap(), before);
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\n");
    assert!(!root.join("b.txt").exists() && !root.join(".git/hooks/pre-commit").exists());
    assert_eq!(fs::read_to_string(root.join(".git/worktrees/fix/commondir")).unwrap(), "../..\n");
    assert!(fs::read_to_string(path.join(".git")).unwrap().starts_with("gitdir: "));
    assert_eq!(fs::read_to_string(path.join(".env")).unwrap(), "SECRET=1\n", "it is there, and was hidden");
    assert_eq!(fs::metadata(path.join("b.txt")).unwrap().uid(), fs::metadata(&root).unwrap().uid());

    // Snapshots, differences, the way back and lines know the tree.
    let who = view.id.to_string();
    let tree = client.tree(&who).await.unwrap();
    assert!(tree.snapshots.iter().all(|taken| taken.commit.is_some()), "{tree:?}");
    let subjects: Vec<_> = tree.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((subjects, tree.branch.as_deref()), (vec!["second"], Some("agent/fix")));
    let files = client.difference(&who, "", false).await.unwrap().files;
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["b.txt", "c.txt"]);
    let blamed = client.blame(&path.join("b.txt").to_string_lossy(), 1).await.unwrap();
    assert_eq!((blamed.snapshot.session, blamed.path.as_str()), (view.id, "b.txt"));
    let rewound = client.rewind(&who, "0", false).await.unwrap();
    assert!(rewound.is_done && !path.join("c.txt").exists() && root.join("own.txt").exists());
    client.rewind(&who, &rewound.before, false).await.unwrap();
    assert_eq!(fs::read_to_string(path.join("c.txt")).unwrap(), "three\n");

    let (code, shown, err) = run(&home, &["show", "fix"]);
    assert_eq!(code, 0, "{err}");
    assert!(shown.contains("worktree agent/fix in use · 1 commit, 1 file uncommitted"), "{shown}");
    stopped(&home, &client, &view).await;
    let (_, shown, _) = run(&home, &["show", "fix"]);
    assert!(shown.contains("worktree agent/fix kept · 1 commit, 1 file uncommitted"), "{shown}");
}

#[tokio::test]
async fn two_at_once_have_a_tree_each_and_reach_no_other() {
    let (home, client) = in_repository().await;
    let (root, shown) = (home.campaign_dir(), home.campaign_dir().display().to_string());
    let commit = |name: &str| format!("echo {name} > {name} && git add {name} && git commit -qm {name}");
    let (first, second) = (commit("one"), commit("two"));
    let (one, two) =
        tokio::join!(started(&home, &client, "one", &first), started(&home, &client, "two", &second));
    let other = two.1.display().to_string();
    let script = format!(
        "ls {other} 2>&1; echo x > {other}/two; echo x > {shown}/.git/worktrees/two/HEAD
         ln -s /etc/passwd {shown}/.git/refs/heads/evil; git checkout -q agent/two 2>&1; echo done"
    );
    says(&home, &client, &one.0, &script).await;
    let said = printed(&home, &client, &one.0).await.join("\n");
    assert!(said.contains("done") && said.contains("No such file") && said.contains("agent/two"), "{said}");
    assert_eq!(git(&root, &["log", "--format=%s", "agent/one"]), "one\nfirst");
    assert_eq!(git(&root, &["log", "--format=%s", "agent/two"]), "two\nfirst");
    assert_eq!(git(&two.1, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(two.1.join("two")).unwrap(), "two\n");
    for (view, _) in [&one, &two] {
        stopped(&home, &client, view).await;
    }
    assert!(!root.join(".git/refs/heads/evil").is_symlink(), "git on the host follows no link of an agent's");
    let events = home.events(&client, one.0.id).await;
    let tampered = events.iter().any(|recorded| {
        matches!(&recorded.event, Event::Tamper(tamper) if tamper.names.iter().any(|name| name.ends_with("evil")))
    });
    assert!(tampered, "and it is said who left one");
}

#[tokio::test]
async fn only_what_is_committed_and_merged_is_removed() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let (_, empty, err) = run(&home, &["worktree", "ls"]);
    assert!(empty.is_empty() && err.contains("ostler run --worktree"), "{empty} {err}");
    let commit = |name: &str| {
        format!("echo x > x && git add x && git commit -qm 'work of {name}' && echo built > x.log")
    };
    let (merged, merged_path) = started(&home, &client, "merged", &commit("merged")).await;
    let (unmerged, unmerged_path) = started(&home, &client, "unmerged", &commit("unmerged")).await;
    let (dirty, dirty_path) = started(&home, &client, "dirty", "echo new > new.txt").await;
    let (hidden, hidden_path) =
        started(&home, &client, "flagged", "git update-index --assume-unchanged a.txt; echo x > a.txt").await;
    let (live, live_path) = started(&home, &client, "live", "true").await;
    git(&root, &["merge", "-q", "--no-edit", "agent/merged"]);
    for view in [&merged, &unmerged, &dirty, &hidden] {
        stopped(&home, &client, view).await;
    }
    let listed = json_of(&home, &["worktree", "ls"]);
    let standing: Vec<_> =
        listed["worktrees"].as_array().unwrap().iter().map(|row| row["standing"].as_str().unwrap()).collect();
    assert_eq!(standing, ["clean", "unmerged", "uncommitted", "uncommitted", "live"]);
    let (_, table, _) = run(&home, &["worktree", "ls"]);
    for text in ["clean and merged", "unmerged 1 commit", "uncommitted 1 file", "live"] {
        assert!(table.contains(text), "{table}");
    }
    for (who, keeps) in [
        ("unmerged", "1 commit unmerged"),
        ("dirty", "1 file uncommitted"),
        ("live", "a session works in it"),
    ] {
        let refused = client.remove_worktree(who).await.unwrap_err().to_refusal();
        assert_eq!((refused.reason, refused.why.as_deref()), (Reason::WrongState, Some(keeps)));
        assert!(!refused.hints.is_empty());
    }
    let (_, dry, kept) = run(&home, &["worktree", "gc", "--dry-run"]);
    assert!(dry.contains("merged agent/merged") && dry.contains("x.log"), "{dry}");
    assert!(kept.contains("dirty") && kept.contains("1 work tree would be removed"), "{kept}");
    assert_eq!(run(&home, &["worktree", "gc"]).0, 2, "nobody is there to be asked");
    assert!(merged_path.exists());

    let done = json_of(&home, &["worktree", "gc", "-y"]);
    let removed: Vec<_> =
        done["worktrees"].as_array().unwrap().iter().filter(|row| row["is_removed"] == true).collect();
    assert_eq!(removed.len(), 1, "{done}");
    assert_eq!(
        (removed[0]["branch"].as_str(), removed[0]["branch_deleted"].as_bool()),
        (Some("agent/merged"), Some(true))
    );
    assert!(
        !merged_path.exists()
            && unmerged_path.exists()
            && dirty_path.exists()
            && hidden_path.exists()
            && live_path.exists()
    );
    let branches = git(&root, &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "agent/dirty\nagent/flagged\nagent/live\nagent/unmerged\ntrunk");
    assert!(!git(&root, &["worktree", "list"]).contains("/merged "));
    assert_eq!(fs::read_to_string(dirty_path.join("new.txt")).unwrap(), "new\n");
    let tree = client.tree(&merged.id.to_string()).await.unwrap();
    assert!(tree.worktree.unwrap().removed.is_some());
    assert_eq!(tree.snapshots.last().unwrap().commit.as_deref(), removed[0]["snapshot"].as_str());

    // Committed and merged elsewhere, the rest may go as well.
    stopped(&home, &client, &live).await;
    git(&dirty_path, &["add", "."]);
    git(&dirty_path, &["commit", "-qm", "new"]);
    git(&root, &["branch", "keeps", "agent/dirty"]);
    json_of(&home, &["worktree", "gc", "-y"]);
    assert!(!dirty_path.exists() && !live_path.exists() && unmerged_path.exists() && hidden_path.exists());
    assert_eq!(git(&root, &["log", "-1", "--format=%s", "keeps"]), "new");

    // The rows are a function of the log.
    let before = json_of(&home, &["worktree", "ls"]);
    home.kill_daemon();
    assert_eq!(run(&home, &["db", "reindex"]).0, 0);
    assert_eq!(json_of(&home, &["worktree", "ls"]), before);
}

#[tokio::test]
async fn a_branch_that_somebody_named_stays_when_its_tree_goes() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    git(&root, &["branch", "release/1.0"]);
    let mut create = wanted("release", "true");
    create.worktree = Some(Wanted { branch: Some("release/1.0".to_owned()) });
    let view = client.create_session(create).await.unwrap();
    let view = rests(&home, &client, &view.id.to_string(), 1).await;
    stopped(&home, &client, &view).await;
    let (_, dry, _) = run(&home, &["worktree", "gc", "--dry-run"]);
    assert!(dry.contains("its branch stays"), "{dry}");
    let done = json_of(&home, &["worktree", "gc", "-y"]);
    assert_eq!(
        (&done["worktrees"][0]["is_removed"], &done["worktrees"][0]["branch_deleted"]),
        (&true.into(), &false.into())
    );
    assert_eq!(git(&root, &["branch", "--format=%(refname:short)"]), "release/1.0\ntrunk");
}

#[tokio::test]
async fn nothing_is_removed_that_could_not_be_written_down_first() {
    let (home, client) = in_repository().await;
    let (view, path) = started(&home, &client, "fix", "true").await;
    stopped(&home, &client, &view).await;
    let snapshots = home.home.state().join("snapshots");
    fs::rename(&snapshots, snapshots.with_extension("away")).unwrap();
    fs::write(&snapshots, "").unwrap();
    let refused = client.remove_worktree("fix").await.unwrap_err().to_refusal();
    assert!(refused.message.contains("nothing was removed"), "{refused}");
    assert!(path.join("a.txt").exists());
    let (code, out, _) = run(&home, &["worktree", "gc", "-y", "--json"]);
    assert_eq!(code, 9, "{out}");
    fs::remove_file(&snapshots).unwrap();
    fs::rename(snapshots.with_extension("away"), &snapshots).unwrap();
    client.remove_worktree("fix").await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn whoever_goes_on_works_in_the_same_tree_also_when_it_was_gone() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let script = "echo two > b.txt && git add b.txt && git commit -qm second && echo lost > c.txt";
    let (view, path) = started(&home, &client, "fix", script).await;
    let next = client.restart_session(&view.id.to_string()).await.unwrap();
    assert_eq!(next.worktree, view.worktree);
    let next = rests(&home, &client, &next.id.to_string(), 0).await;
    let next = says(&home, &client, &next, "cat b.txt c.txt").await;
    assert_eq!(printed(&home, &client, &next).await, ["two\nlost\n"]);
    assert_eq!(client.worktrees(None).await.unwrap().len(), 1);
    stopped(&home, &client, &next).await;

    fs::remove_dir_all(&path).unwrap();
    assert_eq!(
        stands(&client, "fix").await.unwrap().standing,
        Standing::Unmerged,
        "its branch has what nobody else has"
    );
    let woken = woken(&home, &client, "fix").await;
    assert_ne!(woken.id, next.id);
    let told = woken.last_completion.as_deref().unwrap();
    assert!(told.contains("was gone") && told.contains("agent/fix"), "the agent is told: {told}");
    assert_eq!(fs::read_to_string(path.join("b.txt")).unwrap(), "two\n");
    assert!(!path.join("c.txt").exists());
    let woken =
        says(&home, &client, &woken, "echo three > d.txt && git add d.txt && git commit -qm third").await;
    assert_eq!(git(&root, &["log", "--format=%s", "agent/fix"]), "third\nsecond\nfirst");
    stopped(&home, &client, &woken).await;

    // Merged and removed, branch and all, it is made again where it was.
    git(&root, &["merge", "-q", "agent/fix"]);
    assert!(client.remove_worktree("fix").await.unwrap().branch_deleted && !path.exists());
    let again = self::woken(&home, &client, "fix").await;
    assert!(again.last_completion.as_deref().unwrap().contains("was gone"), "{again:?}");
    let again = says(&home, &client, &again, "git log -1 --format='%s on %D'").await;
    assert_eq!(printed(&home, &client, &again).await, ["third on HEAD -> agent/fix, trunk\n"]);
    // Its repository may have forgotten it; what is in it stays.
    let again = says(&home, &client, &again, "echo four > e.txt").await;
    stopped(&home, &client, &again).await;
    fs::remove_dir_all(root.join(".git/worktrees")).unwrap();
    assert_eq!(stands(&client, "fix").await.unwrap().standing, Standing::Unknown);
    let last = client.restart_session(&again.id.to_string()).await.unwrap();
    let last = rests(&home, &client, &last.id.to_string(), 0).await;
    let last = says(&home, &client, &last, "git status --porcelain; git symbolic-ref --short HEAD").await;
    // The tracked file that is hidden looks changed to git inside, as it does in a campaign.
    assert_eq!(printed(&home, &client, &last).await, [" M .env\n?? e.txt\nagent/fix\n"]);
    let (_, made, _) = run(&home, &["events", "--kind", "WORKTREE_MADE", "-o", "jsonl"]);
    let made: Vec<Value> = made.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let again: Vec<_> = made.iter().map(|made| made["body"]["again"] == true).collect();
    assert_eq!(again, [false, true, true, true]);
}

#[tokio::test]
async fn helpers_and_heirs_reach_no_more_than_whom_they_serve() {
    let (home, client) = in_repository().await;
    let (view, path) = started(
        &home,
        &client,
        "lead",
        "echo '{\"steps\":[{\"run\":[\"pwd\"]}]}' > task; ostler spawn tester \"$(cat task)\"",
    )
    .await;
    let filter = ostler_domain::query::SessionFilter { spawned_by: Some(view.id), ..Default::default() };
    let helpers = client.sessions(&filter, ostler_domain::query::Page::of(9, None)).await.unwrap().rows;
    let helper = home.ended(&helpers[0].id.to_string()).await;
    assert_eq!(printed(&home, &client, &helper).await, [format!("{}\n", path.display())]);
    let heir =
        client.hand_off(&view.id.to_string(), "", ostler_domain::handoff::Wish::default()).await.unwrap();
    assert_eq!(heir.worktree, view.worktree);
    let copy = client.fork_session(&heir.id.to_string(), Some(&"copy".parse().unwrap()), None).await.unwrap();
    let tree = copy.worktree.as_ref().unwrap();
    assert_eq!((tree.name(), tree.branch.as_str()), ("copy", "agent/copy"), "both may be at work at once");
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_a_hint() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let root = home.campaign_dir();
    let refused = |error: ostler_client::Error, words: &str| {
        let refusal = error.to_refusal();
        assert_eq!(refusal.reason, Reason::WorktreeRefused, "{refusal}");
        assert!(refusal.message.contains(words) && !refusal.hints.is_empty(), "{refusal}");
    };
    refused(client.create_session(wanted("x", "true")).await.unwrap_err(), "is no git repository");
    git(&root, &["init", "-q", "-b", "trunk"]);
    refused(client.create_session(wanted("x", "true")).await.unwrap_err(), "no commit yet");
    fs::write(root.join("a.txt"), "one\n").unwrap();
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    let on = |branch: &str| {
        let mut wanted = wanted("x", "true");
        wanted.worktree = Some(Wanted { branch: Some(branch.to_owned()) });
        wanted
    };
    refused(client.create_session(on("trunk")).await.unwrap_err(), "trunk is checked out elsewhere");
    let bad = client.create_session(on("--force")).await.unwrap_err().to_refusal();
    assert_eq!(bad.reason, Reason::InvalidArgument);
    let (code, _, err) = run(&home, &["run", "-C", "shop", "-p", "script", "--worktree=trunk", "hi"]);
    assert!(code == 4 && err.contains("ostler run --worktree"), "{code} {err}");

    git(&root, &["branch", "topic"]);
    let view = client.create_session(on("topic")).await.unwrap();
    let view = rests(&home, &client, &view.id.to_string(), 1).await;
    assert_eq!(view.branch.as_deref(), Some("topic"));
    let mut second = on("topic");
    second.name = Some("y".parse().unwrap());
    refused(client.create_session(second).await.unwrap_err(), "topic is checked out elsewhere");
    stopped(&home, &client, &view).await;
    // The name is free again, and its tree is not.
    let (second, path) = started(&home, &client, "x", "true").await;
    assert_eq!(
        (second.branch.as_deref(), path.file_name().unwrap().to_str()),
        (Some("agent/x-2"), Some("x-2"))
    );
}

#[tokio::test]
async fn run_says_what_became_of_its_tree() {
    let (home, _client) = in_repository().await;
    let check = "test -e b.txt";
    let prompt = scenario::of(vec![sh(
        "echo two > b.txt && git add b.txt && git commit -qm second && echo x > c.txt",
    )]);
    let args =
        ["run", "-C", "shop", "-p", "script", "--name", "fix", "--worktree", "--check", check, &prompt];
    let (code, _, err) = run(&home, &args);
    assert_eq!(code, 0, "the check is run in the tree: {err}");
    assert!(err.contains("worktree agent/fix") && err.contains("1 commit, 1 file uncommitted"), "{err}");
    let prompt = scenario::of(vec![sh("echo three > d.txt")]);
    let done =
        json_of(&home, &["run", "-C", "shop", "-p", "script", "--name", "more", "--worktree=topic", &prompt]);
    assert_eq!(done["worktree"]["branch"], "topic");
    assert_eq!(
        (&done["worktree"]["standing"], &done["worktree"]["uncommitted"]),
        (&json!("uncommitted"), &json!(1))
    );
    assert_eq!(done["files"], json!([{"path": "d.txt", "added": 1, "removed": 0}]));
    let shown = json_of(&home, &["show", "more"]);
    assert_eq!(shown["worktree"]["path"], shown["working_dir"]);

    // Whoever stands in a tree means its campaign, and commands run there.
    let path = shown["working_dir"].as_str().unwrap();
    let output =
        home.command(&["exec", "--", "git", "status", "--porcelain"]).current_dir(path).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("?? d.txt\n"), "{out} {err}");
    let (code, _, err) = run(&home, &["campaign", "rm", "shop"]);
    assert_eq!(code, 0, "{err}");
    assert!(Path::new(path).join("d.txt").exists(), "who forgets a campaign throws no work away");
    assert_eq!(json_of(&home, &["worktree", "ls"])["worktrees"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn files_are_put_back_into_a_tree_that_is_gone() {
    let (home, client) = in_repository().await;
    let (view, path) = started(&home, &client, "fix", "echo x >new.txt; echo two >a.txt").await;
    let who = view.id.to_string();
    stopped(&home, &client, &view).await;
    fs::remove_dir_all(&path).unwrap();
    let looked = client.rewind(&who, "1", true).await.unwrap();
    assert!(!looked.is_done && looked.files.iter().any(|file| file.path == "new.txt"), "{looked:?}");
    assert!(!path.exists(), "a look makes nothing");
    let done = client.rewind(&who, "1", false).await.unwrap();
    let mut changed: Vec<_> = done.files.iter().map(|file| file.path.as_str()).collect();
    changed.sort_unstable();
    assert_eq!((done.is_done, changed), (true, vec!["a.txt", "new.txt"]));
    assert_eq!(fs::read_to_string(path.join("new.txt")).unwrap(), "x\n");
    // The same after it was removed with all that was in it.
    git(&path, &["checkout", "-q", "--", "."]);
    fs::remove_file(path.join("new.txt")).unwrap();
    client.remove_worktree(&who).await.unwrap();
    assert!(client.rewind(&who, "1", false).await.unwrap().is_done);
    assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "two\n");
    let kept = stands(&client, "fix").await.unwrap();
    assert_eq!((kept.standing, kept.removed), (Standing::Uncommitted, None));
}
