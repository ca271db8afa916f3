//! `ostler campaign apply FILE`: campaigns and their agents as a file declares them. What the file does not say stays as it is.

mod agents;

use std::{collections::BTreeMap, fs};

use clap::Args;
use ostler_client::{AddCampaign, Agent, Campaign, Client};
use ostler_domain::{
    Name, Policy, Reason, Refusal,
    limits::PAGE_MOST,
    policy::{Origin, PolicyLine},
    query::Page,
};
use serde::Serialize;
use toml_edit::{Item, TableLike, Value};

use crate::{
    app::{App, absolute, person_home},
    exit_code,
    failure::Failure,
    input,
    listing::Found,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// A TOML file with [campaigns.NAME] sections: path, and the keys of `campaign set`; in [campaigns.NAME.agents.AGENT] those of
    /// `agent set`; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// A campaign as it is declared.
#[derive(Debug, PartialEq)]
struct Declared {
    name: Name,
    path: String,
    /// `KEY=VALUE` and `KEY+=VALUE`, as they would be typed.
    settings: Vec<String>,
    agents: Vec<agents::Declared>,
}

/// What is to be done about one.
#[derive(Debug, PartialEq, Serialize)]
struct Step {
    campaign: String,
    path: String,
    is_new: bool,
    changes: Vec<Difference>,
    agents: Vec<agents::Step>,
    #[serde(skip)]
    settings: Vec<String>,
}

impl Step {
    fn is_change(&self) -> bool {
        self.is_new || !self.changes.is_empty() || self.agents.iter().any(agents::Step::is_change)
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    key: &'static str,
    before: String,
    after: String,
}

#[derive(Serialize)]
struct Applied<'a> {
    applied: bool,
    campaigns: &'a [Step],
    /// Campaigns that the file does not name: they stay as they are.
    others: u64,
}

pub(super) async fn run(app: &App, client: &Client, args: ApplyArgs) -> Result<u8, Failure> {
    let text = match args.file.as_str() {
        "-" => std::io::read_to_string(std::io::stdin().lock()),
        file => fs::read_to_string(file),
    }
    .map_err(|error| {
        Refusal::invalid(format!("{} cannot be read", args.file))
            .because(error.to_string())
            .hint("ostler campaign apply FILE", "reads a file of campaigns; - is standard input")
            .hint("ostler help campaign apply", "shows what may be in it")
    })?;
    let declared = declared(&text)?;
    let there = client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
    let mut steps = Vec::with_capacity(declared.len());
    for one in &declared {
        steps.push(step(one, &there, &agents_of(client, one, &there).await?)?);
    }
    let others =
        there.iter().filter(|one| declared.iter().all(|other| other.name != one.name)).count() as u64;
    let changes: Vec<&Step> = steps.iter().filter(|step| step.is_change()).collect();
    if !app.ui.is_json() && !app.ui.is_quiet() {
        app.ui.data_lines(&lines(&steps, others))?;
    }
    let wanted = !args.dry_run && !changes.is_empty();
    if wanted && !args.yes && !agreed(app, changes.len() as u64)? {
        return Ok(exit_code::OK);
    }
    if wanted {
        for step in changes {
            make(client, step).await?;
        }
    }
    if app.ui.is_json() {
        app.ui.json(&Applied { applied: wanted, campaigns: &steps, others })?;
    } else if wanted {
        let settings: Vec<String> =
            steps.iter().flat_map(|step| &step.changes).map(|change| format!("{}=", change.key)).collect();
        let when = super::from_when(&settings);
        app.ui.remark(&Line::toned(Tone::Good, "applied").faint(format!("   {when}")));
    }
    Ok(exit_code::OK)
}

/// The agents that a campaign has, where the file says something of them.
async fn agents_of(client: &Client, declared: &Declared, there: &[Campaign]) -> Result<Vec<Agent>, Failure> {
    let known = there.iter().find(|campaign| campaign.name == declared.name);
    let Some(known) = known.filter(|_| !declared.agents.is_empty()) else { return Ok(Vec::new()) };
    let campaign = known.id.to_string();
    let ask = async |page| client.agents(Some(&campaign), page).await;
    Ok(Found::paged(None, None, ask).await?.rows)
}

fn agreed(app: &App, changes: u64) -> Result<bool, Refusal> {
    if !app.ui.has_person() || app.ui.is_json() {
        return Err(Refusal::invalid("nobody is here to be asked whether this is wanted")
            .hint("ostler campaign apply FILE -y", "does it without asking")
            .hint("ostler campaign apply FILE --dry-run", "only shows what would change"));
    }
    let question = format!("Change {}?", words::plural(changes, "campaign", "campaigns"));
    Ok(input::agrees(&app.ui, &question))
}

async fn make(client: &Client, step: &Step) -> Result<(), Failure> {
    let mut who = step.campaign.clone();
    if step.is_new {
        let name = step.campaign.parse().ok();
        who = client.add_campaign(AddCampaign { path: step.path.clone(), name }).await?.id.to_string();
    }
    if !step.settings.is_empty() {
        client.set_campaign(&who, step.settings.clone()).await?;
    }
    for agent in step.agents.iter().filter(|agent| agent.is_change()) {
        agent.make(client, &who).await?;
    }
    Ok(())
}

/// What differs between a campaign that is there, or none, and the one that is declared.
fn step(declared: &Declared, there: &[Campaign], agents: &[Agent]) -> Result<Step, Failure> {
    let Declared { name, path, settings, .. } = declared;
    let known = there.iter().find(|campaign| campaign.name == *name);
    if let Some(known) = known
        && fs::canonicalize(path).is_ok_and(|real| real.to_str() != Some(known.root.path.as_str()))
    {
        return Err(Refusal::new(
            Reason::CampaignExists,
            format!("campaign {name} is at {}", known.root.path),
        )
        .because(format!("the file says {path}"))
        .hint(format!("ostler campaign relink {name} {path}"), "says that it is there now")
        .into());
    }
    let before = known.map(|campaign| campaign.policy.clone()).unwrap_or_default();
    let after = before.changed_by(settings).map_err(|fault| {
        Refusal::invalid(format!("campaigns.{name}: {fault}"))
            .hint("ostler campaign show", "shows all keys and their values")
    })?;
    let changes = differences(&before, &after);
    let settings = if changes.is_empty() { Vec::new() } else { settings.clone() };
    let agents =
        declared.agents.iter().map(|one| agents::step(name, one, agents)).collect::<Result<_, _>>()?;
    let (campaign, is_new) = (name.to_string(), known.is_none());
    Ok(Step { campaign, path: path.clone(), is_new, changes, agents, settings })
}

fn differences(before: &Policy, after: &Policy) -> Vec<Difference> {
    // Where the campaign adds to what is always there, what it adds is what differs.
    let said = |lines: Vec<PolicyLine>| -> BTreeMap<&'static str, (Origin, String)> {
        lines.into_iter().map(|line| (line.key, (line.origin, line.value))).collect()
    };
    let (before, after) = (said(before.lines()), said(after.lines()));
    let words = |(origin, value): &(Origin, String)| match origin {
        Origin::Default => format!("default ({value})"),
        Origin::Campaign => value.clone(),
    };
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    changed
        .map(|(key, value)| Difference {
            key,
            before: before.get(key).map(words).unwrap_or_default(),
            after: words(value),
        })
        .collect()
}

