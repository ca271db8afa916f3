//! P3: bytes that reach the disk for an event of 300 bytes. Nothing is to be reached; it is to be known.

use std::{path::Path, thread};

use super::{Bench, p1, p9};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit},
    rig::{procfs, raw::Raw},
};

const RAW_THREAD: &str = "raw-write";
/// Events of a raw run: many checkpoints, so that the last one does not show.
const EVENTS: u64 = 300_000;

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let (mut backlog, mut raw_large, mut raw_small) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        backlog.push(p1::ingest(&bench.dir)?.written);
        raw_large.push(raw(&bench.dir, 1_000)?);
        raw_small.push(raw(&bench.dir, 100)?);
    }
    let loads = p9::full_load(bench)?;
    let bytes = |values: Vec<f64>| Sample::new(Unit::Bytes, values);
    let steady = bytes(loads.iter().map(|load| load.written).collect());
    let search = bytes(loads.iter().map(|load| load.written_by_search).collect());
    Ok(Section {
        name: "P3",
        rows: vec![
            Row::new(
                "log, index and rows, full backlog (raw in batches of 1000)",
                bytes(backlog),
                Goal::Shown,
            )
            .beside(bytes(raw_large)),
            Row::new("the same, 500 sessions × 20/s (raw in batches of 100)", steady, Goal::Shown)
                .beside(bytes(raw_small)),
            Row::new("the search index, 500 sessions × 20/s", search, Goal::Shown),
        ],
        notes: Vec::new(),
    })
}

/// Bytes written for an event by the raw writer, on a thread of its own.
fn raw(dir: &Path, batch: u64) -> Outcome<f64> {
    let mut raw = Raw::create(dir)?;
    let run = move || -> Outcome<u64> {
        raw.insert(EVENTS, batch)?;
        Ok(procfs::threads(std::process::id()).get(RAW_THREAD).map_or(0, |used| used.written))
    };
    let written = thread::Builder::new().name(RAW_THREAD.to_owned()).spawn(run)?.join();
    Ok(written.map_err(|_| "the raw writer panicked")?? as f64 / EVENTS as f64)
}
