//! `ostler run`: starts a session, streams its turn, prints the answer.

mod changes;
mod check;
mod grant;
mod prompt;
mod story;
mod stream;

use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use ostler_client::{AddCampaign, Campaign, Client, CreateSession, SendMessage, Session, Taken};
use ostler_domain::{
    Budget, Name, Reason, Refusal,
    admission::Priority,
    budget::{Amount, WhenUsedUp},
    conversation::{Key, reset_word},
    policy::NetMode,
    provider::SCRIPT,
    session::{Approve, RestartPolicy, Sandbox},
    telemetry::{Context, TRACEPARENT},
    text::one_line,
    worktree::Wanted,
};

pub(crate) use self::grant::grants;

use self::check::Check;
use super::{config, send};
use crate::{
    app::{App, absolute, git_root, person_home},
    exit_code,
    failure::Failure,
    form::SessionForm,
    input,
    output::{Line, Tone},
    parse,
    screen::row,
    words,
};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What the agent is told; - reads standard input
    prompt: Option<String>,
    /// Read the prompt from this file
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Agent program [default: the campaign's, else the machine's, else the only one that is ready]
    #[arg(short, long)]
    provider: Option<String>,
    /// Model, as the provider names it [default: the campaign's, else the provider's]
    #[arg(short, long)]
    model: Option<String>,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
    /// Make this git root a campaign if it is not one yet
    #[arg(long, conflicts_with = "campaign")]
    here: bool,
    /// A registered agent whose session it is; its conversation goes on
    #[arg(long, value_name = "AGENT", conflicts_with = "name")]
    agent: Option<String>,
    /// Which of the agent's conversations [default: main]
    #[arg(long, conflicts_with = "name")]
    key: Option<Key>,
    /// Work in a git work tree of its own, on branch agent/NAME or on this one; kept while anything is uncommitted or unmerged
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true)]
    worktree: Option<Option<String>>,
    /// Which of the provider's accounts pays: a profile of config.toml
    #[arg(long, value_name = "PROFILE")]
    auth_profile: Option<Name>,
    /// Name of the conversation [default: made from the prompt]
    #[arg(long)]
    name: Option<Name>,
    /// Do not wait: print the id and return
    #[arg(short, long)]
    detach: bool,
    /// Leave the session live when its turn has ended
    #[arg(long)]
    keep: bool,
    /// Who answers the agent's questions
    #[arg(long, value_enum, default_value_t = ApproveMode::Policy)]
    approve: ApproveMode,
    /// What it may use: 2usd, 500k (tokens of input and output), or both: 2usd,500k
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// How long it may take: 30m. With -d, from its start; else all in all, with the wait for a slot and for input
    #[arg(long, value_parser = parse::time_limit, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// A command that is run in the sandbox after the turn and says whether the work is good: "cargo test"
    #[arg(long, value_parser = parse::shell_command, value_name = "CMD", conflicts_with = "detach")]
    check: Option<String>,
    /// How often the agent is told that the check failed, and tries again
    #[arg(long, value_name = "N", default_value_t = 0, requires = "check")]
    retries: u32,
    /// Exit 13 when a question was answered no, or a rule did not allow something
    ///
    /// What the kernel refuses inside of the sandbox (a file that is not writable there) only the agent hears of.
    #[arg(long, conflicts_with = "detach")]
    fail_on_denied: bool,
    /// Whether a new session replaces it when it ends: never, on-failure, always
    #[arg(long, value_parser = restart_policy, default_value = "never", value_name = "WHEN")]
    restart: RestartPolicy,
    /// How pressing it is that it starts, where others wait too: low, normal, high
    #[arg(long, value_parser = priority, default_value = "normal", value_name = "WORD")]
    priority: Priority,
    /// Set an environment variable of the agent
    #[arg(long, value_parser = parse::variable, value_name = "NAME=VALUE")]
    env: Vec<(String, String)>,
    /// Set one of the provider's own settings for this session; docs/providers.md names them
    #[arg(long, value_parser = parse::variable, value_name = "KEY=VALUE")]
    config: Vec<(String, String)>,
    /// The ticket it works on: its id, part of it, or what it is elsewhere; gh:shop#412 is written down if it is new
    #[arg(long)]
    ticket: Option<String>,
}

