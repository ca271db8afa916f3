//! Attempts to leave the sandbox, each with somebody outside who looks whether it could.
//!
//! ```text
//! suite ── makes a campaign, canaries, victims and listeners; looks at all of them after each attempt
//!   └─▶ warden ─▶ init ─▶ attempt    one sandbox for each, the real one
//! ```
//!
//! An attempt is stopped if it says so *and* nothing is to be seen of it outside: no canary touched, none read, nobody
//! signalled, nobody connected to, nothing left behind. None of them would do harm if it got through: what they are
//! after was made for them. All `unsafe` is in `sys`.

#![deny(unsafe_code)]

mod attempt;
mod attempts;
mod confined;
mod evidence;
mod scene;
mod stage;
mod suite;
mod sys;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::attempt::Said;
use crate::scene::{SCENE_VARIABLE, Scene};

/// `ostler internal attack NAME`: the half inside. Only the suite starts it.
pub fn inside(name: &str) -> ExitCode {
    let scene = std::env::var(SCENE_VARIABLE).ok().and_then(|text| serde_json::from_str::<Scene>(&text).ok());
    let attempt = attempts::all().find(|attempt| attempt.name == name);
    let (Some(scene), Some(attempt)) = (scene, attempt) else { return ExitCode::from(2) };
    let said = (attempt.run)(&scene);
    tell(&said)
}

fn tell(said: &Said) -> ExitCode {
    let told = serde_json::to_string(said).map_err(io::Error::other);
    match told.and_then(|text| writeln!(io::stdout(), "{text}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// `ostler internal attack-suite [--unconfined] [--owner UID] [NAME…]`: one finding a line, as JSON.
pub fn suite(args: &[OsString]) -> ExitCode {
    suite::run(args)
}
