//! Everything that holds for a campaign's agents.

use ostler_client::Campaign;
use ostler_domain::config::Config;
use serde::Serialize;

use crate::{
    app::{App, person_home},
    commands::config,
    exit_code,
    failure::Failure,
    output::{Column, Line, Look, Table},
    screen::next_steps,
    words,
};

#[derive(Serialize)]
struct PolicyForm {
    campaign: String,
    path: String,
    settings: Vec<Row>,
}

/// One line of what holds.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    key: String,
    value: String,
    /// `default`, `campaign` or `machine`.
    origin: &'static str,
}

const MACHINE: &str = "machine";

pub(super) fn run(app: &App, campaign: &Campaign) -> Result<u8, Failure> {
    let rows = rows(campaign, &config::current(app)?);
    let path = words::path(&campaign.root.path, person_home().as_deref());
    if app.ui.is_json() {
        let (campaign, path) = (campaign.name.to_string(), campaign.root.path.clone());
        app.ui.json(&PolicyForm { campaign, path, settings: rows })?;
        return Ok(exit_code::OK);
    }
    app.ui.data(&Line::new().strong(campaign.name.as_str()).plain(format!("   {path}")))?;
    app.ui.data_lines(&lines(&rows, app.ui.out_look()))?;
    app.ui.data_lines(&next_steps(&[
        (format!("ostler policy test path write FILE -C {}", campaign.name), "says whether, and why"),
        (format!("ostler campaign set {} KEY+=VALUE", campaign.name), "changes what the campaign says"),
    ]))?;
    Ok(exit_code::OK)
}

/// The campaign's policy, with what the machine's configuration says in the place of a default.
fn rows(campaign: &Campaign, machine: &Config) -> Vec<Row> {
    let policy = &campaign.policy;
    let of_machine = |key: &str, value: String| Row { key: key.to_owned(), value, origin: MACHINE };
    let mut rows = vec![if machine.unconfined() {
        of_machine("sandbox", "OFF: agents have all rights of the user who runs the daemon".to_owned())
    } else {
        Row { key: "sandbox".to_owned(), value: "on".to_owned(), origin: "default" }
    }];
    rows.extend(policy.lines().into_iter().map(|line| match (line.key, machine.provider()) {
        ("provider", Some(provider)) if policy.provider.is_none() => {
            of_machine("provider", provider.to_owned())
        }
        _ => Row { key: line.key.to_owned(), value: line.value, origin: line.origin.as_str() },
    }));
    let hosts = machine.network_presets();
    for name in policy.net_allow.iter().filter_map(|item| item.strip_prefix('@')) {
        let value = match hosts.get(name) {
            Some(hosts) => hosts.join(" "),
            None => "not named in config.toml, so no session starts".to_owned(),
        };
        rows.push(of_machine(&format!("@{name}"), value));
    }
    rows
}

fn lines(rows: &[Row], look: &Look) -> Vec<Line> {
    let mut table = Table::new([Column::new("POLICY"), Column::new("").gives_way_to(20), Column::new("BY")]);
    for row in rows {
        let (value, origin) = match row.origin {
            "default" => (Line::new().faint(&row.value), Line::new().faint(row.origin)),
            _ => (Line::new().strong(&row.value), Line::of(row.origin)),
        };
        table.row(vec![Line::of(&row.key), value, origin]);
    }
    table.lines(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn each_line_has_who_says_so() {
        let mut campaign = testing::campaign();
        let settings = ["net.allow+=@rust", "limits.memory=8GiB"].map(str::to_owned);
        campaign.policy = ostler_domain::Policy::default().changed_by(&settings).unwrap();
        let machine: Config =
            toml_edit::de::from_str("provider = \"codex\"\n[network.presets]\nrust = [\"crates.example\"]\n")
                .unwrap();
        let look = Look::plain(Some(100));
        let shown: Vec<String> =
            lines(&rows(&campaign, &machine), &look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
        let off: Config =
            toml_edit::de::from_str("[sandbox]\nrun_agents_unconfined_on_this_machine = true\n").unwrap();
        assert_eq!(rows(&campaign, &off)[0].origin, MACHINE);
    }
}
