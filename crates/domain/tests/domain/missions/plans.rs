//! Plans: what they may say, and everything that is wrong with one at once.

use std::collections::BTreeMap;

use ostler_domain::{
    admission::Priority,
    mission::{
        Plan, Strategy,
        plan::{CompleteWhen, Given, OnDepFailure, Terms, Worktree, read, read_members},
    },
    session::Approve,
};
use proptest::prelude::*;

use super::promises::any_plan;

fn faults(text: &str) -> Vec<String> {
    let known = ["script".to_owned(), "claude-code".to_owned()];
    let terms = Terms { providers: Some(&known), parameters: None };
    read(text, &terms).unwrap_err().0.iter().map(ToString::to_string).collect()
}

const WHOLE: &str = r#"
name = "checkout-v2"
objective = "Move the checkout into its own crate"
strategy = "pipeline"
priority = "high"
budget = "20usd,2M"
when_used_up = "stop"
time = "2h"

[metadata]
issue = "7"

[defaults]
provider = "script"
retries = 2
approve = "policy"

[limits]
concurrency = 4
roles = { builder = 2 }
providers = { "acp:gemini" = 1 }
added = 0

[merge]
into = "main"
gate = "cargo test"

[[agents]]
name = "plan"
role = "planner"
task = "Make a plan"
stage = 1
complete_when = "done"

[[agents]]
name = "build"
role = "builder"
type = "bug"
instances = 3
task = """
Build it.
All of it."""
stage = 2
needs = ["plan"]
inputs = ["docs/spec.md", { text = "be brief" }, { file = "a b.md" }]
worktree = true
budget = "2usd"
timeout = "30m"
on_dep_failure = "block"
complete_when = { check = "cargo test" }
side_effects = false
"#;

