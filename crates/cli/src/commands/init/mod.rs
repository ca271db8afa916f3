//! `ostler init`: the first command on a machine. Looks at what is there, makes a campaign of this directory, and ends with a
//! command to type. At most four questions; whoever cannot be asked has answered them as usual.

mod history;

use std::cell::Cell;

use clap::Args;
use ostler_client::{AddCampaign, Campaign, Client};
use ostler_domain::{
    Reason,
    history::Outside,
    provider::{LACKS_MODEL, SCRIPT, Status, choose},
    readiness::{Readiness, Trial},
};
use serde::Serialize;

use self::history::HistoryForm;
use super::{config, doctor, trial};
use crate::{
    app::{App, absolute, git_root, person_home},
    exit_code,
    failure::Failure,
    form::CampaignForm,
    input,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The directory that agents are to work in [default: this one's git root, else this one]
    path: Option<String>,
    /// Do not ask: take the usual answers
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct InitForm {
    providers: Vec<Status>,
    sandbox_ok: bool,
    sandbox: String,
    campaign: Option<CampaignForm>,
    history: HistoryForm,
    /// Agents that somebody runs already.
    running_outside: Vec<Outside>,
    /// Whether an agent with a model is ready to work.
    ready: bool,
    /// What to type next.
    next: String,
}

pub(crate) async fn run(app: &App, args: InitArgs) -> Result<u8, Failure> {
    let asks = app.ui.has_person() && !app.ui.is_json() && !args.yes;
    let init = Init { app, asks, asked: Cell::new(0) };
    let client = app.client().await?;
    let providers = client.providers().await?;
    init.say("found", Tone::Plain, &found(&providers));
    let readiness = trial::try_sandbox(&app.program.path);
    let sandbox_ok = init.sandbox(&readiness);
    let campaign = init.campaign(&client, args.path.as_deref()).await?;
    let campaign = init.usual_provider(&client, &providers, campaign).await?;
    let (before, history) = init.history(&client).await?;
    init.live(&before.running);
    if let Some(finding) = doctor::logout().filter(doctor::Finding::is_wrong) {
        init.say("logout", Tone::Warn, &format!("agents should outlive your login: {}", finding.cure()));
    }
    let next = next(&providers, campaign.as_ref(), config::current(app)?.provider());
    if app.ui.is_json() {
        let sandbox = trial::words(&readiness);
        let campaign = campaign.as_ref().map(CampaignForm::new);
        app.ui.json(&InitForm {
            providers,
            sandbox_ok,
            sandbox,
            campaign,
            history,
            running_outside: before.running,
            ready: next.is_ready && sandbox_ok,
            next: next.command,
        })?;
    } else {
        for (name, lacks, cure) in &next.lacking {
            init.say("lacks", Tone::Warn, &format!("{name} lacks {lacks}: {cure}"));
        }
        app.ui.data(&next.line(sandbox_ok))?;
    }
    Ok(if sandbox_ok { exit_code::OK } else { exit_code::REFUSED })
}

/// The agent that is a part of Ostler.
const API: &str = "openai-api";
/// More questions than this are a wizard.
const QUESTIONS: u32 = 4;

struct Init<'a> {
    app: &'a App,
    asks: bool,
    /// How many questions were asked so far.
    asked: Cell<u32>,
}

impl Init<'_> {
    fn say(&self, about: &str, tone: Tone, text: &str) {
        self.app.ui.remark(&told(about, tone, text));
    }

    /// Asks for what is usually granted.
    fn usually(&self, about: &str, question: &str) -> bool {
        self.asked.update(|asked| asked + 1);
        !self.asks || input::consents(&self.app.ui, &format!("{about:<10}{question}"))
    }

    fn sandbox(&self, readiness: &Readiness) -> bool {
        match &readiness.trial {
            Trial::Ran { took_us } => {
                let took = words::took(std::time::Duration::from_micros(*took_us));
                self.say("sandbox", Tone::Plain, &format!("ok ({took})"));
                true
            }
            Trial::Refused { hint, .. } => {
                self.say("sandbox", Tone::Bad, &trial::words(readiness));
                if !hint.is_empty() {
                    self.say("", Tone::Accent, hint);
                }
                false
            }
        }
    }

    /// The campaign around the directory, or a new one, with what its agents may use of the machine.
    async fn campaign(&self, client: &Client, path: Option<&str>) -> Result<Option<Campaign>, Failure> {
        let path = match path {
            Some(path) => absolute(path)?,
            None => git_root(&absolute(".")?),
        };
        match client.campaign(&path).await.map_err(Failure::from) {
            Ok(campaign) => {
                let shown = words::path(&campaign.root.path, person_home().as_deref());
                self.say("campaign", Tone::Plain, &format!("{} ({shown}), as it was", campaign.name));
                return Ok(Some(campaign));
            }
            Err(failure) if failure.reason() == Some(Reason::CampaignUnknown) => {}
            Err(failure) => return Err(failure),
        }
        let shown = words::path(&path, person_home().as_deref());
        if !self.usually(
            "campaign",
            &format!("add {shown}? Agents may then read and write there, hidden files excepted"),
        ) {
            return Ok(None);
        }
        let campaign = client.add_campaign(AddCampaign { path, name: None }).await?;
        if !self.asks {
            self.say("campaign", Tone::Plain, &format!("{} ({shown})", campaign.name));
        }
        let campaign = self.tools(client, campaign).await?;
        Ok(Some(self.network(client, campaign).await?))
    }

    /// Toolchains in a person's home, which were granted when the campaign was added.
    async fn tools(&self, client: &Client, campaign: Campaign) -> Result<Campaign, Failure> {
        let tools = campaign.policy.read.clone();
        if tools.is_empty() {
            self.say("tools", Tone::Plain, "the system's own; none found in your home");
            return Ok(campaign);
        }
        let named: Vec<&str> = tools.iter().map(|tool| tool.trim_start_matches('@')).collect();
        let named = named.join(", ");
        if self.usually("tools", &format!("{named} found in your home: readable inside, yes?")) {
            if !self.asks {
                self.say("tools", Tone::Plain, &format!("{named} found in your home: readable inside"));
            }
            return Ok(campaign);
        }
        let without = tools.iter().map(|tool| format!("read-={tool}")).collect();
        Ok(client.set_campaign(&campaign.id.to_string(), without).await?)
    }

    /// Where several agents are ready, one is offered as the usual one of the campaign. The history is asked for after it.
    async fn usual_provider(
        &self,
        client: &Client,
        providers: &[Status],
        campaign: Option<Campaign>,
    ) -> Result<Option<Campaign>, Failure> {
        let Some(campaign) = campaign else { return Ok(None) };
        let several = several(providers, &campaign, config::current(self.app)?.provider());
        let [first, _, ..] = several.as_slice() else { return Ok(Some(campaign)) };
        let question = format!("{} are ready: {first} usually, in {}?", several.join(", "), campaign.name);
        if !self.asks || self.asked.get() + 1 >= QUESTIONS || !self.usually("agent", &question) {
            return Ok(Some(campaign));
        }
        Ok(Some(client.set_campaign(&campaign.id.to_string(), vec![format!("provider={first}")]).await?))
    }

    /// Registries are only offered where somebody said which hosts they are: else no session could start.
    async fn network(&self, client: &Client, campaign: Campaign) -> Result<Campaign, Failure> {
        let known = config::current(self.app)?.network_presets();
        let is_known = |tool: &&String| tool.strip_prefix('@').is_some_and(|name| known.contains_key(name));
        let presets: Vec<String> = campaign.policy.read.iter().filter(is_known).cloned().collect();
        let only = "model providers only";
        if presets.is_empty() || !self.asks {
            self.say("network", Tone::Plain, only);
            return Ok(campaign);
        }
        let question = format!("{:<10}{only}; package registries {} too?", "network", presets.join(" "));
        self.asked.update(|asked| asked + 1);
        if !input::agrees(&self.app.ui, &question) {
            return Ok(campaign);
        }
        let granted = presets.iter().map(|preset| format!("net.allow+={preset}")).collect();
        Ok(client.set_campaign(&campaign.id.to_string(), granted).await?)
    }
}

