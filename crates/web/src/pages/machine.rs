//! This machine: the daemon, what the doctor finds, its providers, the machines around it, and who may come in. Fixes are commands to copy.

use ostler_client::{
    Session,
    reply::{PartUse, Share},
};
use ostler_domain::{
    Time,
    query::{Page, Scope, SessionFilter},
    text::{bytes, one_line, visible},
};
use ostler_form::words;

use super::{
    View,
    tables::{List, Table, TableRow, cell, line, number, toned},
};
use crate::{
    checkup::{Finding, Node},
    clock,
    guard::Visitor,
    reply::Failure,
};

/// Keepers that are shown.
const KEEPERS: u32 = 50;

/// What the doctor finds, what is wrong first.
fn health(found: Option<Vec<Finding>>) -> Vec<TableRow> {
    let rank = |finding: &Finding| match finding.verdict.as_str() {
        "fail" => 0,
        "warn" => 1,
        "ok" => 2,
        _ => 3,
    };
    let mut findings = found.unwrap_or_default();
    findings.sort_by_key(rank);
    let row = |finding: Finding| {
        let (tone, word) = match finding.verdict.as_str() {
            "ok" => ("good", "ok"),
            "warn" => ("warn", "warn"),
            "fail" => ("bad", "FAIL"),
            _ => ("faint", "–"),
        };
        let cells = vec![
            toned(word, tone),
            cell(finding.about),
            cell(visible(&finding.text)),
            line(finding.fix.unwrap_or_default()),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    findings.into_iter().map(row).collect()
}

/// Machines that are reached by SSH, and those of the hub.
async fn nodes(visitor: &Visitor, named: Option<Vec<Node>>) -> Vec<TableRow> {
    let row = |name: String,
               way: String,
               (tone, state): (&'static str, String),
               sessions: Option<u64>,
               cli: String| {
        let sessions = number(sessions.map(words::number).unwrap_or_default());
        let cells = vec![cell(name), cell(way), toned(state, tone), sessions, line(cli)];
        TableRow { cells, ..TableRow::default() }
    };
    let named = named.unwrap_or_default().into_iter().map(|node| {
        let state = match (node.error, node.version) {
            (Some(why), _) => ("warn", format!("{}: {}", node.state, one_line(&why, 200))),
            (None, version) => ("good", format!("{} {}", node.state, version.unwrap_or_default())),
        };
        let cli = format!("ostler ls --node {}", node.name);
        row(node.name, node.address, state, node.sessions, cli)
    });
    let named: Vec<TableRow> = named.collect();
    let own = visitor.client.status().await.map(|status| status.node.to_string()).unwrap_or_default();
    let listed = match visitor.client.hub_lists().await {
        Ok(listed) => listed,
        Err(error) => {
            // Whoever has no hub has none of its machines; one that is named and not there is said to be away.
            let why = error.to_refusal().why.into_iter();
            let away = why.map(|why| {
                let state = ("warn", format!("not reached: {}", one_line(&why, 200)));
                row("hub".to_owned(), "hub".to_owned(), state, None, "ostler daemon logs".to_owned())
            });
            return named.into_iter().chain(away).collect();
        }
    };
    let listed = listed.into_iter().filter(|node| node.node != own).map(|node| {
        let state = match &node.stale_since {
            Some(since) => ("warn", away_for(since, clock::now())),
            None => ("good", "connected".to_owned()),
        };
        row(
            one_line(&node.name, 80),
            "hub".to_owned(),
            state,
            Some(node.rows.len() as u64),
            "ostler ls --node all".to_owned(),
        )
    });
    named.into_iter().chain(listed).collect()
}

fn away_for(since: &str, now: Time) -> String {
    match Time::from_rfc3339(since) {
        Some(since) => format!("away for {}", words::age(now.since(since))),
        None => format!("away since {}", one_line(since, 40)),
    }
}

async fn keepers(visitor: &Visitor) -> Result<Vec<TableRow>, Failure> {
    let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    let sessions = visitor.client.sessions(&filter, Page::of(KEEPERS, None)).await?.rows;
    let row =
        |session: &Session| {
            let process = session.process.as_ref();
            TableRow {
                id: format!("keeper-{}", session.id),
                href: format!("/sessions/{}", session.id),
                cells: vec![
                    cell(format!("{} {}", session.id.short(), session.name)),
                    cell(process.map_or_else(
                        || "waits to start".to_owned(),
                        |process| format!("pid {}", process.pid),
                    )),
                    cell(session.sandbox.as_str()),
                ],
            }
        };
    Ok(sessions.iter().map(row).collect())
}

async fn storage(visitor: &Visitor) -> Result<Vec<TableRow>, Failure> {
    let used = visitor.client.disk_use(1).await?;
    let row = |part: &PartUse| TableRow {
        cells: vec![cell(part.part.clone()), number(bytes(part.bytes)), number(words::number(part.files))],
        ..TableRow::default()
    };
    Ok(used.parts.iter().map(row).collect())
}

pub(super) async fn view(visitor: &Visitor) -> Result<View, Failure> {
    let client = &visitor.client;
    let (status, now) = (client.status().await?, clock::now());
    let fact =
        |name: &str, value: String| TableRow { cells: vec![cell(name), cell(value)], ..TableRow::default() };
    let mut facts = vec![
        fact(
            "daemon",
            format!(
                "{} · pid {} · up {}",
                status.version,
                status.pid,
                words::span(now.since(status.started))
            ),
        ),
        fact("node", format!("{} · epoch {}", status.node, status.epoch)),
        fact(
            "sessions",
            format!(
                "{} live · {} detached · {} waiting · {} ever",
                status.live_sessions,
                status.detached_sessions,
                status.waiting_sessions,
                words::number(status.store.sessions)
            ),
        ),
        fact(
            "store",
            format!(
                "{} · search {} · schema {} · {} events",
                bytes(status.store.database_bytes),
                bytes(status.store.search_bytes),
                status.schema_version,
                words::number(status.last_seq)
            ),
        ),
        fact("memory", format!("held by {}", status.memory_held_by)),
        fact("state", status.state_dir.clone()),
    ];
    if let Some(disk) = status.disk {
        facts.push(fact(
            "disk",
            format!(
                "{} free of {} · nothing new starts below {}",
                bytes(disk.free),
                bytes(disk.total),
                bytes(disk.least)
            ),
        ));
    }
    let providers = client.providers().await?.into_iter().map(|provider| {
        let (tone, word) = match (&provider.problem, &provider.lacks) {
            (None, None) => ("good", "ready".to_owned()),
            (problem, lacks) => ("warn", lacks.clone().or(problem.clone()).unwrap_or_default()),
        };
        TableRow {
            cells: vec![
                cell(provider.name),
                cell(provider.version.unwrap_or_default()),
                toned(word, tone),
                cell(provider.key),
                line(provider.cure.unwrap_or_default()),
            ],
            ..TableRow::default()
        }
    });
    let tokens = client.tokens().await?.into_iter().map(|token| {
        let used = used(token.last_used, now);
        let may = words::may(&token);
        let cure = format!("ostler api token rm {}", if token.is_browser { &token.id } else { &token.name });
        TableRow {
            id: token.id.clone(),
            cells: vec![
                cell(token.name),
                cell(if token.is_browser { "browser" } else { "token" }),
                cell(may),
                number(used),
                line(cure),
            ],
            ..TableRow::default()
        }
    });
    let shares = client.shares().await?.into_iter().map(|share| share_row(share, now));
    let found = visitor.door.inner.checkup.found().await;
    let is_asked = found.findings.is_some();
    let (mut health, nodes) = (health(found.findings), nodes(visitor, found.nodes).await);
    // The doctor looks at what is, and this was.
    if let Some(restart) = &status.machine_restart {
        let how = format!("{} sessions were lost with the machine", restart.lost);
        let cells = vec![toned("warn", "warn"), cell("restart"), cell(how), line("ostler resume --lost")];
        health.insert(0, TableRow { cells, ..TableRow::default() });
    }
    let (keepers, storage) = (keepers(visitor).await?, storage(visitor).await?);
    let table = |title: &str, heads, rows: Vec<TableRow>, nothing: &str| Table {
        title: title.to_owned(),
        heads,
        rows,
        nothing: nothing.to_owned(),
    };
    let list = List {
        title: "Machine".to_owned(),
        tables: vec![
            table("", vec!["", ""], facts, ""),
            table(
                "Doctor",
                vec!["", "What", "How it stands", "Cure"],
                health,
                if is_asked {
                    "Nothing was looked at."
                } else {
                    "The doctor did not answer: ask it yourself."
                },
            ),
            table(
                "Agent programs",
                vec!["Provider", "Version", "Standing", "Key", "Cure"],
                providers.collect(),
                "None.",
            ),
            table(
                "Nodes",
                vec!["Name", "By", "Standing", "Sessions", ""],
                nodes,
                "No other machine has a name here, and there is no hub.",
            ),
            table(
                "Keepers",
                vec!["Session", "Process", "Sandbox"],
                keepers,
                "No session is live, so there is no keeper.",
            ),
            table("Storage", vec!["Part", "Takes", "Files"], storage, "Nothing."),
            table(
                "Who may come in",
                vec!["Name", "Kind", "May", "Last used", "To turn them out"],
                tokens.chain(shares).collect(),
                "Nobody.",
            ),
        ],
        clis: [
            "ostler doctor",
            "ostler du",
            "ostler daemon logs",
            "ostler import all",
            "ostler node ls",
            "ostler open --close",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..List::default()
    };
    View::new("Machine", &list)
}

/// A part of this machine that somebody has for a while.
fn share_row(share: Share, now: Time) -> TableRow {
    let left = words::span(share.expires.since(now));
    let may = format!("{} {}, for {left}", share.access.as_str(), share.scope);
    let (used, cure) = (used(share.last_used, now), format!("ostler share rm {}", share.name));
    TableRow {
        id: share.id,
        cells: vec![cell(share.name), cell("share"), cell(may), number(used), line(cure)],
        ..TableRow::default()
    }
}

fn used(last: Option<Time>, now: Time) -> String {
    last.map_or_else(|| "never".to_owned(), |at| format!("{} ago", words::age(now.since(at))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_domain::{
        SessionId,
        share::{Access, Scope},
    };

    use super::*;

    #[test]
    fn a_share_says_what_it_allows_for_how_long_and_how_it_is_taken_back() {
        let now = Time::from_micros(1_800_000_000_000_000);
        let session = SessionId::new(now, 7);
        let share = Share {
            id: "shr_1".to_owned(),
            name: "ann".to_owned(),
            access: Access::Interact,
            scope: Scope::Session(session),
            created: now,
            expires: now.plus(Duration::from_secs(7_200)),
            last_used: Some(now.minus(Duration::from_secs(90))),
        };
        let row = share_row(share.clone(), now);
        let texts: Vec<&str> = row.cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts[..4], ["ann", "share", &*format!("interact {session}, for 2h"), "1m ago"]);
        assert_eq!(row.cells[4].cli, "ostler share rm ann");
        assert_eq!(share_row(Share { last_used: None, ..share }, now).cells[3].text, "never");
    }
}
