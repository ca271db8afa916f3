//! Random kills under load, bounded; `cargo xtask torture` goes on for longer.

use ostler_testkit::{Seed, torture};

use crate::OSTLER;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_under_load_lose_and_double_nothing() {
    let seed = Seed::announced("torture").draw();
    let plan = torture::Plan { sessions: 50, rounds: 12, lines: 150, every_ms: 40, seed };
    let report = torture::run(OSTLER.as_ref(), plan).await;
    eprintln!("{report:?}");
    assert_eq!((report.kills, report.lines), (12, 50 * 150));
}
