//! `ostler sandbox`: what confines agents, in plain words, and the proof that it does.

use clap::{Args, Subcommand};
use ostler_domain::readiness::{Readiness, Trial};
use ostler_form::sandbox::described;
use serde::Serialize;

use super::{attack, trace, trial, userns};
use crate::{
    app::{App, person_home},
    exit_code,
    failure::Failure,
    form::CampaignForm,
    output::{Line, Tone},
    screen::{field, next_steps},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// What a campaign's agents can see, do and reach
    #[command(alias = "get")]
    Show {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN", default_value = ".")]
        who: String,
    },
    /// Really start a sandboxed program, and say what the kernel offers
    Check {
        /// Try to leave the sandbox, in more than two hundred ways, and say which got through
        #[arg(long)]
        attack: bool,
        /// Only these attempts or areas of attempts
        #[arg(value_name = "NAME", requires = "attack")]
        names: Vec<String>,
    },
    /// Run a command, and say what it wanted that the sandbox kept back
    Trace(trace::TraceArgs),
    /// The smallest grants that would have let the last traced command through
    Suggest {
        /// Name, id or a path in it [default: the one around this directory]
        #[arg(value_name = "CAMPAIGN")]
        who: Option<String>,
        /// The same, as `trace` takes it
        #[arg(short = 'C', long, value_name = "CAMPAIGN", conflicts_with = "who")]
        campaign: Option<String>,
    },
    /// Let this program make user namespaces, where AppArmor forbids it: installs a profile, as root
    AllowUserns(userns::AllowUsernsArgs),
}

#[derive(Serialize)]
struct CheckForm<'a> {
    ok: bool,
    #[serde(flatten)]
    readiness: &'a Readiness,
}

pub(crate) async fn run(app: &App, args: SandboxArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::AllowUserns(args) => userns::run(app, &args),
        Verb::Show { who } => show(app, &who).await,
        Verb::Trace(args) => trace::trace(app, args).await,
        Verb::Suggest { who, campaign } => trace::suggest(app, who.or(campaign)).await,
        Verb::Check { attack: true, names } => attack::run(app, &names),
        Verb::Check { .. } => check(app),
    }
}

async fn show(app: &App, who: &str) -> Result<u8, Failure> {
    let client = app.client().await?;
    let campaign = client.campaign(&app.campaign_operand(who)?).await?;
    if app.ui.is_json() {
        app.ui.json(&CampaignForm::new(&campaign))?;
        return Ok(exit_code::OK);
    }
    let path = words::path(&campaign.root.path, person_home().as_deref());
    let mut lines =
        vec![Line::of("Agents in ").strong(campaign.name.as_str()).faint("   what the kernel lets them")];
    lines.extend(
        described(&campaign.policy, &path).into_iter().map(|(what, words)| field(what, Line::of(words))),
    );
    lines.extend(campaign.unwatched.as_ref().map(|why| {
        field(
            "look out",
            Line::of(format!("hidden files that appear are covered within seconds, not at once: {why}")),
        )
    }));
    lines.extend(next_steps(&[
        (
            format!("ostler campaign set {} KEY+=VALUE", campaign.name),
            "grants more; campaign show lists the keys",
        ),
        ("ostler sandbox check --attack".to_owned(), "tries to leave it, in every way we know"),
    ]));
    app.ui.data_lines(&lines)?;
    Ok(exit_code::OK)
}

fn check(app: &App) -> Result<u8, Failure> {
    let readiness = trial::try_sandbox(&app.program.path);
    let ok = matches!(readiness.trial, Trial::Ran { .. });
    if app.ui.is_json() {
        app.ui.json(&CheckForm { ok, readiness: &readiness })?;
    } else {
        let (tone, sign) = if ok { (Tone::Good, "✓ ") } else { (Tone::Bad, "✗ ") };
        let mut lines = vec![Line::toned(tone, sign).plain(trial::words(&readiness))];
        lines.push(field("kernel", Line::of(format!("namespaces {}", readiness.namespaces.join(" ")))));
        if let Trial::Refused { hint, .. } = &readiness.trial
            && !hint.is_empty()
        {
            lines.push(field("cure", Line::of(hint)));
        }
        app.ui.data_lines(&lines)?;
    }
    Ok(if ok { exit_code::OK } else { exit_code::REFUSED })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::Policy;

    use super::*;
    use crate::output::Look;

    #[test]
    fn policies_in_plain_words() {
        let look = Look::plain(Some(120));
        let shown = |policy: &Policy| {
            described(policy, "~/code/shop")
                .into_iter()
                .map(|(what, words)| field(what, Line::of(words)).show(&look))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_snapshot!(shown(&Policy::default()));
        let settings =
            ["read+=@rust", "write+=/srv/data", "net.mode=host", "limits.memory=8GiB", "ptrace=on"];
        let settings = settings.map(str::to_owned);
        assert_snapshot!(shown(&Policy::default().changed_by(&settings).unwrap()));
    }
}
