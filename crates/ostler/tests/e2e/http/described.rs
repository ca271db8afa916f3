//! What the API answers is what its description says.

use std::{collections::BTreeSet, process::Command};

use ostler_client::CreateSession;
use ostler_domain::session::{Approve, Attention};
use ostler_testkit::{
    scenario,
    wait::{PATIENCE, until},
};
use serde_json::{Value, json};

use super::{Answer, Open};

/// The description, as the door gives it, and which of its operations were answered as it says.
struct Described {
    document: Value,
    answered: BTreeSet<String>,
}

impl Described {
    /// Compares an answer with what is said of it.
    fn check(&mut self, method: &str, path: &str, answer: &Answer) -> Value {
        let (template, operation) = self.operation(method, path);
        let schema = match answer.status {
            200 => &operation["responses"]["200"]["content"]["application/json"]["schema"],
            _ => {
                &self.document["components"]["responses"]["Refused"]["content"]["application/json"]["schema"]
            }
        };
        assert!(schema.is_object(), "{method} {template} says nothing of its answer");
        let (said, mut wrong) = (answer.json(), Vec::new());
        self.compare(schema, &said, "", &mut wrong);
        assert!(wrong.is_empty(), "{method} {path}: {wrong:#?}\n{said:#}");
        if answer.status == 200 {
            self.answered.insert(operation["operationId"].as_str().unwrap().to_owned());
        }
        said
    }

    fn operation(&self, method: &str, path: &str) -> (String, &Value) {
        let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
        let fits = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let fits = |(wanted, part): (&&str, &&str)| wanted.starts_with('{') || wanted == part;
            wanted.len() == parts.len() && wanted.iter().zip(&parts).all(fits)
        };
        let paths = self.document["paths"].as_object().unwrap();
        // What is named stands before what any name fits.
        let found = paths.iter().filter(|(template, _)| fits(template));
        let found = found.min_by_key(|(template, _)| template.matches('{').count());
        let (template, methods) = found.unwrap_or_else(|| panic!("{path} is not described"));
        (template.clone(), &methods[method])
    }

    /// As much of JSON Schema as the description uses. A field that it does not have is wrong too.
    fn compare(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        if let Some(place) = schema["$ref"].as_str() {
            let schema = self.document.pointer(&place[1..]).unwrap_or_else(|| panic!("there is no {place}"));
            return self.compare(schema, value, at, wrong);
        }
        if let Some(ways) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            let fits = |way: &Value| {
                let mut wrong = Vec::new();
                self.compare(way, value, at, &mut wrong);
                wrong.is_empty()
            };
            if !ways.iter().any(fits) {
                wrong.push(format!("{at}: {value} is none of {schema}"));
            }
            return;
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_kind = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
        let is_right = match &schema["type"] {
            Value::Null => true,
            Value::Array(kinds) => kinds.iter().any(is_kind),
            one => is_kind(one),
        };
        let is_said = schema["enum"].as_array().is_none_or(|all| all.contains(value));
        if !is_right || !is_said || schema.get("const").is_some_and(|only| only != value) {
            wrong.push(format!("{at}: {value} is not {schema}"));
        }
        if let Value::Array(rows) = value {
            for (n, row) in rows.iter().enumerate() {
                self.compare(&schema["items"], row, &format!("{at}/{n}"), wrong);
            }
        }
        if let Value::Object(fields) = value {
            let more = &schema["additionalProperties"];
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(schema) => self.compare(schema, field, &format!("{at}/{name}"), wrong),
                    None if more == &json!(true) => {}
                    None if more.is_object() => self.compare(more, field, &format!("{at}/{name}"), wrong),
                    None => wrong.push(format!("{at}/{name}: is not described")),
                }
            }
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    wrong.push(format!("{at}/{name}: is missing"));
                }
            }
        }
    }
}

