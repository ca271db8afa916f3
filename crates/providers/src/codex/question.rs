//! Questions of its model to a person (`item/tool/requestUserInput`): words in, words out.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What was asked, by the names that an answer must give back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Questions(Vec<String>);

impl Questions {
    pub(super) fn of(params: &Value) -> Questions {
        let ids = list(&params["questions"]).filter_map(|question| question["id"].as_str());
        Questions(ids.map(str::to_owned).collect())
    }

    /// A person gives one answer, or a line for each question. One who does not answer leaves them all open.
    pub(super) fn answered(&self, allow: bool, message: &str) -> Value {
        let mut lines = message.lines().filter(|line| !line.trim().is_empty());
        let answers: Map<String, Value> = self
            .0
            .iter()
            .map(|id| {
                let own = if self.0.len() == 1 { message } else { lines.next().unwrap_or(message) };
                let said = match (allow, message.is_empty()) {
                    (true, _) => vec![own.to_owned()],
                    (false, false) => vec![format!("They would not answer: {message}")],
                    (false, true) => Vec::new(),
                };
                (id.clone(), json!({"answers": said}))
            })
            .collect();
        json!({"answers": answers})
    }
}

/// The questions as a person reads them, each with its choices.
pub(super) fn in_words(params: &Value) -> String {
    let asked: Vec<String> = list(&params["questions"])
        .map(|question| {
            let choices: Vec<&str> =
                list(&question["options"]).filter_map(|choice| choice["label"].as_str()).collect();
            let choices =
                if choices.is_empty() { String::new() } else { format!(" ({})", choices.join(" | ")) };
            format!("{}{choices}", question["question"].as_str().unwrap_or_default())
        })
        .collect();
    asked.join("\n")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
