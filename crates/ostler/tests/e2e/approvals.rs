//! Agents that ask for leave: rules that answer, a person who does, and nobody.

use std::time::Duration;

use ostler_client::{AnswerApproval, Client, CreateSession};
use ostler_domain::{
    Event, SessionId,
    event::{Answer, ApprovalAnswered},
    session::{Approve, Attention, View},
};
use ostler_testkit::{TestHome, scenario};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal};

fn ask(command: &str) -> Value {
    json!({"ask": {"tool": "run", "input": command}})
}

async fn begin(client: &Client, approve: Approve, steps: Vec<Value>) -> SessionId {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = approve;
    wanted.initial_message = Some(scenario::of(steps));
    client.create_session(wanted).await.unwrap().id
}

fn asks(view: &View) -> bool {
    view.attention == Some(Attention::WaitingApproval)
}

fn has_ended_its_turn(view: &View) -> bool {
    view.turns == 1 && view.attention == Some(Attention::Idle)
}

async fn answers(home: &TestHome, session: SessionId) -> Vec<ApprovalAnswered> {
    let events = home.events(&home.client().await, session).await;
    let answered = events.into_iter().filter_map(|recorded| match recorded.event {
        Event::ApprovalAnswered(answered) => Some(answered),
        _ => None,
    });
    answered.collect()
}

/// What the agent says that it heard: once for each answer that reached it.
async fn heard(home: &TestHome, session: SessionId) -> Vec<String> {
    let events = home.events(&home.client().await, session).await;
    let thoughts = events.into_iter().filter_map(|recorded| match recorded.event {
        Event::AgentThinking(said) if said.text.starts_with("run was ") => Some(said.text),
        _ => None,
    });
    thoughts.collect()
}

#[tokio::test]
async fn rules_answer_first_and_a_person_may_make_one() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let rules = ["approve.rule+=deny run rm *", "approve.rule+=allow run make *"].map(str::to_owned);
    client.set_campaign("shop", rules.to_vec()).await.unwrap();
    let steps =
        ["make all", "make && rm x", "git status", "cargo add governor", "cargo add governor"].map(ask);
    let session = begin(&client, Approve::Policy, steps.to_vec()).await;
    let who = session.to_string();
    let view = home.reaches(&who, "the question", asks).await;
    let open = client.approval(&view.approvals_open[0].to_string()).await.unwrap();
    assert_eq!(
        (open.asks.as_str(), open.why.as_str()),
        ("run: cargo add governor", "no rule allows cargo add governor")
    );
    let left = open.deadline.unwrap().since(open.asked);
    assert_eq!(left, Duration::from_secs(12 * 3_600));

    // At the command line, as a person does it.
    let shown = home.run(&["approval"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("WHY IT ASKS") && text.contains("run: cargo add governor"), "{text}");
    assert!(text.contains("denied in 11h 59m"), "{text}");
    let listed = home.run(&["approval", "--json"]).stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed["approvals"][0]["agent"], view.name.as_str());
    let id = open.id.short();
    let allowed = home.run(&["allow", "--always", &id]);
    let text = String::from_utf8(allowed.stdout).unwrap();
    assert!(text.contains("from now on in shop:  rule 3  allow run cargo add governor"), "{text}");
    let undo = String::from_utf8(allowed.stderr).unwrap();
    assert!(undo.contains("ostler campaign set shop approve.rule-=3"), "{undo}");

    home.reaches(&who, "the turn to end", has_ended_its_turn).await;
    let given: Vec<_> = answers(&home, session)
        .await
        .into_iter()
        .map(|answered| {
            (answered.answer, answered.rules.first().map(|rule| (rule.number, rule.text.clone())))
        })
        .collect();
    let rule = |number, text: &str| Some((number, text.to_owned()));
    assert_eq!(
        given,
        [
            (Answer::Allowed, rule(Some(2), "allow run make *")),
            (Answer::Denied, rule(Some(1), "deny run rm *")),
            (Answer::Allowed, rule(None, "allow run git status *")),
            (Answer::Allowed, None),
            (Answer::Allowed, rule(Some(3), "allow run cargo add governor")),
        ]
    );
    let log = String::from_utf8(home.run(&["logs", &who]).stdout).unwrap();
    assert!(log.contains("rule 2: allow run make *"), "{log}");

    let undone = client.set_campaign("shop", vec!["approve.rule-=3".to_owned()]).await.unwrap();
    assert_eq!(undone.policy.approve_rule, ["deny run rm *", "allow run make *"]);
    let tested = home.run(&["policy", "test", "approval", "run", "make; rm x", "-C", "shop"]);
    assert_eq!(String::from_utf8(tested.stdout).unwrap().trim(), "denied  rule 1: deny run rm *");
    let empty = home.run(&["approval"]);
    assert!(String::from_utf8(empty.stderr).unwrap().contains("Nobody is waiting for you."));
}

