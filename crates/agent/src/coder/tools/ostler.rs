//! Ostler's own tools: calls on the session socket, in this process.

use ostler_domain::{text::one_line, tool};
use ostler_inside::SessionSocket;
use serde::de::Error;
use serde_json::Value;

use super::{Job, Kind, Outcome, Tool, Work};

/// All of them, as tools beside the others.
pub(super) fn all() -> impl Iterator<Item = Tool> {
    tool::ALL.iter().map(|tool| Tool {
        name: tool.full_name,
        description: tool.description,
        parameters: tool.parameters,
        // No file is read, which is what rules about reading are about.
        kind: Kind::Other,
        // A session does with them what is its own to do.
        needs_leave: false,
        prepare,
    })
}

#[derive(Debug)]
struct Use {
    name: &'static str,
    arguments: Value,
}

fn prepare(name: &str, arguments: &str) -> Result<Box<dyn Work>, serde_json::Error> {
    let meant = tool::ALL.iter().find(|tool| tool.full_name == name);
    let name = meant.ok_or_else(|| serde_json::Error::custom("there is no such tool"))?.name;
    let arguments = if arguments.trim().is_empty() { Value::Null } else { serde_json::from_str(arguments)? };
    tool::call(name, &arguments).map_err(serde_json::Error::custom)?;
    Ok(Box::new(Use { name, arguments }))
}

impl Work for Use {
    fn title(&self) -> String {
        one_line(&format!("{} {}", self.name, self.arguments), 200)
    }

    fn run(&self, _: &Job) -> Outcome {
        let Some(socket) = SessionSocket::of_this_process() else {
            let output = "error: there is no session to speak of".to_owned();
            return Outcome { ok: false, exit: None, output };
        };
        let told = ostler_inside::use_tool(&socket, self.name, &self.arguments);
        Outcome { ok: told.ok, exit: None, output: told.text }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Offer, offered},
        *,
    };

    #[test]
    fn they_stand_beside_the_others_under_names_of_their_own() {
        let names: Vec<&str> = offered(Offer::WithOstlers).iter().map(|tool| tool.name).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{names:?}");
        assert!(names.contains(&"search") && names.contains(&"ostler_search"));
        assert!(offered(Offer::Own).iter().all(|tool| !tool.name.starts_with("ostler_")));
    }

    #[test]
    fn mistakes_are_found_before_anything_is_called() {
        assert!(prepare("ostler_note", r#"{"text":"half way"}"#).is_ok());
        assert!(prepare("ostler_ticket", "").is_ok());
        let error = prepare("ostler_step", r#"{"name":"build","mark":"soon"}"#).unwrap_err();
        assert!(error.to_string().contains("soon"), "{error}");
    }
}
