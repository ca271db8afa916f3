//! Lists that do not fit onto a page.

use std::time::Duration;

use ostler_client::{
    AddTicket, CreateMission,
    query::{Page, SessionFilter},
};
use ostler_domain::Reason;
use ostler_testkit::{TestHome, scenario};
use serde_json::json;

use super::{Open, ask, let_in};
use crate::OSTLER;

#[tokio::test]
async fn a_long_list_is_read_page_by_page_with_each_row_once() {
    const ROWS: usize = 230;
    let home = TestHome::new(OSTLER);
    // They wait for a place: rows without processes.
    home.configure("[http]\nlisten = \"127.0.0.1:0\"\n[limits]\nsessions = 1\n");
    home.begin().await;
    let client = home.client().await;
    let asks = scenario::of(vec![json!({"ask": {"tool": "run", "input": "cargo add governor"}})]);
    let asks = home.session(&client, &asks).await.id;
    while client.session(&asks.to_string()).await.unwrap().approvals_open.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for n in 1..ROWS {
        home.session(&client, &format!("number {n}")).await;
    }
    let (host, cookie) = let_in(&client).await;
    let get = |path: &str| ask(&host, &format!("GET {path}"), &[("host", &host), ("cookie", &cookie)], "");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("/v1/sessions?all=true&limit=60&cursor={cursor}")).json();
        let rows = page["sessions"].as_array().unwrap();
        assert!(rows.len() <= 60);
        seen.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let whole = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((whole, seen.len()), (ROWS, ROWS));
    // Who needs somebody comes first, however many began since.
    let page = get("/sessions").body;
    let first = page.split("<tr id=\"row-").nth(1).unwrap_or_default();
    assert!(first.starts_with(&asks.to_string()), "{first}");
    // The page shows fifty, and the way to the others.
    let (mut rows, mut path) = (0, "/sessions?all=true".to_owned());
    loop {
        let page = get(&path);
        let here = page.body.matches("<tr id=\"row-").count();
        assert!(here <= 50);
        rows += here;
        let Some((before, _)) = page.body.split_once("\" rel=\"next\">") else { break };
        path = before.rsplit('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    }
    assert_eq!(rows, ROWS);
    assert_eq!(get("/v1/sessions?cursor=nonsense").status, 400);
    let count = |asked: &str| {
        let page = get(&format!("/v1/sessions?all=true&limit=9&{asked}")).json();
        page["sessions"].as_array().map(Vec::len)
    };
    assert_eq!(count("provider=codex,script&status=CREATED,RUNNING,STOPPED"), Some(9));
    assert_eq!(count("provider=codex,claude-code"), Some(0));
    // A slip of the finger is no empty list.
    for (asked, status, meant) in [
        ("provider=scrpt", 404, "the nearest is script"),
        ("status=workng", 400, "the nearest is WORKING"),
        ("attention=stall", 400, "the nearest is stalled"),
        ("outcome=crash", 400, "the nearest is crashed"),
    ] {
        let refused = get(&format!("/v1/sessions?{asked}"));
        assert!(refused.status == status && refused.body.contains(meant), "{asked}: {}", refused.body);
    }
    let listed = |text: &str| SessionFilter { providers: vec![text.to_owned()], ..SessionFilter::default() };
    let refused = client.sessions(&listed("scrpt"), Page::of(1, None)).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::ProviderUnknown);
}

#[tokio::test]
async fn what_a_list_has_no_room_for_is_behind_a_link_with_the_same_filter() {
    let open = Open::new().await;
    let client = open.home.client().await;
    for n in 0..51 {
        let intent = format!("number {n}");
        let wanted = AddTicket { campaign: "shop".to_owned(), intent, queued: true, ..AddTicket::default() };
        client.add_ticket(wanted).await.unwrap();
        let plan = format!("objective = \"number {n}\"\n[[agents]]\nname = \"a\"\ntask = \"greet\"\n");
        let wanted = CreateMission { campaign: "shop".to_owned(), plan, ..CreateMission::default() };
        client.create_mission(wanted).await.unwrap();
    }
    for (first, link) in
        [("/tickets?status=queued", "/tickets?status=queued&#38;cursor="), ("/missions", "/missions?cursor=")]
    {
        let page = open.get(first).body;
        let (_, after) = page.split_once(link).unwrap_or_else(|| panic!("{first}: no link {link}: {page}"));
        let cursor = after.split('"').next().unwrap();
        let next = open.get(&format!("{}{cursor}", link.replace("&#38;", "&"))).body;
        assert!(next.contains("number 0") && !next.contains("number 50"), "{first}: {next}");
    }
}
