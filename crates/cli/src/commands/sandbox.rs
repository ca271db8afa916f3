//! `ostler sandbox`: what confines agents, in plain words, and the proof that it does.

use clap::{Args, Subcommand};
use ostler_domain::{
    Policy,
    policy::NetMode,
    readiness::{Readiness, Trial},
};
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
    lines.extend(described(&campaign.policy, &path));
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

/// A policy in plain words.
fn described(policy: &Policy, root: &str) -> Vec<Line> {
    let with = |base: &str, more: &[String]| {
        if more.is_empty() { base.to_owned() } else { format!("{base}, {}", more.join(", ")) }
    };
    let network = match policy.net_mode {
        None => "through the gateway: the hosts of net.allow, ports 443 and 80; scripts and exec: none",
        Some(NetMode::None) => "none but their own loopback",
        Some(NetMode::Provider) => {
            "through the gateway: the hosts of net.allow, ports 443 and 80; exec: none"
        }
        Some(NetMode::Open) => {
            "through the gateway: every public host, port 443; those of net.allow, port 80 too; exec: none"
        }
        Some(NetMode::Host) => "THE HOST'S OWN, to TCP ports 22, 53, 80 and 443; no datagrams, no servers",
    };
    let tooling = match policy.protect_tooling.unwrap_or(ostler_domain::confinement::Protect::Existing) {
        ostler_domain::confinement::Protect::Existing => {
            "git's configuration and hooks, editors' and agents' settings: readable, and told of when changed"
        }
        ostler_domain::confinement::Protect::Always => {
            "the same, and those that are not there cannot be made"
        }
        ostler_domain::confinement::Protect::Off => {
            "git's configuration and hooks and editors' settings are theirs to change"
        }
    };
    let limit = |value: Option<u64>, usual: &str| value.map_or_else(|| usual.to_owned(), words::bytes);
    let limits = format!(
        "{} processes · memory {} · /tmp {} · /dev/shm {}",
        policy.limits.pids.unwrap_or(512),
        limit(policy.limits.memory, "the machine's"),
        limit(policy.limits.tmp, "512 MiB"),
        limit(policy.limits.shm, "64 MiB"),
    );
    vec![
        field("write", Line::of(with(&format!("{root}, a home of their own, /tmp"), &policy.write))),
        field("read", Line::of(with("the system's programs and libraries", &policy.read))),
        field("hidden", Line::of(with(".env, keys, certificates, credentials", &policy.hide))),
        field("guarded", Line::of(tooling)),
        field("network", Line::of(network)),
        field("env", Line::of(with("a fresh one", &policy.env))),
        field("limits", Line::of(limits)),
        field(
            "never",
            Line::of(
                "other campaigns, your home, Ostler's own files, other processes, mounts, set-id files, new rights",
            ),
        ),
        field(
            "ptrace",
            Line::of(if policy.ptrace == Some(true) { "on: among their own processes" } else { "off" }),
        ),
    ]
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

    use super::*;
    use crate::output::Look;

    #[test]
    fn policies_in_plain_words() {
        let look = Look::plain(Some(120));
        let shown = |policy: &Policy| {
            described(policy, "~/code/shop")
                .iter()
                .map(|line| line.show(&look))
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