/// Who answers an agent that asks for leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ApproveMode {
    /// The campaign's rules, then a person where one can be asked (here, or later with -d); nobody there means no
    Policy,
    /// A person, always: the agent waits
    Ask,
    /// Everything is allowed
    All,
}

fn restart_policy(text: &str) -> Result<RestartPolicy, String> {
    RestartPolicy::parse(text).ok_or_else(|| format!("\"{text}\" is none of never, on-failure, always"))
}

fn priority(text: &str) -> Result<Priority, String> {
    Priority::parse(text).ok_or_else(|| format!("\"{text}\" is none of low, normal, high"))
}

pub(crate) async fn run(app: &App, args: RunArgs) -> Result<u8, Failure> {
    let began = Instant::now();
    let prompt = prompt::read(app, args.prompt.as_deref(), args.file.as_deref(), args.timeout)?;
    prompt::refuse_plan(args.file.as_deref(), prompt.as_deref())?;
    if prompt.is_none() && !args.detach && !args.keep {
        return Err(Refusal::invalid("nothing was said to the agent")
            .hint("ostler run \"…\"", "says it")
            .hint("ostler run -d", "starts an agent that waits for messages")
            .into());
    }
    if let Some(node) = app.node().filter(|_| args.check.is_some()) {
        return Err(Refusal::invalid(format!(
            "--check runs on this machine, and the work would be on {node}"
        ))
        .hint("ssh HOST ostler run --check CMD \"…\"", "runs both there")
        .into());
    }
    let client = app.client().await?;
    config::remark_unknown(app);
    let campaign = campaign(app, &client, &args).await?;
    if let Some(agent) = args.agent.as_deref().filter(|_| !args.detach && !args.keep)
        && prompt.as_deref().and_then(reset_word) == Some("")
    {
        return begin_anew(app, &client, &campaign, agent, args.key).await;
    }
    if !args.detach {
        refuse_while_halted(&client).await?;
    }
    let mut request = request(app, &args, &campaign, prompt);
    if !args.detach {
        // Something is left for the session, which then says itself that it had no time.
        let left = |limit: Duration| limit.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        request.timeout = request.timeout.map(left);
        request.timeout_counts_waiting = true;
    }
    let wanted = stream::Wanted {
        keep: args.keep,
        approve: request.approve,
        verbose: app.ui.is_verbose(),
        check: args.check.clone().map(|command| Check {
            command,
            retries: args.retries,
            until: args.timeout.map(|limit| began + limit),
        }),
        fail_on_denied: args.fail_on_denied,
        // Before the agent can have touched anything.
        before: match app.ui.is_json() && !args.detach && app.node().is_none() && args.worktree.is_none() {
            true => changes::look(app, &client, &campaign).await,
            false => None,
        },
    };
    let session = client.create_session(request).await?;
    app.touched(&session.id);
    if args.detach {
        detached(app, &campaign, &session)?;
        return Ok(exit_code::OK);
    }
    stream::follow(app, &client, &campaign, &session, wanted).await
}

/// Nothing is said but that the agent's conversation begins anew, so that nothing is started: as with a message.
async fn begin_anew(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    agent: &str,
    key: Option<Key>,
) -> Result<u8, Failure> {
    let agent = match client.agent(&format!("{}/{agent}", campaign.name)).await {
        Ok(here) => here,
        Err(_) => client.agent(agent).await?,
    };
    let message = SendMessage {
        who: agent.id.to_string(),
        key: Some(key.unwrap_or_else(Key::main)),
        text: "/new".to_owned(),
        ..SendMessage::default()
    };
    match client.send_message(message).await? {
        Taken::Reset(fresh) => send::reset(app, client, fresh).await,
        Taken::Sent(_) => Ok(exit_code::OK),
    }
}

