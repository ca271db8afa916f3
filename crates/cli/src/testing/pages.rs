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
        shown.line = shown.line.trim().trim_start_matches("sudo ").to_owned();
        shown.line.starts_with("ostler ")
    });
    found
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
                // A sentence may speak of `ostler show` without saying of what.
                Err(error)
                    if is_prose
                        && matches!(
                            error.kind(),
                            ErrorKind::MissingRequiredArgument
                                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
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
    assert_eq!(words("ostler run '{\"a\":1}' \"\""), ["ostler", "run", "{\"a\":1}", ""]);
}
