//! `ostler version`

mod check;

use clap::Args;
use serde::Serialize;

use crate::{app::App, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Whether the daemon, its service and the keepers are this version, and what to do where not (exit 4); asks nobody
    /// outside of this machine
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct VersionForm<'a> {
    version: &'a str,
    /// The commit it was built from; null where that is not known.
    commit: Option<&'a str>,
    /// That one's day.
    date: Option<&'a str>,
}

impl<'a> VersionForm<'a> {
    fn new(version: &'a str, commit: Option<&'a str>) -> Self {
        let (commit, date) = match commit.and_then(|commit| commit.split_once(' ')) {
            Some((commit, date)) => (Some(commit), Some(date)),
            None => (commit, None),
        };
        Self { version, commit, date }
    }
}

pub(crate) fn run(app: &App, args: &VersionArgs) -> Result<u8, Failure> {
    if args.check {
        return super::with_runtime(check::run(app));
    }
    let (version, commit) = (app.program.version, app.program.commit);
    if app.ui.is_json() {
        app.ui.json(&VersionForm::new(version, commit))?;
    } else {
        app.ui.data(&Line::of(words(version, commit)))?;
    }
    Ok(exit_code::OK)
}

fn words(version: &str, commit: Option<&str>) -> String {
    match commit {
        Some(commit) => format!("ostler {version} ({commit})"),
        None => format!("ostler {version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_commit_where_that_is_known() {
        assert_eq!(words("0.1.0", Some("abc1234 2026-11-16")), "ostler 0.1.0 (abc1234 2026-11-16)");
        assert_eq!(words("0.1.0", None), "ostler 0.1.0");
        let form = VersionForm::new("0.1.0", Some("abc1234 2026-11-16"));
        assert_eq!((form.commit, form.date), (Some("abc1234"), Some("2026-11-16")));
        assert_eq!(VersionForm::new("0.1.0", None).commit, None);
    }
}
