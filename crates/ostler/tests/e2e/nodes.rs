//! Another machine, reached by a real SSH on loopback: its daemon does what is asked from here.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use ostler_client::AddCampaign;
use ostler_testkit::{TestHome, scenario, skip, wait};
use serde_json::Value;

use crate::OSTLER;

/// A server of SSH that leads to one home.
struct Sshd {
    child: Child,
    port: u16,
    /// What the client is to be told.
    client: String,
}

impl Sshd {
    /// None where there is no such server on this machine.
    fn start(home: &TestHome) -> Option<Sshd> {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"].into_iter();
        let Some(program) = program.map(Path::new).find(|path| path.exists()) else {
            skip::lacking("nodes needs sshd");
            return None;
        };
        let dir = home.path().join("ssh");
        fs::create_dir(&dir).unwrap();
        let at = |name: &str| dir.join(name).display().to_string();
        for name in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]);
            assert!(keygen.status().unwrap().success());
        }
        fs::copy(at("user.pub"), at("authorized")).unwrap();
        if rustix::process::geteuid().is_root() {
            // Where it goes to have fewer rights; the system's own start would make it.
            let _ = fs::create_dir("/run/sshd");
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv OSTLER_HOME={}\n",
            at("host"),
            at("authorized"),
            home.path().canonicalize().unwrap().join("home").display()
        );
        fs::write(at("sshd_config"), config).unwrap();
        let client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\n\
             LogLevel ERROR\n",
            at("user")
        );
        fs::write(at("ssh_config"), client).unwrap();
        let child = Command::new(program)
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stdin(Stdio::null())
            .stderr(fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        wait::until("sshd", wait::PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Sshd { child, port, client: at("ssh_config") })
    }

    fn run(&self, home: &TestHome, args: &[&str]) -> Output {
        let ssh = format!("ssh -F {}", self.client);
        home.command(args).env("OSTLER_SSH", ssh).stdin(Stdio::null()).output().unwrap()
    }

    fn json(&self, home: &TestHome, args: &[&str]) -> Value {
        let output = self.run(home, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_machine_whose_shell_does_not_find_the_program_says_where_to_say_it() {
    let near = TestHome::new(OSTLER);
    let ssh = near.path().join("ssh");
    fs::write(&ssh, "#!/bin/sh\necho 'bash: line 1: ostler: command not found' >&2\nexit 127\n").unwrap();
    fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let output =
        near.command(&["ls", "--node", "ssh://build2"]).env("OSTLER_SSH", &ssh).stdin(Stdio::null()).output();
    let told = said(&output.unwrap());
    assert!(told.contains("ostler node add NAME ssh://build2 --program PATH"), "{told}");
}

#[tokio::test]
async fn another_machine_does_what_is_asked_from_here() {
    let (near, far) = (TestHome::started(OSTLER).await, TestHome::new(OSTLER));
    let Some(mut sshd) = Sshd::start(&far) else { return };
    let address = format!("ssh://127.0.0.1:{}", sshd.port);
    let empty = sshd.run(&near, &["node", "ls"]);
    assert!(said(&empty).contains("ostler node add NAME ssh://HOST"), "{}", said(&empty));

    // Nobody has started a daemon over there: whoever comes first does.
    let added = sshd.run(&near, &["node", "add", "far", &address, "--program", OSTLER]);
    assert!(added.status.success() && said(&added).contains("answers"), "{}", said(&added));
    far.begin().await;

    let ran =
        sshd.run(&near, &["run", "--node", "far", "-C", "shop", "-p", "script", "--name", "there", "hello"]);
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(!String::from_utf8_lossy(&ran.stdout).trim().is_empty(), "the answer comes back");
    let here = near
        .client()
        .await
        .sessions(&ostler_domain::query::SessionFilter::default(), ostler_domain::query::Page::of(10, None))
        .await;
    assert!(here.unwrap().rows.is_empty(), "nothing was started here");
    let logs = sshd.run(&near, &["logs", "--node", "far", "there"]);
    assert!(logs.status.success() && said(&logs).contains("hello"), "{}", said(&logs));

    // Several people share the login over there: the record has who of them it was.
    let told = scenario::of(vec![scenario::say("hi")]);
    let ssh = format!("ssh -F {}", sshd.client);
    let asked = |person: &str, args: &[&str]| {
        let mut command = near.command(args);
        command.env("OSTLER_SSH", &ssh).env("OSTLER_USER", person).stdin(Stdio::null()).output().unwrap()
    };
    let run = ["run", "-d", "--node", "far", "-C", "shop", "-p", "script", "--name", "shared", "-q", &told];
    assert!(asked("ann", &run).status.success());
    assert!(asked("bob", &["stop", "--node", "far", "shared"]).status.success());
    let ended = said(&sshd.run(&near, &["show", "--node", "far", "shared"]));
    assert!(ended.contains("(bob)"), "{ended}");
    let odd = asked("a$(b)", &["stop", "--node", "far", "shared"]);
    assert!(odd.status.success(), "{}", said(&odd));

    // One of each, in one list; and a change over there by its short name from here.
    let sleeping = scenario::of(vec![serde_json::json!({"run": ["sleep", "300"]})]);
    let started =
        sshd.json(&near, &["run", "-d", "--node", "far", "-C", "shop", "-p", "script", "--json", &sleeping]);
    let far_id = started["id"].as_str().unwrap().to_owned();
    let client = near.client().await;
    let near_id = near.session(&client, &sleeping).await.id.to_string();
    let all = sshd.json(&near, &["ls", "--node", "all", "--json"]);
    let nodes = |list: &Value| -> Vec<(String, String)> {
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let mut rows: Vec<_> = list["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (text(row, "node"), text(row, "id")))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(nodes(&all), [("far".to_owned(), far_id.clone()), ("here".to_owned(), near_id.clone())]);
    let table = said(&sshd.run(&near, &["ls", "--node", "all"]));
    assert!(table.contains("NODE") && table.contains("far") && table.contains("here"), "{table}");
    assert!(table.contains("here 1 · far 1"), "{table}");
    let states = |list: &Value| -> Vec<(String, String)> {
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let rows = list["nodes"].as_array().unwrap().iter();
        rows.map(|row| (text(row, "node"), text(row, "state"))).collect()
    };
    let state = |node: &str, state: &str| (node.to_owned(), state.to_owned());
    assert_eq!(states(&all), [state("here", "answers"), state("far", "answers")]);
    // Filters are each machine's to understand, and what one of them has never heard of the other may know.
    let found =
        |args: &[&str]| nodes(&sshd.json(&near, &[&["ls", "--node", "all", "--json"], args].concat()));
    assert_eq!(found(&["--status", "WORKING"]).len(), 2);
    assert_eq!(found(&["--needs-me"]), []);
    assert_eq!(found(&["-a", "--agent", "there"]).len(), 1);
    let elsewhere = far.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let wanted = AddCampaign {
        path: elsewhere.to_str().unwrap().to_owned(),
        name: Some("elsewhere".parse().unwrap()),
    };
    far.client().await.add_campaign(wanted).await.unwrap();
    assert_eq!(found(&["-C", "elsewhere"]), []);
    assert_eq!(found(&["-C", "shop"]).len(), 2);
    let nowhere = sshd.run(&near, &["ls", "--node", "all", "-C", "nowhere"]);
    assert_eq!(nowhere.status.code(), Some(3), "{}", said(&nowhere));
    assert_eq!(found(&["-a", "--limit", "1"]).len(), 1);
    let part = said(&sshd.run(&near, &["ls", "--node", "all", "-a", "--limit", "1"]));
    assert!(part.contains("more: --limit 0"), "{part}");
    // Watched, a row is told once for each time that it changed.
    let mut watching = near
        .command(&["ls", "--node", "all", "-w", "-o", "jsonl"])
        .env("OSTLER_SSH", &ssh)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut told = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut until = |node: &str, is: &dyn Fn(&Value) -> bool| {
        told.by_ref().find(|row| row["node"] == node && is(row)).expect("it was told");
    };
    until("far", &|row| row["status"] == "WORKING");
    assert!(sshd.run(&near, &["pause", "--node", "far", &far_id]).status.success());
    until("far", &|row| row["attention"] == "paused");
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(sshd.run(&near, &["resume", "--node", "far", &far_id]).status.success());

    // What looks at files here is not asked of somebody else, and a path here is none there.
    for (args, code, word) in [
        (&["exec", "--node", "far", "--", "git", "status"][..], 2, "works on this machine only"),
        (&["--node", "far", "exec", "--", "git", "status"], 2, &format!(" {OSTLER} exec …")),
        (&["run", "--node", "far", "hi"], 2, "which campaign of far is meant"),
        (&["ls", "--node", "far", "-C", "."], 2, "is a path here"),
        (&["ls", "--node", "far1"], 3, "--node far"),
        (&["show", "--node", "all", "x"], 2, "one machine at a time"),
    ] {
        let refused = sshd.run(&near, args);
        assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", said(&refused));
        assert!(said(&refused).contains(word), "{args:?}: {}", said(&refused));
    }

    // It does not answer any more: what it had last is shown, and said to be old.
    sshd.child.kill().unwrap();
    sshd.child.wait().unwrap();
    let stale = sshd.json(&near, &["ls", "--node", "all", "--json"]);
    assert_eq!(nodes(&stale), nodes(&all));
    assert_eq!(states(&stale), [state("here", "answers"), state("far", "offline")]);
    let none = said(&sshd.run(&near, &["ls", "--node", "all", "--needs-me"]));
    assert!(none.contains("No session fits on any machine"), "{none}");
    assert!(none.contains("here 0 · far offline") && none.contains("had none of these"), "{none}");
    let row =
        |node: &str| stale["sessions"].as_array().unwrap().iter().find(|row| row["node"] == node).unwrap();
    assert!(row("far")["stale_since"].is_string() && row("here")["stale_since"].is_null(), "{stale}");
    let table = said(&sshd.run(&near, &["ls", "--node", "all"]));
    assert!(table.contains("stale") && table.contains("far does not answer"), "{table}");
    let offline = sshd.run(&near, &["ls", "--node", "far"]);
    assert_eq!(offline.status.code(), Some(7), "{}", said(&offline));
    assert!(said(&offline).contains("Connection refused"), "{}", said(&offline));
    let listed = sshd.json(&near, &["node", "ls", "--json"]);
    assert_eq!(listed["nodes"][0]["state"], "offline");
    assert_eq!(sshd.json(&near, &["node", "rm", "far", "--json"])["name"], "far");
    assert_eq!(sshd.json(&near, &["node", "ls", "--json"])["nodes"], serde_json::json!([]));
}