/// A halted session waits for the release, which may take days. Who waits for its answer is told at once.
async fn refuse_while_halted(client: &Client) -> Result<(), Failure> {
    let Some(halt) = client.status().await?.halt else { return Ok(()) };
    let ago = words::age(words::now().since(halt.since));
    let why = if halt.why.is_empty() { String::new() } else { format!(": {}", halt.why) };
    let word = if halt.freeze { "frozen" } else { "halted" };
    Err(Refusal::new(Reason::Halted, format!("all agents are {word}, so nothing was started"))
        .because(format!("by {} {ago} ago{why}", halt.by.0))
        .hint("ostler halt --release", "lets agents start and go on")
        .hint("ostler run -d \"…\"", "has one start as soon as that is done")
        .into())
}

fn request(app: &App, args: &RunArgs, campaign: &Campaign, prompt: Option<String>) -> CreateSession {
    let person = args.detach || app.ui.has_person();
    let when_used_up = if person { WhenUsedUp::Hold } else { WhenUsedUp::Stop };
    CreateSession {
        model: args.model.clone(),
        name: args.name.clone(),
        agent: args.agent.clone(),
        key: args.key.clone(),
        worktree: args.worktree.clone().map(|branch| Wanted { branch }),
        auth_profile: args.auth_profile.clone(),
        initial_message: prompt,
        budget: args.budget.map(|amount| Budget::new(amount, when_used_up)),
        when_used_up,
        timeout: args.timeout,
        restart: args.restart,
        approve: match args.approve {
            ApproveMode::All => Approve::All,
            ApproveMode::Policy if !person => Approve::Nobody,
            ApproveMode::Policy => Approve::Policy,
            ApproveMode::Ask => Approve::Ask,
        },
        // Whoever detaches comes back to talk; whoever waits for the answer wants no process left behind it, but where the
        // work is checked the agent may have to hear of it.
        ends_with_turn: !args.keep && !args.detach && args.check.is_none(),
        environment: environment(&args.env, env::var(TRACEPARENT).ok()),
        provider_config: args.config.iter().cloned().collect(),
        ticket: args.ticket.clone(),
        priority: args.priority,
        ..CreateSession::new(campaign.id.to_string(), args.provider.as_deref().unwrap_or_default())
    }
}

/// What the agent is told, and the trace that this process is in, if anybody has begun one.
fn environment(told: &[(String, String)], traceparent: Option<String>) -> BTreeMap<String, String> {
    let of_caller = traceparent.filter(|text| Context::parse(text).is_some());
    let of_caller = of_caller.map(|text| (TRACEPARENT.to_owned(), text));
    of_caller.into_iter().chain(told.iter().cloned()).collect()
}

/// The campaign to act in: the one named, or the one around the working directory.
async fn campaign(app: &App, client: &Client, args: &RunArgs) -> Result<Campaign, Failure> {
    if let Some(who) = args.campaign.as_deref().filter(|who| !who.is_empty()) {
        return Ok(client.campaign(&app.campaign_operand(who)?).await?);
    }
    if let Some(node) = app.node() {
        return Err(Refusal::invalid(format!("which campaign of {node} is meant?"))
            .hint(format!("ostler campaign ls --node {node}"), "lists them; run takes one with -C NAME")
            .into());
    }
    campaign_here(app, client, args.here).await
}

