//! `cargo xtask bench`: measures, and rewrites the measured parts of `bench/RESULTS.md`.

use std::fs;

use crate::{
    Failure,
    cargo::{root, target_dir},
    peers,
    program::{Profile, build, command, succeed},
    test::examples,
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    let programs = build(Profile::Release, &["ostler", "ostler-bench"])?;
    // On the disk that holds the workspace: a temporary directory in memory would measure nothing.
    let dir = target_dir().join("bench");
    fs::create_dir_all(&dir).map_err(|error| Failure::Failed(format!("{}: {error}", dir.display())))?;
    let mut bench = command(programs.join("ostler-bench"));
    bench.arg("run").arg("--ostler").arg(programs.join("ostler")).arg("--dir").arg(&dir);
    bench.arg("--results").arg(root().join("bench/RESULTS.md")).env("TMPDIR", &dir);
    let scripts = dir.join("browser");
    match examples::scripts(&scripts, &["browser.mjs", "paint.mjs"]) {
        Ok(()) => drop(bench.env("OSTLER_BENCH_BROWSER", &scripts)),
        Err(why) => eprintln!("xtask: a browser is not measured: {why}"),
    }
    // A benchmark finds its peers where everybody finds programs.
    bench.env("PATH", peers::path(options));
    succeed(bench.args(options))
}