fn lines(steps: &[Step], others: u64) -> Vec<Line> {
    let home = person_home();
    let mut lines = Vec::new();
    for step in steps {
        let (tone, sign, word) = signed(step.is_new, step.is_change());
        let path = words::path(&step.path, home.as_deref());
        lines.push(
            Line::toned(tone, sign)
                .plain(" ")
                .strong(&step.campaign)
                .plain(format!("  {path}  "))
                .faint(word),
        );
        lines.extend(step.changes.iter().map(|change| changed("    ", change)));
        for agent in &step.agents {
            let (tone, sign, word) = signed(agent.is_new, agent.is_change());
            let line = Line::of("    ").with(tone, sign).plain(" agent ").strong(&agent.agent);
            lines.push(line.plain("  ").faint(word));
            lines.extend(agent.changes.iter().map(|change| changed("        ", change)));
        }
    }
    if others > 0 {
        let one = "campaign is not in the file and stays as it is";
        let several = "campaigns are not in the file and stay as they are";
        lines.push(Line::new().faint(words::plural(others, one, several)));
    }
    lines
}

fn signed(is_new: bool, is_change: bool) -> (Tone, &'static str, &'static str) {
    match (is_new, is_change) {
        (true, _) => (Tone::Good, "+", "new"),
        (false, true) => (Tone::Warn, "~", "changes"),
        (false, false) => (Tone::Faint, "=", "as it is"),
    }
}

