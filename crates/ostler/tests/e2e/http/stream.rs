//! The stream of events: nothing is lost or doubled on the way.

use std::{io::BufRead, net::TcpStream};

use ostler_testkit::{scenario, wait::PATIENCE};

use serde_json::json;

use super::{Open, ask, connect};

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

/// As after a restore from a copy: whoever was further than its end is told, and does not wait for what never comes.
#[tokio::test]
async fn whoever_is_further_than_the_log_is_told_and_begins_anew() {
    let open = Open::new().await;
    let client = open.home.client().await;
    open.home.session(&client, "hello").await;
    let asked = |path: &str, more: &[(&str, &str)]| {
        let usual = [("host", open.host.as_str()), ("cookie", &open.cookie), ("accept", "text/event-stream")];
        ask(&open.host, &format!("GET {path}"), &[&usual[..], more].concat(), "")
    };
    // A browser, which has the place from the stream itself: with an empty id it forgets it.
    let back = asked("/v1/events", &[("last-event-id", "999999")]);
    assert_eq!((back.status, back.header("content-type")), (200, Some("text/event-stream")), "{back:?}");
    assert!(back.body.starts_with("event: reset\nid:\n"), "{back:?}");
    assert!(back.body.contains("\"reason\":\"CURSOR_UNKNOWN\""), "{back:?}");
    // A program that says the place.
    for path in ["/v1/events?after=999999", "/v1/events?after=999999&kind=HALTED"] {
        let refused = asked(path, &[]);
        assert_eq!((refused.status, &refused.json()["error"]["reason"]), (400, &json!("CURSOR_UNKNOWN")));
    }
    assert_eq!(open.get("/v1/events?after=999999").status, 400, "a page of it");
    // A page of the dashboard is shown as it is now, and goes on from there.
    let head = format!(
        "GET /live?page=/sessions&after=7 HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\nlast-event-id: 999999\r\n",
        open.host, open.cookie
    );
    let mut lines = connect(&open.host, &head, "").lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: main"));
    let place: u64 = lines.find_map(|line| line.strip_prefix("id: ")?.parse().ok()).unwrap();
    assert!(place < 999_999);
    let next = open.home.session(&client, "and now").await;
    assert!(lines.any(|line| line.contains(&next.id.to_string())), "it is followed");
}

/// However many follow the log, each has what it asked for: each event once, in order, and nobody else's.
#[tokio::test]
async fn many_who_follow_one_log_each_have_their_own_part_of_it() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let steps = || scenario::of(vec![scenario::count("line", 40, 20)]);
    let one = open.home.session(&client, &steps()).await;
    let other = open.home.session(&client, &steps()).await;
    let completions = "/v1/events?kind=AGENT_COMPLETION&after=0".to_owned();
    let of = |session: &str| format!("/v1/events?session={session}&after=0");
    let paths =
        [of(&one.id.to_string()), of(&other.id.to_string()), completions, "/v1/events?after=0".to_owned()];
    let seen: Vec<(usize, Vec<u64>)> = std::thread::scope(|scope| {
        let open = &open;
        let threads: Vec<_> = (0..12)
            .map(|n| {
                let path = &paths[n % paths.len()];
                scope.spawn(move || (n % 4, stream(open, path, None, 30).0))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut wanted: Vec<Vec<u64>> = Vec::new();
    for session in [&one, &other] {
        wanted.push(open.home.events(&client, session.id).await.iter().map(|event| event.seq).collect());
    }
    let page = |path: &str| -> Vec<u64> {
        let page = open.get(path).json();
        page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
    };
    wanted.push(page("/v1/events?kind=AGENT_COMPLETION&limit=100"));
    wanted.push(page("/v1/events?limit=100"));
    for (which, seen) in seen {
        assert_eq!(seen, wanted[which][..seen.len()], "{}", paths[which]);
    }
}
