//! Who is let in, and what is refused.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use ostler_testkit::{
    TestHome,
    wait::{self, PATIENCE},
};
use serde_json::{Value, json};

use super::{Open, ask, connect};
use crate::{OSTLER, missions::ok};

#[tokio::test]
async fn the_door_is_closed_until_it_is_asked_for() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    assert!(client.tokens().await.unwrap().is_empty());
    let way = client.open_http("").await.unwrap();
    let host = way.address.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(ask(&host, "GET /healthz", &[("host", &host)], "").body, "ok\n");
    assert!(client.close_http().await.unwrap());
    // Its usual port may be somebody else's by now.
    assert!(!client.close_http().await.unwrap(), "it is closed, and cannot be closed once more");
    // What was open is open again with the next daemon, and what was closed is not.
    let way = client.open_http("").await.unwrap();
    home.kill_daemon();
    home.start().await;
    let host = way.address.strip_prefix("http://").unwrap();
    ostler_testkit::wait::until("the door to stand open again", PATIENCE, || {
        TcpStream::connect(host).is_ok()
    });
}

#[tokio::test]
async fn whoever_is_told_that_the_door_is_closed_finds_it_so() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let mut host = open.host.clone();
    for time in 0..30 {
        let inside = TcpStream::connect(&host).unwrap();
        assert!(client.close_http().await.unwrap());
        assert!(TcpStream::connect(&host).is_err(), "it was open still, time {time}");
        drop(inside);
        let way = client.open_http("").await.unwrap();
        way.address.strip_prefix("http://").unwrap().clone_into(&mut host);
    }
}

