//! Changes happen once, however the connection fares.

use std::time::Duration;

use ostler_client::{AddCampaign, Client, Error, Home, query::Page};

use crate::fake::{Daemon, Disk};

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_change_is_asked_again_with_its_own_id() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();

    disk.is_stuck.send_replace(true);
    let add = tokio::spawn({
        let client = client.clone();
        async move { client.add_campaign(AddCampaign { path: "/srv/shop".to_owned(), name: None }).await }
    });
    until(|| !disk.asked.lock().unwrap().is_empty()).await;
    // It has the request and has not answered.
    daemon.crash();
    disk.is_stuck.send_replace(false);
    let _daemon = Daemon::start(&home, &disk);

    assert_eq!(add.await.unwrap().unwrap().root.path, "/srv/shop");
    let asked = disk.asked.lock().unwrap();
    assert_eq!((asked.len(), asked.values().sum::<u32>()), (1, 2), "{asked:?}");
    assert!(asked.keys().all(|id| id.starts_with("req_")));
}

#[tokio::test]
async fn an_idle_client_finds_the_new_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    client.campaigns(Page::of(0, None)).await.unwrap();
    daemon.crash();
    let _daemon = Daemon::start(&home, &disk);
    client.campaigns(Page::of(0, None)).await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_stays_away_is_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    daemon.crash();
    let error = client.campaigns(Page::of(0, None)).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unreachable { socket, .. } if *socket == home.control_socket()),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_end_of_the_daemon_is_asked_for_once() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let daemon = Daemon::start(&home, &Disk::new());
    let client = Client::connect(&home).await.unwrap();
    daemon.crash();
    let asked = std::time::Instant::now();
    assert!(client.stop_daemon(false).await.is_err());
    assert!(asked.elapsed() < Duration::from_millis(500));
}
