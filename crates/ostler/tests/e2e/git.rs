//! What becomes of files: written down after each turn, compared, put back; and nothing of a repository runs on the host.

use std::{fs, path::Path, process::Command};

use ostler_client::{Client, CreateSession, SendMessage};
use ostler_domain::{
    Event, Reason,
    handoff::Wish,
    query::{Page, SessionFilter},
    session::{Attention, Status, View},
    snapshot::{Cause, FileStatus, Tree},
};
use ostler_testkit::{TestHome, scenario};
use serde_json::{Value, json};

use crate::OSTLER;

fn git(dir: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(status.status.success(), "{args:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// A campaign that is a repository with one commit, an ignored file and a hidden one.
pub(super) async fn in_repository() -> (TestHome, Client) {
    let home = TestHome::new(OSTLER);
    let root = home.campaign_dir();
    git(&root, &["init", "-q", "-b", "trunk"]);
    fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(root.join(".gitignore"), "*.log\n").unwrap();
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    fs::write(root.join("x.log"), "ignored\n").unwrap();
    fs::write(root.join(".env"), "SECRET=1\n").unwrap();
    home.begin().await;
    let client = home.client().await;
    (home, client)
}

pub(super) fn write(path: &str, text: &str) -> Value {
    json!({"write": {"path": path, "text": text}})
}

pub(super) fn run(argv: &[&str]) -> Value {
    json!({"run": argv})
}

pub(super) async fn turn(home: &TestHome, client: &Client, who: Option<&View>, steps: Vec<Value>) -> View {
    let prompt = scenario::of(steps);
    let (view, turns) = match who {
        None => {
            let mut wanted = CreateSession::new("shop", "script");
            wanted.initial_message = Some(prompt);
            (client.create_session(wanted).await.unwrap(), 1)
        }
        Some(view) => {
            let who = view.id.to_string();
            let say = SendMessage { who, text: prompt, ..SendMessage::default() };
            client.send_message(say).await.unwrap();
            (view.clone(), view.turns + 1)
        }
    };
    let is_idle = |view: &View| view.turns == turns && view.attention == Some(Attention::Idle);
    let view = home.reaches(&view.id.to_string(), "its turn to end", is_idle).await;
    // What follows at once may be in the snapshot of the turn before: it is taken beside the work.
    work(client, &view).await;
    view
}

async fn work(client: &Client, view: &View) -> Tree {
    client.tree(&view.id.to_string()).await.unwrap()
}

#[tokio::test]
async fn whoever_gets_work_handed_is_told_of_commits_and_of_what_a_shell_wrote() {
    let (home, client) = in_repository().await;
    let steps = vec![
        write("a.txt", "three\n"),
        run(&["git", "add", "a.txt"]),
        run(&["git", "commit", "-qm", "count to three"]),
        run(&["sh", "-c", "mkdir -p dist && echo built > dist/app.js"]),
    ];
    let first = turn(&home, &client, None, steps).await;
    let child = client.hand_off(&first.id.to_string(), "", Wish::default()).await.unwrap();
    let packed = home.events(&client, child.id).await.into_iter().find_map(|recorded| match recorded.event {
        Event::HandoffPacked(pack) => Some(*pack),
        _ => None,
    });
    let pack = packed.unwrap();
    let [commit] = pack.known.commits.as_slice() else { panic!("{:?}", pack.known.commits) };
    assert!(commit.ends_with(" count to three"), "{commit}");
    assert_eq!(pack.known.files, ["dist/app.js", "a.txt"]);
    assert!(pack.prompt().contains("## Commits\n- "), "{}", pack.prompt());
}

#[tokio::test]
async fn each_turn_is_written_down_and_can_be_compared() {
    let (home, client) = in_repository().await;
    let steps =
        vec![write("a.txt", "one\nTWO\n"), write("new.txt", "new\n"), write("y.log", "ignored too\n")];
    let view = turn(&home, &client, None, steps).await;
    assert_eq!(view.branch.as_deref(), Some("trunk"));
    let work_then = work(&client, &view).await;
    let causes: Vec<_> = work_then.snapshots.iter().map(|taken| (taken.turn, taken.cause)).collect();
    assert_eq!(causes, [(0, Cause::Start), (1, Cause::Turn)]);
    let last = work_then.last().unwrap().changed;
    assert_eq!((last.files, last.added, last.removed), (2, 2, 1));
    let who = view.id.to_string();
    let difference = client.difference(&who, "", true).await.unwrap();
    let files: Vec<_> = difference.files.iter().map(|file| (file.path.as_str(), file.status)).collect();
    assert_eq!(files, [("a.txt", FileStatus::Changed), ("new.txt", FileStatus::Added)]);
    let patch = String::from_utf8(difference.patch).unwrap();
    assert!(
        patch.contains("-two\n+TWO\n") && !patch.contains("SECRET") && !patch.contains("ignored"),
        "{patch}"
    );

    let steps = vec![
        run(&["git", "add", "a.txt"]),
        run(&["git", "commit", "-qm", "second"]),
        run(&["rm", "new.txt"]),
    ];
    let view = turn(&home, &client, Some(&view), steps).await;
    let work_now = work(&client, &view).await;
    let subjects: Vec<_> = work_now.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((subjects, work_now.branch.as_deref()), (vec!["second"], Some("trunk")));
    let files = |span: &'static str| {
        let (client, who) = (client.clone(), who.clone());
        async move {
            let found = client.difference(&who, span, false).await.unwrap().files;
            found.into_iter().map(|file| file.path).collect::<Vec<_>>()
        }
    };
    assert_eq!(files("2").await, ["new.txt"]);
    assert_eq!(files("").await, ["a.txt"]);
    assert_eq!(files("0..1").await, ["a.txt", "new.txt"]);
    let refused = client.difference(&who, "7", false).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::SnapshotUnknown);
    assert!(refused.message.contains("no snapshot of turn 7 "), "{}", refused.message);
    let refused = client.difference(&who, "--output=x", false).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::InvalidArgument);

    let filter = SessionFilter { branches: vec!["trunk".to_owned()], ..SessionFilter::default() };
    assert_eq!(client.sessions(&filter, Page::of(9, None)).await.unwrap().rows.len(), 1);
    let filter = SessionFilter { branches: vec!["other".to_owned()], ..SessionFilter::default() };
    assert!(client.sessions(&filter, Page::of(9, None)).await.unwrap().rows.is_empty());

    // What no agent can write is nobody else's either.
    let snapshots = home.home.state().join("snapshots");
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o777;
    let repository = fs::read_dir(&snapshots).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&snapshots), mode(&repository)), (0o700, 0o700));
}

