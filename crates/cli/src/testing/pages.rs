//! Command lines on the pages that people begin with: each must be one that this program understands.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use clap::error::ErrorKind;

use crate::args::parse;

/// The README, and every page below `docs`.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.join("README.md")];
    let mut dirs = vec![root.join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md" || ending == "txt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A command line on a page.
struct Shown {
    line: String,
    /// Within a sentence, where the name of a command may stand for it.
    is_prose: bool,
}

fn shown(text: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if let Some(typed) = line.strip_prefix("$ ").or_else(|| line.strip_prefix(": ")) {
            // What follows a remark's sign, or another command, is another matter.
            let typed = typed.split("  #").next().unwrap_or(typed);
            let commands = typed.split(" && ").flat_map(|part| part.split("; "));
            found.extend(commands.map(|line| Shown { line: line.to_owned(), is_prose: false }));
        } else if !is_fenced {
            let quoted = line.split('`').skip(1).step_by(2);
            let commands = quoted.flat_map(|part| part.split(" && "));
            found.extend(commands.map(|line| Shown { line: line.to_owned(), is_prose: true }));
        }
    }
    found.retain_mut(|shown| {
        shown.line = command_of(&shown.line, shown.is_prose);
        shown.line.starts_with("ostler ") && !is_no_command(&shown.line)
    });
    found
}

/// The command alone: without what is done with its output, and in prose without the signs for what may be left out or
/// chosen.
fn command_of(line: &str, is_prose: bool) -> String {
    let line = line.trim().trim_start_matches("sudo ");
    let line = if is_prose { line } else { line.split("  ").next().unwrap_or(line) };
    let line = [" > ", " >> ", " | "].iter().fold(line, |line, sign| line.split(sign).next().unwrap_or(line));
    if !is_prose {
        return line.trim().to_owned();
    }
    let words = line.replace(['[', ']', '\\'], "");
    words.split(' ').map(|word| word.split('|').next().unwrap_or(word)).collect::<Vec<_>>().join(" ")
}

/// What people do not type: `ostler 0.1.0 (…)` is said, and `ostler internal …` is started by Ostler itself.
fn is_no_command(line: &str) -> bool {
    let rest = line.trim_start_matches("ostler ");
    rest.starts_with("internal") || rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '…')
}

/// Words as a shell takes them apart; `$(…)` and the like are not looked into.
fn words(line: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

#[test]
fn commands_on_the_pages_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    let pages = pages(&root);
    assert!(pages.len() > 30, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let page = page.strip_prefix(&root).unwrap().display().to_string();
        for Shown { line, is_prose } in shown(&text) {
            match parse(&words(&line), "0.0.0") {
                Ok(_) => {}
                // A sentence may speak of `ostler show` without saying of what, and of `--budget AMOUNT`.
                Err(error)
                    if is_prose
                        && matches!(
                            error.kind(),
                            ErrorKind::MissingRequiredArgument
                                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                                | ErrorKind::InvalidValue
                                | ErrorKind::ValueValidation
                        ) => {}
                Err(error) => wrong.push(format!(
                    "{page}: {line}\n    {}",
                    error.to_string().lines().next().unwrap_or_default()
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_are_found_and_taken_apart() {
    let page = "Say `ostler show` or `sudo ostler x`.\n```console\n$ cd a && ostler run -d \"it's on\"   # now\n```\n";
    let lines: Vec<(String, bool)> = shown(page).into_iter().map(|one| (one.line, one.is_prose)).collect();
    assert_eq!(
        lines,
        [
            ("ostler show".to_owned(), true),
            ("ostler x".to_owned(), true),
            ("ostler run -d \"it's on\"".to_owned(), false)
        ]
    );
    assert_eq!(command_of("ostler ticket done|fail X [-m WHY]", true), "ostler ticket done X -m WHY");
    assert_eq!(command_of("ostler ls     what runs", false), "ostler ls");
    assert_eq!(command_of("ostler sql -f a.sql > b.csv", false), "ostler sql -f a.sql");
    assert_eq!(words("ostler run '{\"a\":1}' \"\""), ["ostler", "run", "{\"a\":1}", ""]);
}