#[tokio::test]
async fn nobody_comes_in_by_a_foreign_name_or_without_a_word() {
    let open = Open::new().await;
    let port = open.host.rsplit(':').next().unwrap();
    let foreign = format!("evil.example:{port}");
    let status = |headers: &[(&str, &str)]| ask(&open.host, "GET /v1/status", headers, "").status;
    let cookie = ("cookie", open.cookie.as_str());
    // DNS rebinding: the browser believes that the door is the other's.
    assert_eq!(status(&[("host", &foreign), cookie]), 421);
    assert_eq!(status(&[("host", "localhost"), cookie]), 421, "without the port");
    assert_eq!(status(&[("host", &open.host), ("host", &foreign), cookie]), 421, "two names");
    let absolute = format!("GET http://{foreign}/v1/status");
    assert_eq!(ask(&open.host, &absolute, &[("host", &open.host), cookie], "").status, 421);
    assert_eq!(status(&[("host", &format!("localhost:{port}")), cookie]), 200);
    assert_eq!(status(&[("host", &open.host)]), 401, "no cookie");
    assert_eq!(status(&[("host", &open.host), ("cookie", "ostler_1=x")]), 401, "another's cookie");
    assert_eq!(status(&[("host", &open.host), ("authorization", "Bearer ost_guess")]), 401);
    let secret = open.cookie.split_once('=').unwrap().1;
    assert_eq!(
        status(&[("host", &open.host), ("authorization", &format!("Bearer {secret}"))]),
        401,
        "a cookie is no token"
    );
    assert_eq!(status(&[("host", &open.host), cookie, ("origin", "https://evil.example")]), 403);
    let own = format!("http://{}", open.host);
    let twice = [("host", open.host.as_str()), cookie, ("origin", &own), ("origin", "https://evil.example")];
    assert_eq!(status(&twice), 403, "two origins");
    assert_eq!(status(&twice[..3]), 200);
    // What anybody may have is not for pages of others either, nor whether somebody is let in.
    let foreign = [("host", open.host.as_str()), ("origin", "https://evil.example")];
    for path in ["/healthz", "/assets/ostler.js", "/open/x", "/v1/status", "/"] {
        assert_eq!(ask(&open.host, &format!("GET {path}"), &foreign, "").status, 403, "{path}");
    }
    let shut = ask(&open.host, "GET /", &[("host", &open.host)], "");
    assert!(shut.status == 401 && shut.body.contains("ostler open"), "{shut:?}");
    // Whoever is in and goes astray finds a page with the way back; a program finds what it reads.
    let astray = open.get("/nowhere/at-all");
    assert!(astray.status == 404 && astray.body.contains("there is no such page"), "{astray:?}");
    assert!(astray.body.contains("<nav class=\"rail\""), "{astray:?}");
    assert_eq!(open.get("/v1/nowhere").json()["error"]["message"], "there is nothing here");
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let open = Open::new().await;
    let refused = |instead: &[(&str, Option<&str>)]| open.change("/v1/halt", "{}", instead).status;
    assert_eq!(refused(&[("origin", Some("https://evil.example"))]), 403);
    assert_eq!(refused(&[("origin", Some("null"))]), 403);
    assert_eq!(refused(&[("origin", None)]), 403);
    assert_eq!(refused(&[("x-ostler-csrf", None)]), 403);
    assert_eq!(refused(&[("x-ostler-csrf", Some("guess"))]), 403);
    assert_eq!(refused(&[("content-type", Some("text/plain"))]), 403, "what a form may send");
    assert_eq!(refused(&[("content-type", Some("application/x-www-form-urlencoded"))]), 403);
    assert!(open.home.client().await.status().await.unwrap().halt.is_none(), "nothing was halted");
    assert_eq!(open.change("/v1/halt", r#"{"why":"drill"}"#, &[]).status, 200);
    let status = open.get("/v1/status").json();
    assert_eq!(status["halt"]["why"], "drill");
    assert_eq!(open.change("/v1/halt/release", "{}", &[]).status, 200);
    // Reading by POST, and changing by GET, is nothing either.
    assert_eq!(open.change("/v1/status", "{}", &[]).status, 405);
    assert_eq!(open.get("/v1/halt").status, 405);
}

#[tokio::test]
async fn every_answer_says_what_a_page_may_do() {
    let open = Open::new().await;
    let host = open.host.clone();
    let answers = [
        open.get("/"),
        open.get("/v1/sessions"),
        open.get("/nowhere"),
        open.get("/v1/sessions/nobody"),
        open.get("/assets/ostler.css"),
        open.get("/assets/..%2f..%2fhttp.json"),
        open.get("/metrics"),
        ask(&host, "GET /healthz", &[("host", &host)], ""),
        ask(&host, "GET /", &[("host", "evil.example")], ""),
        ask(&host, "GET /v1/status", &[("host", &host)], ""),
        ask(&host, "GET /open/x", &[("host", &host)], ""),
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{answer:?}"));
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(policy.contains("form-action 'none'; frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{answer:?}");
        assert!(answer.header("cache-control").is_some(), "{answer:?}");
        assert!(answer.header("access-control-allow-origin").is_none(), "{answer:?}");
    }
}

#[tokio::test]
async fn no_path_leads_to_a_file() {
    let open = Open::new().await;
    let paths = [
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/http.json",
        "/../http.json",
        "/v1/../../etc/passwd",
        "/v1/sessions/..%2f..%2fetc%2fpasswd",
        "/sessions/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
    ];
    for path in paths {
        let answer = open.get(path);
        assert!(!answer.body.contains("root:") && !answer.body.contains("\"hash\""), "{path}: {answer:?}");
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
    }
    let no_text = open.get("/v1/sessions/%ff");
    assert_eq!((no_text.status, &no_text.json()["error"]["reason"]), (400, &json!("INVALID_ARGUMENT")));
}

#[tokio::test]
async fn a_token_opens_what_it_may_until_it_is_taken_back() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let full = client.create_token("ci", false).await.unwrap().secret;
    let looks = client.create_token("screen", true).await.unwrap().secret;
    let ask = |secret: &str, first: &str, body: &str| {
        let token = format!("Bearer {secret}");
        let headers =
            [("host", open.host.as_str()), ("authorization", &token), ("content-type", "application/json")];
        ask(&open.host, first, &headers, body)
    };
    let wanted = json!({"campaign": "shop", "prompt": "hello"}).to_string();
    assert_eq!(ask(&looks, "GET /v1/sessions", "").status, 200);
    assert_eq!(ask(&looks, "POST /v1/sessions", &wanted).status, 403);
    let made = ask(&full, "POST /v1/sessions", &wanted);
    assert_eq!(made.status, 200, "{made:?}");
    let session = made.json()["id"].as_str().unwrap().to_owned();
    // The same form as the command line's, and whoever asked is in the record by the token's name.
    let shown: Value = serde_json::from_slice(&open.home.run(&["show", &session, "--json"]).stdout).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&made.json()), keys(&shown));
    let said = open.get(&format!("/v1/sessions/{session}/messages")).json();
    assert!(said["messages"][0]["by"].as_str().unwrap().contains("(ci)"), "{said}");
    let refused = ask(&full, "POST /v1/sessions", r#"{"campaign":"nowhere"}"#);
    assert_eq!((refused.status, refused.json()["error"]["reason"].as_str()), (404, Some("CAMPAIGN_UNKNOWN")));
    let unknown = ask(&full, "POST /v1/sessions", r#"{"campain":"shop"}"#);
    assert_eq!((unknown.status, &unknown.json()["error"]["reason"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(unknown.json()["error"]["message"], "there is no field \"campain\"");
    let text = ask(&looks, "GET /metrics", "").body;
    assert!(text.contains("# TYPE ostler_up_seconds gauge"), "{text}");
    let on_disk = std::fs::read_to_string(open.home.home.state().join("http.json")).unwrap();
    assert!(!on_disk.contains(&full) && !on_disk.contains(&looks));
    client.revoke_token("ci").await.unwrap();
    assert_eq!(ask(&full, "GET /v1/sessions", "").status, 401);
    let audit = std::fs::read_to_string(open.home.home.state().join("audit.jsonl")).unwrap();
    assert!(audit.contains("token_create") && audit.contains("token_revoke") && audit.contains("http_login"));
}

#[tokio::test]
async fn who_has_a_share_keeps_nobody_else_out() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let session = open.home.session(&client, "hello").await.id.to_string();
    let share =
        ok(&open.home, &["share", &session, "--name", "busy", "--access", "interact"]).trim().to_owned();
    let bearer = format!("Bearer {share}");
    let head = |first: &str, more: &str| {
        format!("{first} HTTP/1.1\r\nhost: {}\r\nauthorization: {bearer}\r\n{more}", open.host)
    };
    let follow = head(&format!("GET /v1/events?session={session}"), "accept: text/event-stream\r\n");
    let status = |stream: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    // More at once than a share may have, each of them open.
    let mut streams: Vec<_> = (0..100).map(|_| connect(&open.host, &follow, "")).collect();
    let answered: Vec<String> = streams.iter_mut().map(status).collect();
    assert_eq!(answered.iter().filter(|status| *status == "200").count(), 64, "{answered:?}");
    assert!(answered.iter().all(|status| status == "200" || status == "429"), "{answered:?}");
    assert_eq!(open.get("/v1/sessions").status, 200, "nobody else is kept out");
    // Whoever goes makes room.
    drop(streams);
    wait::until("room for it again", PATIENCE, || status(&mut connect(&open.host, &follow, "")) == "200");
    // And a body that does not come is not waited for.
    let more = "content-type: application/json\r\ncontent-length: 99999\r\n";
    let mut slow = TcpStream::connect(&open.host).unwrap();
    let first = head(&format!("POST /v1/sessions/{session}/messages"), more);
    slow.write_all(format!("{first}\r\n{{").as_bytes()).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(status(&mut BufReader::new(slow)), "408");
}
