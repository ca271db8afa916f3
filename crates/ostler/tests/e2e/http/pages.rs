//! What stands on pages, and how.

use ostler_client::{AddTicket, CreateMission, CreateSession};
use ostler_domain::session::{Approve, Attention};
use ostler_testkit::scenario;
use serde_json::json;

use super::Open;
use crate::OSTLER;

#[tokio::test]
async fn what_agents_write_is_text_on_every_page() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let nasty = "<script>alert('pwned')</script>\"><img src=x onerror=alert(1)>";
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Ask;
    let steps = vec![scenario::say(nasty), json!({"ask": {"tool": "run", "input": nasty}})];
    wanted.initial_message = Some(scenario::of(steps));
    let session = client.create_session(wanted).await.unwrap();
    let asks = |view: &ostler_domain::session::View| view.attention == Some(Attention::WaitingApproval);
    open.home.reaches(&session.id.to_string(), "it to ask", asks).await;
    let own = format!("/sessions/{}", session.id);
    // Names that are not ours to choose: of a file in a difference, of a ticket, of a mission's parts, of an agent's work.
    let ticket = AddTicket { campaign: "shop".to_owned(), intent: nasty.to_owned(), ..AddTicket::default() };
    let ticket = client.add_ticket(ticket).await.unwrap().0.id;
    let plan = format!("objective = {nasty:?}\n[[agents]]\nname = \"a\"\ntask = {nasty:?}\n");
    let mission = CreateMission { campaign: "shop".to_owned(), plan, ..CreateMission::default() };
    let mission = client.create_mission(mission).await.unwrap().id;
    let pages = [
        "/".to_owned(),
        "/sessions".to_owned(),
        "/sessions?group=campaign".to_owned(),
        own.clone(),
        format!("{own}/messages"),
        format!("{own}/usage"),
        format!("{own}/sandbox"),
        format!("{own}/chain"),
        format!("{own}/diff"),
        "/missions?all=true".to_owned(),
        format!("/missions/{mission}"),
        format!("/missions/{mission}/report"),
        "/tickets".to_owned(),
        "/tickets?view=board".to_owned(),
        format!("/tickets/{ticket}"),
        "/campaigns/shop?wish=run&what=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
        "/cost?by=session&day=%3Cscript%3E".to_owned(),
        "/machine".to_owned(),
        "/search?text=pwned".to_owned(),
        format!("/search?text={}", "%3Cscript%3E"),
    ];
    for path in pages {
        let page = open.get(&path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("<script>") && !page.body.contains("<img src=x"), "{path}");
        assert!(!page.body.contains("\"><img"), "{path}: it ends an attribute");
    }
    assert!(open.get("/").body.contains("&#60;script&#62;"), "it is there, as text");
    // Two browsers answer: the first answer holds, and the other hears of it.
    let approval = client.approvals(true, ostler_domain::query::Page::of(1, None)).await.unwrap().rows[0].id;
    let answer = |allow: bool| {
        open.change(&format!("/v1/approvals/{approval}/answer"), &json!({ "allow": allow }).to_string(), &[])
    };
    assert_eq!(answer(true).status, 200);
    let late = answer(false);
    assert_eq!((late.status, late.json()["error"]["reason"].as_str()), (409, Some("APPROVAL_ANSWERED")));
}

#[tokio::test]
async fn every_page_is_there_also_when_there_is_nothing() {
    let open = Open::new().await;
    let pages = [
        ("/", "Nobody is waiting for you."),
        ("/sessions", "ostler import all"),
        ("/missions", "plan-build-review"),
        ("/search?text=oauth", "Nothing found in 0 sessions."),
        ("/search", "What was said and done in 0 sessions, to the word."),
        ("/cost", "No usage recorded."),
        ("/tickets?view=board", "queued"),
        ("/tickets", "No tickets."),
        ("/campaigns", "shop"),
        ("/campaigns/shop", "No agents are registered."),
        ("/campaigns/shop?wish=run&what=git%20push", "asks a person"),
        ("/machine", "Agent programs"),
        // As the doctor itself says it.
        ("/machine", "keepers</td><td data-is=\"How it stands\">0 of 0 answer</td>"),
        ("/machine", "No other machine has a name here"),
    ];
    for (path, words) in pages {
        let page = open.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(page.body.contains(words), "{path}: {}", page.body);
        assert!(
            !page.body.contains(" style=") && !page.body.contains(" onclick="),
            "{path}: the policy forbids it"
        );
    }
    assert!(!open.get("/cost").body.contains("aria-label=\"days\""), "there are none to draw");
    let unknown = open.get("/sessions/nobody");
    assert!(unknown.status == 404 && unknown.body.contains("<html"), "{unknown:?}");
    let client = open.home.client().await;
    let session = open.home.session(&client, "hello").await;
    open.home.reaches(&session.id.to_string(), "its turn to end", |view| view.turns == 1).await;
    // What was said is told by whoever said it, and by nobody else.
    let asked = open.get(&format!("/search?text=who+said+hello&whom={}", session.id)).body;
    assert!(asked.contains("of its chain speak of") && asked.contains("was told"), "{asked}");
    assert!(asked.contains(&format!("data-post=\"/v1/sessions/{}/seance\"", session.id)), "{asked}");
    let silent = open.get(&format!("/search?text=zebra&whom={}", session.id)).body;
    assert!(silent.contains("Nothing in 1 session of its chain speaks of zebra."), "{silent}");
    for tab in ["", "/diff", "/usage", "/messages", "/sandbox", "/chain"] {
        let page = open.get(&format!("/sessions/{}{tab}", session.id));
        assert_eq!(page.status, 200, "{tab}: {}", page.body);
    }
}

