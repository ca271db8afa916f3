//! `ostler provider test`: whether one starts in its sandbox, what it can do, and with `--ask` whether it answers.

use std::collections::BTreeMap;

use clap::Args;
use ostler_client::{Campaign, Client};
use ostler_domain::{
    Reason, Refusal, Usage,
    policy::NetMode,
    provider::{
        CAPABILITIES, Status,
        trial::{Asked, COMMAND, Works},
    },
};
use serde::Serialize;

use super::{
    token_words,
    trial::{self, READY_WITHIN, Tried},
};
use crate::{
    app::{App, person_home},
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Its name
    name: String,
    /// The campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN", default_value = ".")]
    campaign: String,
    /// Ask its model one small thing too, which costs some tokens: whether it answers, runs a tool and asks for leave
    #[arg(long)]
    ask: bool,
}

impl TestArgs {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Serialize)]
struct TestForm {
    provider: String,
    ok: bool,
    ready_ms: Option<u64>,
    session: String,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    program: Option<String>,
    version: Option<String>,
    /// Each of the words, and whether it holds.
    can: BTreeMap<&'static str, bool>,
    usage_sources: Vec<String>,
    /// Where its key is found; never the key.
    key: String,
    net_mode: Option<NetMode>,
    net_allow: Vec<String>,
    /// What came of asking it.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<Asked>,
}

pub(super) async fn run(app: &App, client: &Client, status: Status, args: &TestArgs) -> Result<u8, Failure> {
    if let Some(problem) = status.problem {
        let refusal = Refusal::new(Reason::ProviderMissing, problem);
        let cure = status.cure.unwrap_or_else(|| format!("ostler provider show {}", status.name));
        return Err(refusal.hint(cure, "makes it startable").into());
    }
    let campaign = client.campaign(&app.campaign_operand(&args.campaign)?).await?;
    let tried = trial::run(client, &status.name, &campaign.id.to_string(), args.ask, READY_WITHIN).await?;
    let code = if tried.is_ok() { exit_code::OK } else { exit_code::PROVIDER };
    if app.ui.is_json() {
        app.ui.json(&form(status, &campaign, tried))?;
        return Ok(code);
    }
    app.ui.fields(&lines(&status, &campaign, &tried))?;
    if !tried.is_ok() {
        app.ui.remark(&Line::of("  ").with(Tone::Accent, format!("ostler logs {}", tried.session.short())));
    }
    Ok(code)
}

fn form(status: Status, campaign: &Campaign, tried: Tried) -> TestForm {
    let can = CAPABILITIES.into_iter().map(|word| (word, has(&status, word))).collect();
    TestForm {
        ok: tried.is_ok(),
        ready_ms: tried.ready.map(|ready| u64::try_from(ready.as_millis()).unwrap_or(u64::MAX)),
        session: tried.session.to_string(),
        problem: tried.problem,
        can,
        net_mode: net_mode(&status, campaign),
        net_allow: campaign.policy.net_allow.clone(),
        provider: status.name,
        program: status.program,
        version: status.version,
        usage_sources: status.usage_sources,
        key: status.key,
        asked: tried.asked,
    }
}

fn has(status: &Status, word: &str) -> bool {
    status.capabilities.iter().any(|can| can == word)
}

/// What the campaign says holds; else what is usual for the provider.
fn net_mode(status: &Status, campaign: &Campaign) -> Option<NetMode> {
    campaign.policy.net_mode.or(status.net_mode)
}

