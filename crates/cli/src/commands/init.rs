//! `ostler init`: the first command on a machine. Looks at what is there, and ends with a campaign and a command to type.

use clap::Args;
use ostler_client::AddCampaign;
use ostler_domain::{
    provider::{NOT_LOGGED_IN, Status},
    readiness::Trial,
};
use serde::Serialize;

use super::trial;
use crate::{
    app::{App, absolute, person_home},
    exit_code,
    failure::Failure,
    form::CampaignForm,
    input,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The directory that agents are to work in
    #[arg(default_value = ".")]
    path: String,
    /// Add it without asking
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct InitForm {
    providers: Vec<Status>,
    sandbox_ok: bool,
    sandbox: String,
    campaign: Option<CampaignForm>,
    /// What to type next.
    next: String,
}

pub(crate) async fn run(app: &App, args: InitArgs) -> Result<u8, Failure> {
    let ui = &app.ui;
    let client = app.client().await?;
    let providers = client.providers().await?;
    let readiness = trial::try_sandbox(&app.program.path);
    let sandbox_ok = matches!(readiness.trial, Trial::Ran { .. });
    let sandbox = trial::words(&readiness);
    let say = |about: &str, tone: Tone, text: &str| {
        ui.say(&Line::of(format!("{about:<10}")).with(tone, text));
    };
    let is_told = !ui.is_json() && !ui.is_quiet();
    if is_told {
        say("found", Tone::Plain, &found(&providers));
        say("sandbox", if sandbox_ok { Tone::Plain } else { Tone::Bad }, &sandbox);
    }
    let path = absolute(&args.path)?;
    let known = client.campaign(&path).await.ok();
    let campaign = match known {
        Some(campaign) => Some(campaign),
        None => {
            let shown = words::path(&path, person_home().as_deref());
            let question = format!("{:<10}agents may read and write in {shown}?", "campaign");
            if args.yes || input::agrees(ui, &question) {
                Some(client.add_campaign(AddCampaign { path, name: None }).await?)
            } else {
                None
            }
        }
    };
    let provider = usable(&providers).map_or("script", |status| status.name.as_str());
    let next = match &campaign {
        Some(campaign) => format!("ostler run -C {} -p {provider} \"…\"", campaign.name),
        None => "ostler campaign add .".to_owned(),
    };
    if ui.is_json() {
        let campaign = campaign.as_ref().map(CampaignForm::new);
        ui.json(&InitForm { providers, sandbox_ok, sandbox, campaign, next })?;
    } else if is_told {
        if let Some(campaign) = &campaign {
            let grants = campaign.policy.read.join(", ");
            let tools = if grants.is_empty() { "none found in your home" } else { &grants };
            say("campaign", Tone::Plain, campaign.name.as_str());
            say(
                "tools",
                Tone::Plain,
                &format!(
                    "{tools} (readable inside; ostler campaign set {} read-=… takes one away)",
                    campaign.name
                ),
            );
        }
        for status in providers.iter().filter(|status| needs_key(status)) {
            let text = format!(
                "{} is not logged in: ostler provider login {0}, or ostler config set providers.{0}.api_key_env VARIABLE",
                status.name
            );
            say("key", Tone::Warn, &text);
        }
        ui.data(&Line::of("next      ").with(Tone::Accent, &next))?;
    }
    Ok(if sandbox_ok { exit_code::OK } else { exit_code::REFUSED })
}

fn found(providers: &[Status]) -> String {
    let name = |status: &Status| match &status.version {
        Some(version) => format!("{} {version} ({})", status.name, status.key),
        None => status.name.clone(),
    };
    let (missing, there): (Vec<_>, Vec<_>) = providers.iter().partition(|status| status.problem.is_some());
    let there: Vec<String> = there.into_iter().map(name).collect();
    let missing: Vec<&str> = missing.iter().map(|status| status.name.as_str()).collect();
    let missing =
        if missing.is_empty() { String::new() } else { format!(" · not found: {}", missing.join(", ")) };
    format!("{}{missing}", there.join(", "))
}

/// A program whose model can be called: its key, or its server, is known.
fn usable(providers: &[Status]) -> Option<&Status> {
    providers.iter().find(|status| status.problem.is_none() && status.program.is_some() && !needs_key(status))
}

fn needs_key(status: &Status) -> bool {
    status.problem.is_none() && status.program.is_some() && status.key == NOT_LOGGED_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, key: &str, problem: Option<&str>) -> Status {
        Status {
            name: name.to_owned(),
            program: problem.is_none().then(|| "/opt/agent".to_owned()),
            version: Some("2.1.325".to_owned()),
            problem: problem.map(str::to_owned),
            key: key.to_owned(),
            ..Status::default()
        }
    }

    #[test]
    fn what_can_be_used_is_offered() {
        let all = [
            status("claude-code", NOT_LOGGED_IN, None),
            status("codex", "the variable OPENAI_API_KEY", None),
            status("openclaw", NOT_LOGGED_IN, Some("not found")),
        ];
        assert_eq!(usable(&all).map(|status| status.name.as_str()), Some("codex"));
        assert!(usable(&all[..1]).is_none());
        assert_eq!(
            found(&all),
            "claude-code 2.1.325 (not logged in), codex 2.1.325 (the variable OPENAI_API_KEY) · not found: openclaw"
        );
    }
}
