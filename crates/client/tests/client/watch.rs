//! A watch misses nothing and repeats nothing, whatever becomes of the daemon.

use std::time::Duration;

use ostler_client::{Client, Error, Home, Watch, Watched, query::EventFilter};
use ostler_domain::Reason;

use crate::fake::{Daemon, Disk};

/// Reads items in short: a place in the log, `?` and a place, or `~` for a new connection.
async fn read(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut items = Vec::new();
    for _ in 0..count {
        let item = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.expect("nothing came");
        items.push(match item.expect("it ended").expect("it failed") {
            Watched::Event(recorded) => recorded.seq.to_string(),
            Watched::Unknown(unknown) => format!("?{}", unknown.seq),
            Watched::Reconnected => "~".to_owned(),
        });
    }
    items
}

#[tokio::test]
async fn goes_on_after_a_crash_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    disk.record(3);
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    let mut watch = client.watch(EventFilter::default(), Some(0)).await.unwrap();
    assert_eq!(read(&mut watch, 2).await, ["1", "2"]);
    assert_eq!(watch.cursor(), Some(2));

    daemon.crash();
    // What happens while the daemon is away is in its log when it comes back.
    disk.record(2);
    disk.record_unknown();
    let daemon = Daemon::start(&home, &disk);
    assert_eq!(read(&mut watch, 5).await, ["3", "~", "4", "5", "?6"]);

    daemon.crash();
    let _daemon = Daemon::start(&home, &disk);
    assert_eq!(read(&mut watch, 1).await, ["~"]);
    disk.record(1);
    assert_eq!(read(&mut watch, 1).await, ["7"]);
    assert_eq!(watch.cursor(), Some(7));
}

#[tokio::test]
async fn from_now_on_means_from_when_it_returned() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    disk.record(5);
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    let mut watch = client.watch(EventFilter::default(), None).await.unwrap();
    assert_eq!(watch.cursor(), Some(5));
    daemon.crash();
    disk.record(1);
    let _daemon = Daemon::start(&home, &disk);
    assert_eq!(read(&mut watch, 2).await, ["~", "6"]);
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    let _daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    let mut watch = client.watch(EventFilter::default(), Some(0)).await.unwrap();
    for seq in 1..=20_u64 {
        assert!(tokio::time::timeout(Duration::from_millis(1), watch.next()).await.is_err());
        disk.record(1);
        assert_eq!(read(&mut watch, 1).await, [seq.to_string()]);
    }
}

#[tokio::test]
async fn a_refused_watch_ends() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let disk = Disk::new();
    disk.record(2);
    let daemon = Daemon::start(&home, &disk);
    let client = Client::connect(&home).await.unwrap();
    assert!(matches!(client.watch(EventFilter::default(), Some(9)).await, Err(Error::Refused(_))));

    let mut watch = client.watch(EventFilter::default(), None).await.unwrap();
    daemon.crash();
    // Another log: what comes back does not know this cursor.
    let _daemon = Daemon::start(&home, &Disk::new());
    let Some(Err(Error::Refused(refusal))) = watch.next().await else { panic!("not refused") };
    assert_eq!(refusal.reason, Reason::InvalidArgument);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn fleeting_text_ends_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let _daemon = Daemon::start(&home, &Disk::new());
    let client = Client::connect(&home).await.unwrap();
    let mut deltas = client.deltas("k7q4x").await.unwrap();
    assert_eq!(deltas.next().await.unwrap().unwrap().text, "hel");
    assert_eq!(deltas.next().await.unwrap().unwrap().text, "lo");
    assert!(matches!(deltas.next().await, Some(Err(Error::Refused(_)))));
    assert!(deltas.next().await.is_none());
}