#[tokio::test]
async fn a_patch_with_a_binary_file_can_be_applied() {
    let (home, client) = in_repository().await;
    let bytes = "head -c 300 /dev/zero > b.bin; echo TWO >> a.txt";
    let view = turn(&home, &client, None, vec![run(&["sh", "-c", bytes])]).await;
    let patch = client.difference(&view.id.to_string(), "", true).await.unwrap().patch;
    let root = home.campaign_dir();
    fs::remove_file(root.join("b.bin")).unwrap();
    git(&root, &["checkout", "-q", "a.txt"]);
    let file = home.path().join("fix.patch");
    fs::write(&file, patch).unwrap();
    git(&root, &["apply", file.to_str().unwrap()]);
    assert_eq!(fs::read(root.join("b.bin")).unwrap(), [0; 300]);
}

#[tokio::test]
async fn files_come_back_and_nothing_is_lost() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let read = |name: &str| fs::read_to_string(root.join(name)).ok();
    let view = turn(&home, &client, None, vec![write("a.txt", "one\n"), write("b.txt", "b\n")]).await;
    let view =
        turn(&home, &client, Some(&view), vec![write("a.txt", "three\n"), write("c.txt", "c\n")]).await;
    let who = view.id.to_string();
    // A person goes on where the agent stopped, and nobody has written that down.
    fs::write(root.join("mine.txt"), "mine\n").unwrap();
    fs::write(root.join("a.txt"), "my own\n").unwrap();
    let would = client.rewind(&who, "1", true).await.unwrap();
    assert!(!would.is_done);
    let files: Vec<_> = would.files.iter().map(|file| (file.path.as_str(), file.status)).collect();
    let expected =
        [("a.txt", FileStatus::Changed), ("c.txt", FileStatus::Removed), ("mine.txt", FileStatus::Removed)];
    assert_eq!(files, expected);
    assert_eq!(read("a.txt").as_deref(), Some("my own\n"), "saying it changes nothing");

    let done = client.rewind(&who, "1", false).await.unwrap();
    assert!(done.is_done);
    assert_eq!((read("a.txt").as_deref(), read("b.txt").as_deref()), (Some("one\n"), Some("b\n")));
    assert_eq!((read("c.txt"), read("mine.txt")), (None, None));
    assert_eq!((read("x.log").as_deref(), read(".env").as_deref()), (Some("ignored\n"), Some("SECRET=1\n")));
    // The way back from the way back.
    assert!(client.rewind(&who, &done.before[..12], false).await.unwrap().is_done);
    assert_eq!((read("a.txt").as_deref(), read("mine.txt").as_deref()), (Some("my own\n"), Some("mine\n")));
    assert_eq!(read("c.txt").as_deref(), Some("c\n"));
    // As the agent found it, with git's own files untouched.
    client.rewind(&who, "0", false).await.unwrap();
    assert_eq!((read("a.txt").as_deref(), read("b.txt")), (Some("one\ntwo\n"), None));
    git(&root, &["diff", "--quiet", "HEAD"]);
    assert!(!client.rewind(&who, "0", false).await.unwrap().is_done, "it is so already");
}