/// The agents of which one is to be chosen: several are ready, and nobody has said which of them is meant.
fn several<'a>(providers: &'a [Status], campaign: &Campaign, usual: Option<&str>) -> Vec<&'a str> {
    if campaign.policy.provider.is_some() || usual.is_some() || choose(providers, false).is_ok() {
        return Vec::new();
    }
    let is_ready = |status: &&Status| status.name != SCRIPT && status.lacks.is_none();
    providers.iter().filter(is_ready).map(|status| status.name.as_str()).collect()
}

fn told(about: &str, tone: Tone, text: &str) -> Line {
    Line::of(format!("{about:<10}")).with(tone, text)
}

/// What to type next.
#[derive(Debug, PartialEq, Eq)]
struct Next {
    is_ready: bool,
    command: String,
    remark: Option<String>,
    /// What keeps agents whose programs are there from working: name, what, and the cure.
    lacking: Vec<(String, String, String)>,
}

impl Next {
    /// `Ready.    ostler run "…" · ostler search "…" · ostler top · ostler open`
    fn line(&self, sandbox_ok: bool) -> Line {
        let word = if self.is_ready && sandbox_ok { "Ready." } else { "Next." };
        let others = ["ostler search \"…\"", "ostler top", "ostler open"];
        let line = told(word, Tone::Accent, &self.command);
        let line = others.iter().fold(line, |line, other| line.faint(" · ").with(Tone::Accent, *other));
        line.faint(self.remark.as_ref().map(|remark| format!("   {remark}")).unwrap_or_default())
    }
}