#[test]
fn one_mistake_of_an_agent_hides_no_other_and_is_told_of_once() {
    let found = faults(
        "objective = \"x\"\nstrategy = \"pipeline\"\n[[agents]]\nname = \"a b\"\ntask = \"t\"\nstage = 0\nretries = 2\n\
         side_effects = true\n",
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    for (words, line) in [("name is \"a b\"", 4), ("stage is 0", 6), ("side_effects", 7)] {
        let told = |fault: &&String| fault.contains(words);
        assert!(
            found.iter().any(|fault| told(&fault) && fault.contains(&line.to_string())),
            "{words}: {found:#?}"
        );
    }
    let found = faults("");
    assert!(found.iter().any(|fault| fault.contains("a plan has no objective")), "{found:#?}");
}

#[test]
fn a_plan_says_all_this() {
    let plan = read(WHOLE, &Terms::default()).unwrap();
    assert_eq!((plan.strategy, plan.priority, plan.assignments()), (Strategy::Pipeline, Priority::High, 4));
    assert_eq!(plan.budget.unwrap().to_string(), "20usd,2M");
    assert_eq!(plan.time().unwrap().as_secs(), 7_200);
    let build = plan.work(&plan.agents[1]);
    assert_eq!((build.retries, build.provider.as_deref(), build.kind.as_str()), (2, Some("script"), "bug"));
    assert_eq!(build.inputs[1], Given::Text("be brief".to_owned()));
    assert_eq!((build.worktree, build.on_dep_failure), (Worktree::Own, OnDepFailure::Block));
    assert_eq!(build.complete_when, CompleteWhen::Check("cargo test".to_owned()));
    assert_eq!((build.approve, build.priority), (Some(Approve::Policy), Priority::High));
    assert_eq!(build.timeout.unwrap().as_secs(), 1_800);
    assert_eq!(plan.agents[1].instance(2).as_str(), "build-2");
    assert_eq!(read(&plan.to_toml(), &Terms::default()), Ok(plan));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_line() {
    let text = "objective = \"\"\nstratgy = \"parallel\"\nbudget = \"2eur\"\n\n[[agents]]\nname = \"a\"\ntask = \"t\"\n\
        provider = \"claude-cod\"\nretries = \"many\"\n\n[[agents]]\nrole = \"b\"\nworktree = 3\n\n[[agents]]\ntask = \"t\"\n";
    assert_eq!(
        faults(text),
        [
            "line 1: the objective is empty (say what the agents are to reach)",
            "line 2: a plan has no key \"stratgy\" (did you mean strategy?)",
            "line 3: budget is \"2eur\"; expected: dollars, tokens or both: 2usd, 500k, 2usd,500k",
            "line 8: there is no provider \"claude-cod\" (did you mean claude-code?)",
            "line 9: retries is \"many\"; expected: a number from 0 to 20",
            "line 11: an agent has no task (task = \"what it is to do\")",
            "line 13: worktree is 3; expected: true, false or the name of a branch",
            "line 15: an agent has no name (name = \"a-name\")",
        ]
    );
}

fn adaptive(rest: &str) -> String {
    format!("objective = \"x\"\nstrategy = \"adaptive\"\n{rest}")
}

fn agent(name: &str, rest: &str) -> String {
    format!("[[agents]]\nname = \"{name}\"\ntask = \"t\"\n{rest}\n")
}

#[test]
fn who_waits_for_whom_must_come_to_an_end() {
    let round = adaptive(
        &[agent("a", "needs = [\"c\"]"), agent("b", "needs = [\"a\"]"), agent("c", "needs = [\"b\"]")]
            .concat(),
    );
    assert_eq!(
        faults(&round),
        ["line 6: agents wait for each other for ever: a → c → b → a (leave one of these needs out)"]
    );
    let itself = adaptive(&agent("a", "needs = [\"a\"]"));
    assert_eq!(faults(&itself), ["line 6: a needs itself (leave it out)"]);
    let unknown = adaptive(&[agent("build", ""), agent("b", "needs = [\"biuld\"]")].concat());
    assert_eq!(
        faults(&unknown),
        ["line 10: b needs \"biuld\", and there is no such agent (did you mean build?)"]
    );
    // A long round is told of in few words, and without a stack as deep.
    let long: String =
        (0..3_000).map(|n| agent(&format!("a{n}"), &format!("needs = [\"a{}\"]", (n + 1) % 3_000))).collect();
    let told = faults(&adaptive(&long));
    assert!(told[0].len() < 300 && told[0].contains("2990 more"), "{told:?}");
}

#[test]
fn names_are_names_of_one() {
    let twice = adaptive(&[agent("a", ""), agent("a", "")].concat());
    assert_eq!(
        faults(&twice),
        ["line 8: there is an agent \"a\" already, on line 4 (give each its own name)"]
    );
    let instance = adaptive(&[agent("a", "instances = 2"), agent("a-2", "")].concat());
    assert_eq!(
        faults(&instance),
        ["line 8: there is an agent \"a-2\" already, on line 4 (give each its own name)"]
    );
}

#[test]
fn strategies_have_their_own_words() {
    let text = |strategy: &str, rest: &str| {
        format!("objective = \"x\"\nstrategy = \"{strategy}\"\n{}{}", agent("a", ""), agent("b", rest))
    };
    for strategy in ["parallel", "sequential"] {
        let told = faults(&text(strategy, "needs = [\"a\"]"));
        assert_eq!(
            told,
            [format!(
                "line 10: b has needs, and the strategy is {strategy} (strategy = \"adaptive\" goes by needs)"
            )]
        );
    }
    let told = faults(&text("adaptive", "stage = 2"));
    assert_eq!(
        told,
        ["line 10: b has a stage, and the strategy is adaptive (strategy = \"pipeline\" has stages)"]
    );
    assert_eq!(
        faults(&text("pipeline", "stage = 3")),
        [
            "line 4: a has no stage, and the strategy is pipeline (stage = 1 is the first)",
            "line 10: b is in stage 3, and nobody is in stage 2 (stages are numbered from 1 on, without holes)"
        ]
    );
    let later = format!(
        "objective = \"x\"\nstrategy = \"pipeline\"\n{}{}",
        agent("a", "stage = 1\nneeds = [\"b\"]"),
        agent("b", "stage = 2")
    );
    assert_eq!(
        faults(&later),
        ["line 7: a is in stage 1 and needs b, which is in stage 2 (what is needed is in an earlier stage)"]
    );
}

#[test]
fn sizes_places_and_limits_are_looked_at() {
    for (rest, told) in [
        (agent("a", "instances = 10000") + &agent("b", ""), "there would be 10001 assignments"),
        (
            agent("a", "instances = 500") + &agent("b", "instances = 500\nneeds = [\"a\"]"),
            "there would be 250000 dependencies",
        ),
        (agent("a", "instances = 2\nworktree = \"x\""), "2 instances of a have one branch"),
        (agent("a", "worktree = \"x\"") + &agent("b", "worktree = \"x\""), "a and b have one branch"),
        (agent("a", "worktree = \"-x\""), "worktree is \"-x\""),
        (agent("a", "paths = [\"../x\"]"), "\"../x\" is no path below the campaign's root"),
        (agent("a", "side_effects = true\nretries = 2"), "a has side_effects, and retries"),
        (agent("a", "") + "[merge]\ninto = \"main\"\n", "there is nothing to merge"),
        (agent("a", "") + "[limits]\nroles = { bulider = 1 }\n", "no agent has the role \"bulider\""),
        (agent("a", "") + "[limits]\nconcurrency = 0\n", "concurrency is 0; expected: a number from 1"),
        (agent("a", "complete_when = { chek = \"x\" }"), "did you mean check?"),
        (agent("a", "inputs = [3]"), "inputs is 3"),
        (agent("a", "timeout = \"soon\""), "timeout is \"soon\""),
    ] {
        let found = faults(&adaptive(&rest));
        assert!(found[0].contains(told), "{told}: {found:?}");
    }
}

#[test]
fn what_is_no_toml_says_where() {
    assert!(
        faults("objective = \"x\n[[agents]]\n")[0].starts_with("line 1: "),
        "{:?}",
        faults("objective = \"x\n")
    );
    assert_eq!(
        faults(""),
        [
            "line 1: a plan has agents ([[agents]])",
            "line 1: a plan has no objective (objective = \"what the agents are to reach\")"
        ]
    );
    assert_eq!(
        faults("agents = 3\nobjective = \"x\"\n"),
        ["line 1: agents is 3; expected: a list in [ ]", "line 1: there is no agent ([[agents]])"][..1]
    );
    assert!(read_members("objective = \"x\"\n", &Terms::default()).is_err());
}

#[test]
fn parameters_are_put_into_values_and_nowhere_else() {
    let text = "objective = \"{{goal}} and {{ goal }}, not {{{ or {{\"\n[parameters]\ngoal = \"what\"\n\
        n = { about = \"how many\", default = \"2\" }\n[[agents]]\nname = \"a\"\ntask = \"{{goal}}\"\ninstances = \"{{n}}\"\n";
    let given = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let with =
        |pairs: &[(&str, &str)]| read(text, &Terms { parameters: Some(&given(pairs)), providers: None });
    let plan = with(&[("goal", "a \"b\"\n[limits]\n")]).unwrap();
    assert_eq!(plan.objective, "a \"b\"\n[limits]\n and a \"b\"\n[limits]\n, not {{{ or {{");
    assert_eq!((plan.agents[0].instances, plan.limits.concurrency), (2, None));
    assert_eq!(with(&[("goal", "x"), ("n", "5")]).unwrap().agents[0].instances, 5);
    assert_eq!(
        with(&[("goal", "x"), ("n", "lots")]).unwrap_err().to_string(),
        "line 8: instances is \"lots\"; expected: a number from 1 to 10000"
    );
    assert_eq!(
        with(&[]).unwrap_err().to_string(),
        "the parameter goal has no value: what (--set goal=VALUE)"
    );
    let unknown = read(
        &text.replace("{{n}}", "{{m}}"),
        &Terms { parameters: Some(&given(&[("goal", "x")])), providers: None },
    );
    assert!(
        unknown.unwrap_err().to_string().contains("line 8: there is no parameter \"m\" (did you mean n?)")
    );
}

proptest! {
    #[test]
    fn any_plan_is_the_same_after_it_was_written_and_read(plan in any_plan()) {
        let text = plan.to_toml();
        prop_assert_eq!(read(&text, &Terms::default()), Ok(plan.clone()), "{}", text);
        let stored: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        prop_assert_eq!(stored, plan);
    }

    #[test]
    fn any_text_is_a_plan_or_is_refused(text in ".{0,200}", cut in 0usize..1_000) {
        let _ = read(&text, &Terms::default());
        let head: String = WHOLE.chars().take(cut).collect();
        let _ = read(&head, &Terms::default());
        let _ = read(&format!("{head}{text}"), &Terms::default());
    }
}