#[tokio::test]
async fn every_answer_is_as_the_description_says() {
    let open = Open::new().await;
    let client = open.home.client().await;
    // A repository: what is changed in it is written down.
    for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "first"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"]).args(words);
        assert!(git.current_dir(open.home.campaign_dir()).status().unwrap().success(), "{words:?}");
    }
    let document = open.get("/v1/openapi.json").json();
    let mut described = Described { document, answered: BTreeSet::new() };
    let mut ask = |method: &str, path: &str, body: Value| {
        let answer = match method {
            "get" => open.get(path),
            _ => open.change(path, &body.to_string(), &[]),
        };
        described.check(method, path, &answer)
    };
    let none = || json!({});
    let id = |said: &Value| said["id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    for path in ["/v1/openapi.json", "/v1/status", "/v1/campaigns", "/v1/campaigns/shop", "/v1/providers"] {
        ask("get", path, none());
    }
    // Refusals too have one form.
    ask("get", "/v1/sessions/nobody", none());
    ask("get", "/v1/approvals/nobody", none());
    ask("post", "/v1/sessions", json!({"campaign": "nowhere"}));
    ask("post", "/v1/sessions", json!({"campain": "shop"}));
    open.home.run(&["agent", "add", "api", "-C", "shop"]);
    ask("get", "/v1/agents", none());
    // Somebody who says something, uses tokens, changes a file and stays.
    let steps = vec![
        scenario::say("the gate is green"),
        json!({"usage": {"input": 500, "output": 200}}),
        json!({"run": ["sh", "-c", "echo 1 > new"]}),
    ];
    let wanted = json!({"campaign": "shop", "prompt": scenario::of(steps), "keep": true, "budget": "500k"});
    let session = id(&ask("post", "/v1/sessions", wanted));
    let own = format!("/v1/sessions/{session}");
    open.home.reaches(&session, "its turn to end", |view| view.turns == 1).await;
    for path in ["", "/messages", "/chain", "/diff", "/seance?question=gate"] {
        ask("get", &format!("{own}{path}"), none());
    }
    for path in
        ["/v1/sessions?all=true", "/v1/search?text=green", "/v1/cost", "/v1/cost?by=model", "/v1/events"]
    {
        ask("get", path, none());
    }
    ask("post", &format!("{own}/messages"), json!({"text": "and then?"}));
    open.home.reaches(&session, "the next turn to end", |view| view.turns == 2).await;
    ask("post", &format!("{own}/rewind"), json!({"turn": "0", "dry_run": true}));
    ask("post", &format!("{own}/fork"), none());
    ask("post", &format!("{own}/seance"), json!({"question": "which colour?"}));
    // Somebody who asks for leave.
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Ask;
    wanted.initial_message = Some(scenario::of(vec![json!({"ask": {"tool": "run", "input": "make all"}})]));
    let asking = client.create_session(wanted).await.unwrap().id.to_string();
    open.home.reaches(&asking, "it to ask", |view| view.attention == Some(Attention::WaitingApproval)).await;
    let sent = ask("post", &format!("/v1/sessions/{asking}/messages"), json!({"text": "wait"}));
    ask("post", &format!("/v1/messages/{}/cancel", sent["message"].as_str().unwrap()), none());
    let approval = id(&ask("get", "/v1/approvals", none())["approvals"][0]);
    ask("get", &format!("/v1/approvals/{approval}"), none());
    ask("get", &format!("/v1/approvals/{approval}/rules"), none());
    ask("post", &format!("/v1/approvals/{approval}/answer"), json!({"allow": true, "always": true}));
    ask("get", "/v1/approvals?all=true", none());
    // Somebody who is steered.
    let steps = scenario::of(vec![json!({"hang": true})]);
    let busy = id(&ask("post", "/v1/sessions", json!({"campaign": "shop", "prompt": steps, "keep": true})));
    open.home.reaches(&busy, "it to work", |view| view.attention == Some(Attention::Working)).await;
    for verb in ["pause", "resume", "interrupt", "restart"] {
        ask("post", &format!("/v1/sessions/{busy}/{verb}"), none());
    }
    ask("post", &format!("{own}/handoff"), none());
    ask("post", &format!("/v1/sessions/{busy}/stop"), json!({"now": true}));
    open.home.ended(&busy).await;
    ask("get", &format!("/v1/sessions/{busy}"), none());
    // Work.
    let ticket = id(&ask("post", "/v1/tickets", json!({"campaign": "shop", "intent": "sweep the yard"})));
    let own = format!("/v1/tickets/{ticket}");
    ask("post", &format!("{own}/link"), json!({"external": "gh:shop#412"}));
    let worker = id(&ask("post", &format!("{own}/start"), none()));
    open.home.ended(&worker).await;
    ask("post", &format!("{own}/move"), json!({"verb": "done"}));
    ask("get", &own, none());
    ask("get", "/v1/tickets", none());
    // A team.
    let plan = "objective = \"Wait\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = '''\n```scenario\n{\"steps\":[{\"sleep_ms\":60000}]}\n```\n'''\n";
    let mission = id(&ask("post", "/v1/missions", json!({"campaign": "shop", "plan": plan})));
    let own = format!("/v1/missions/{mission}");
    let more = "[[agents]]\nname = \"b\"\ntask = \"greet\"\nneeds = [\"a\"]\n";
    ask("post", &format!("{own}/assignments"), json!({"agents": more}));
    for verb in ["pause", "resume", "cancel"] {
        ask("post", &format!("{own}/{verb}"), none());
    }
    for path in ["", "/report"] {
        ask("get", &format!("{own}{path}"), none());
    }
    // One that fails, and is tried again.
    let plan = plan.replace("{\"sleep_ms\":60000}", "{\"exit\":3}");
    let mission = id(&ask("post", "/v1/missions", json!({"campaign": "shop", "plan": plan})));
    let own = format!("/v1/missions/{mission}");
    until("the mission to fail", PATIENCE, || open.get(&own).json()["status"] == "failed");
    ask("get", &format!("{own}/preview?action=retry"), none());
    ask("post", &format!("{own}/retry"), none());
    ask("get", "/v1/missions?all=true", none());
    ask("post", "/v1/campaigns/shop/set", json!({"settings": ["net.allow+=a.example"], "dry_run": true}));
    ask("post", "/v1/halt", json!({"freeze": true, "why": "drill"}));
    ask("get", "/v1/status", none());
    ask("post", "/v1/halt/release", none());
    let paths = described.document["paths"].as_object().unwrap().values();
    let all = paths.flat_map(|methods| methods.as_object().unwrap().values());
    let all: BTreeSet<String> = all.map(|one| one["operationId"].as_str().unwrap().to_owned()).collect();
    let never: Vec<_> = all.difference(&described.answered).collect();
    assert!(never.is_empty(), "nobody has asked for {never:?}");
}
