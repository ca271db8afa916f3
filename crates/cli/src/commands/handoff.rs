//! `ostler handoff`: ends a session and has another one go on with its work.

use clap::Args;
use ostler_domain::handoff::{To, Wish};

use super::many;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
    /// Session or conversation: name, id, part of an id, or - for the last one of this terminal. Inside a session: itself
    #[arg(value_name = "WHO")]
    who: Option<String>,
    /// Who goes on: PROVIDER, PROVIDER/MODEL, or a registered agent [default: a fresh session like this one]
    #[arg(long, value_name = "WHOM", default_value = "")]
    to: String,
    /// What whoever goes on is to know
    #[arg(short = 'm', long = "message", value_name = "NOTE", default_value = "")]
    note: String,
    /// What is done, beside what the record knows; may be said several times
    #[arg(long, value_name = "TEXT")]
    done: Vec<String>,
    /// What was decided; may be said several times
    #[arg(long, value_name = "TEXT")]
    decided: Vec<String>,
    /// What is open, beside what the record knows; may be said several times
    #[arg(long, value_name = "TEXT")]
    open: Vec<String>,
}

impl HandoffArgs {
    /// What is said with it, and to whom.
    pub(super) fn wish(self) -> (Option<String>, String, Wish) {
        let Self { who, to, note, done, decided, open } = self;
        (who, to, Wish { note, done, decided, open, ..Wish::default() })
    }
}

pub(crate) async fn run(app: &App, args: HandoffArgs) -> Result<u8, Failure> {
    let (who, to, wish) = args.wish();
    let who = who.ok_or_else(|| Failure::usage("whose work? ostler handoff WHO"))?;
    let client = app.client().await?;
    let before = app.session(&client, &who).await?;
    let session = client.hand_off(&before.id.to_string(), &to, wish).await?;
    app.touched(&session.id);
    let told = format!("goes on with the work of {} ({})", before.name, before.id.short());
    many::say(app, &client, &told, &session).await?;
    if !went_to(&to, &session.provider, session.agent.as_ref().map(|agent| agent.name.as_str())) {
        app.ui.remark(&Line::of(format!(
            "it was to go to {}, and goes on with {}: what it was told first says why",
            ostler_domain::text::one_line(&to, 64),
            session.provider
        )));
    }
    if !app.ui.is_quiet() {
        let chain = format!("ostler chain show {}", session.id.short());
        app.ui.remark(
            &Line::of("  ").with(Tone::Accent, chain).faint("   who had it before, and what it cost"),
        );
    }
    Ok(exit_code::OK)
}

/// Whether those who were meant have it. Between the wish and their start they may have become unable to.
fn went_to(meant: &str, provider: &str, agent: Option<&str>) -> bool {
    let Ok(to) = To::parse(meant, |name| agent == Some(name)) else { return true };
    to.provider.is_none_or(|meant| meant == provider)
        && to.agent.is_none_or(|meant| agent == Some(meant.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_it_is_compared_with_whom_was_meant() {
        for meant in ["", "codex", "codex/gpt-5.5", "rev", "agent:rev"] {
            assert!(went_to(meant, "codex", Some("rev")), "{meant}");
        }
        for meant in ["claude-code", "script/m", "agent:api"] {
            assert!(!went_to(meant, "codex", Some("rev")), "{meant}");
        }
    }
}
