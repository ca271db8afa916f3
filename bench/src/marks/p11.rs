//! P11: questions to a long history: newest-50 lists, the events of a session, and words in all of it.

use std::time::Instant;

use ostler_client::query::{Page, SessionFilter};
use ostler_domain::{
    CampaignId, SessionId,
    limits::PAGE_MOST,
    session::{Outcome as End, Status},
};
use ostler_store::{Among, Options, Paths, Store, block_on};
use ostler_testkit::Seed;
use rusqlite::{Connection, OpenFlags, ToSql};

use super::Bench;
use crate::{
    Outcome,
    fill::words,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::timed::milliseconds,
};

/// Questions of each kind in a round.
const TIMES: usize = 300;
const ROWS: u32 = 50;

/// Connections without a store: the one that is measured, and one that has asked for the same before.
struct Plain {
    raw: Connection,
    before: Connection,
}

/// A list of sessions, and the plain query for it.
struct Question {
    what: &'static str,
    filter: SessionFilter,
    /// Everything between the table and the cursor: `INDEXED BY … WHERE …`.
    sql: &'static str,
    value: String,
}

/// Values that the history has many sessions of.
struct Common {
    agent: String,
    ticket: String,
    model: String,
}

impl Common {
    fn of(raw: &Connection) -> Outcome<Common> {
        let most = |column: &str, among: &str| {
            raw.query_row(
                &format!(
                    "SELECT {column} FROM session WHERE {among} AND imported = 0 GROUP BY {column} ORDER BY count(*) DESC LIMIT 1"
                ),
                [],
                |row| row.get::<_, String>(0),
            )
        };
        Ok(Common {
            agent: most("agent", "role IS NOT NULL")?,
            ticket: most("ticket", "ticket LIKE 'tkt_%'")?,
            model: most("model", "model IS NOT NULL")?,
        })
    }
}

fn questions(campaign: CampaignId, common: &Common) -> Vec<Question> {
    let none = SessionFilter::default;
    vec![
        Question { what: "of all", filter: none(), sql: "WHERE ?2 = ''", value: String::new() },
        Question {
            what: "of a campaign",
            filter: SessionFilter { campaigns: vec![campaign], ..none() },
            sql: "INDEXED BY session_campaign WHERE campaign = ?2",
            value: campaign.to_string(),
        },
        Question {
            what: "of a provider",
            filter: SessionFilter { providers: vec!["codex".to_owned()], ..none() },
            sql: "INDEXED BY session_provider WHERE provider = ?2",
            value: "codex".to_owned(),
        },
        Question {
            what: "of an agent",
            filter: SessionFilter { agents: vec![common.agent.clone()], ..none() },
            sql: "INDEXED BY session_agent WHERE agent = ?2",
            value: common.agent.clone(),
        },
        Question {
            what: "of a ticket",
            filter: SessionFilter { tickets: vec![common.ticket.clone()], ..none() },
            sql: "INDEXED BY session_ticket WHERE ticket = ?2",
            value: common.ticket.clone(),
        },
        Question {
            what: "of a model",
            filter: SessionFilter { models: vec![common.model.clone()], ..none() },
            sql: "INDEXED BY session_model WHERE model = ?2",
            value: common.model.clone(),
        },
        Question {
            what: "that crashed",
            filter: SessionFilter { outcomes: vec![End::Crashed], ..none() },
            sql: "INDEXED BY session_outcome WHERE outcome = ?2",
            value: "crashed".to_owned(),
        },
        Question {
            what: "of a campaign that failed",
            filter: SessionFilter { campaigns: vec![campaign], statuses: vec![Status::Failed], ..none() },
            sql: "INDEXED BY session_campaign WHERE campaign = ?2 AND status = 'FAILED'",
            value: campaign.to_string(),
        },
    ]
}

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let home = bench.large_home()?;
    let store = Store::open(&Paths::below(home.state()), &Options { search: false })?.store;
    let open = || Connection::open_with_flags(home.db(), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let sides = Plain { raw: open()?, before: open()? };
    let count: i64 = sides.raw.query_row("SELECT max(num) FROM session", [], |row| row.get(0))?;
    let count = count.unsigned_abs();
    let campaign = block_on(store.campaigns())?.first().ok_or("a history has campaigns")?.id;
    let mut seed = Seed::of(1);
    let mut rows = Vec::new();
    for Question { what, filter, sql, value } in questions(campaign, &Common::of(&sides.raw)?) {
        let sql = format!(
            "SELECT v.view FROM (SELECT num FROM session {sql} AND num < ?1 ORDER BY num DESC LIMIT {ROWS}) s JOIN session_view v ON v.num = s.num"
        );
        let compared = compare(bench, what, || {
            let before = count / 10 + seed.below(count - count / 10);
            let ours =
                || Ok(block_on(store.list_sessions(&filter, Page::of(ROWS, Some(before))))?.rows.len());
            let plain = |raw: &Connection| texts(raw, &sql, &[&before.cast_signed(), &value]);
            ask_both(what, ours, plain, &sides)
        })?;
        rows.push(compared.row(format!("newest {ROWS} {what}, p99"), Goal::RatioAtMost(3.0)));
    }
    rows.push(ranges(bench, &store, &sides, count, &mut seed)?);
    rows.extend(searches(bench, &store)?);
    rows.push(search_among(bench, &store, campaign)?);
    Ok(Section {
        name: "P11",
        rows,
        notes: vec![format!(
            "{count} sessions; {TIMES} questions of each kind in a round. Ours are typed rows from the store's own reader threads; raw is the text of the same rows from a connection of this thread. What is asked for is in the kernel's cache."
        )],
    })
}

