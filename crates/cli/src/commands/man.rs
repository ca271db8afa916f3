//! `ostler man`: manual pages, made from the same tree as the help.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use clap_mangen::Man;
use ostler_domain::Refusal;

use crate::{Program, app::App, args, exit_code, failure::Failure, output::Line, words};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command that the page is about [default: ostler itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write all pages into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(app: &App, args: &ManArgs) -> Result<u8, Failure> {
    let tree = args::command(app.program.version);
    let edition = Edition::of(&app.program);
    match &args.dir {
        Some(dir) => {
            let count = write_all(&tree, dir, &edition).map_err(|error| {
                Refusal::invalid(format!("the pages cannot be written to {}", dir.display()))
                    .because(error.to_string())
            })?;
            app.ui.remark(&Line::of(format!(
                "{} in {}",
                words::plural(count, "page", "pages"),
                dir.display()
            )));
        }
        None => {
            let page = page(&tree, &args.command, &edition)?;
            if !(app.ui.terminals().stdout_is_terminal && is_read_with_man(&page)) {
                app.ui.bytes(&page)?;
            }
        }
    }
    Ok(exit_code::OK)
}

fn page(tree: &clap::Command, path: &[String], edition: &Edition) -> Result<Vec<u8>, Failure> {
    let mut command = tree;
    for word in path {
        command = command.find_subcommand(word).ok_or_else(|| {
            Refusal::invalid(format!("there is no command \"ostler {}\"", path.join(" ")))
                .hint("ostler help", "lists the commands")
        })?;
    }
    rendered(command, edition)
        .map_err(|error| Refusal::internal(format!("the page cannot be made: {error}")).into())
}

/// What the head and the foot of each page say. Made of the sources alone: the same ones give the same pages.
pub(crate) struct Edition {
    version: String,
    /// The day of the commit, where that is known.
    date: String,
}

impl Edition {
    pub(crate) fn of(program: &Program) -> Self {
        let date = program.commit.and_then(|commit| commit.split_once(' ')).map(|(_, date)| date);
        Self { version: format!("ostler {}", program.version), date: date.unwrap_or_default().to_owned() }
    }
}

fn rendered(command: &clap::Command, edition: &Edition) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name(command).to_uppercase()).date(&edition.date);
    man.source(&edition.version).manual("Ostler").render(&mut page)?;
    Ok(page)
}

/// As `man` finds it: `ostler-campaign-add`.
fn name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

pub(crate) fn write_all(tree: &clap::Command, dir: &Path, edition: &Edition) -> io::Result<u64> {
    fs::create_dir_all(dir)?;
    let mut written = 0;
    let mut commands = vec![tree];
    while let Some(command) = commands.pop() {
        fs::write(dir.join(format!("{}.1", name(command))), rendered(command, edition)?)?;
        written += 1;
        commands
            .extend(command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help"));
    }
    Ok(written)
}

/// Says whether somebody with a terminal could read it the usual way.
fn is_read_with_man(page: &[u8]) -> bool {
    use io::Write;
    let Ok(mut man) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    let written = man.stdin.take().map(|mut stdin| stdin.write_all(page));
    let is_read = man.wait().is_ok_and(|status| status.success());
    is_read && written.is_some_and(|written| written.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition() -> Edition {
        let (version, commit) = ("0.0.0", Some("abc1234 2026-11-16"));
        Edition::of(&Program { version, commit, path: PathBuf::new() })
    }

    #[test]
    fn a_page_says_of_which_version_and_day_it_is() {
        let page = page(&args::command("0.0.0"), &["ls".to_owned()], &edition()).unwrap();
        let page = String::from_utf8(page).unwrap();
        let head = page.lines().find(|line| line.starts_with(".TH")).unwrap();
        insta::assert_snapshot!(head, @r#".TH OSTLER-LS 1 2026-11-16 "ostler 0.0.0" Ostler"#);
    }

    #[test]
    fn every_command_that_help_shows_has_a_page() {
        let tree = args::command("0.0.0");
        let dir = tempfile::tempdir().unwrap();
        let written = write_all(&tree, dir.path(), &edition()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count() as u64, written);
        let page = fs::read_to_string(dir.path().join("ostler-campaign-add.1")).unwrap();
        assert!(page.contains("ostler\\-campaign\\-add") || page.contains("ostler-campaign-add"), "{page}");
        assert!(page.contains("SYNOPSIS") && page.contains("OPTIONS"));
    }

    #[test]
    fn a_page_of_nothing_is_refused() {
        assert!(page(&args::command("0.0.0"), &["levitate".to_owned()], &edition()).is_err());
        assert!(
            page(&args::command("0.0.0"), &["campaign".to_owned(), "add".to_owned()], &edition()).is_ok()
        );
    }
}
