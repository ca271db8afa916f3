//! What would be decided, and why: about leave that an agent asks for, a path, a host, a command.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use ostler_client::{Campaign, Client};
use ostler_domain::{
    approval::{Applied, Place, Verdict, judge},
    command,
    event::Action,
    limits::PAGE_MOST,
    policy::{
        PRESETS, Preset,
        grant::{Around, Grant},
        question::{self, Explained, Scene},
    },
    query::Page,
    text::shell_word,
};
use serde::Serialize;

use super::{
    Where,
    test_send::{self, SendArgs},
};
use crate::{
    app::{App, absolute, person_home},
    commands::config,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Subcommand)]
pub(super) enum About {
    /// What the rules answer an agent that asks for leave
    Approval(ApprovalArgs),
    /// Whether the sandbox lets agents read or write a path
    Path(PathArgs),
    /// Whether the sandbox lets agents connect to a host
    Net(NetArgs),
    /// Whether `ostler exec` runs a command
    Command(CommandArgs),
    /// Whether something may be said to a conversation
    Send(SendArgs),
}

#[derive(Debug, Args)]
pub(super) struct ApprovalArgs {
    /// What it wants to do
    #[arg(value_enum)]
    wish: Wish,
    /// The command line, path, address or tool
    #[arg(value_name = "WHAT")]
    what: String,
    #[command(flatten)]
    place: Where,
    /// As for an agent without a sandbox
    #[arg(long)]
    unconfined: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Wish {
    /// A shell's command line
    Run,
    /// A file
    Read,
    /// A file
    Write,
    /// An address
    Fetch,
    /// Another tool, by its name
    Tool,
}

#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// What an agent would do with it
    #[arg(value_enum)]
    wish: PathWish,
    /// The file or directory, as it is on this machine
    path: String,
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PathWish {
    Read,
    Write,
}

#[derive(Debug, Args)]
pub(super) struct NetArgs {
    /// HOST, HOST:PORT or an http address [default port: 443]
    #[arg(value_parser = host_and_port)]
    host: (String, u16),
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Args)]
pub(super) struct CommandArgs {
    #[command(flatten)]
    place: Where,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    argv: Vec<String>,
}

#[derive(Serialize)]
struct JudgementForm {
    campaign: String,
    verdict: &'static str,
    why: String,
    rules: Vec<Applied>,
}

#[derive(Serialize)]
struct ExplainedForm {
    campaign: String,
    /// What was asked about.
    about: String,
    verdict: &'static str,
    why: String,
    /// The key of the policy that says so, or `default`.
    by: String,
    /// The command that would allow it.
    grant: Option<String>,
}

pub(super) async fn run(app: &App, client: &Client, about: About) -> Result<u8, Failure> {
    match about {
        About::Approval(args) => approval(app, client, args).await,
        About::Path(args) => {
            let campaign = args.place.campaign(app, client).await?;
            let path = absolute(&args.path)?;
            let explained = path_explained(app, client, &campaign, args.wish, &path).await?;
            say(app, &campaign, path, explained)
        }
        About::Net(args) => {
            let campaign = args.place.campaign(app, client).await?;
            let (host, port) = args.host;
            let presets = config::current(app)?.network_presets();
            let explained = question::net(&campaign.policy, campaign.name.as_str(), &presets, &host, port);
            say(app, &campaign, format!("{host}:{port}"), explained)
        }
        About::Send(args) => {
            let (campaign, about, explained) = test_send::explained(app, client, args).await?;
            say(app, &campaign, about, explained)
        }
        About::Command(args) => {
            let campaign = args.place.campaign(app, client).await?;
            let words: Vec<String> = args.argv.iter().map(|word| shell_word(word)).collect();
            let explained = command_explained(&campaign, &args.argv);
            say(app, &campaign, words.join(" "), explained)
        }
    }
}

async fn approval(app: &App, client: &Client, args: ApprovalArgs) -> Result<u8, Failure> {
    let campaign = args.place.campaign(app, client).await?;
    let place = Place { root: &campaign.root.path, is_confined: !args.unconfined };
    let (tool, action) = wanted(args.wish, args.what);
    let judgement = judge(&campaign.policy, &place, &tool, &action);
    if app.ui.is_json() {
        app.ui.json(&JudgementForm {
            campaign: campaign.name.to_string(),
            verdict: judgement.verdict.as_str(),
            why: judgement.why,
            rules: judgement.rules,
        })?;
        return Ok(exit_code::OK);
    }
    let (tone, word) = match judgement.verdict {
        Verdict::Allow => (Tone::Good, "allowed"),
        Verdict::Deny => (Tone::Bad, "denied"),
        Verdict::Ask => (Tone::Warn, "asks a person"),
    };
    app.ui.data(&Line::toned(tone, word).plain(format!("  {}", judgement.why)))?;
    Ok(exit_code::OK)
}

fn wanted(wish: Wish, what: String) -> (String, Action) {
    match wish {
        Wish::Run => ("run".to_owned(), Action::Run { command: what }),
        Wish::Read => ("read".to_owned(), Action::Read { paths: vec![what] }),
        Wish::Write => ("write".to_owned(), Action::Write { paths: vec![what] }),
        Wish::Fetch => ("fetch".to_owned(), Action::Fetch { url: what }),
        Wish::Tool => (what, Action::Other),
    }
}