/// The events of a session from one of them on.
fn ranges(bench: &Bench, store: &Store, sides: &Plain, count: u64, seed: &mut Seed) -> Outcome<Row> {
    let what = "a session's events";
    let sql = format!(
        "SELECT body FROM log_event WHERE session = (SELECT num FROM session WHERE id = ?1) AND session_seq >= ?2 ORDER BY session_seq LIMIT {ROWS}"
    );
    let compared = compare(bench, what, || {
        let num = (1 + seed.below(count)).cast_signed();
        let id: String =
            sides.before.query_row("SELECT id FROM session WHERE num = ?1", [num], |row| row.get(0))?;
        let session: SessionId = id.parse()?;
        let from = 1 + seed.below(5);
        let ours = || Ok(block_on(store.session_events(session, from, ROWS))?.rows.len());
        let plain = |raw: &Connection| texts(raw, &sql, &[&id, &from.cast_signed()]);
        ask_both(what, ours, plain, sides)
    })?;
    Ok(compared.row(format!("{what} from one of the first on, p99"), Goal::RatioAtMost(3.0)))
}

/// Words that are everywhere, that are in some texts, and that are in few.
fn searches(bench: &Bench, store: &Store) -> Outcome<Vec<Row>> {
    let terms = [("everywhere", 2, "database"), ("common", 90, "login"), ("rare", 50_000, "timeout")];
    let mut rows = Vec::new();
    for (how, rank, second) in terms {
        let word = words::of_rank(rank);
        let mut p99 = Vec::new();
        for _ in 0..bench.rounds {
            let mut took = Vec::new();
            for n in 0..TIMES / 3 {
                // One word, and two that must both be there, in turn.
                let text = if n % 2 == 0 { word.clone() } else { format!("{word} {second}") };
                took.push(
                    time(|| Ok(block_on(store.search(&text, None, Page::of(ROWS, None)))?.rows.len()))?.0,
                );
            }
            p99.push(percentile(&mut took, 99.0));
        }
        let sample = Sample::new(Unit::Milliseconds, p99);
        say(&format!("  search, {how}: {}", sample.write()));
        rows.push(Row::new(
            format!("newest {ROWS} texts with a word that is {how}, and with that and another, p99"),
            sample,
            Goal::AtMost(5.0),
        ));
    }
    Ok(rows)
}

