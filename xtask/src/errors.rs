//! `cargo xtask errors`: writes `docs/errors.md` from the code that gives the errors.

use crate::{Failure, cargo::cargo, program::succeed};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    if let Some(option) = options.first() {
        return Err(Failure::Usage(format!("\"{option}\" is no option of errors")));
    }
    // The test that holds the page against the code also writes it.
    let test = ["test", "--package", "ostler-cli", "--lib", "the_page_of_errors_is_current"];
    succeed(cargo(&test).env("OSTLER_BLESS", "1"))
}
