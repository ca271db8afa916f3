//! `cargo xtask torture`: kills the daemon again and again under load, and then counts.

use crate::{
    Failure,
    cargo::root,
    program::{Profile, build, command, succeed},
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    // With its assertions: whoever breaks a promise is to stumble over them.
    let programs = build(Profile::Debug, &["ostler", "ostler-bench"])?;
    let mut torture = command(programs.join("ostler-bench"));
    torture.arg("torture").arg("--ostler").arg(programs.join("ostler"));
    let (record, others): (Vec<&String>, Vec<&String>) =
        options.iter().partition(|option| *option == "--record");
    if !record.is_empty() {
        torture.arg("--results").arg(root().join("bench/RESULTS.md"));
    }
    succeed(torture.args(others))
}
