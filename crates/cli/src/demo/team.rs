//! The team of the demo: its plan, what each of its agents plays, and the numbered lines that they must have said in the
//! end.

use std::path::Path;

use serde_json::{Value, json};

use super::escape::{self, Escape};

/// Stretches of a builder's work, and lines said in each.
const STRETCHES: usize = 4;
const LINES: usize = 24;
/// The pause after each line.
const EVERY_MS: u64 = 50;

/// The one that is killed on purpose, while it runs this.
pub(super) const VICTIM: &str = "db";
const SLOW: [&str; 3] = ["sh", "check.sh", "migrations"];

/// What every numbered line has on a tape.
pub(super) const ON_TAPE: &str = "\"text\":\"line ";

/// Says whether a line is one of the numbered ones.
pub(super) fn is_numbered(text: &str) -> bool {
    text.starts_with("line ")
}

/// Says whether this is what the victim is killed in.
pub(super) fn is_slow_check(summary: &str) -> bool {
    summary == SLOW.join(" ")
}

/// One of those that build.
pub(super) struct Builder {
    pub(super) name: &'static str,
    file: &'static str,
    text: &'static str,
    thoughts: [&'static str; STRETCHES],
}

pub(super) const BUILDERS: [Builder; 3] = [
    Builder {
        name: "api",
        file: "src/cart.rs",
        text: "pub fn total(prices: &[u64]) -> u64 {\n    prices.iter().sum()\n}\n",
        thoughts: [
            "a cart is a list of prices",
            "and its total their sum",
            "what of an empty one?",
            "nothing; so the sum of none",
        ],
    },
    Builder {
        name: VICTIM,
        file: "db/cart.sql",
        text: "create table cart (customer integer, item integer, price integer);\n",
        thoughts: [
            "a cart must outlive a restart",
            "one table will do",
            "with what it was worth then",
            "the migration is tried first",
        ],
    },
    Builder {
        name: "docs",
        file: "docs/cart.md",
        text: "# The cart\n\nIt adds up prices, and outlives a restart.\n",
        thoughts: [
            "someone must explain this",
            "one page is enough",
            "the words should be plain",
            "it reads well now",
        ],
    },
];

/// The lines that each builder says, in their order.
pub(super) fn numbered_lines() -> Vec<String> {
    (1..=STRETCHES)
        .flat_map(|stretch| (1..=LINES).map(move |line| format!("line {stretch}.{line}")))
        .collect()
}

/// The plan, as `ostler mission start` takes it. Escapes are tried only where there is a sandbox to stop them; and without
/// one there is no git either, so all work in the same directory and nothing is merged.
pub(super) fn plan(record: &Path, is_confined: bool) -> String {
    let tries = |escape: &Escape| is_confined.then(|| json!({"run": escape.command(record)}));
    let mut text = String::from(
        "objective = \"A shopping cart: code, table and page, checked together\"\nname = \"cart\"\n\
         strategy = \"pipeline\"\nbudget = \"5usd\"\n\n[defaults]\nprovider = \"script\"\nretries = 1\n",
    );
    if is_confined {
        text.push_str("\n[merge]\ninto = \"main\"\ngate = \"sh check.sh\"\n");
    }
    text.push_str(&agent("plan", "planner", 1, false, planner(tries(&escape::NETWORK))));
    for builder in &BUILDERS {
        let escape = match builder.name {
            "api" => tries(&escape::OUTSIDE),
            "docs" => tries(&escape::HIDDEN),
            _ => None,
        };
        let steps = builder.steps(escape, is_confined);
        text.push_str(&agent(builder.name, "builder", 2, is_confined, steps));
    }
    text.push_str(&agent("review", "reviewer", 3, false, reviewer(tries(&escape::RECORD))));
    text
}

fn agent(name: &str, role: &str, stage: u32, has_tree: bool, steps: Vec<Value>) -> String {
    let scenario = json!({ "steps": steps });
    format!(
        "\n[[agents]]\nname = \"{name}\"\nrole = \"{role}\"\nstage = {stage}\nworktree = {has_tree}\n\
         task = '''\n```scenario\n{scenario}\n```\n'''\n"
    )
}

fn usage(output: u64) -> Value {
    json!({"usage": {"input": 1_400, "cache_read": 26_000, "cache_write": 1_800, "output": output, "reasoning": output / 4}})
}

fn planner(escape: Option<Value>) -> Vec<Value> {
    let mut steps = vec![json!({"think": "what is there already?"}), json!({"read": "README.md"})];
    steps.extend(escape);
    steps.extend([
        usage(700),
        json!({"think": "three parts that touch different files"}),
        json!({"sleep_ms": 900}),
        json!({"say": "api: src/cart.rs. db: db/cart.sql. docs: docs/cart.md."}),
    ]);
    steps
}

fn reviewer(escape: Option<Value>) -> Vec<Value> {
    let mut steps = vec![json!({"run": ["git", "log", "--oneline", "--all"]}), usage(500)];
    steps.extend(escape);
    steps.extend([
        json!({"think": "three commits, three files, none of them touched twice"}),
        json!({"sleep_ms": 900}),
        json!({"say": "They fit together."}),
    ]);
    steps
}

impl Builder {
    /// Stretches, each with the line that says it is done. Whoever was killed and is told to go on sees what is there.
    fn steps(&self, escape: Option<Value>, commits: bool) -> Vec<Value> {
        let mut steps = Vec::new();
        for (n, thought) in self.thoughts.iter().enumerate() {
            let done = format!("{}.{}.tmp", self.file, n + 1);
            let line = format!("line {}.{{i}}", n + 1);
            let mut stretch = vec![
                json!({"think": thought}),
                usage(300 + 40 * n as u64),
                json!({"repeat": LINES, "every_ms": EVERY_MS, "steps": [{"say": line}]}),
            ];
            if n == 0 {
                stretch.extend(escape.clone());
            }
            stretch.push(json!({"write": {"path": done, "text": ""}}));
            if self.name == VICTIM && n + 2 == STRETCHES {
                stretch.push(json!({"run": SLOW}));
            }
            steps.push(json!({"unless": done, "steps": stretch}));
        }
        steps.push(json!({"write": {"path": self.file, "text": self.text}}));
        if commits {
            let who = ["-c", "user.name=Ostler demo", "-c", "user.email=demo@example.org"];
            let message = format!("Add {}", self.file);
            let commit = ["git"].into_iter().chain(who).chain(["commit", "-q", "-m", message.as_str()]);
            steps.push(json!({"run": ["git", "add", self.file]}));
            steps.push(json!({"run": commit.collect::<Vec<_>>()}));
        }
        steps.push(json!({"say": format!("{} is done", self.file)}));
        steps
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::mission::{
        Strategy,
        plan::{Plan, Terms, read},
    };

    use super::*;

    fn planned(is_confined: bool) -> (String, Plan) {
        let text = plan(Path::new("/state/ostler.db"), is_confined);
        let plan = read(&text, &Terms::default()).unwrap_or_else(|faults| panic!("{faults:?}"));
        (text, plan)
    }

    #[test]
    fn every_line_has_a_number_of_its_own() {
        let lines = numbered_lines();
        assert_eq!(lines.len(), STRETCHES * LINES);
        let unique: std::collections::BTreeSet<_> = lines.iter().collect();
        assert_eq!(unique.len(), lines.len());
        assert!(lines.iter().all(|line| is_numbered(line)));
    }

    #[test]
    fn the_plan_is_one() {
        for is_confined in [true, false] {
            let (text, plan) = planned(is_confined);
            assert_eq!((plan.strategy, plan.agents.len()), (Strategy::Pipeline, 5));
            assert_eq!(text.contains("/etc/owned"), is_confined, "nothing is tried that nothing would stop");
            assert_eq!((plan.merge.is_some(), text.contains("git\",\"add\"")), (is_confined, is_confined));
        }
    }

    /// Who lost the dialogue is told this much of each message again: the scenario must be in it.
    #[test]
    fn the_victim_is_told_its_whole_task_again() {
        let (_, plan) = planned(true);
        let victim = plan.agents.iter().find(|member| member.name.as_str() == VICTIM).unwrap();
        assert!(victim.task.len() < 3_000, "{}", victim.task.len());
    }
}
