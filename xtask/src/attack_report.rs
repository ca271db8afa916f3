//! `cargo xtask attack-report`: attacks the sandbox and writes `docs/attack-report.md`.

use std::{env, path::Path};

use crate::{
    Failure,
    cargo::root,
    program::{Profile, build, command, succeed},
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    let programs = build(Profile::Release, &["ostler", "ostler-bench"])?;
    let mut attack = command(programs.join("ostler-bench"));
    attack.arg("attack").arg("--ostler").arg(programs.join("ostler"));
    attack.arg("--report").arg(root().join("docs/attack-report.md"));
    match options {
        [] => succeed(&mut attack),
        [from, path] if from == "--from" => {
            let here = env::current_dir().unwrap_or_default();
            succeed(attack.arg("--from").arg(here.join(Path::new(path))))
        }
        _ => Err(Failure::Usage("attack-report takes nothing, or --from FILE".to_owned())),
    }
}
