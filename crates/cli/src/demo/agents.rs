//! The agents of the demo: what they play, and the numbered lines that they must have said in the end.

use serde_json::{Value, json};

/// Stretches of work, and lines said in each.
const STRETCHES: usize = 6;
const LINES: usize = 30;
/// The pause after each line.
const EVERY_MS: u64 = 35;

/// One agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    thoughts: [&'static str; STRETCHES],
    tools: fn(stretch: usize) -> Value,
}

pub(super) const ALL: [Agent; 3] = [
    Agent {
        name: "api",
        thoughts: [
            "the login route has no limit yet",
            "five attempts a minute will do",
            "the counter needs a test",
            "and one for the next minute",
            "what if the clock jumps?",
            "good; one last look at it all",
        ],
        tools: |stretch| match stretch {
            0 => json!({"read": "README.md"}),
            1 | 3 => {
                json!({"write": {"path": format!("src/login_{stretch}.rs"), "text": "pub fn limit() -> u32 { 5 }\n"}})
            }
            5 => json!({"run": ["git", "log", "--oneline"]}),
            _ => json!({"run": ["ls", "src"]}),
        },
    },
    Agent {
        name: "db",
        thoughts: [
            "attempts must survive a restart",
            "a table of its own, then",
            "with an index by address",
            "old rows are swept away",
            "a migration for what is there",
            "done, as far as I can see",
        ],
        tools: |stretch| match stretch {
            0 => json!({"run": ["git", "status", "--short"]}),
            1 | 2 | 4 => {
                json!({"write": {"path": format!("migrations/{stretch}.sql"), "text": "create table attempt (address text, at integer);\n"}})
            }
            _ => json!({"run": ["wc", "-l", "README.md"]}),
        },
    },
    Agent {
        name: "docs",
        thoughts: [
            "someone must explain this",
            "one page is enough",
            "an example says more",
            "the words should be plain",
            "is the table right?",
            "it reads well now",
        ],
        tools: |stretch| match stretch {
            0 => json!({"read": "README.md"}),
            2 => json!({"write": {"path": "docs/login.md", "text": "# Login\n\nFive attempts a minute.\n"}}),
            5 => json!({"read": "docs/login.md"}),
            _ => json!({"run": ["sh", "-c", "sleep 0.1; cat README.md | wc -w"]}),
        },
    },
];

impl Agent {
    /// What it plays.
    pub(super) fn scenario(&self) -> String {
        let mut steps = Vec::new();
        for (stretch, thought) in self.thoughts.iter().enumerate() {
            steps.push(json!({"think": thought}));
            steps.push((self.tools)(stretch));
            steps.push(json!({"usage": {"input": 900 + 10 * stretch, "cache_read": 4_000, "cache_write": 300, "output": 240, "reasoning": 60}}));
            let line = format!("line {}.{{i}}", stretch + 1);
            steps.push(json!({"repeat": LINES, "every_ms": EVERY_MS, "steps": [{"say": line}]}));
        }
        json!({ "steps": steps }).to_string()
    }
}

/// The lines that each agent says, in their order.
pub(super) fn numbered_lines() -> Vec<String> {
    (1..=STRETCHES)
        .flat_map(|stretch| (1..=LINES).map(move |line| format!("line {stretch}.{line}")))
        .collect()
}

/// Says whether a numbered line is one to show: the last of its stretch.
pub(super) fn is_milestone(text: &str) -> bool {
    text.ends_with(&format!(".{LINES}"))
}

/// What every numbered line has on a tape.
pub(super) const ON_TAPE: &str = "\"text\":\"line ";

/// An agent that works for ever, to be killed.
pub(super) fn endless() -> String {
    json!({"steps": [
        {"think": "this will take a while"},
        {"usage": {"input": 700, "cache_read": 0, "cache_write": 100, "output": 90, "reasoning": 0}},
        {"run": ["sleep", "600"]},
    ]})
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_number_of_its_own() {
        let lines = numbered_lines();
        assert_eq!(lines.len(), STRETCHES * LINES);
        assert_eq!(lines[0], "line 1.1");
        let unique: std::collections::BTreeSet<_> = lines.iter().collect();
        assert_eq!(unique.len(), lines.len());
        assert_eq!(lines.iter().filter(|line| is_milestone(line)).count(), STRETCHES);
    }

    #[test]
    fn names_are_names() {
        for agent in &ALL {
            assert!(agent.name.parse::<ostler_domain::Name>().is_ok());
        }
    }
}