#[tokio::test]
async fn where_nobody_is_there_the_rest_is_denied_at_once() {
    let home = TestHome::started(OSTLER).await;
    let steps = scenario::of(vec![ask("git status"), ask("reboot"), scenario::say("went on")]);
    // Neither a terminal nor -d.
    let ran = home
        .command(&["run", "-C", "shop", "-o", "json", &steps])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((ran.status.code(), &result["result"]), (Some(0), &json!("went on")));
    let session: SessionId = result["session"].as_str().unwrap().parse().unwrap();
    let heard = heard(&home, session).await;
    assert_eq!(heard[0], "run was allowed.");
    assert!(heard[1].contains("nobody is there to answer") && heard[1].contains("reboot"), "{heard:?}");

    // That was so of whoever ran it then. Whoever speaks to it later is asked.
    let later = scenario::of(vec![ask("reboot"), scenario::say("went on again")]);
    let told = home.run(&["send", &session.short(), &later]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let successor = home.client().await.chain(&session.to_string()).await.unwrap().pop().unwrap().id;
    home.reaches(&successor.to_string(), "the question", asks).await;
}

#[tokio::test]
async fn an_answer_given_while_the_daemon_dies_reaches_the_agent_once() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let session = begin(&client, Approve::Ask, vec![ask("make deploy"), scenario::say("went on")]).await;
    let who = session.to_string();
    let open = home.reaches(&who, "the question", asks).await.approvals_open[0].to_string();
    // The keeper cannot take the answer before the daemon is dead.
    let keeper = home.keeper(session).unwrap();
    keeper.signal(Signal::STOP);
    let allow = AnswerApproval { approval: open, allow: true, always: false, message: String::new() };
    client.answer_approval(allow).await.unwrap();
    home.kill_daemon();
    keeper.signal(Signal::CONT);
    home.start().await;
    home.reaches(&who, "the turn to end", has_ended_its_turn).await;
    assert_eq!(heard(&home, session).await, ["run was allowed."]);
    assert_eq!(answers(&home, session).await.len(), 1);
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_denied_in_time_across_daemons() {
    let home = TestHome::new(OSTLER);
    home.configure("[approvals]\nlimit = \"3s\"\n");
    home.begin().await;
    let client = home.client().await;
    let session = begin(&client, Approve::Policy, vec![ask("make deploy"), scenario::say("went on")]).await;
    let who = session.to_string();
    home.reaches(&who, "the question", asks).await;
    home.kill_daemon();
    home.start().await;
    home.reaches(&who, "the turn to end", has_ended_its_turn).await;
    let heard = heard(&home, session).await;
    assert_eq!(heard, ["run was denied. nobody answered within 3 s, so this was denied"]);
    let given = answers(&home, session).await;
    assert_eq!((given[0].answer, given[0].by.0.as_str()), (Answer::Denied, "ostler"));
}

#[tokio::test]
async fn what_no_rule_can_mean_is_not_allowed_always() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let session = begin(&client, Approve::Policy, vec![ask("make $(cat x)"), scenario::say("went on")]).await;
    let who = session.to_string();
    let open = home.reaches(&who, "the question", asks).await.approvals_open[0].short();
    let refused = home.run(&["allow", "--always", &open]);
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{words}");
    assert!(
        words.contains("a command runs inside another") && words.contains(&format!("ostler allow {open}")),
        "{words}"
    );
    assert!(client.campaign("shop").await.unwrap().policy.approve_rule.is_empty());
    assert_eq!(home.run(&["approval", "allow", &open]).status.code(), Some(0));
    home.reaches(&who, "the turn to end", has_ended_its_turn).await;
}

/// A walk looks once more for what came meanwhile, and ends when nothing waits: the question is the same one's if the
/// agent was quick, and a new one's if not.
async fn next_question(home: &TestHome, who: &str, mut person: OnTerminal, question: &str) -> OnTerminal {
    if person.shows(question) {
        return person;
    }
    home.reaches(who, "the next question", asks).await;
    let mut person = OnTerminal::start(home, &["approvals", "-i"]);
    person.until_shown(question);
    person
}

#[tokio::test]
async fn one_key_each_answers_those_that_wait() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = ["make one", "make two", "make $(three)", "make four"].map(ask);
    let session = begin(&client, Approve::Policy, steps.to_vec()).await;
    let who = session.to_string();
    home.reaches(&who, "the question", asks).await;
    let mut person = OnTerminal::start(&home, &["approval", "-i"]);
    person.until_shown("run: make one");
    person.type_in("A");
    person.until_shown("from now on in shop:  rule 1  allow run make one");
    person.until_shown("approve.rule-=1");
    let mut person = next_question(&home, &who, person, "run: make two").await;
    person.type_in("v");
    person.until_shown("make two\r\n");
    person.type_in("m");
    person.until_shown("why not?");
    person.type_in("not on a Sunday\n");
    person.until_shown("denied");
    let mut person = next_question(&home, &who, person, "run: make $(three)").await;
    // No rule can be made of it; another key may do.
    person.type_in("A");
    person.until_shown("a command runs inside another");
    person.type_in("a");
    let mut person = next_question(&home, &who, person, "run: make four").await;
    person.type_in("q");
    assert!(person.child.wait().unwrap().success());
    let given: Vec<_> =
        answers(&home, session).await.into_iter().map(|given| (given.answer, given.message)).collect();
    let (allowed, denied) = (Answer::Allowed, Answer::Denied);
    let no = String::new;
    assert_eq!(given, [(allowed, no()), (denied, "not on a Sunday".to_owned()), (allowed, no())]);
    // Without a terminal nobody can be asked.
    assert_eq!(home.run(&["approval", "-i"]).status.code(), Some(2));
}