#[tokio::test]
async fn a_directory_that_is_no_repository_is_written_down_where_its_campaign_says_so() {
    let home = TestHome::new(OSTLER);
    let root = home.campaign_dir();
    fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
    home.begin().await;
    let client = home.client().await;
    let without = turn(&home, &client, None, vec![write("b.txt", "x\n")]).await;
    let refused = home.run(&["diff", &without.id.to_string()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("snapshots=always"), "{said}");
    client.set_campaign("shop", vec!["snapshots=always".to_owned()]).await.unwrap();
    let first = turn(&home, &client, None, vec![write("a.txt", "one\n2\n"), write("c.txt", "new\n")]).await;
    let first = turn(&home, &client, Some(&first), vec![write("a.txt", "1\n2\n")]).await;
    let who = first.id.to_string();
    let diff = String::from_utf8(home.run(&["diff", &who, "1"]).stdout).unwrap();
    assert!(diff.contains("-two") && diff.contains("+2") && diff.contains("c.txt"), "{diff}");
    let blamed = home.command(&["blame", "a.txt:2"]).current_dir(&root).output().unwrap();
    let blamed = String::from_utf8(blamed.stdout).unwrap();
    assert!(blamed.contains("turn 1 of"), "{blamed}");
    let back = home.run(&["rewind", &who, "1", "--files", "-y"]);
    assert!(back.status.success(), "{}", String::from_utf8_lossy(&back.stderr));
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\n2\n");
    assert!(!root.join(".git").exists(), "nothing is left in it");
    // Too much of it is said, and harms nobody.
    let large = fs::File::create(root.join("large.bin")).unwrap();
    large.set_len(1 << 30).unwrap();
    let full = turn(&home, &client, None, vec![write("d.txt", "x\n")]).await;
    let refused = home.run(&["diff", &full.id.to_string()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("more than 512 MiB, and is no git repository"), "{said}");
}

#[tokio::test]
async fn a_directory_of_a_repository_is_written_down() {
    let home = TestHome::new(OSTLER);
    let root = home.campaign_dir();
    git(root.parent().unwrap(), &["init", "-q", "-b", "trunk"]);
    fs::write(root.join("a.txt"), "one\n").unwrap();
    home.begin().await;
    let client = home.client().await;
    let view = turn(&home, &client, None, vec![write("a.txt", "two\n")]).await;
    let diff = String::from_utf8(home.run(&["diff", &view.id.to_string()]).stdout).unwrap();
    assert!(diff.contains("-one") && diff.contains("+two"), "{diff}");
}

#[tokio::test]
async fn files_are_not_changed_under_the_hands_of_who_works() {
    let (home, client) = in_repository().await;
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(vec![write("a.txt", "x\n"), json!({"sleep_ms": 60_000})]));
    let view = client.create_session(wanted).await.unwrap();
    let who = view.id.to_string();
    home.reaches(&who, "it to work", |view| view.status == Status::Working).await;
    let refused = client.rewind(&who, "0", false).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::WrongState);
    client.pause_session(&who).await.unwrap();
    home.reaches(&who, "it to rest", |view| view.attention == Some(Attention::Paused)).await;
    assert!(client.rewind(&who, "0", false).await.unwrap().is_done);
    assert_eq!(fs::read_to_string(home.campaign_dir().join("a.txt")).unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn a_hostile_repository_runs_nothing_and_leads_nowhere() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let outside = home.path().join("outside.txt");
    fs::write(&outside, "outside\n").unwrap();
    // Whatever git could be made to run writes this file, which can be written inside and out.
    let trap = root.join("trap.sh");
    fs::write(
        &trap,
        "#!/bin/sh\necho sprung >>/tmp/sprung; echo sprung >>\"$OSTLER_SNAPSHOTS/sprung\"; cat\n",
    )
    .unwrap();
    git(&root, &["update-index", "--chmod=+x", "--add", "trap.sh"]);
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&trap, mode.clone()).unwrap();
    let trap = trap.to_string_lossy().into_owned();
    let nested = root.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    fs::write(nested.join("n"), "n\n").unwrap();
    git(&nested, &["add", "n"]);
    git(&nested, &["commit", "-q", "-m", "n"]);
    for dir in [&root, &nested] {
        for key in
            ["core.fsmonitor", "filter.trap.clean", "filter.trap.smudge", "diff.trap.textconv", "gpg.program"]
        {
            git(dir, &["config", key, &trap]);
        }
        git(dir, &["config", "log.showSignature", "true"]);
        for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit"] {
            let path = dir.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(&trap, &path).unwrap();
            fs::set_permissions(&path, mode.clone()).unwrap();
        }
    }
    fs::write(root.join(".gitattributes"), "* filter=trap diff=trap text eol=crlf ident\n").unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(home.path(), root.join("dir")).unwrap();
    std::os::unix::fs::symlink(".env", root.join("settings")).unwrap();
    let crlf = "a\r\n$Id$\nb\n";
    fs::write(root.join("crlf.txt"), crlf).unwrap();

    let steps =
        vec![write("crlf.txt", "changed\n"), run(&["rm", "link.txt", "dir"]), write("dir", "a file\n")];
    let view = turn(&home, &client, None, steps).await;
    let who = view.id.to_string();
    let found = work(&client, &view).await;
    assert!(found.snapshots.iter().all(|taken| taken.why.is_none()), "{found:?}");
    let patch = client.difference(&who, "", true).await.unwrap().patch;
    let patch = String::from_utf8(patch).unwrap();
    assert!(!patch.contains("SECRET") && !patch.contains("outside\n+"), "{patch}");
    assert!(client.rewind(&who, "0", false).await.unwrap().is_done);
    assert_eq!(fs::read_to_string(root.join("crlf.txt")).unwrap(), crlf, "bytes come back as they were");
    assert_eq!(fs::read_link(root.join("dir")).unwrap(), home.path());
    assert_eq!(fs::read_link(root.join("link.txt")).unwrap(), outside);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside\n");
    assert_eq!(fs::read_to_string(root.join(".env")).unwrap(), "SECRET=1\n");
    assert!(!Path::new("/tmp/sprung").exists());
    let snapshots = home.home.state().join("snapshots");
    let repository = fs::read_dir(&snapshots).unwrap().next().unwrap().unwrap().path();
    assert!(!repository.join("sprung").exists(), "nothing of the repository's was run inside either");
}

