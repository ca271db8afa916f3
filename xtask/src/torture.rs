//! `cargo xtask torture`: kills the daemon again and again under load, and then counts.

use crate::{
    Failure,
    program::{Profile, build, command, succeed},
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    // With its assertions: whoever breaks a promise is to stumble over them.
    let programs = build(Profile::Debug, &["ostler", "ostler-bench"])?;
    let mut torture = command(programs.join("ostler-bench"));
    succeed(torture.arg("torture").arg("--ostler").arg(programs.join("ostler")).args(options))
}