#[tokio::test]
async fn whoever_runs_and_whoever_attaches_answers_inline() {
    let home = TestHome::started(OSTLER).await;
    let question = json!({"ask": {"tool": "question", "input": "red or blue?"}});
    let steps = scenario::of(vec![
        ask("make one"),
        ask("make one"),
        question,
        ask("make two"),
        scenario::say("went on"),
    ]);
    let mut person = OnTerminal::start(&home, &["run", "-C", "shop", "--name", "builder", "--keep", &steps]);
    person.until_shown("? allow   run: make one");
    person.type_in("A\n");
    person.until_shown("from now on in shop:  rule 1  allow run make one");
    person.until_shown("rule 1: allow run make one");
    person.until_shown("red or blue?");
    person.type_in("blue\n");
    person.until_shown("question was allowed. blue");
    person.until_shown("? allow   run: make two");
    let mut other = OnTerminal::start(&home, &["attach", "builder"]);
    other.until_shown("? allow   run: make two");
    other.type_in("m\n");
    other.until_shown("why not?");
    other.type_in("one is enough\n");
    other.until_shown("run was denied. one is enough");
    person.until_shown("went on");
    let _ = other.child.kill();
    let _ = other.child.wait();
    assert!(person.child.wait().unwrap().success(), "{}", person.shown);
}

#[tokio::test]
async fn what_is_said_to_somebody_who_asks_is_the_answer() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let question = json!({"ask": {"tool": "question", "input": "red or blue?"}});
    let steps = vec![question.clone(), question, scenario::say("red it is")];
    let session = begin(&client, Approve::Policy, steps).await;
    let who = session.to_string();
    let waits = |view: &View| view.attention == Some(Attention::WaitingInput);
    let view = home.reaches(&who, "the question", waits).await;
    let empty = home.run(&["allow", &view.approvals_open[0].to_string()]);
    let said = String::from_utf8_lossy(&empty.stderr).into_owned();
    assert!(empty.status.code() == Some(2) && said.contains("wants an answer in words"), "{said}");
    let short = view.approvals_open[0].short();
    let always = home.run(&["allow", "--always", &short]);
    let said = String::from_utf8_lossy(&always.stderr).into_owned();
    assert!(
        said.contains("no rule answers a question") && said.contains(&format!("allow {short} -m")),
        "{said}"
    );
    let shown = home.run(&["show", &who]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("ostler send "), "{shown:?}");
    let answered = home.run(&["send", &who, "blue"]);
    assert!(String::from_utf8_lossy(&answered.stdout).contains("answered"), "{answered:?}");
    let first = view.approvals_open[0];
    let is_next = |view: &View| view.approvals_open.first().is_some_and(|open| *open != first);
    home.reaches(&who, "the next question", is_next).await;
    let waited = home.run(&["send", &who, "red", "--wait"]);
    assert!(waited.status.success(), "{waited:?}");
    assert_eq!(String::from_utf8_lossy(&waited.stdout).trim(), "red it is");
    let given = client.approval(&first.to_string()).await.unwrap().answer.unwrap();
    assert_eq!(given.message, "blue");
}

#[tokio::test]
async fn who_waits_for_what_comes_of_an_answer_hears_whether_anything_did() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let waits = |view: &View| view.attention == Some(Attention::WaitingInput);
    let answered = async |steps: Vec<Value>, flags: &[&str]| {
        let question = json!({"ask": {"tool": "question", "input": "red or blue?"}});
        let steps = [vec![question], steps].concat();
        let who = begin(&client, Approve::Policy, steps).await.to_string();
        home.reaches(&who, "the question", waits).await;
        let output = home.run(&[&["send", &who, "red", "--wait"], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let (code, out, _) = answered(vec![scenario::say("red it is")], &[]).await;
    assert_eq!((code, out.trim()), (0, "red it is"));
    let (code, out, _) = answered(vec![scenario::say("red it is")], &["--json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["answer"]), (0, &json!("red it is")), "{told}");
    assert_eq!(told["approval"]["answer"]["message"], "red", "{told}");
    let (code, _, said) = answered(vec![json!({"exit": 3})], &[]).await;
    assert!(code == 10 && said.contains('✗'), "{code}: {said}");
    let (code, out, _) = answered(vec![json!({"exit": 3})], &["--json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 10 && told["why"].is_string(), "{told}");
    let (code, ..) = answered(vec![json!({"sleep_ms": 60_000})], &["--timeout", "300ms"]).await;
    assert_eq!(code, 8);
}
