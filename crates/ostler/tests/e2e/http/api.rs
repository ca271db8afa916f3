//! What can be done through the API.

use std::net::TcpStream;

use ostler_client::CreateSession;
use ostler_domain::session::{Approve, Attention};
use ostler_testkit::{scenario, wait};
use serde_json::{Value, json};

use super::{Open, ask};

#[tokio::test]
async fn what_can_be_done_by_hand_can_be_done_by_http() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let done = |path: &str, body: Value| {
        let answer = open.change(path, &body.to_string(), &[]);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    // Tickets.
    let ticket = done("/v1/tickets", json!({"campaign": "shop", "intent": "sweep the yard"}));
    let id = ticket["id"].as_str().unwrap();
    let linked = done(&format!("/v1/tickets/{id}/link"), json!({"external": "gh:shop#412"}));
    assert!(linked.to_string().contains("gh:shop#412"), "{linked}");
    let session = done(&format!("/v1/tickets/{id}/start"), json!({}));
    assert_eq!(session["ticket_id"].as_str().or(session["ticket"].as_str()), Some(id), "{session}");
    // A campaign's policy: first what would be different, then that.
    let setting = json!(["net.allow+=registry.example"]);
    let seen = done("/v1/campaigns/shop/set", json!({"settings": setting, "dry_run": true}));
    assert!(seen["lines"].to_string().contains("registry.example") && seen["is_done"] == json!(false));
    assert!(!open.get("/v1/campaigns/shop").body.contains("registry.example"), "nothing was changed");
    done("/v1/campaigns/shop/set", json!({"settings": setting}));
    assert!(open.get("/v1/campaigns/shop").body.contains("registry.example"));
    // A mission, and one more for it.
    let plan = "objective = \"Wait\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = '''\n```scenario\n{\"steps\":[{\"sleep_ms\":60000}]}\n```\n'''\n";
    let mission = done("/v1/missions", json!({"campaign": "shop", "plan": plan}));
    let id = mission["id"].as_str().unwrap();
    let more = "[[agents]]\nname = \"b\"\ntask = \"greet\"\nneeds = [\"a\"]\n";
    let mission = done(&format!("/v1/missions/{id}/assignments"), json!({"agents": more}));
    assert_eq!(mission["assignments_total"], json!(2));
    assert!(
        open.get(&format!("/v1/missions/{id}/report")).json()["report"].as_str().unwrap().contains("Wait")
    );
    done(&format!("/v1/missions/{id}/cancel"), json!({}));
    let both = json!({"campaign": "shop", "plan": plan, "template": "plan-build-review"});
    assert_eq!(open.change("/v1/missions", &both.to_string(), &[]).status, 400);
    // What waits is taken back, and what a rule would be is said before there is one.
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Ask;
    wanted.initial_message = Some(scenario::of(vec![json!({"ask": {"tool": "run", "input": "make all"}})]));
    let asking = client.create_session(wanted).await.unwrap().id.to_string();
    open.home.reaches(&asking, "it to ask", |view| view.attention == Some(Attention::WaitingApproval)).await;
    let sent = done(&format!("/v1/sessions/{asking}/messages"), json!({"text": "and then?"}));
    let message = sent["message"].as_str().unwrap();
    assert_eq!(done(&format!("/v1/messages/{message}/cancel"), json!({}))["receipt"], json!("cancelled"));
    let approvals = open.get("/v1/approvals").json();
    let approval = approvals["approvals"][0]["id"].as_str().unwrap();
    let rules = open.get(&format!("/v1/approvals/{approval}/rules")).json();
    assert_eq!(rules["rules"], json!(["allow run make all"]), "{rules}");
    assert!(!open.get("/v1/campaigns/shop").body.contains("make all"), "it was only looked at");
    // What has ended goes on in a new session, and then nobody waits for it any more.
    let failed = open.home.session(&client, &scenario::of(vec![json!({"exit": 3})])).await.id.to_string();
    open.home.ended(&failed).await;
    let card = format!("id=\"card-{failed}\"");
    assert!(open.get("/").body.contains(&card));
    let next = done(&format!("/v1/sessions/{failed}/resume"), json!({"budget": "500k"}));
    assert_eq!((next["continues"].as_str(), next["id"] == json!(failed)), (Some(&*failed), false), "{next}");
    assert!(!open.get("/").body.contains(&card));
    // Sums for a spreadsheet.
    let csv = open.get("/cost.csv?by=session");
    assert!(csv.body.starts_with("name,sessions,input,"), "{csv:?}");
    // Whose budget holds a session says what lets it go on.
    let held = open.home.session(&client, "hello").await.id.to_string();
    open.home.reaches(&held, "its usage", |view| view.usage.total() > 0).await;
    done("/v1/campaigns/shop/set", json!({"settings": ["budget=1"]}));
    open.home.reaches(&held, "it to be held", |view| view.attention == Some(Attention::BudgetHold)).await;
    let page = open.get("/").body;
    assert!(page.contains("Raise the budget of shop…") && !page.contains("Raise its budget…"), "{page}");
}

