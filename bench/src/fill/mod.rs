//! `fill`: a realistic store of any size, for benchmarks and for anyone to try.

mod campaign;
mod doings;
mod ending;
mod history;
mod imported;
pub(crate) mod life;
mod mission;
mod team;
pub(crate) mod words;

use std::{
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    thread,
    time::{Duration, Instant},
};

use ostler_domain::home::Home;
use ostler_store::{Bulk, BulkLoaded, DirLock, Options, Paths, Store, block_on};

pub(crate) use history::{History, Size};

use crate::{Outcome, report::say};

/// What a history is made of: another word with every change of it, so that no benchmark measures an older one.
pub(crate) const CONTENT: &str = "4";
/// Items made ahead of the writer.
const AHEAD: usize = 4_096;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The home to fill, as `OSTLER_HOME` would name it; made if it is not there
    #[arg(long)]
    home: PathBuf,
    #[arg(long, default_value_t = 10_000)]
    sessions: u64,
    /// About how many events; a life has at least a dozen [default: 20 a session]
    #[arg(long)]
    events: Option<u64>,
    /// The same seed gives the same content
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let events = args.events.unwrap_or(args.sessions.saturating_mul(20));
    fill(&args.home, Size { sessions: args.sessions, events }, args.seed)?;
    say(&format!("try it: OSTLER_HOME={} ostler ls -a", args.home.display()));
    Ok(())
}

/// Fills a home, says how far it is on standard error, and waits until everything can be searched.
pub(crate) fn fill(home: &Path, size: Size, seed: u64) -> Outcome<BulkLoaded> {
    let began = Instant::now();
    let home = Home::at(std::path::absolute(home)?);
    std::fs::create_dir_all(home.state())?;
    let _lock = DirLock::take(home.state(), env!("CARGO_PKG_VERSION"))?;
    let store = Store::open(&Paths::below(home.state()), &Options::default())?.store;
    let loaded = block_on(store.bulk(made_aside(size, seed)))?;
    say(&format!(
        "{} sessions and {} events recorded in {:.0} s; indexing them for search",
        loaded.sessions,
        loaded.events,
        began.elapsed().as_secs_f64()
    ));
    let mut said = Instant::now();
    loop {
        let stats = block_on(store.stats())?;
        let found = stats.searchable_to.unwrap_or(stats.events);
        if found >= stats.events {
            let megabytes = (stats.db_bytes + stats.search_bytes) >> 20;
            say(&format!("done in {:.0} s: {megabytes} MB", began.elapsed().as_secs_f64()));
            return Ok(loaded);
        }
        if said.elapsed() > Duration::from_secs(5) {
            said = Instant::now();
            say(&format!("  {found} of {} events can be searched", stats.events));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Makes the history on a thread of its own, a little ahead of whoever takes it.
fn made_aside(size: Size, seed: u64) -> impl Iterator<Item = Bulk> + Send + 'static {
    let (sender, items) = sync_channel(AHEAD);
    thread::spawn(move || {
        let began = Instant::now();
        let mut history = History::new(size, seed);
        let step = (size.sessions / 20).max(1);
        let mut next = step;
        while let Some(item) = history.next() {
            if sender.send(item).is_err() {
                return;
            }
            if history.sessions_made() >= next {
                say(&format!(
                    "  {next} of {} sessions, {:.0} s",
                    size.sessions,
                    began.elapsed().as_secs_f64()
                ));
                next += step;
            }
        }
    });
    items.into_iter()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ostler_domain::Kind;
    use ostler_store::CheckDepth;
    use rusqlite::Connection;

    use super::*;

    /// All rows of all tables but what names the node.
    fn dump(home: &Path) -> BTreeMap<String, Vec<String>> {
        let connection = Connection::open(Home::at(home).db()).unwrap();
        let tables: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'node_meta'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let rows = |table: &String| -> Vec<String> {
            let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
            let columns = statement.column_count();
            let text = |row: &rusqlite::Row<'_>| {
                (0..columns)
                    .map(|n| format!("{:?}|", row.get_unwrap::<_, rusqlite::types::Value>(n)))
                    .collect()
            };
            statement.query_map([], |row| Ok(text(row))).unwrap().collect::<Result<_, _>>().unwrap()
        };
        tables.iter().map(|table| (table.clone(), rows(table))).collect()
    }

    /// What lists and sums are made from: each of it in all its forms.
    fn has_everything(home: &Path) {
        let connection = Connection::open(Home::at(home).db()).unwrap();
        for what in [
            "approval WHERE answered_by IS NOT NULL AND rules IS NULL",
            "approval WHERE rules IS NOT NULL",
            "approval WHERE state = 'denied'",
            "approval WHERE state = 'expired'",
            "approval WHERE kind = 'question'",
            "message WHERE receipt = 'answered'",
            "message WHERE receipt = 'unknown'",
            "usage WHERE cost > 0 AND plan = 0",
            "usage WHERE cost > 0 AND plan = 1",
            "usage WHERE cost IS NULL",
            "campaign WHERE policy LIKE '%budget%'",
            "campaign WHERE policy LIKE '%approve_rule%'",
            "session WHERE outcome = 'lost'",
            "session WHERE outcome = 'budget'",
            "session WHERE continues IS NOT NULL",
            "agent",
            "conversation WHERE agent IS NOT NULL",
            "ticket WHERE status = 'done'",
            "ticket WHERE status = 'failed'",
            "mission WHERE status = 'completed'",
            "session WHERE mission IS NOT NULL",
            "session WHERE imported = 1",
        ] {
            let sql = format!("SELECT count(*) FROM {what}");
            let count: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert!(count > 0, "no {what}");
        }
        let has = |kind: Kind| -> bool {
            let sql = "SELECT EXISTS (SELECT 1 FROM log_event WHERE kind = ?1)";
            connection.query_row(sql, [kind.code()], |row| row.get(0)).unwrap()
        };
        for kind in [Kind::Network, Kind::Denied, Kind::CampaignPolicyChanged, Kind::AgentStderr] {
            assert!(has(kind), "no {kind}");
        }
    }

    #[test]
    fn a_filled_store_is_sound_the_same_again_and_rebuilt_from_its_log() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let size = Size { sessions: 1_200, events: 30_000 };
        let loaded = fill(one.path(), size, 7).unwrap();
        assert!(loaded.sessions >= size.sessions);
        assert!(loaded.events.abs_diff(size.events) < size.events / 5, "{} events", loaded.events);
        fill(two.path(), size, 7).unwrap();
        let filled = dump(one.path());
        assert!(filled == dump(two.path()), "the same seed gave another content");

        let store = Store::open(&Paths::below(Home::at(one.path()).state()), &Options { search: false })
            .unwrap()
            .store;
        assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, []);
        assert_eq!(block_on(store.unended_sessions()).unwrap(), []);
        block_on(store.reindex()).unwrap();
        drop(store);
        assert!(filled == dump(one.path()), "the rebuilt tables differ");
        let outcomes = filled["session"].iter().filter(|row| row.contains("crashed")).count();
        assert!(outcomes > 50, "{outcomes} crashed");
        assert!(filled["log_event"].iter().any(|row| row.contains("Blob(")), "no large body");
        has_everything(one.path());
    }
}