/// `usual` is the machine's own agent, where it has one.
fn next(providers: &[Status], campaign: Option<&Campaign>, usual: Option<&str>) -> Next {
    let is_ready = |status: &&Status| status.name != SCRIPT && status.lacks.is_none();
    let lacking = providers.iter().filter(|status| status.problem.is_none()).filter_map(|status| {
        Some((status.name.clone(), status.lacks.clone()?, status.cure.clone().unwrap_or_default()))
    });
    let Some(campaign) = campaign else {
        return Next {
            is_ready: false,
            command: "ostler campaign add .".to_owned(),
            remark: Some("agents work in campaigns".to_owned()),
            lacking: Vec::new(),
        };
    };
    let run = |more: &str| format!("ostler run{more} \"…\"");
    if let Some(name) = campaign.policy.provider.as_deref().or(usual)
        && let Some((lacks, cure)) = lacking_of(providers, name, campaign.policy.model.is_some())
    {
        return Next {
            is_ready: false,
            command: cure,
            remark: Some(format!("{name}, the usual agent here, lacks {lacks}")),
            lacking: Vec::new(),
        };
    }
    let is_said = campaign.policy.provider.is_some() || usual.is_some();
    if is_said || choose(providers, false).is_ok() {
        return Next { is_ready: true, command: run(""), remark: None, lacking: Vec::new() };
    }
    match providers.iter().find(is_ready) {
        Some(first) => Next {
            is_ready: true,
            command: run(&format!(" -p {}", first.name)),
            remark: Some(format!(
                "ostler campaign set {} provider={} makes it the usual one",
                campaign.name, first.name
            )),
            lacking: Vec::new(),
        },
        None => Next {
            is_ready: false,
            command: run(&format!(" -p {SCRIPT}")),
            remark: Some(format!(
                "no agent is ready: this one is scripted and calls no model{}",
                with_a_key(providers).unwrap_or_default()
            )),
            lacking: lacking.collect(),
        },
    }
}