/// A common word in what the newest sessions of a campaign said.
fn search_among(bench: &Bench, store: &Store, campaign: CampaignId) -> Outcome<Row> {
    let filter = SessionFilter { campaigns: vec![campaign], ..SessionFilter::default() };
    let listed = block_on(store.list_sessions(&filter, Page::of(PAGE_MOST, None)))?.rows;
    let sessions: Vec<SessionId> = listed.into_iter().map(|view| view.id).collect();
    let word = words::of_rank(90);
    let mut p99 = Vec::new();
    for _ in 0..bench.rounds {
        let mut took = Vec::new();
        for _ in 0..TIMES / 3 {
            let among = Some(Among { sessions: sessions.clone(), tickets: false });
            took.push(time(|| Ok(block_on(store.search(&word, among, Page::of(ROWS, None)))?.rows.len()))?.0);
        }
        p99.push(percentile(&mut took, 99.0));
    }
    let sample = Sample::new(Unit::Milliseconds, p99);
    say(&format!("  search among {} sessions: {}", sessions.len(), sample.write()));
    let what =
        format!("newest {ROWS} texts with a common word in {} sessions of a campaign, p99", sessions.len());
    Ok(Row::new(what, sample, Goal::AtMost(5.0)))
}

/// Percentiles of the rounds, both sides.
#[derive(Default)]
struct Compared {
    ours: Vec<f64>,
    raw: Vec<f64>,
}

impl Compared {
    fn row(self, what: String, goal: Goal) -> Row {
        let sample = |values| Sample::new(Unit::Milliseconds, values);
        Row::new(what, sample(self.ours), goal).beside(sample(self.raw))
    }
}

/// Asks for the same on both sides. Somebody else is asked first: what is compared is the answering, not which of the two
/// is the first to read from the disk.
fn ask_both(
    what: &str,
    ours: impl FnOnce() -> Outcome<usize>,
    plain: impl Fn(&Connection) -> Outcome<usize>,
    sides: &Plain,
) -> Outcome<(f64, f64)> {
    plain(&sides.before)?;
    let (ours, found) = time(ours)?;
    let (raw, there) = time(|| plain(&sides.raw))?;
    if found == there {
        Ok((ours, raw))
    } else {
        Err(format!("{what}: {found} rows, and {there} by the plain query").into())
    }
}

fn compare(bench: &Bench, what: &str, mut both: impl FnMut() -> Outcome<(f64, f64)>) -> Outcome<Compared> {
    let mut compared = Compared::default();
    for round in 1..=bench.rounds {
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let (one, other) = both()?;
            ours.push(one);
            raw.push(other);
        }
        compared.ours.push(percentile(&mut ours, 99.0));
        compared.raw.push(percentile(&mut raw, 99.0));
        let p50 = [&mut ours, &mut raw].map(|values| percentile(values, 50.0));
        say(&format!(
            "  round {round}: {what}: p50 {:.2} / {:.2} ms, p99 {:.2} / {:.2} ms",
            p50[0],
            p50[1],
            compared.ours[round - 1],
            compared.raw[round - 1]
        ));
    }
    Ok(compared)
}

fn time(ask: impl FnOnce() -> Outcome<usize>) -> Outcome<(f64, usize)> {
    let began = Instant::now();
    let found = ask()?;
    Ok((milliseconds(began.elapsed()), found))
}

/// The texts that a plain query gives, counted.
fn texts(raw: &Connection, sql: &str, params: &[&dyn ToSql]) -> Outcome<usize> {
    let mut statement = raw.prepare_cached(sql)?;
    let texts = statement.query_map(params, |row| row.get::<_, Option<String>>(0))?;
    Ok(texts.collect::<Result<Vec<_>, _>>()?.len())
}
