//! Tests that cannot be run here. Nobody is told that all is well because something was not there to be tried.

/// This machine lacks what a test needs and could have. Whoever checks everything (`CI=true`) must have it; others are told
/// what they do not see.
pub fn lacking(missing: &str) {
    assert!(!is_ci(), "{missing}");
    say(missing);
}

/// This machine cannot have what a test needs, whatever is installed: its kernel, or who runs the tests, says no. That is no
/// failure of Ostler's in CI either, and `CONTRIBUTING.md` names each.
pub fn impossible(test: &str, why: &str) {
    say(&format!("{test}: {why}"));
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1")
}

#[expect(clippy::print_stderr, reason = "a test says what it skips")]
fn say(why: &str) {
    eprintln!("skipped: {why}");
}
