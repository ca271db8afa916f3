//! Members of a mission that work together: they make it grow, write where they may, hear of collisions and of each other.

mod crashes;
mod forecast;
mod growth;
mod leases;
mod members;
mod merges;
mod progress;
mod providers;
mod words;

use std::path::PathBuf;

use ostler_testkit::TestHome;

use crate::missions::{assignment, json_of};

/// The directory that the members of a mission share, as it is outside.
fn shared(home: &TestHome, mission: &str) -> PathBuf {
    let id = json_of(home, &["mission", "show", mission])["id"].as_str().unwrap().to_owned();
    home.home.state().join("missions").join(id).join("shared")
}

/// Whether a member's agent is in a turn. Its session has an id before there is one.
fn is_working(home: &TestHome, mission: &str, member: &str) -> bool {
    let whole = json_of(home, &["mission", "show", mission]);
    let Some(session) = assignment(&whole, member)["session"].as_str().map(str::to_owned) else {
        return false;
    };
    let shown = home.run(&["show", &session, "-o", "json"]);
    let view = serde_json::from_slice::<serde_json::Value>(&shown.stdout).unwrap_or_default();
    view["status"] == "WORKING"
}
