//! Figures on the first page: each is read from a file that a tool wrote. `OSTLER_BLESS=1` brings the page up to date.

use std::{env, fs};

use crate::{root, text};

const OPEN: &str = "<!-- figure ";
const CLOSE: &str = "<!-- end -->";

/// The value of a figure; none where nobody has measured it yet, and then no page may show it.
fn figure(name: &str) -> Option<String> {
    let results = text("bench/RESULTS.md");
    let attack = text("docs/attack-report.md");
    let attempts = || attack.split_once("**")?.1.split_once(" attempts stopped.**")?.0.split_once(" of ");
    let torture = || {
        let (kills, rest) = results
            .split_once("<!-- Torture measured -->")?
            .1
            .split_once("**")?
            .1
            .split_once(" kills of the daemon")?;
        let (_, lines) = rest.split_once(": ")?;
        let lines = lines.split_once(" lines, 0 lost, 0 doubled")?.0;
        Some((kills, lines))
    };
    let median = |section: &str, row: &str| {
        let (_, part) = results.split_once(&format!("<!-- {section} measured -->"))?;
        let (part, _) = part.split_once(&format!("<!-- {section} end -->"))?;
        let row = part.lines().find(|line| line.starts_with(&format!("| {row}")))?;
        Some(row.split('|').nth(2)?.split('[').next()?.trim().to_owned())
    };
    match name {
        "kills" => torture().map(|(kills, _)| kills.to_owned()),
        "lines" => torture().map(|(_, lines)| lines.to_owned()),
        "stopped" => attempts().map(|(stopped, _)| stopped.to_owned()),
        "attempts" => attempts().map(|(_, made)| made.to_owned()),
        "memory" => median("P12", "daemon, resident, idle"),
        "ls" => median("P7", "`ostler ls -a`"),
        "run" => median("P6", "`ostler run -d`"),
        _ => None,
    }
}

/// A page with its figures as the files have them.
fn up_to_date(page: &str) -> String {
    let mut parts = page.split(OPEN);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->").unwrap();
        let (_, after) = rest.split_once(CLOSE).unwrap_or_else(|| panic!("the figure {name} has no end"));
        let value = figure(name).unwrap_or_else(|| panic!("nobody has measured the figure {name}"));
        text.push_str(&format!("{OPEN}{name} -->{value}{CLOSE}{after}"));
    }
    text
}

#[test]
fn figures_on_the_first_page_are_measured() {
    let page = text("README.md");
    for name in ["kills", "stopped", "attempts"] {
        assert!(page.contains(&format!("{OPEN}{name} -->")), "README.md has no figure {name}");
    }
    let right = up_to_date(&page);
    if env::var_os("OSTLER_BLESS").is_some() {
        fs::write(root().join("README.md"), right).unwrap();
        return;
    }
    assert!(page == right, "README.md does not say what was measured: OSTLER_BLESS=1 cargo test -p xtask");
}
