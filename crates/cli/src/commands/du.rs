//! `ostler du`: what takes the space on the disk.

use clap::Args;
use ostler_client::reply::{DiskUse, SessionUse};
use ostler_domain::retention::Rules;
use serde::Serialize;

use super::config;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Column, FIELD, Line, Look, Table, Tone},
    screen::{next_steps, sessions::CampaignNames},
    words,
};

/// So long after its end what a session left is rarely read, and often needed for room.
const COMPRESSED_AFTER: &str = "7d";
/// Sessions that are shown where nobody says how many.
const LARGEST: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct DuArgs {
    /// So many of the largest sessions
    #[arg(long, value_name = "N", default_value_t = LARGEST)]
    limit: u32,
}

#[derive(Serialize)]
struct DuForm {
    total_bytes: u64,
    free_bytes: u64,
    disk_bytes: u64,
    /// Below this many free bytes nothing new starts.
    least_free_bytes: u64,
    parts: Vec<PartForm>,
    campaigns: Vec<CampaignForm>,
    sessions: Vec<SessionForm>,
}

#[derive(Serialize)]
struct PartForm {
    part: String,
    bytes: u64,
    files: u64,
}

#[derive(Serialize)]
struct CampaignForm {
    campaign: String,
    sessions: u64,
    tape_bytes: u64,
    home_bytes: u64,
}

#[derive(Serialize)]
struct SessionForm {
    session: String,
    name: String,
    campaign: String,
    ended: bool,
    tape_bytes: u64,
    home_bytes: u64,
}

pub(crate) async fn run(app: &App, args: DuArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let (used, names) = tokio::join!(client.disk_use(args.limit), app.campaign_names(&client));
    let (used, names) = (used?, names?);
    if app.ui.is_json() {
        app.ui.json(&form(&used, &names))?;
        return Ok(exit_code::OK);
    }
    let look = app.ui.out_look();
    app.ui.data_lines(&tables(&used, &names, look))?;
    remarks(&used).iter().for_each(|line| app.ui.remark(line));
    let rules = config::current(app)?.retention();
    let next = next(&used, &rules);
    let next = next.iter().flat_map(|line| line.folded(app.ui.err_look().width, FIELD));
    next.for_each(|line| app.ui.remark(&line));
    Ok(exit_code::OK)
}

fn total(used: &DiskUse) -> u64 {
    used.parts.iter().map(|part| part.bytes).sum()
}

fn tables(used: &DiskUse, names: &CampaignNames, look: &Look) -> Vec<Line> {
    let size = |bytes: u64| Line::of(words::bytes(bytes));
    let mut parts =
        Table::new([Column::new("PART"), Column::new("SIZE").right(), Column::new("FILES").right()]);
    let mut largest: Vec<_> = used.parts.iter().collect();
    largest.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    for part in largest {
        parts.row(vec![Line::of(&part.part), size(part.bytes), Line::of(words::number(part.files))]);
    }
    let mut campaigns = Table::new([
        Column::new("CAMPAIGN"),
        Column::new("SESSIONS").right(),
        Column::new("TAPES").right(),
        Column::new("HOMES").right(),
    ]);
    for of in &used.campaigns {
        let sessions = Line::of(words::number(of.sessions));
        campaigns.row(vec![Line::of(names.of(&of.campaign)), sessions, size(of.tapes), size(of.homes)]);
    }
    let mut sessions = Table::new([
        Column::new("ID"),
        Column::new("AGENT").gives_way_to(24),
        Column::new("CAMPAIGN"),
        Column::new("STATE"),
        Column::new("TAPE").right(),
        Column::new("HOME").right(),
    ]);
    for of in &used.sessions {
        sessions.row(vec![
            Line::toned(Tone::Accent, of.id.short()),
            Line::new().strong(of.name.as_str()),
            Line::of(names.of(&of.campaign)),
            Line::new().faint(if of.has_ended { "ended" } else { "live" }),
            size(of.tape),
            size(of.home),
        ]);
    }
    let mut lines = parts.lines(look);
    for (table, is_empty) in [(campaigns, used.campaigns.is_empty()), (sessions, used.sessions.is_empty())] {
        if !is_empty {
            lines.push(Line::new());
            lines.extend(table.lines(look));
        }
    }
    lines
}

