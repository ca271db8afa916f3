//! What the agent is told: an argument, a file, standard input, or an argument with standard input beside it.

use std::{path::Path, time::Duration};

use ostler_domain::Refusal;

use crate::{app::App, failure::Failure, input};

pub(super) fn read(
    app: &App,
    prompt: Option<&str>,
    file: Option<&Path>,
    limit: Option<Duration>,
) -> Result<Option<String>, Failure> {
    let whole = || input::whole_within(&app.ui, limit);
    let piped = || if input::is_given() { whole() } else { Ok(String::new()) };
    let text = match (prompt, file) {
        (Some("-"), _) => whole()?,
        (Some(prompt), _) => join(prompt, &piped()?),
        (None, Some(file)) if file == Path::new("-") => whole()?,
        (None, Some(file)) => join(&in_file(file)?, &piped()?),
        (None, None) => piped()?,
    };
    let is_blank = text.trim().is_empty();
    if is_blank && (prompt.is_some() || file.is_some()) {
        return Err(Refusal::invalid("the prompt is empty")
            .hint("ostler run \"…\"", "says something")
            .hint("ostler run -d", "starts an agent that waits for messages")
            .into());
    }
    Ok((!is_blank).then_some(text))
}

/// A plan of several agents is no prompt for one, though it would be taken for one.
pub(super) fn refuse_plan(file: Option<&Path>, prompt: Option<&str>) -> Result<(), Failure> {
    let (Some(file), Some(text)) = (file, prompt) else { return Ok(()) };
    let has = |begins: &str| text.lines().any(|line| line.trim_start().starts_with(begins));
    if !(has("[[agents]]") && has("objective")) {
        return Ok(());
    }
    let file = file.display();
    Err(Refusal::invalid(format!("{file} is a plan for several agents, and run starts one"))
        .hint(format!("ostler mission start {file}"), "starts them")
        .hint(format!("ostler mission plan {file}"), "says what it would come to, and cost")
        .into())
}

fn in_file(file: &Path) -> Result<String, Failure> {
    let cures = |failure: Failure| {
        let refusal = failure.to_refusal().hint("ostler run \"…\"", "takes the prompt as it is typed");
        refusal.hint("ostler run -f -", "takes it from standard input").into()
    };
    input::file(file).map_err(cures)
}

/// A prompt with what was piped in as its context.
fn join(prompt: &str, context: &str) -> String {
    if context.trim().is_empty() { prompt.to_owned() } else { format!("{prompt}\n\n{context}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_not_taken_for_a_prompt() {
        let plan = "objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"b\"\n";
        let refused = refuse_plan(Some(Path::new("plan.toml")), Some(plan)).unwrap_err().to_refusal();
        assert_eq!(refused.hints[0].command, "ostler mission start plan.toml");
        assert!(refuse_plan(Some(Path::new("fix.md")), Some("the objective of this is …")).is_ok());
        assert!(refuse_plan(None, Some(plan)).is_ok(), "whoever types it means it");
    }

    #[test]
    fn context_follows_the_prompt() {
        assert_eq!(join("explain", "\n"), "explain");
        assert_eq!(join("explain", "log line\n"), "explain\n\nlog line\n");
    }
}
