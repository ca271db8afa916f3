//! Finding the daemon and reaching it.

use ostler_client::{Client, Error, Home, query::Page};
use ostler_domain::{Reason, home::DaemonFile};

use crate::fake::{Daemon, Disk};

#[tokio::test]
async fn without_a_daemon_says_where_it_looked() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let error = Client::connect(&home).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unreachable { socket, .. } if *socket == home.control_socket()),
        "{error:?}"
    );
    assert_eq!(error.to_refusal().reason, Reason::DaemonUnreachable);

    // A socket with nobody behind it is no daemon either.
    std::fs::create_dir_all(home.run()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(home.control_socket()).unwrap());
    assert!(matches!(Client::connect(&home).await, Err(Error::Unreachable { .. })));
}

#[tokio::test]
async fn a_path_longer_than_a_socket_address_works() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("d".repeat(120)).join("e".repeat(120)));
    let disk = Disk::new();
    let _daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    assert_eq!(client.campaigns(Page::of(0, None)).await.unwrap().next_cursor, Some(7));
}

#[tokio::test]
async fn daemon_json_decides_where_to_look() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let socket = dir.path().join("elsewhere.sock");
    let _daemon = Daemon::start_at(&socket, &Disk::new());
    let said = DaemonFile {
        pid: 1,
        start_time: 2,
        version: "0".into(),
        program: "/bin/true".into(),
        socket,
        state: home.state().to_owned(),
        is_service: false,
        boot: None,
    };
    std::fs::create_dir_all(home.state()).unwrap();
    std::fs::write(home.daemon_json(), serde_json::to_vec(&said).unwrap()).unwrap();
    Client::connect(&home).await.unwrap();
}

#[tokio::test]
async fn a_refusal_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let _daemon = Daemon::start(&home, &Disk::new());
    let client = Client::connect(&home).await.unwrap();
    let Err(Error::Refused(refusal)) = client.campaign("moon").await else { panic!("not refused") };
    assert_eq!(
        (refusal.reason, refusal.message.as_str()),
        (Reason::CampaignUnknown, "no campaign is called moon")
    );
    assert_eq!(
        (refusal.why.as_deref(), refusal.hints[0].command.as_str()),
        (Some("there are none"), "ostler campaign add .")
    );

    let Err(Error::Refused(refusal)) = client.campaign("").await else { panic!("not refused") };
    assert_eq!((refusal.reason, refusal.message.as_str()), (Reason::InvalidArgument, "who is missing"));
}

#[tokio::test]
async fn an_answer_without_its_point_names_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let _daemon = Daemon::start(&home, &Disk::new());
    let client = Client::connect(&home).await.unwrap();
    let Err(Error::Answer(invalid)) = client.remove_campaign("shop").await else { panic!("it made sense") };
    assert_eq!(invalid.field, "campaign");
}

#[tokio::test]
async fn a_daemon_without_the_request_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let _daemon = Daemon::start(&home, &Disk::new());
    let client = Client::connect(&home).await.unwrap();
    // The whole service is unknown to it.
    let Err(Error::Refused(refusal)) = client.session("k7q4x").await else { panic!("not refused") };
    assert_eq!(refusal.message, "the daemon does not know this request");
    assert_eq!(refusal.hints[0].command, "ostler daemon restart");
}