fn remarks(used: &DiskUse) -> Vec<Line> {
    let disk = &used.disk;
    let sum = format!(
        "{} in all · {} of {} free",
        words::bytes(total(used)),
        words::bytes(disk.free),
        words::bytes(disk.total)
    );
    let short = format!("nothing new starts below {} (config limits.free_disk)", words::bytes(disk.least));
    let tone = if disk.is_short() { Tone::Bad } else { Tone::Plain };
    vec![Line::joined([Line::of(sum), Line::toned(tone, short)])]
}

/// What makes room: rules for what sessions leave behind, where the machine has none.
fn next(used: &DiskUse, rules: &Rules) -> Vec<Line> {
    let has_left = used.campaigns.iter().any(|of| of.tapes > 0);
    let steps = [
        (
            rules.archive_after.is_none() && has_left,
            format!("ostler config set retention.archive_after {COMPRESSED_AFTER}"),
            "compresses what a session left, its tape too, 7 days after its end",
        ),
        (
            rules.delete_after.is_none() && has_left,
            "ostler config set retention.delete_after 180d".to_owned(),
            "deletes what was said, and its tape; announced 14 days before",
        ),
        (has_left, "ostler retention plan".to_owned(), "shows what rules come to now; changes nothing"),
        (
            used.disk.is_short(),
            "ostler worktree gc".to_owned(),
            "removes work trees that have nothing of their own",
        ),
    ];
    let wanted = steps.into_iter().filter(|(is_wanted, ..)| *is_wanted);
    next_steps(&wanted.map(|(_, command, effect)| (command, effect)).collect::<Vec<_>>())
}

fn form(used: &DiskUse, names: &CampaignNames) -> DuForm {
    let session = |of: &SessionUse| SessionForm {
        session: of.id.to_string(),
        name: of.name.to_string(),
        campaign: names.of(&of.campaign),
        ended: of.has_ended,
        tape_bytes: of.tape,
        home_bytes: of.home,
    };
    DuForm {
        total_bytes: total(used),
        free_bytes: used.disk.free,
        disk_bytes: used.disk.total,
        least_free_bytes: used.disk.least,
        parts: used
            .parts
            .iter()
            .map(|part| PartForm { part: part.part.clone(), bytes: part.bytes, files: part.files })
            .collect(),
        campaigns: used
            .campaigns
            .iter()
            .map(|of| CampaignForm {
                campaign: names.of(&of.campaign),
                sessions: of.sessions,
                tape_bytes: of.tapes,
                home_bytes: of.homes,
            })
            .collect(),
        sessions: used.sessions.iter().map(session).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ostler_client::reply::{CampaignUse, DiskRoom, PartUse};
    use ostler_domain::retention::After;

    use super::*;
    use crate::testing;

    fn used() -> DiskUse {
        let part = |part: &str, bytes, files| PartUse { part: part.to_owned(), bytes, files };
        let session = &testing::fleet()[0];
        DiskUse {
            disk: DiskRoom { free: 1 << 29, total: 1 << 40, least: 1 << 30 },
            parts: vec![part("database", 1 << 30, 3), part("tapes", 3 << 30, 1_204)],
            campaigns: vec![CampaignUse {
                campaign: session.campaign,
                sessions: 5,
                tapes: 3 << 30,
                homes: 1 << 20,
            }],
            sessions: vec![SessionUse {
                id: session.id,
                name: session.name.clone(),
                campaign: session.campaign,
                has_ended: false,
                tape: 1 << 30,
                home: 1 << 20,
            }],
        }
    }

    #[test]
    fn what_takes_the_space() {
        let names = CampaignNames(HashMap::from([(testing::campaign().id, "shop".to_owned())]));
        let look = Look::plain(Some(80));
        let lines = tables(&used(), &names, &look).into_iter().chain(remarks(&used()));
        let lines = lines.chain(next(&used(), &Rules::default()));
        insta::assert_snapshot!(lines.map(|line| line.show(&look)).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!(crate::output::to_json(&form(&used(), &names)));
        let ruled = Rules {
            archive_after: After::parse("7d"),
            delete_after: After::parse("never"),
            ..Rules::default()
        };
        let said: Vec<String> = next(&used(), &ruled).iter().map(|line| line.show(&look)).collect();
        assert!(said.len() == 2 && said[0].contains("ostler retention plan"), "{said:?}");
    }
}