fn lines(status: &Status, campaign: &Campaign, tried: &Tried) -> Vec<Line> {
    let name = match &status.version {
        Some(version) => format!(" {} {version}", status.name),
        None => format!(" {}", status.name),
    };
    let head = match (tried.ready, &tried.problem) {
        (_, Some(problem)) => Line::toned(Tone::Bad, "✗").plain(format!("{name}  {problem}")),
        (ready, None) => {
            let called = if tried.asked.is_some() { "" } else { "; no model was called" };
            let took = ready.map(words::took).unwrap_or_default();
            let mark = if tried.is_ok() { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
            Line::toned(mark.0, mark.1)
                .plain(name)
                .faint(format!("  ready in its sandbox after {took}{called}"))
        }
    };
    let program = match &status.program {
        Some(program) => words::path(program, person_home().as_deref()),
        None => "built in".to_owned(),
    };
    let can: Vec<String> = CAPABILITIES
        .into_iter()
        .map(|word| format!("{} {}", word.replace('_', " "), if has(status, word) { "yes" } else { "no" }))
        .collect();
    let mut facts = vec![
        ("program", Line::of(program)),
        ("key", Line::of(&status.key)),
        ("network", Line::of(network_words(status, campaign))),
        ("can", Line::of(can.join(" · "))),
        ("tokens", Line::of(token_words(status))),
    ];
    if let Some(asked) = &tried.asked {
        facts.extend(asked_lines(asked));
    }
    let facts = facts.into_iter().map(|(name, fact)| Line::of(format!("{name:<9}")).append(fact));
    std::iter::once(head).chain(facts).collect()
}

fn network_words(status: &Status, campaign: &Campaign) -> String {
    let is_metered = status.usage_sources.iter().any(|source| source == "wire");
    let mode = match net_mode(status, campaign) {
        None => "as the daemon says",
        Some(NetMode::None) => "none",
        Some(NetMode::Provider) if is_metered => "its model alone, through its gateway",
        Some(NetMode::Provider) => "its model's hosts alone, through the proxy",
        Some(NetMode::Open) => "every public host, through the proxy",
        Some(NetMode::Host) => "the machine's own",
    };
    let allowed = match campaign.policy.net_allow.as_slice() {
        [] => String::new(),
        hosts => format!("; and {}", hosts.join(", ")),
    };
    format!("{mode}{allowed} (campaign {})", campaign.name)
}

fn asked_lines(asked: &Asked) -> Vec<(&'static str, Line)> {
    let answer = match (asked.answered_ms, &asked.answer) {
        (Some(ms), answer) => {
            let took = words::took(std::time::Duration::from_millis(ms));
            Line::of(format!("after {took}: {}", answer.as_deref().unwrap_or_default()))
        }
        (None, _) => Line::toned(Tone::Bad, "none"),
    };
    let verdict = |works: Works, yes: &str, no: &str, not_tried: &str| {
        let (tone, why) = match works {
            Works::Yes => (Tone::Plain, yes),
            Works::No => (Tone::Bad, no),
            Works::NotTried => (Tone::Faint, not_tried),
        };
        Line::toned(tone, format!("{}: {why}", works.as_str()))
    };
    let not_tried = "its model did not call the tool";
    vec![
        ("answer", answer),
        ("used", Line::of(used_words(asked))),
        (
            "tool",
            verdict(asked.tool_call, &format!("it ran {COMMAND}"), &format!("{COMMAND} failed"), not_tried),
        ),
        (
            "approval",
            verdict(
                asked.approval,
                "it asked for leave, and was given it",
                "it ran the command without asking",
                not_tried,
            ),
        ),
    ]
}

/// `on the wire 1.2k tokens, in its report the same`
fn used_words(asked: &Asked) -> String {
    let tokens = |usage: &Usage| {
        let read = usage.input + usage.cache_read + usage.cache_write;
        format!("{} in and {} out", words::number(read), words::number(usage.output))
    };
    match (&asked.wire, &asked.report) {
        (None, None) => "nobody told of tokens".to_owned(),
        (Some(wire), None) => format!("{} on the wire; nothing in its report", tokens(wire)),
        (None, Some(report)) => format!("{} in its report; nothing on the wire", tokens(report)),
        (Some(wire), Some(report)) if wire == report => {
            format!("{} on the wire, and the same in its report", tokens(wire))
        }
        (Some(wire), Some(report)) => {
            format!("{} on the wire, {} in its report", tokens(wire), tokens(report))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing;

    fn status() -> Status {
        Status {
            name: "claude-code".to_owned(),
            program: Some("/usr/bin/claude".to_owned()),
            version: Some("2.1.325".to_owned()),
            key: "the variable ANTHROPIC_API_KEY".to_owned(),
            capabilities: ["resume", "steer", "approvals"].map(str::to_owned).to_vec(),
            usage_sources: vec!["wire".to_owned(), "report".to_owned()],
            net_mode: Some(NetMode::Provider),
            ..Status::default()
        }
    }

    fn tried(asked: Option<Asked>) -> Tried {
        let session = testing::session(1, "trial").id;
        Tried { session, ready: Some(Duration::from_millis(1_240)), asked, problem: None, waits: false }
    }

    fn asked() -> Asked {
        let usage = Usage { input: 1_204, cache_read: 3_000, output: 12, ..Usage::default() };
        Asked {
            answered_ms: Some(900),
            answer: Some("ready".to_owned()),
            wire: Some(usage),
            report: Some(usage),
            tool_call: Works::Yes,
            approval: Works::Yes,
        }
    }

    fn shown(campaign: &Campaign, tried: &Tried) -> String {
        testing::in_all_looks(|look| testing::folded(&lines(&status(), campaign, tried), look))
    }

    #[test]
    fn what_works_is_told_word_by_word() {
        let campaign = testing::campaign();
        insta::assert_snapshot!(shown(&campaign, &tried(None)));
        insta::assert_snapshot!(shown(&campaign, &tried(Some(asked()))));
        let said = serde_json::to_value(form(status(), &campaign, tried(Some(asked())))).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&said).unwrap());
    }

    #[test]
    fn what_does_not_work_is_told_with_its_reason() {
        let mut campaign = testing::campaign();
        campaign.policy.net_mode = Some(NetMode::None);
        let bold = Asked { approval: Works::No, report: None, ..asked() };
        let idle = Asked { tool_call: Works::NotTried, approval: Works::NotTried, ..asked() };
        let silent = Tried {
            problem: Some("the model's server answered 401".to_owned()),
            ..tried(Some(Asked { answered_ms: None, answer: None, wire: None, report: None, ..idle.clone() }))
        };
        assert!(!tried(Some(bold.clone())).is_ok() && tried(Some(idle.clone())).is_ok() && !silent.is_ok());
        for one in [tried(Some(bold)), tried(Some(idle)), silent] {
            insta::assert_snapshot!(shown(&campaign, &one));
        }
    }
}
