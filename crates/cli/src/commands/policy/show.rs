//! Everything that holds for a campaign's agents.

use ostler_client::{Campaign, Client};
use ostler_domain::config::Config;
use serde::Serialize;

use crate::{
    app::{App, person_home},
    commands::config,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, to_json},
    screen::next_steps,
    words,
};

#[derive(Serialize)]
struct PolicyForm<'a> {
    campaign: String,
    path: String,
    settings: &'a [Row],
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

pub(super) async fn run(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    args: &ListArgs,
) -> Result<u8, Failure> {
    listing::run(app, Some(client), args, &Policy { app, client, campaign, most: args.most(None) }).await
}

/// The list of what holds.
struct Policy<'a> {
    app: &'a App,
    client: &'a Client,
    campaign: &'a Campaign,
    most: Option<u32>,
}

impl List for Policy<'_> {
    type Row = Row;
    const ROWS: &'static str = "settings";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        // Anew, for who watches.
        let campaign = self.client.campaign(&self.campaign.id.to_string()).await?;
        Ok(Found::whole(rows(&campaign, &config::current(self.app)?), self.most))
    }

    fn id(&self, row: &Row) -> String {
        row.key.clone()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        row
    }

    fn object(&self, found: &Found<Row>) -> Option<String> {
        let (campaign, path) = (self.campaign.name.to_string(), self.campaign.root.path.clone());
        Some(to_json(&PolicyForm { campaign, path, settings: &found.rows }))
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        let Campaign { name, root, .. } = self.campaign;
        let path = words::path(&root.path, person_home().as_deref());
        let mut remarks = vec![Line::new().strong(name.as_str()).plain(format!("   {path}"))];
        remarks.extend(next_steps(&[
            (format!("ostler policy test path write FILE -C {name}"), "says whether, and why"),
            (format!("ostler campaign set {name} KEY+=VALUE"), "changes what the campaign says"),
        ]));
        Ok(Screen { table: Some(table(&found.rows)), remarks, ..Screen::default() })
    }
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

fn table(rows: &[Row]) -> Table {
    let value = Column::new("VALUE").gives_way_to(20);
    let mut table = Table::new([Column::new("POLICY"), value, Column::new("BY")]);
    for row in rows {
        let (value, origin) = match row.origin {
            "default" => (Line::new().faint(&row.value), Line::new().faint(row.origin)),
            _ => (Line::new().strong(&row.value), Line::of(row.origin)),
        };
        table.row(vec![Line::of(&row.key), value, origin]);
    }
    table
}

/// With nothing in it yet.
pub(in crate::commands) fn empty_table() -> Table {
    table(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{output::Look, testing};

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
            table(&rows(&campaign, &machine)).lines(&look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
        let off: Config =
            toml_edit::de::from_str("[sandbox]\nrun_agents_unconfined_on_this_machine = true\n").unwrap();
        assert_eq!(rows(&campaign, &off)[0].origin, MACHINE);
    }
}
