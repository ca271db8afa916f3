//! The demo.
use crate::{app::App, failure::Failure};
pub(crate) fn run(_: &App, _: bool) -> Result<u8, Failure> { Ok(0) }