/// The campaign around the working directory. `here`: which is made one if it is none; else a person is asked.
pub(super) async fn campaign_here(app: &App, client: &Client, here: bool) -> Result<Campaign, Failure> {
    let is_wanted = here;
    let here = absolute(".")?;
    let outside = match client.campaign(&here).await.map_err(Failure::from) {
        Err(failure) if failure.reason() == Some(Reason::CampaignUnknown) => failure,
        found => return found,
    };
    let root = git_root(&here);
    let shown = words::path(&root, person_home().as_deref());
    let question = format!("{shown} is no campaign yet. May agents read and write there?");
    if is_wanted || input::agrees(&app.ui, &question) {
        let campaign = client.add_campaign(AddCampaign { path: root, name: None }).await?;
        // Also where only data is wanted: what agents may write from now on is not kept from anybody.
        app.ui.say(
            &Line::of("campaign ")
                .strong(campaign.name.as_str())
                .plain(format!("  {shown}"))
                .faint("  (added)"),
        );
        return Ok(campaign);
    }
    let Failure::Refused(refusal) = outside else { return Err(outside) };
    let here = words::path(&here, person_home().as_deref());
    let refusal = Refusal { message: format!("{here} is in no campaign"), hints: Vec::new(), ..*refusal };
    Err(refusal
        .hint("ostler campaign add .", "agents may then read and write here")
        .hint(with_here(std::env::args()), "the same in one go")
        .into())
}

/// What was typed, with the flag that makes a campaign of where it was typed. Long words, as of a prompt, are left out.
fn with_here(typed: impl Iterator<Item = String>) -> String {
    let shown = |word: String| match word.len() < 40 {
        true => ostler_domain::text::shell_word(&word),
        false => "\"…\"".to_owned(),
    };
    let rest: Vec<String> = typed.skip_while(|word| word != "run").skip(1).map(shown).collect();
    let rest = if rest.is_empty() { "\"…\"".to_owned() } else { rest.join(" ") };
    format!("ostler run --here {rest}")
}

pub(crate) fn detached(app: &App, campaign: &Campaign, session: &Session) -> Result<(), Failure> {
    let ui = &app.ui;
    if ui.is_json() {
        return ui.json(&SessionForm::new(session, campaign.name.as_str()));
    }
    ui.data(&Line::of(session.id.to_string()))?;
    ui.remark(&header(campaign, session));
    for (command, effect) in [("logs -f", "follows it"), ("attach", "talks to it"), ("stop", "ends it")] {
        let command = format!("ostler {command} {}", session.id.short());
        ui.remark(
            &Line::of("  ").append(Line::toned(Tone::Accent, command).padded(22)).plain("  ").faint(effect),
        );
    }
    Ok(())
}

fn header(campaign: &Campaign, session: &Session) -> Line {
    let model = row::model(session);
    let tree = session.worktree.as_ref().map(|tree| format!("worktree {}", one_line(&tree.branch, 80)));
    Line::of("session ").with(Tone::Accent, session.id.short()).faint(" · ").append(Line::joined([
        Line::new().strong(session.name.as_str()),
        Line::of(format!("{}{model}", session.provider)),
        Line::of(campaign.name.as_str()),
        Line::of(tree.unwrap_or_default()),
        Line::of(format!("sandbox {}", session.sandbox.as_str())),
        Line::of(network(campaign, session)),
    ]))
}

/// Whom the agent reaches. Without a sandbox it is nobody's to say.
fn network(campaign: &Campaign, session: &Session) -> String {
    let policy = &campaign.policy;
    let usual = if session.provider == SCRIPT { NetMode::None } else { NetMode::Provider };
    let more = match policy.net_allow.as_slice() {
        [] => " only".to_owned(),
        hosts => format!(" and {}", words::plural(hosts.len() as u64, "entry of net.allow", "of net.allow")),
    };
    match (session.sandbox, policy.net_mode.unwrap_or(usual)) {
        (Sandbox::Off, _) => String::new(),
        (Sandbox::On, NetMode::None) => "no network".to_owned(),
        (Sandbox::On, NetMode::Provider) => format!("network provider{more}"),
        (Sandbox::On, NetMode::Open) => "network open".to_owned(),
        (Sandbox::On, NetMode::Host) => "the host's network".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_offered_again_with_the_flag_that_was_missing() {
        let again = |words: &[&str]| with_here(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(again(&["ostler", "run", "-p", "codex", "say hi"]), "ostler run --here -p codex 'say hi'");
        assert_eq!(again(&["ostler", "run"]), "ostler run --here \"…\"");
        assert_eq!(again(&["ostler", "run", "-d", &"x".repeat(50)]), "ostler run --here -d \"…\"");
    }
}