async fn path_explained(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    wish: PathWish,
    path: &str,
) -> Result<Explained, Failure> {
    let all = client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
    let others = all.into_iter().filter(|other| other.id != campaign.id);
    let other_roots: Vec<String> = others.map(|other| other.root.path).collect();
    let home = app.home()?;
    let own = [home.state(), home.config(), home.run()];
    let own: Vec<String> = own.iter().map(|dir| real(dir).to_string_lossy().into_owned()).collect();
    let homes: Vec<String> =
        person_home().into_iter().map(|home| real(home.as_ref()).to_string_lossy().into_owned()).collect();
    let presets: BTreeMap<String, Vec<PathBuf>> =
        PRESETS.iter().map(|preset| (preset.name.to_owned(), parts(preset))).collect();
    let around = Around { root: &campaign.root.path, other_roots: &other_roots, own: &own, homes: &homes };
    let scene = Scene { campaign: campaign.name.as_str(), around, presets: &presets };
    let wish = match wish {
        PathWish::Read => Grant::Read,
        PathWish::Write => Grant::Write,
    };
    Ok(question::path(&campaign.policy, &scene, wish, path))
}

fn real(path: &std::path::Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What a preset grants, as far as it is there.
pub(crate) fn parts(preset: &Preset) -> Vec<PathBuf> {
    let mut parts = Vec::new();
    for toolchain in preset.toolchains {
        let said =
            toolchain.variable.and_then(env::var_os).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let usual = || person_home().map(|home| PathBuf::from(home).join(toolchain.below_home));
        let Some(dir) = said.or_else(usual) else { continue };
        parts.extend(toolchain.granted.iter().filter_map(|part| fs::canonicalize(dir.join(part)).ok()));
    }
    parts
}

fn command_explained(campaign: &Campaign, argv: &[String]) -> Explained {
    let name = argv.first().cloned().unwrap_or_default();
    match command::check(argv, &campaign.policy, false) {
        Ok(()) => {
            let by = if command::LISTED.contains(&name.as_str()) { "default" } else { "commands" };
            let why = format!("{name} is on the list; it runs in the campaign's sandbox");
            Explained { verdict: question::Verdict::Allowed, why, by: by.to_owned(), grant: None }
        }
        Err(refused) => {
            let grant = match &refused {
                command::CommandRefused::Unlisted(name) => {
                    Some(format!("ostler campaign set {} commands+={}", campaign.name, shell_word(name)))
                }
                command::CommandRefused::Empty | command::CommandRefused::Malformed => None,
                _ => Some("ostler exec --unlisted -- …".to_owned()),
            };
            let by = refused.rule().to_owned();
            Explained { verdict: question::Verdict::Denied, why: refused.to_string(), by, grant }
        }
    }
}

fn say(app: &App, campaign: &Campaign, about: String, explained: Explained) -> Result<u8, Failure> {
    let Explained { verdict, why, by, grant } = explained;
    if app.ui.is_json() {
        let campaign = campaign.name.to_string();
        app.ui.json(&ExplainedForm { campaign, about, verdict: verdict.as_str(), why, by, grant })?;
        return Ok(exit_code::OK);
    }
    let tone = match verdict {
        question::Verdict::Allowed => Tone::Good,
        question::Verdict::Partly => Tone::Warn,
        question::Verdict::Denied => Tone::Bad,
    };
    let line = Line::toned(tone, verdict.as_str()).plain(format!("  {about}  {why}"));
    app.ui.data(&line.faint(format!("   (by {by})")))?;
    if let Some(grant) = grant {
        app.ui.remark(&Line::of("  ").with(Tone::Accent, grant).faint("   would allow it"));
    }
    Ok(exit_code::OK)
}

/// A host and the port that is meant.
fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let (rest, usual) = match text.split_once("://") {
        Some(("http", rest)) => (rest, 80),
        Some(("https", rest)) => (rest, 443),
        Some((scheme, _)) => return Err(format!("{scheme} is neither http nor https")),
        None => (text, 443),
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let split = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        // An address with several colons has no port.
        None if authority.matches(':').count() > 1 => (authority, None),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port =
        split.1.map_or(Ok(usual), |port| port.parse().map_err(|_| format!("\"{port}\" is no port")))?;
    if split.0.is_empty() { Err("a host is missing".to_owned()) } else { Ok((split.0.to_owned(), port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_in_every_form() {
        let of = |text: &str| host_and_port(text).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(of("a.example").unwrap(), "a.example 443");
        assert_eq!(of("a.example:80").unwrap(), "a.example 80");
        assert_eq!(of("http://a.example/x?y").unwrap(), "a.example 80");
        assert_eq!(of("https://a.example:8443/").unwrap(), "a.example 8443");
        assert_eq!(of("[::1]:443").unwrap(), "::1 443");
        assert_eq!(of("2606:2800::1").unwrap(), "2606:2800::1 443");
        for wrong in ["", "ftp://x", "a:b", "https:///x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
