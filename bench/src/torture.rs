//! `torture`: the testkit's torture, for as long as one likes.

use std::path::PathBuf;

use ostler_testkit::torture::{self, Plan};

use crate::{
    Outcome,
    report::{Machine, Page, print},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to torture
    #[arg(long)]
    ostler: PathBuf,
    /// Kills of the daemon
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// What decides when and how; the same one again makes the same choices
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long, default_value_t = 50)]
    sessions: usize,
    /// The page on which to write down what was kept
    #[arg(long)]
    results: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    // Every agent is to be at work until the last kill, which comes after 0.2 s on average.
    let lines = 40 * args.rounds.max(5);
    let plan = Plan { sessions: args.sessions, rounds: args.rounds, lines, every_ms: 10, seed };
    print(&format!("torture --rounds {} --sessions {} --seed {seed}", args.rounds, args.sessions));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // A broken promise panics in there, with what was broken.
    let report = runtime.block_on(torture::run(&args.ostler, plan));
    let kept = format!(
        "kept: {} kills ({} during recovery), {} lines each once and in order, {} messages ({} say that nobody knows), slowest restart {} ms",
        report.kills,
        report.kills_in_recovery,
        report.lines,
        report.messages,
        report.unknown,
        report.slowest_restart.as_millis()
    );
    print(&kept);
    if let Some(results) = &args.results {
        let machine = Machine::now(&std::env::temp_dir());
        let sessions = args.sessions;
        let text = format!(
            "`cargo xtask torture --rounds {} --sessions {sessions} --seed {seed}`\n\n**{} kills of the daemon under {sessions} busy sessions: {} lines, 0 lost, 0 doubled, 0 out of order.**\n\n{kept}.\n",
            args.rounds, report.kills, report.lines
        );
        Page::at(results.clone()).put_text("Torture", &text, &machine)?;
    }
    Ok(())
}

fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    // Small requests never fail once the machine is up.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_le_bytes(bytes) >> 1
}
