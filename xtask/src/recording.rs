//! `cargo xtask recording`: plays `docs/demo.txt` in a terminal and draws it into `docs/demo.svg`.

use crate::{
    Failure,
    cargo::root,
    program::{Profile, build, command, succeed},
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    if !options.is_empty() {
        return Err(Failure::Usage("recording takes nothing".to_owned()));
    }
    let programs = build(Profile::Release, &["ostler", "ostler-recording"])?;
    let mut recording = command(programs.join("ostler-recording"));
    recording
        .arg(programs.join("ostler"))
        .arg(root().join("docs/demo.txt"))
        .arg(root().join("docs/demo.svg"));
    succeed(&mut recording)
}