fn changed(indent: &str, Difference { key, before, after }: &Difference) -> Line {
    Line::of(format!("{indent}{key}  ")).faint(format!("{before} → ")).strong(after.as_str())
}

/// Reads the file.
fn declared(text: &str) -> Result<Vec<Declared>, Refusal> {
    let document: toml_edit::DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Refusal::invalid("the file is not TOML").because(error.to_string())
    })?;
    if let Some((key, _)) = document.iter().find(|(key, _)| *key != "campaigns") {
        return Err(Refusal::invalid(format!("there is nothing called {key} to be declared"))
            .because("campaigns are, as [campaigns.NAME] with path = \"…\" and the keys of `campaign set`"));
    }
    let campaigns = document.get("campaigns").and_then(Item::as_table_like);
    let campaigns = campaigns.into_iter().flat_map(|campaigns| campaigns.iter());
    campaigns.map(|(name, item)| one(name, item)).collect()
}

fn one(name: &str, item: &Item) -> Result<Declared, Refusal> {
    let wrong = |why: String| Refusal::invalid(format!("campaigns.{name}: {why}"));
    let table = item.as_table_like().ok_or_else(|| wrong("it is no section".to_owned()))?;
    let path = table.get("path").and_then(Item::as_str);
    let path = path.ok_or_else(|| wrong("path = \"DIRECTORY\" is missing".to_owned()))?;
    let path = absolute(&at_home(path)).map_err(|_| wrong(format!("\"{path}\" is no path")))?;
    let mut settings = Vec::new();
    collect("", table, &mut settings).map_err(wrong)?;
    let agents = agents::declared(table.get("agents")).map_err(wrong)?;
    let name = name.parse().map_err(|fault| wrong(format!("it is no name: {fault}")))?;
    Ok(Declared { name, path, settings, agents })
}

/// `~/x` in the home of whoever applies it.
fn at_home(path: &str) -> String {
    match (path.strip_prefix('~'), person_home()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.to_owned(),
    }
}

