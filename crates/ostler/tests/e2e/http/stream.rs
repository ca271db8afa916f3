//! The stream of events: nothing is lost or doubled on the way.

use std::{io::BufRead, net::TcpStream};

use ostler_testkit::{scenario, wait::PATIENCE};

use super::{Open, connect};

/// Reads a stream of events until so many have come; with the id of the last.
fn stream(open: &Open, path: &str, after: Option<&str>, count: usize) -> (Vec<u64>, String) {
    let last = after.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\naccept: text/event-stream\r\n{last}",
        open.host, open.cookie
    );
    let reader = connect(&open.host, &head, "");
    let (mut seen, mut id) = (Vec::new(), String::new());
    for line in reader.lines() {
        let line = line.unwrap();
        if let Some(place) = line.strip_prefix("id: ") {
            id = place.to_owned();
        }
        if let Some(event) = line.strip_prefix("data: {\"seq\":") {
            seen.push(event.split(',').next().unwrap().parse().unwrap());
        }
        if seen.len() >= count {
            break;
        }
    }
    (seen, id)
}

#[tokio::test]
async fn a_stream_that_breaks_goes_on_without_a_hole_or_a_repetition() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let session = open.home.session(&client, &scenario::of(vec![scenario::count("line", 60, 10)])).await;
    let path = format!("/v1/events?session={}&after=0", session.id);
    let (mut seen, mut last) = stream(&open, &path, None, 7);
    let mut breaks = 0;
    while seen.len() < 50 {
        // The daemon dies in the middle, once.
        if breaks == 2 {
            open.home.kill_daemon();
            open.home.start().await;
            ostler_testkit::wait::until("the door to stand open again", PATIENCE, || {
                TcpStream::connect(&open.host).is_ok()
            });
        }
        let (more, place) = stream(&open, &path, Some(&last), 7);
        seen.extend(more);
        (last, breaks) = (place, breaks + 1);
    }
    let whole: Vec<u64> =
        open.home.events(&open.home.client().await, session.id).await.iter().map(|event| event.seq).collect();
    assert_eq!(seen, whole[..seen.len()], "each once, in order");
}

#[tokio::test]
async fn a_stream_ends_when_whoever_follows_it_is_turned_out() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let token = client.create_token("screen", true).await.unwrap().secret;
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nauthorization: Bearer {token}\r\n",
        open.host
    );
    let mut lines = connect(&open.host, &head, "").lines();
    assert!(lines.any(|line| line.unwrap() == "event: begin"));
    client.revoke_token("screen").await.unwrap();
    // To its end: a stream that goes on would not have one before the time for reading is up.
    let rest: Result<Vec<String>, _> = lines.collect();
    assert!(rest.is_ok(), "it went on: {rest:?}");
}