#[tokio::test]
async fn a_change_that_is_asked_for_again_by_its_name_is_done_once() {
    let open = Open::new().await;
    let body = |text: &str| {
        json!({"campaign": "shop", "provider": "script", "prompt": scenario::of(vec![scenario::say(text)])})
            .to_string()
    };
    let named =
        |key: &str, path: &str, body: &str| open.change(path, body, &[("idempotency-key", Some(key))]);
    let start = |key: &str, text: &str| named(key, "/v1/sessions", &body(text));
    let first = start("job 7", "hello");
    assert_eq!(first.status, 200, "{first:?}");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(start("job 7", "hello").json()["id"], json!(id));
    let other = start("job 7", "something else");
    assert_eq!(
        (other.status, &other.json()["error"]["reason"]),
        (409, &json!("REQUEST_CONFLICT")),
        "{other:?}"
    );
    assert_ne!(start("job 8", "hello").json()["id"], json!(id), "another name, another session");
    let unnamed = open.change("/v1/sessions", &body("hello"), &[]);
    assert_ne!(unnamed.json()["id"], json!(id), "without a name each is one of its own");
    // The same name is somebody else's own.
    let client = open.home.client().await;
    let token = format!("Bearer {}", client.create_token("ci", false).await.unwrap().secret);
    let headers = [
        ("host", open.host.as_str()),
        ("authorization", &token),
        ("content-type", "application/json"),
        ("idempotency-key", "job 7"),
    ];
    let theirs = ask(&open.host, "POST /v1/sessions", &headers, &body("hello"));
    assert!(theirs.status == 200 && theirs.json()["id"] != json!(id), "{theirs:?}");
    let long = "x".repeat(256);
    for wrong in ["", long.as_str()] {
        assert_eq!(start(wrong, "hello").status, 400, "{wrong:?}");
    }
    // What was resumed stays so, however the session stands by then.
    open.home.ended(&id).await;
    let resume = || named("on", &format!("/v1/sessions/{id}/resume"), "{}").json()["id"].clone();
    let next = resume();
    assert!(next.is_string() && next != json!(id), "{next}");
    assert_eq!(resume(), next);
    // Another daemon knows it too.
    open.home.kill_daemon();
    open.home.start().await;
    wait::until("the door to stand open again", wait::PATIENCE, || TcpStream::connect(&open.host).is_ok());
    assert_eq!(start("job 7", "hello").json()["id"], json!(id));
}

#[tokio::test]
async fn a_parameter_that_nobody_reads_is_refused() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let session = open.home.session(&client, "hello").await.id.to_string();
    let of_one = format!("/v1/sessions/{session}?full=1");
    for (path, meant) in [
        ("/v1/sessions?statsu=FAILED", "did you mean status?"),
        ("/v1/events?sesion=x", "did you mean session?"),
        ("/v1/status?x=1", "nothing is asked for"),
        (of_one.as_str(), "nothing is asked for"),
    ] {
        let answer = open.get(path);
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["reason"], "INVALID_ARGUMENT");
        assert!(error["why"].as_str().unwrap().contains(meant), "{path}: {error}");
    }
    assert_eq!(open.get("/v1/sessions?status=FAILED&limit=3").status, 200);
    assert_eq!(open.change("/v1/halt/release?x=1", "{}", &[]).status, 400);
}
