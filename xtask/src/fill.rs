//! `cargo xtask fill`: a realistic store of any size.

use std::{env, path::Path};

use crate::{
    Failure,
    program::{Profile, build, command, succeed},
};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    let mut options = options.to_vec();
    let Some(place) = options.iter().position(|option| option == "--home").map(|at| at + 1) else {
        return Err(Failure::Usage("fill takes the home to fill: --home DIR".to_owned()));
    };
    // Meant from where the caller stands, not from where the program is started.
    if let (Some(home), Ok(here)) = (options.get_mut(place), env::current_dir()) {
        *home = here.join(Path::new(home)).display().to_string();
    }
    let programs = build(Profile::Release, &["ostler-bench"])?;
    succeed(command(programs.join("ostler-bench")).arg("fill").args(&options))
}
