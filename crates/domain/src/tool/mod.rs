//! The tools that agents' models have of Ostler: each is a call on the session socket, with the same rights. Whoever offers
//! them, an MCP server or an agent of our own, offers these.
//!
//! Every model call pays for these descriptions, so they are short, and a test counts them.

mod words;

use serde_json::{Map, Value, json};

use crate::{
    budget::Amount,
    call::{Call, CallFault},
    handoff::To,
    text::one_line,
};

pub use words::{Told, told};

/// A tool as a model is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The name of its call.
    pub name: &'static str,
    /// Its name where it stands beside tools of others.
    pub full_name: &'static str,
    pub description: &'static str,
    /// The schema of its arguments.
    pub parameters: fn() -> Value,
    /// Whether it changes nothing.
    pub only_reads: bool,
}

pub const ALL: &[Tool] = &[
    Tool {
        name: "step",
        full_name: "ostler_step",
        description: "Mark a named part of your work.",
        parameters: || {
            let mark = json!({"enum": ["start", "end", "fail"]});
            object(&["name", "mark"], json!({"name": text(), "mark": mark, "note": text()}))
        },
        only_reads: false,
    },
    Tool {
        name: "note",
        full_name: "ostler_note",
        description: "Tell people how things stand.",
        parameters: || object(&["text"], json!({"text": text()})),
        only_reads: false,
    },
    Tool {
        name: "output",
        full_name: "ostler_output",
        description: "Record something that came out of your work.",
        parameters: || {
            let kind = json!({"enum": ["text", "path", "commit", "url"]});
            object(&["name", "value"], json!({"name": text(), "value": text(), "kind": kind}))
        },
        only_reads: false,
    },
    Tool {
        name: "spawn",
        full_name: "ostler_spawn",
        description: "Start a helper agent. It works beside you; search finds what it said.",
        parameters: || {
            let fields = json!({
                "worker": saying("short name"), "task": text(), "provider": text(), "model": text(),
                "budget": saying("of yours: 2usd,500k"),
            });
            object(&["worker", "task"], fields)
        },
        only_reads: false,
    },
    Tool {
        name: "send",
        full_name: "ostler_send",
        description: "Say something to a helper, to whom you help, or to an allowed peer.",
        parameters: || object(&["to", "text"], json!({"to": text(), "text": text()})),
        only_reads: false,
    },
    Tool {
        name: "assign",
        full_name: "ostler_assign",
        description: "Add agents to your adaptive mission.",
        parameters: || {
            let agents = saying("TOML: [[agents]] with name, task, needs");
            object(&["agents"], json!({"agents": agents}))
        },
        only_reads: false,
    },
    Tool {
        name: "search",
        full_name: "ostler_search",
        description: "Search your past, that of your predecessors and of your helpers.",
        parameters: || object(&["text"], json!({"text": saying("words to find")})),
        only_reads: true,
    },
    Tool {
        name: "ticket",
        full_name: "ostler_ticket",
        description: "Read the ticket you work on.",
        parameters: || object(&[], json!({})),
        only_reads: true,
    },
    Tool {
        name: "show",
        full_name: "ostler_show",
        description: "Read your session's status, use and budget.",
        parameters: || object(&[], json!({})),
        only_reads: true,
    },
    Tool {
        name: "handoff",
        full_name: "ostler_handoff",
        description: "End with this turn; a fresh session goes on, told what you say here.",
        parameters: || {
            let list = || json!({"type": "array", "items": text()});
            object(
                &["note"],
                json!({
                    "note": text(), "done": list(), "decided": list(), "open": list(),
                    "to": saying("PROVIDER[/MODEL] or agent:NAME"),
                }),
            )
        },
        only_reads: false,
    },
    Tool {
        name: "done",
        full_name: "ostler_done",
        description: "Say that the whole task is done; the session ends with this turn.",
        parameters: || object(&[], json!({"note": saying("what was achieved")})),
        only_reads: false,
    },
];

fn text() -> Value {
    json!({"type": "string"})
}