/// Whoever allows a command has seen all of it.
#[tokio::test]
async fn a_request_that_has_no_room_on_its_card_is_shown_whole_below() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let mut asked = Vec::new();
    for command in ["make all".to_owned(), format!("make {}last", "target ".repeat(200))] {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.approve = Approve::Ask;
        wanted.initial_message = Some(scenario::of(vec![json!({"ask": {"tool": "run", "input": command}})]));
        let session = client.create_session(wanted).await.unwrap();
        let asks = |view: &ostler_domain::session::View| view.attention == Some(Attention::WaitingApproval);
        let view = open.home.reaches(&session.id.to_string(), "it to ask", asks).await;
        asked.push(view.approvals_open[0].to_string());
    }
    let home = open.get("/").body;
    assert!(home.contains(&format!("<details id=\"in-{}\"><summary>", asked[0])), "{home}");
    assert!(home.contains(&format!("<details id=\"in-{}\" open><summary>", asked[1])), "{home}");
    let card = open.get(&format!("/approvals/{}", asked[1])).body;
    assert!(card.contains("<details open><summary>") && card.contains("target last"), "{card}");
}

#[tokio::test]
async fn a_failure_s_card_has_what_was_done_last() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let steps = [json!({"say": "I look around"}), json!({"say": "and now I fall"}), json!({"exit": 3})];
    let session = open.home.session(&client, &scenario::of(steps.to_vec())).await.id.to_string();
    open.home.reaches(&session, "its end", |view| view.outcome.is_some()).await;
    let home = open.get("/").body;
    let card = home.split("<article").find(|part| part.contains(&session)).unwrap();
    assert!(card.contains("class=\"last\"") && card.contains("and now I fall"), "{card}");
    let activity = open.get(&format!("/sessions/{session}")).body;
    assert!(activity.contains("told") && !activity.contains(">you<"), "{activity}");
}

/// The command lines of a page's buttons, as they are copied. A form's is made of what stands in its fields.
fn command_lines(page: &str) -> Vec<String> {
    let written =
        [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&quot;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    let meant =
        |text: &str| written.iter().fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign));
    let buttons = page.split("<button").skip(1).filter_map(|rest| rest.split('>').next());
    let lines = buttons.flat_map(|button| {
        ["data-cli=\"", "data-copy=\""].into_iter().filter_map(|name| button.split_once(name))
    });
    lines.filter_map(|(_, rest)| rest.split('"').next()).map(meant).filter(|line| !line.is_empty()).collect()
}

/// Whoever copies a line types it: in a shell, and where it means something.
#[tokio::test]
async fn every_command_line_of_a_page_can_be_typed() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let begin = async |approve: Approve, steps: Vec<serde_json::Value>| {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.approve = approve;
        wanted.initial_message = Some(scenario::of(steps));
        client.create_session(wanted).await.unwrap().id.to_string()
    };
    let needs = |view: &ostler_domain::session::View| {
        matches!(view.attention, Some(Attention::WaitingApproval | Attention::WaitingInput))
    };
    let asks =
        begin(Approve::Ask, vec![json!({"ask": {"tool": "run", "input": "cargo add \"a b\" it's"}})]).await;
    open.home.reaches(&asks, "it to ask", needs).await;
    let question = json!({"ask": {"tool": "question", "input": "Keep it? (it's fine | drop \"it\")"}});
    let question = begin(Approve::Ask, vec![question]).await;
    open.home.reaches(&question, "it to ask", needs).await;
    let failed = begin(Approve::Policy, vec![json!({"exit": 3})]).await;
    open.home.ended(&failed).await;
    let ticket =
        AddTicket { campaign: "shop".to_owned(), intent: "it's late".to_owned(), ..AddTicket::default() };
    let ticket = client.add_ticket(ticket).await.unwrap().0.id;
    let plan = "objective = \"o\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n";
    let mission = CreateMission {
        campaign: "shop".to_owned(),
        plan: plan.to_owned(),
        starts: true,
        ..CreateMission::default()
    };
    let mission = client.create_mission(mission).await.unwrap().id;
    client.create_token("ci", true).await.unwrap();
    let mut paths: Vec<String> = ["/", "/sessions", "/missions?all=true", "/search?text=it's+late", "/cost"]
        .into_iter()
        .chain(["/tickets", "/tickets?view=board", "/campaigns", "/campaigns/shop", "/machine"])
        .map(str::to_owned)
        .collect();
    for session in [&asks, &question, &failed] {
        let tabs = ["", "/diff", "/usage", "/messages", "/sandbox", "/chain"];
        paths.extend(tabs.map(|tab| format!("/sessions/{session}{tab}")));
    }
    paths.push(format!("/search?text=who's+late&whom={asks}"));
    paths.push(format!("/tickets/{ticket}"));
    paths.extend(["", "/report"].map(|tab| format!("/missions/{mission}{tab}")));
    let mut lines = std::collections::BTreeSet::new();
    for path in paths {
        let page = open.get(&path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        lines.extend(command_lines(&page.body));
    }
    assert!(lines.len() > 40, "{lines:?}");
    let bin = open.home.path().join("typed");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(OSTLER, bin.join("ostler")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut faults = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with("ostler ")) {
        // Nothing is done: what can be read is refused for the home that is none.
        let mut typed = std::process::Command::new("sh");
        typed
            .args(["-c", &line.replace('…', "word")])
            .env("PATH", &path)
            .env("OSTLER_HOME", "/dev/null/none");
        let typed = typed.stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&typed.stderr);
        let is_refused = said.contains("INVALID_ARGUMENT") && !said.contains("config.toml cannot be ");
        if !typed.status.success() && (is_refused || said.starts_with("sh:")) {
            faults.push(format!("{line}: {}", said.lines().next().unwrap_or_default()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
