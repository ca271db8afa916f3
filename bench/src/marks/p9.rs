//! P9: what a daemon costs while many agents are busy.

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::load::Load,
};

const SESSIONS: u64 = 500;
const PER_SECOND: f64 = 20.0;
/// Real agents: how many at once. Five processes a session take the machine long before the daemon does.
const AGENTS: &[u64] = &[50, 100];

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let loads = full_load(bench)?;
    let cpu = |value: fn(&Load) -> f64| Sample::new(Unit::Percent, loads.iter().map(value));
    let ms = |value: fn(&Load) -> f64| Sample::new(Unit::Milliseconds, loads.iter().map(value));
    let mut rows = vec![
        Row::new(
            "events/s taken in, of 10 000 fed",
            Sample::new(Unit::PerSecond, loads.iter().map(|load| load.events_per_second)),
            Goal::Shown,
        ),
        Row::new(
            format!("daemon, share of one core, {SESSIONS} sessions × {PER_SECOND}/s"),
            cpu(|load| load.cpu),
            Goal::AtMost(25.0),
        ),
        Row::new("the same while one client watches everything", cpu(|load| load.cpu_watched), Goal::Shown),
        Row::new(
            "share of one core for each 1 000 events/s",
            cpu(|load| load.cpu / load.events_per_second * 1_000.0),
            Goal::Shown,
        ),
        Row::new(
            "somebody else's GetSession, p50, beside the same without load",
            ms(|load| load.busy_p50),
            Goal::Shown,
        )
        .beside(ms(|load| load.idle_p50)),
        Row::new("the same, p99", ms(|load| load.busy_p99), Goal::Shown).beside(ms(|load| load.idle_p99)),
    ];
    for count in AGENTS {
        let load = runtime()?.block_on(Load::of_agents(&bench.ostler, *count, PER_SECOND))?;
        say(&format!("  {count} real agents: {load:?}"));
        let one = |unit, value: f64| Sample::new(unit, [value]);
        rows.push(Row::new(
            format!("{count} real agents × {PER_SECOND}/s: events/s"),
            one(Unit::PerSecond, load.events_per_second),
            Goal::Shown,
        ));
        rows.push(Row::new("  daemon, share of one core", one(Unit::Percent, load.cpu), Goal::Shown));
        rows.push(Row::new(
            "  from the tape to a client's watch, p99",
            one(Unit::Milliseconds, load.seen_p99),
            Goal::AtMost(25.0),
        ));
    }
    Ok(Section { name: "P9", rows, notes: loads.last().map(where_the_time_went).into_iter().collect() })
}

fn where_the_time_went(load: &Load) -> String {
    let parts = load.cpu_of_threads.iter().filter(|(_, share)| **share >= 0.2);
    let parts: Vec<String> = parts.map(|(name, share)| format!("`{name}` {share:.1} %")).collect();
    format!("Threads in the last round, in percent of one core: {}.", parts.join(", "))
}

/// The full load, once for every round, measured once for all benchmarks that are about it.
pub(super) fn full_load(bench: &Bench) -> Outcome<&[Load]> {
    if let Some(loads) = bench.full_load.get() {
        return Ok(loads);
    }
    let mut loads = Vec::new();
    for round in 1..=bench.rounds {
        let load = runtime()?.block_on(Load::of_feeder(&bench.ostler, &bench.dir, SESSIONS, PER_SECOND))?;
        say(&format!(
            "  load {round}: {:.0} events/s, daemon {:.1} % of a core",
            load.events_per_second, load.cpu
        ));
        loads.push(load);
    }
    Ok(bench.full_load.get_or_init(|| loads))
}
