//! `ostler campaign apply FILE`: campaigns as a file declares them. What the file does not say stays as it is.

use std::{collections::BTreeMap, fs};

use clap::Args;
use ostler_client::{AddCampaign, Campaign, Client};
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
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// A TOML file with [campaigns.NAME] sections: path, and the keys of `campaign set`; - is standard input
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
}

/// What is to be done about one.
#[derive(Debug, PartialEq, Serialize)]
struct Step {
    campaign: String,
    path: String,
    is_new: bool,
    changes: Vec<Difference>,
    #[serde(skip)]
    settings: Vec<String>,
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
    let steps: Vec<Step> = declared.iter().map(|one| step(one, &there)).collect::<Result<_, _>>()?;
    let others =
        there.iter().filter(|one| declared.iter().all(|other| other.name != one.name)).count() as u64;
    let is_change = |step: &&Step| step.is_new || !step.changes.is_empty();
    let changes: Vec<&Step> = steps.iter().filter(is_change).collect();
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
        app.ui.remark(&Line::toned(Tone::Good, "applied").faint("   for sessions started from now on"));
    }
    Ok(exit_code::OK)
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
    Ok(())
}

/// What differs between a campaign that is there, or none, and the one that is declared.
fn step(declared: &Declared, there: &[Campaign]) -> Result<Step, Refusal> {
    let Declared { name, path, settings } = declared;
    let known = there.iter().find(|campaign| campaign.name == *name);
    if let Some(known) = known
        && fs::canonicalize(path).is_ok_and(|real| real.to_str() != Some(known.root.path.as_str()))
    {
        return Err(Refusal::new(
            Reason::CampaignExists,
            format!("campaign {name} is at {}", known.root.path),
        )
        .because(format!("the file says {path}"))
        .hint(format!("ostler campaign relink {name} {path}"), "says that it is there now"));
    }
    let before = known.map(|campaign| campaign.policy.clone()).unwrap_or_default();
    let after = before.changed_by(settings).map_err(|fault| {
        Refusal::invalid(format!("campaigns.{name}: {fault}"))
            .hint("ostler campaign show", "shows all keys and their values")
    })?;
    let changes = differences(&before, &after);
    let settings = if changes.is_empty() { Vec::new() } else { settings.clone() };
    Ok(Step { campaign: name.to_string(), path: path.clone(), is_new: known.is_none(), changes, settings })
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
        let (tone, sign, word) = match (step.is_new, step.changes.is_empty()) {
            (true, _) => (Tone::Good, "+", "new"),
            (false, false) => (Tone::Warn, "~", "changes"),
            (false, true) => (Tone::Faint, "=", "as it is"),
        };
        let path = words::path(&step.path, home.as_deref());
        lines.push(
            Line::toned(tone, sign)
                .plain(" ")
                .strong(&step.campaign)
                .plain(format!("  {path}  "))
                .faint(word),
        );
        for Difference { key, before, after } in &step.changes {
            let line = Line::of(format!("    {key}  ")).faint(format!("{before} → "));
            lines.push(line.strong(after.as_str()));
        }
    }
    if others > 0 {
        let one = "campaign is not in the file and stays as it is";
        let several = "campaigns are not in the file and stay as they are";
        lines.push(Line::new().faint(words::plural(others, one, several)));
    }
    lines
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
    let name = name.parse().map_err(|fault| wrong(format!("it is no name: {fault}")))?;
    Ok(Declared { name, path, settings })
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
            _ if key == "path" => {}
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
    use ostler_domain::{CampaignId, campaign::Root};

    use super::*;
    use crate::{output::Look, testing::NOW};

    const FILE: &str = r#"
[campaigns.shop]
path = "/"
budget = "25usd/day"
read = ["@rust"]
limits.memory = "8GiB"
ptrace = true

[campaigns.site]
path = "/nowhere/site"
[campaigns.site.net]
allow = ["@node"]
"#;

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

    fn steps(there: &[Campaign]) -> Vec<Step> {
        declared(FILE).unwrap().iter().map(|one| step(one, there).unwrap()).collect()
    }

    #[test]
    fn what_differs_is_shown_before_it_is_changed() {
        let look = Look::plain(None);
        let there = [shop(&["budget=10usd/day", "read+=@go", "commands+=make"])];
        let shown: Vec<_> = lines(&steps(&there), 2).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn what_is_as_declared_is_left_alone() {
        let there =
            [shop(&["budget=25usd/day", "read+=@rust", "limits.memory=8GiB", "ptrace=on", "commands+=make"])];
        let steps = steps(&there);
        assert!(!steps[0].is_new && steps[0].changes.is_empty() && steps[0].settings.is_empty(), "{steps:?}");
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
        ] {
            let refusal = declared(text).unwrap_err();
            assert!(refusal.message.contains(says), "{text}: {refusal:?}");
        }
        let wrong = declared("[campaigns.shop]\npath = \"/\"\nlimits.memroy = \"1GiB\"").unwrap();
        assert!(step(&wrong[0], &[]).unwrap_err().message.contains("limits.memroy"));
        let mut moved = shop(&[]);
        moved.root.path = "/elsewhere".to_owned();
        let refusal = step(&declared(FILE).unwrap()[0], &[moved]).unwrap_err();
        assert!(refusal.hints[0].command.contains("relink shop /"), "{refusal:?}");
    }
}