/// `limits.memory` may be written as a section `limits` with `memory` in it.
fn collect(prefix: &str, table: &dyn TableLike, settings: &mut Vec<String>) -> Result<(), String> {
    for (name, item) in table.iter() {
        let key = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match item {
            _ if key == "path" || key == "agents" => {}
            Item::Value(Value::Array(list)) => {
                settings.push(format!("{key}="));
                for value in list {
                    settings
                        .push(format!("{key}+={}", text(value).ok_or(format!("{key} is a list of texts"))?));
                }
            }
            Item::Value(value) if !value.is_inline_table() => {
                settings.push(format!("{key}={}", text(value).ok_or(format!("{key} is no text"))?));
            }
            section => {
                let below = section.as_table_like().ok_or(format!("{key} is no value"))?;
                collect(&key, below, settings)?;
            }
        }
    }
    Ok(())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(switch) => Some(if *switch.value() { "on" } else { "off" }.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{AgentId, CampaignId, agent::Profile, campaign::Root};

    use super::*;
    use crate::{output::Look, testing::NOW};

    const FILE: &str = r#"
[campaigns.shop]
path = "/"
budget = "25usd/day"
read = ["@rust"]
limits.memory = "8GiB"
ptrace = true

[campaigns.shop.agents.reviewer]
role = "reviewer"
model = "small"
budget = "2usd"

[campaigns.shop.agents.fixer]

[campaigns.site]
path = "/nowhere/site"
[campaigns.site.net]
allow = ["@node"]
"#;

    fn agent(name: &str, settings: &[&str]) -> Agent {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        Agent {
            id: AgentId::new(NOW, 1),
            campaign: CampaignId::new(NOW, 1),
            name: name.parse().unwrap(),
            added: NOW,
            profile: Profile::default().changed_by(&settings).unwrap(),
        }
    }

    fn shop(settings: &[&str]) -> Campaign {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        Campaign {
            id: CampaignId::new(NOW, 1),
            name: "shop".parse().unwrap(),
            root: Root { path: "/".to_owned(), device: 1, inode: 2 },
            added: NOW,
            policy: Policy::default().changed_by(&settings).unwrap(),
            tracked_hidden: Vec::new(),
            unwatched: None,
        }
    }

    fn steps(there: &[Campaign], agents: &[Agent]) -> Vec<Step> {
        declared(FILE).unwrap().iter().map(|one| step(one, there, agents).unwrap()).collect()
    }

    #[test]
    fn what_differs_is_shown_before_it_is_changed() {
        let look = Look::plain(None);
        let there = [shop(&["budget=10usd/day", "read+=@go", "commands+=make"])];
        let agents = [agent("reviewer", &["role=reviewer", "model=large"])];
        let shown: Vec<_> = lines(&steps(&there, &agents), 2).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn what_is_as_declared_is_left_alone() {
        let there =
            [shop(&["budget=25usd/day", "read+=@rust", "limits.memory=8GiB", "ptrace=on", "commands+=make"])];
        let agents = [
            agent("reviewer", &["role=reviewer", "model=small", "budget=2usd", "provider=codex"]),
            agent("fixer", &["model=large"]),
        ];
        let steps = steps(&there, &agents);
        assert!(!steps[0].is_change() && steps[0].settings.is_empty(), "{steps:?}");
        assert!(steps[1].is_new && steps[1].settings == ["net.allow=", "net.allow+=@node"], "{steps:?}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("x", "not TOML"),
            ("[agents.a]", "nothing called agents"),
            ("[campaigns.shop]\nbudget = \"1usd\"", "path = \"DIRECTORY\" is missing"),
            ("[campaigns.\"a b\"]\npath = \"/\"", "it is no name"),
            ("[campaigns.shop]\npath = \"/\"\nread = [1.5]", "list of texts"),
            ("[campaigns.shop]\npath = \"/\"\nagents = 1", "agents are sections"),
            ("[campaigns.shop]\npath = \"/\"\n[campaigns.shop.agents.\"a b\"]", "it is no name"),
        ] {
            let refusal = declared(text).unwrap_err();
            assert!(refusal.message.contains(says), "{text}: {refusal:?}");
        }
        let wrong = declared("[campaigns.shop]\npath = \"/\"\nlimits.memroy = \"1GiB\"").unwrap();
        let refused =
            |declared: &Declared, there: &[Campaign]| step(declared, there, &[]).unwrap_err().to_refusal();
        assert!(refused(&wrong[0], &[]).message.contains("limits.memroy"));
        let of_agent = "[campaigns.shop]\npath = \"/\"\n[campaigns.shop.agents.a]\ncolour = \"red\"";
        let wrong = refused(&declared(of_agent).unwrap()[0], &[]);
        assert!(
            wrong.message.contains("campaigns.shop.agents.a") && wrong.message.contains("colour"),
            "{wrong:?}"
        );
        let mut moved = shop(&[]);
        moved.root.path = "/elsewhere".to_owned();
        let refusal = refused(&declared(FILE).unwrap()[0], &[moved]);
        assert!(refusal.hints[0].command.contains("relink shop /"), "{refusal:?}");
    }
}
