//! Plans that come with Ostler, with parameters for what differs.

use std::collections::BTreeMap;

use super::{Faults, Parameter, Plan, Terms, parameters, read};

/// A plan with parameters, as a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub text: &'static str,
}

const BUILT_IN: &[Template] = &[
    Template { name: "plan-build-review", text: include_str!("templates/plan-build-review.toml") },
    Template { name: "fan-out-and-merge", text: include_str!("templates/fan-out-and-merge.toml") },
    Template { name: "research-and-summarise", text: include_str!("templates/research-and-summarise.toml") },
    Template {
        name: "bug-hunt-with-verification",
        text: include_str!("templates/bug-hunt-with-verification.toml"),
    },
];

/// All that are built in.
pub fn templates() -> &'static [Template] {
    BUILT_IN
}

impl Template {
    pub fn find(name: &str) -> Option<Template> {
        BUILT_IN.iter().copied().find(|template| template.name == name)
    }

    /// What it is for: its first line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }

    pub fn parameters(&self) -> BTreeMap<String, Parameter> {
        parameters(self.text).unwrap_or_default()
    }

    pub fn plan(&self, terms: &Terms<'_>) -> Result<Plan, Faults> {
        read(self.text, terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::Strategy;

    /// What must be said of a template, said.
    fn said(template: &Template) -> BTreeMap<String, String> {
        let needed = template.parameters().into_iter().filter(|(_, parameter)| parameter.default.is_none());
        needed.map(|(name, _)| (name, "Make \"it\" work\nwell".to_owned())).collect()
    }

    #[test]
    fn every_template_is_a_plan_that_says_what_it_is_for() {
        for template in templates() {
            assert!(template.about().len() > 20, "{}", template.name);
            for (name, parameter) in template.parameters() {
                assert!(!parameter.about.is_empty(), "{}: {name}", template.name);
                assert!(
                    template.text.contains(&format!("{{{{{name}}}}}")),
                    "{}: {name} is used",
                    template.name
                );
            }
            let parameters = said(template);
            let terms = Terms { parameters: Some(&parameters), providers: None };
            let plan = template.plan(&terms).unwrap_or_else(|faults| panic!("{}:\n{faults}", template.name));
            assert!(plan.objective.contains("Make \"it\" work\nwell"), "{}", template.name);
            assert!(!plan.to_toml().contains("{{"), "{}", template.name);
            assert_eq!(read(&plan.to_toml(), &Terms::default()), Ok(plan), "{}", template.name);
        }
    }

    #[test]
    fn braces_in_a_value_are_its_own() {
        let template = Template::find("plan-build-review").unwrap();
        for goal in [
            "Show {{name}} in the page",
            "{{goal}}",
            "{{!goal}} {{!!x}}",
            "{{{goal}}} {{{{ goal }}}} {{ {{a b}}",
        ] {
            let mut parameters = said(&template);
            parameters.insert("goal".to_owned(), goal.to_owned());
            let plan = template.plan(&Terms { parameters: Some(&parameters), providers: None }).unwrap();
            assert!(plan.objective.contains(goal), "{}", plan.objective);
            assert_eq!(read(&plan.to_toml(), &Terms::default()), Ok(plan), "{goal}");
        }
        let file =
            "objective = \"Do it\"\n[[agents]]\nname = \"a\"\ntask = \"Print {{!name}} and {{! name }}\"\n";
        let plan = read(file, &Terms::default()).unwrap();
        assert_eq!(plan.agents[0].task, "Print {{name}} and {{ name }}");
    }

    #[test]
    fn parameters_are_asked_for_by_name() {
        let template = Template::find("fan-out-and-merge").unwrap();
        let nothing = template.plan(&Terms::default()).unwrap_err().to_string();
        assert!(nothing.contains("the parameter goal has no value"), "{nothing}");
        let mut parameters = said(&template);
        parameters.insert("buidlers".to_owned(), "4".to_owned());
        let wrong = template.plan(&Terms { parameters: Some(&parameters), providers: None }).unwrap_err();
        assert_eq!(wrong.to_string(), "the plan has no parameter \"buidlers\" (did you mean builders?)");
        parameters.remove("buidlers");
        parameters.insert("builders".to_owned(), "7".to_owned());
        let plan = template.plan(&Terms { parameters: Some(&parameters), providers: None }).unwrap();
        assert_eq!(plan.strategy, Strategy::Adaptive);
        assert!(plan.agents.iter().any(|member| member.instances == 7));
    }
}
