//! The way back writes over nothing that is written down nowhere.

use std::{fs, path::Path};

use ostler_client::Client;
use ostler_domain::Reason;

use crate::git::{in_repository, run, turn, write};

/// Whether going back to a turn is refused, also where it is only asked about, because this would be lost.
async fn would_lose(client: &Client, who: &str, turn: &str, name: &str) {
    for dry_run in [true, false] {
        let refused = client.rewind(who, turn, dry_run).await.unwrap_err().to_refusal();
        assert_eq!(refused.reason, Reason::WrongState, "{refused:?}");
        assert!(refused.why.iter().any(|why| why.contains(name)), "{refused:?}");
    }
}

fn texts(root: &Path, names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| fs::read_to_string(root.join(name)).ok()).collect()
}

#[tokio::test]
async fn what_git_ignores_by_now_is_not_written_over() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let view =
        turn(&home, &client, None, vec![write("local.db", "agent made\n"), write("build", "a file\n")]);
    let view = view.await;
    let away = run(&["sh", "-c", "rm local.db build; printf 'local.db\nbuild\n' >> .gitignore"]);
    let view = turn(&home, &client, Some(&view), vec![away]).await;
    let who = view.id.to_string();
    fs::write(root.join("local.db"), "MY DATABASE\n").unwrap();
    would_lose(&client, &who, "1", "local.db").await;
    fs::remove_file(root.join("local.db")).unwrap();
    fs::create_dir(root.join("build")).unwrap();
    fs::write(root.join("build/weights.bin"), "weights\n").unwrap();
    would_lose(&client, &who, "1", "build/weights.bin").await;
    assert_eq!(texts(&root, &["build/weights.bin"]), [Some("weights\n".to_owned())]);
    // Out of the way, nothing stands against it.
    fs::rename(root.join("build"), home.path().join("elsewhere")).unwrap();
    assert!(client.rewind(&who, "1", false).await.unwrap().is_done);
    let there = texts(&root, &["local.db", "build", "x.log"]);
    let expected = ["agent made\n", "a file\n", "ignored\n"].map(|text| Some(text.to_owned()));
    assert_eq!(there, expected);
}

#[tokio::test]
async fn a_repository_within_the_tree_stays() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    let view = turn(&home, &client, None, vec![write("lib", "a file\n")]).await;
    let nested =
        "rm lib; git init -q lib; cd lib; echo kept >kept; git add kept; git commit -qm one; echo mine >mine";
    let view = turn(&home, &client, Some(&view), vec![run(&["sh", "-c", nested])]).await;
    let who = view.id.to_string();
    would_lose(&client, &who, "1", "lib/").await;
    let names = ["lib/kept", "lib/mine", "lib/.git/HEAD"];
    assert!(texts(&root, &names).iter().all(Option::is_some));
    // One that only was not there then has nothing in its way, and is none of what is put back.
    fs::write(root.join("a.txt"), "my own\n").unwrap();
    fs::rename(root.join("lib"), home.path().join("other")).unwrap();
    assert!(client.rewind(&who, "1", false).await.unwrap().is_done);
    fs::rename(home.path().join("other"), root.join("other")).unwrap();
    fs::write(root.join("a.txt"), "again\n").unwrap();
    let done = client.rewind(&who, "1", false).await.unwrap();
    let changed: Vec<_> = done.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(changed, ["a.txt"]);
    assert!(texts(&root, &["other/kept", "other/mine"]).iter().all(Option::is_some));
}

#[tokio::test]
async fn what_lies_deeper_than_what_git_lists_stays_too() {
    let (home, client) = in_repository().await;
    let root = home.campaign_dir();
    fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
    let first = vec![write("conf", "a file\n"), run(&["sh", "-c", "mkdir keep; echo one >keep/src"])];
    let view = turn(&home, &client, None, first).await;
    let away = "rm conf; mkdir conf; echo new >conf/main; rm -r keep; echo file >keep";
    let view = turn(&home, &client, Some(&view), vec![run(&["sh", "-c", away])]).await;
    let who = view.id.to_string();
    let inner = "git init -q conf/lib && cd conf/lib && git config user.email a@b && git config user.name n && \
                 git commit -q --allow-empty -m one && echo mine >mine";
    for (make, name) in [
        ("mkdir conf/target && echo precious >conf/target/out", "conf/target/out"),
        ("mkdir -p conf/a/b && echo precious >conf/a/b/x.log", "conf/a/b/x.log"),
        ("mkdir -p conf/a/target", "conf/a/target/"),
        (inner, "conf/lib/"),
    ] {
        let made = std::process::Command::new("sh").args(["-c", make]).current_dir(&root).status().unwrap();
        assert!(made.success(), "{make}");
        would_lose(&client, &who, "1", name).await;
        assert!(root.join(name).exists(), "{name}");
        // Out of the way, nothing stands against it.
        fs::rename(root.join("conf"), home.path().join("elsewhere")).unwrap();
        fs::create_dir(root.join("conf")).unwrap();
        fs::write(root.join("conf/main"), "new\n").unwrap();
        let looked = client.rewind(&who, "1", true).await.unwrap();
        assert!(!looked.is_done && looked.files.len() == 4, "{:?}", looked.files);
        fs::remove_dir_all(home.path().join("elsewhere")).unwrap();
    }
    assert!(client.rewind(&who, "1", false).await.unwrap().is_done);
    let there = texts(&root, &["conf", "keep/src"]);
    assert_eq!(there, ["a file\n", "one\n"].map(|text| Some(text.to_owned())));
}
