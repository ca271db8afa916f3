//! The pages: their links lead somewhere, the files they name exist, and the lists that they promise are complete.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{Kind, Reason, session::Outcome};

use crate::{root, text};

/// All pages: those at the top, and those in `docs` and `bench`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut ahead = vec![root().join("docs"), root().join("bench")];
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    pages.extend(
        fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| is_page(path)),
    );
    while let Some(dir) = ahead.pop() {
        for path in fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                ahead.push(path);
            } else if is_page(&path) {
                pages.push(path);
            }
        }
    }
    pages
}

/// A page without its fenced blocks, which show other things than links.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Everything between an opening and the next closing.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(inside, _)| inside).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let prose = prose(&page);
        for link in between(&prose, "](", ')') {
            let path = link.split('#').next().unwrap();
            let is_elsewhere = path.is_empty() || link.contains("://");
            assert!(is_elsewhere || page.parent().unwrap().join(path).exists(), "{}: {link}", page.display());
        }
    }
}

#[test]
fn files_that_are_named_exist() {
    for page in pages() {
        let prose = prose(&page);
        // Every second piece stands between backticks.
        for name in prose.split('`').skip(1).step_by(2) {
            let in_the_tree = ["crates/", "docs/", "examples/", "proto/", "xtask/", "bench/"]
                .iter()
                .any(|dir| name.starts_with(dir));
            let is_pattern = name.contains(['<', '*', '{', '…', ' ']);
            assert!(
                !in_the_tree || is_pattern || root().join(name).exists(),
                "{}: there is no {name}",
                page.display()
            );
        }
    }
}

/// Asserts that a page has each of these words between backticks.
fn has_all<'a>(page: &str, words: impl IntoIterator<Item = &'a str>) {
    let text = text(page);
    let missing: Vec<&str> = words.into_iter().filter(|word| !text.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "{page} does not speak of {missing:?}");
}

#[test]
fn all_event_kinds_are_described() {
    has_all("docs/json.md", Kind::ALL.iter().map(|kind| kind.name()));
}

#[test]
fn all_reasons_outcomes_and_exit_codes_are_described() {
    has_all("docs/errors.md", Reason::ALL.iter().map(|reason| reason.as_str()));
    has_all("docs/exit-codes.md", Outcome::ALL.iter().map(|outcome| outcome.as_str()));
    let codes = text("crates/cli/src/exit_code.rs");
    let codes =
        codes.lines().filter(|line| line.starts_with("pub const ")).filter_map(|line| line.split_once("= "));
    has_all("docs/exit-codes.md", codes.map(|(_, code)| code.trim_end_matches(';')));
}

#[test]
fn all_tables_are_described() {
    for class in ["log", "node", "derived"] {
        let schema = text(format!("crates/store/src/schema/{class}.sql"));
        has_all("docs/store.md", between(&schema, "CREATE TABLE ", '('));
    }
}

/// The fields of a struct, from its source.
fn fields(source: &str, name: &str) -> Vec<String> {
    let source = text(source);
    let (_, rest) =
        source.split_once(&format!("struct {name} {{\n")).unwrap_or_else(|| panic!("there is no {name}"));
    let (inside, _) = rest.split_once("\n}").unwrap();
    // What nobody can write is no setting.
    let mut after_skip = false;
    let is_written = move |line: &&str| {
        let is_field = !line.starts_with("//") && !line.starts_with("#[");
        let is_skipped = is_field && std::mem::take(&mut after_skip);
        after_skip |= *line == "#[serde(skip)]";
        !is_skipped
    };
    let lines = inside
        .lines()
        .map(str::trim)
        .filter(is_written)
        .filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(field, _)| field.trim_start_matches("pub ").to_owned())
        .collect()
}

#[test]
fn all_steps_of_scenarios_are_described() {
    let steps = fields("crates/agent/src/script/scenario.rs", "Fields");
    has_all("docs/script.md", steps.iter().map(String::as_str));
}

#[test]
fn all_settings_are_described() {
    let source = "crates/domain/src/config/mod.rs";
    let sections = [
        ("", source, "Config"),
        ("watchdog.", source, "Watchdogs"),
        ("limits.", source, "Limits"),
        ("sandbox.", source, "SandboxSettings"),
        ("approvals.", source, "Approvals"),
        ("log.", "crates/domain/src/log.rs", "LogSettings"),
        ("otel.", "crates/domain/src/telemetry/mod.rs", "OtelSettings"),
        ("retention.", source, "RetentionSettings"),
        ("import.", source, "ImportSettings"),
        ("http.", source, "HttpSection"),
        ("hub.", source, "HubSection"),
    ];
    let notices = "crates/domain/src/config/notices.rs";
    for told in ["HookSettings", "WebhookSettings", "ChannelSettings"] {
        has_all("docs/config.md", fields(notices, told).iter().map(String::as_str));
    }
    let providers = fields("crates/domain/src/provider.rs", "Settings");
    has_all("docs/config.md", providers.iter().map(String::as_str));
    for (section, source, name) in sections {
        let keys = fields(source, name)
            .into_iter()
            .filter(|key| !sections.iter().any(|(other, _, _)| *other == format!("{key}.")));
        let keys: Vec<String> = keys.map(|key| format!("{section}{key}")).collect();
        has_all("docs/config.md", keys.iter().map(String::as_str));
    }
}

/// All Rust sources of the crates, joined.
fn sources() -> String {
    let mut joined = String::new();
    let mut ahead = vec![root().join("crates")];
    while let Some(dir) = ahead.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                ahead.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                joined.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    joined
}

#[test]
fn tests_that_hold_promises_exist() {
    let sources = sources();
    let page = prose(&root().join("docs/faults.md"));
    let names = page.split('`').skip(1).step_by(2);
    // The names of tests are sentences.
    let tests = names.filter(|name| {
        name.matches('_').count() >= 2 && !name.contains(|c: char| !c.is_ascii_lowercase() && c != '_')
    });
    let missing: Vec<&str> = tests.filter(|test| !sources.contains(&format!("fn {test}("))).collect();
    assert!(missing.is_empty(), "docs/faults.md names tests that do not exist: {missing:?}");
}