fn saying(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// What a model means by using a tool; the error is for the model to read.
pub fn call(name: &str, arguments: &Value) -> Result<Call, String> {
    if !ALL.iter().any(|tool| tool.name == name) {
        let names: Vec<&str> = ALL.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no tool \"{}\"; there are {}", one_line(name, 64), names.join(", ")));
    }
    let mut fields = match arguments {
        Value::Object(fields) => fields.clone(),
        Value::Null => Map::new(),
        _ => return Err("the arguments are an object".to_owned()),
    };
    // Some models must name every field, and say nothing with this.
    fields.retain(|_, value| !value.is_null());
    if name == "handoff"
        && let Some(Value::String(to)) = fields.get("to")
    {
        let to = if to.trim().is_empty() { To::default() } else { To::parse(to, |_| false)? };
        fields.insert("to".to_owned(), json!(to));
    }
    if name == "spawn"
        && let Some(Value::String(budget)) = fields.get("budget")
    {
        let budget = Amount::parse(budget)?;
        fields.insert("budget".to_owned(), json!(budget));
    }
    fields.insert("call".to_owned(), name.into());
    let read = serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    Call::checked(read).map_err(|fault| match fault {
        CallFault::Malformed(why) => why,
        CallFault::Unknown(name) => format!("there is no tool \"{name}\""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call::StepMark, handoff::Wish, limits::CALL_TEXT_BYTES};

    #[test]
    fn every_tool_is_a_call_and_says_what_it_takes() {
        let some = |name: &str, schema: &Value| match &schema["enum"][0] {
            Value::Null if schema["type"] == "array" => json!(["x"]),
            Value::Null if name == "budget" => json!("2usd,500k"),
            Value::Null => json!("x"),
            one => one.clone(),
        };
        for tool in ALL {
            assert_eq!(tool.full_name, format!("ostler_{}", tool.name));
            let parameters = (tool.parameters)();
            let properties = parameters["properties"].as_object().unwrap();
            let all: Map<String, Value> =
                properties.iter().map(|(name, schema)| (name.clone(), some(name, schema))).collect();
            let meant = call(tool.name, &Value::Object(all.clone())).unwrap();
            let line = serde_json::to_vec(&meant).unwrap();
            assert_eq!(Call::parse(&line), Ok(meant), "{}", tool.name);
            let required = parameters["required"].as_array().cloned().unwrap_or_default();
            let least = all.iter().filter(|(name, _)| required.contains(&json!(name)));
            let least: Map<String, Value> =
                least.map(|(name, value)| (name.clone(), value.clone())).collect();
            call(tool.name, &Value::Object(least.clone())).unwrap();
            for missing in least.keys() {
                let mut without = least.clone();
                without.remove(missing);
                // A handoff needs no note of the agent's own; the schema asks for one all the same.
                assert!(
                    call(tool.name, &Value::Object(without)).is_err() || tool.name == "handoff",
                    "{} without {missing}",
                    tool.name
                );
            }
        }
    }

    #[test]
    fn what_models_say_is_read_kindly_and_checked() {
        let step = json!({"name": "build", "mark": "start", "note": null, "call": "done"});
        let wanted = Call::Step { name: "build".to_owned(), mark: StepMark::Start, note: String::new() };
        assert_eq!(call("step", &step), Ok(wanted));
        assert_eq!(call("ticket", &Value::Null), Ok(Call::Ticket { who: None }));
        let to = To { provider: Some("codex".to_owned()), model: Some("m".to_owned()), agent: None };
        let wish = Wish { to, note: "half done".to_owned(), ..Wish::default() };
        let handoff = json!({"note": "half done", "to": "codex/m"});
        assert_eq!(call("handoff", &handoff), Ok(Call::Handoff(Box::new(wish))));
        let Ok(Call::Spawn(spawn)) = call("spawn", &json!({"worker": "w", "task": "t", "budget": "500k"}))
        else {
            panic!("a helper is asked for")
        };
        assert_eq!(spawn.budget, Some(Amount { tokens: Some(500_000), dollars: None }));
        for (name, wrong) in [
            ("stop", json!({})),
            ("step", json!({"name": "build", "mark": "maybe"})),
            ("step", json!([])),
            ("note", json!({"text": ""})),
            ("note", json!({"text": "x".repeat(CALL_TEXT_BYTES + 1)})),
            ("note", json!({"text": "x", "session": "ses_other"})),
            ("handoff", json!({"note": "n", "to": "two words"})),
            ("spawn", json!({"worker": "no name!", "task": "t"})),
            ("spawn", json!({"worker": "w", "task": "t", "budget": "much"})),
        ] {
            assert!(call(name, &wrong).is_err(), "{name} {wrong}");
        }
    }

    /// About four bytes are a token: all of it is paid for with every model call.
    #[test]
    fn descriptions_cost_little() {
        let listed: Vec<Value> = ALL
            .iter()
            .map(|tool| json!({"name": tool.name, "description": tool.description, "inputSchema": (tool.parameters)()}))
            .collect();
        let bytes = serde_json::to_vec(&listed).unwrap().len();
        assert!(bytes <= 2_900, "{bytes} bytes");
    }
}