/// The agent that needs no program, where nothing but a key in the environment and the name of a model is to be said.
fn with_a_key(providers: &[Status]) -> Option<String> {
    let lacks = providers.iter().find(|status| status.name == API)?.lacks.as_deref()?;
    let run = format!("ostler run -p {API} -m MODEL \"…\" calls one");
    Some(match lacks == LACKS_MODEL {
        true => format!("; {run}"),
        false => format!("; with OPENAI_API_KEY in the environment, {run}"),
    })
}

/// What keeps the one agent that is meant from working, and the cure.
fn lacking_of(providers: &[Status], name: &str, is_model_named: bool) -> Option<(String, String)> {
    let look = || "ostler provider ls".to_owned();
    let Some(status) = providers.iter().find(|status| status.name == name) else {
        return Some(("everything: there is no such provider".to_owned(), look()));
    };
    let lacks = status.lacks.clone().filter(|lacks| !is_model_named || lacks != LACKS_MODEL)?;
    Some((lacks, status.cure.clone().unwrap_or_else(look)))
}

/// `claude-code 2.1.325 (its login), codex 0.166.0 (not logged in) · not found: openclaw`
fn found(providers: &[Status]) -> String {
    let name = |status: &Status| {
        let version = status.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let key = match &status.lacks {
            Some(lacks) => format!("lacks {lacks}"),
            None => status.key.clone(),
        };
        format!("{}{version} ({key})", status.name)
    };
    let others = providers.iter().filter(|status| status.name != SCRIPT);
    let (missing, there): (Vec<_>, Vec<_>) =
        others.partition(|status| status.problem.is_some() && status.program.is_none());
    let there: Vec<String> = there.into_iter().map(name).collect();
    let missing: Vec<&str> = missing.iter().map(|status| status.name.as_str()).collect();
    let missing =
        if missing.is_empty() { String::new() } else { format!(" · not found: {}", missing.join(", ")) };
    format!("{}{missing}", there.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn status(name: &str, lacks: Option<&str>, problem: bool) -> Status {
        Status {
            name: name.to_owned(),
            version: (!problem).then(|| "2.1.325".to_owned()),
            problem: problem.then(|| "not found".to_owned()),
            lacks: lacks.map(str::to_owned),
            cure: lacks.map(|_| format!("ostler provider login {name}")),
            key: "its login".to_owned(),
            ..Status::default()
        }
    }

    #[test]
    fn what_is_there_is_said() {
        let all = [
            status("claude-code", None, false),
            status("codex", Some("a login or a key"), false),
            status("openclaw", Some("its program"), true),
            status(SCRIPT, None, false),
        ];
        assert_eq!(
            found(&all),
            "claude-code 2.1.325 (its login), codex 2.1.325 (lacks a login or a key) · not found: openclaw"
        );
    }

    #[test]
    fn in_all_looks() {
        let campaign = testing::campaign();
        let (claude, codex) = (status("claude-code", None, false), status("codex", None, false));
        let (script, gone) = (status(SCRIPT, None, false), status("openclaw", Some("its program"), true));
        let ends = [
            next(&[claude.clone(), script.clone()], Some(&campaign), None),
            next(&[claude.clone(), codex.clone(), script.clone()], Some(&campaign), None),
            next(&[script.clone(), gone.clone()], Some(&campaign), None),
            next(&[], None, None),
        ];
        insta::assert_snapshot!(testing::in_all_looks(|look| {
            let mut lines =
                vec![told("found", Tone::Plain, &found(&[claude.clone(), codex.clone(), gone.clone()]))];
            lines.extend(ends.iter().map(|next| next.line(true)));
            lines.push(ends[0].line(false));
            lines.iter().flat_map(|line| line.folded(look.width, 10)).collect()
        }));
    }

    #[test]
    fn what_is_too_old_is_not_said_to_be_missing() {
        let old = Status {
            program: Some("/usr/bin/codex".to_owned()),
            version: Some("0.1.0".to_owned()),
            ..status("codex", Some("a newer program (too old: 0.1.0, needs 0.100.0)"), true)
        };
        assert_eq!(found(&[old]), "codex 0.1.0 (lacks a newer program (too old: 0.1.0, needs 0.100.0))");
    }

    #[test]
    fn one_of_several_that_are_ready_is_offered_where_none_is_meant() {
        let campaign = testing::campaign();
        let (claude, codex) = (status("claude-code", None, false), status("codex", None, false));
        let script = status(SCRIPT, None, false);
        assert_eq!(
            several(&[claude.clone(), codex.clone(), script.clone()], &campaign, None),
            ["claude-code", "codex"]
        );
        assert!(several(&[claude.clone(), script], &campaign, None).is_empty());
        assert!(several(&[claude.clone(), codex.clone()], &campaign, Some("codex")).is_empty());
        let mut decided = campaign;
        decided.policy.provider = Some("codex".to_owned());
        assert!(several(&[claude, codex], &decided, None).is_empty());
    }

    #[test]
    fn it_ends_with_a_command_that_works() {
        let campaign = testing::campaign();
        let script = status(SCRIPT, None, false);
        let command = |providers: &[Status]| {
            let next = next(providers, Some(&campaign), None);
            (next.is_ready, next.command, next.lacking.len())
        };
        let claude = status("claude-code", None, false);
        let codex = status("codex", Some("a login or a key"), false);
        let run = |more: &str| format!("ostler run{more} \"…\"");
        assert_eq!(command(&[claude.clone(), codex.clone(), script.clone()]), (true, run(""), 0));
        let ready = status("codex", None, false);
        assert_eq!(command(&[claude, ready, script.clone()]), (true, run(" -p claude-code"), 0));
        let gone = status("openclaw", Some("its program"), true);
        assert_eq!(command(&[codex, gone, script]), (false, run(" -p script"), 1));
        assert_eq!(next(&[], None, None).command, "ostler campaign add .");
    }

    #[test]
    fn where_none_is_ready_a_key_in_the_environment_is_named_too() {
        let campaign = testing::campaign();
        let remark = |lacks| next(&[status(API, Some(lacks), false)], Some(&campaign), None).remark.unwrap();
        let said = remark("a key or a base_url");
        assert!(
            said.contains("scripted") && said.contains("with OPENAI_API_KEY in the environment"),
            "{said}"
        );
        assert!(said.ends_with("ostler run -p openai-api -m MODEL \"…\" calls one"), "{said}");
        assert!(!remark(LACKS_MODEL).contains("OPENAI_API_KEY"), "it is there");
    }

    #[test]
    fn the_usual_agent_is_ready_only_if_it_lacks_nothing() {
        let mut campaign = testing::campaign();
        let ready = status("claude-code", None, false);
        let codex = status("codex", Some("a login or a key"), false);
        let api = status("openai-api", Some(LACKS_MODEL), false);
        let all = [ready, codex, api];
        let end = |campaign: &Campaign, usual| {
            let next = next(&all, Some(campaign), usual);
            (next.is_ready, next.command)
        };
        let run = || "ostler run \"…\"".to_owned();
        assert_eq!(end(&campaign, Some("claude-code")), (true, run()));
        assert_eq!(end(&campaign, Some("codex")), (false, "ostler provider login codex".to_owned()));
        assert_eq!(end(&campaign, Some("acp:gone")), (false, "ostler provider ls".to_owned()));
        campaign.policy.provider = Some("claude-code".to_owned());
        assert_eq!(
            end(&campaign, Some("codex")),
            (true, run()),
            "the campaign's counts before the machine's"
        );
        campaign.policy.provider = Some("openai-api".to_owned());
        assert!(!end(&campaign, None).0);
        campaign.policy.model = Some("qwen3".to_owned());
        assert_eq!(end(&campaign, None), (true, run()), "the campaign says which model");
    }
}