#[tokio::test]
async fn a_line_leads_to_its_turn_and_prompt() {
    let (home, client) = in_repository().await;
    let view = turn(&home, &client, None, vec![write("a.txt", "one\nTWO\n")]).await;
    work(&client, &view).await;
    let path = home.campaign_dir().join("a.txt").to_string_lossy().into_owned();
    let blamed = client.blame(&path, 2).await.unwrap();
    assert_eq!((blamed.snapshot.session, blamed.snapshot.turn), (view.id, 1));
    assert_eq!((blamed.text.as_str(), blamed.snapshot.cause), ("TWO", Cause::Turn));
    assert!(blamed.prompt.unwrap().contains("TWO"));
    let blamed = client.blame(&path, 1).await.unwrap();
    assert_eq!((blamed.snapshot.cause, blamed.prompt), (Cause::Start, None));
    let refused = client.blame(&path, 99).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::SnapshotUnknown);
}

#[tokio::test]
async fn lines_that_were_put_back_are_from_where_they_were() {
    let (home, client) = in_repository().await;
    let view = turn(&home, &client, None, vec![write("a.txt", "one\nTWO\n")]).await;
    let view =
        turn(&home, &client, Some(&view), vec![write("a.txt", "three\nTWO\n"), write("b.txt", "b\n")]).await;
    let who = view.id.to_string();
    assert!(client.rewind(&who, "1", false).await.unwrap().is_done);
    let path = |name: &str| home.campaign_dir().join(name).to_string_lossy().into_owned();
    let blame = async |name: &str, number| {
        let blamed = client.blame(&path(name), number).await.unwrap();
        (blamed.text, blamed.snapshot.turn, blamed.snapshot.cause)
    };
    assert_eq!(blame("a.txt", 1).await, ("one".to_owned(), 0, Cause::Start));
    assert_eq!(blame("a.txt", 2).await, ("TWO".to_owned(), 1, Cause::Turn));
    assert!(client.blame(&path("b.txt"), 1).await.is_err(), "it is gone");
    assert_eq!(client.difference(&who, "", false).await.unwrap().files.len(), 1, "what is there now");
    // Whoever goes on has not made what was put back.
    let view = turn(&home, &client, Some(&view), vec![write("c.txt", "c\n")]).await;
    work(&client, &view).await;
    assert_eq!(blame("a.txt", 1).await, ("one".to_owned(), 0, Cause::Start));
    assert_eq!(blame("a.txt", 2).await, ("TWO".to_owned(), 1, Cause::Turn));
    assert_eq!(blame("c.txt", 1).await, ("c".to_owned(), 3, Cause::Turn));
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_taken_harms_nobody() {
    let (home, client) = in_repository().await;
    // Something else is where snapshots go.
    fs::write(home.home.state().join("snapshots"), "").unwrap();
    let view = turn(&home, &client, None, vec![write("a.txt", "x\n")]).await;
    let found = work(&client, &view).await;
    assert_eq!(found.snapshots.len(), 2);
    assert!(found.snapshots.iter().all(|taken| taken.commit.is_none() && taken.why.is_some()), "{found:?}");
    let refused = client.rewind(&view.id.to_string(), "0", false).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::SnapshotUnknown);
    assert_eq!(fs::read_to_string(home.campaign_dir().join("a.txt")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_checkpoint_leads_back_to_its_files_and_its_turn() {
    let (home, client) = in_repository().await;
    let ok = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let ticket = ok(&["ticket", "add", "limit logins", "-C", "shop", "-q"]);
    let mut wanted = CreateSession::new("shop", "script");
    wanted.ticket = Some(ticket.clone());
    wanted.initial_message = Some(scenario::of(vec![write("a.txt", "green\n")]));
    let view = client.create_session(wanted).await.unwrap();
    let is_idle = |view: &View| view.turns == 1 && view.attention == Some(Attention::Idle);
    let view = home.reaches(&view.id.to_string(), "its turn to end", is_idle).await;
    ok(&["ticket", "checkpoint", &ticket, "green"]);
    let whole: Value = serde_json::from_str(&ok(&["ticket", "show", &ticket, "--json"])).unwrap();
    let taken = work(&client, &view).await;
    let commit = taken.snapshots.iter().rev().find_map(|taken| taken.commit.clone()).unwrap();
    assert_eq!(whole["checkpoints"][0]["snapshot"], commit.as_str(), "{whole}");
    let unknown = home.run(&["ticket", "checkpoint", &ticket, "blue", "--snapshot", "deadbeef"]);
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(said.contains("SNAPSHOT_UNKNOWN"), "{said}");
    ok(&["ticket", "checkpoint", &ticket, "lime", "--snapshot", &commit[..10]]);
    let view = turn(&home, &client, Some(&view), vec![write("a.txt", "red\n")]).await;
    let who = view.id.to_string();

    let unknown = client.rewind(&who, "blue", true).await.unwrap_err().to_refusal();
    assert_eq!(unknown.reason, Reason::InvalidArgument);
    for name in ["lime", "green"] {
        client.rewind(&who, name, false).await.unwrap();
        assert_eq!(fs::read_to_string(home.campaign_dir().join("a.txt")).unwrap(), "green\n", "{name}");
    }
    let fork = client.fork_session(&who, None, Some("green")).await.unwrap();
    let copy = client.conversation(&fork.conversation.to_string()).await.unwrap();
    assert_eq!(copy.forked_at.map(|at| (at.session, at.turn)), Some((view.id, 1)));
    // Whoever takes the work over returns to the same point.
    client.stop_session(&who, false).await.unwrap();
    home.ended(&who).await;
    fs::write(home.campaign_dir().join("a.txt"), "grey\n").unwrap();
    let next = client.restart_session(&who).await.unwrap();
    home.reaches(&next.id.to_string(), "it to rest", |view| view.status == Status::Running).await;
    client.rewind(&next.id.to_string(), "green", false).await.unwrap();
    assert_eq!(fs::read_to_string(home.campaign_dir().join("a.txt")).unwrap(), "green\n");
}
