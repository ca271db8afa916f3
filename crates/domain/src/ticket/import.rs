//! Work that another tracker has: checklists in markdown, beads' JSONL, GitHub's issues as `gh` prints them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{About, EXTERNAL_BYTES, ExternalRef, Status, Ticket, TicketFault};
use crate::TicketId;

/// Most tickets of one import.
pub const IMPORTED: usize = 5_000;

/// One ticket of another tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub external: ExternalRef,
    pub about: About,
    /// How it stands there.
    pub status: Status,
    pub depends_on: Vec<ExternalRef>,
}

/// What came of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub external: ExternalRef,
    /// None where it would only be written down.
    pub id: Option<TicketId>,
    pub change: ImportChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportChange {
    Added,
    Changed,
    Same,
}

impl ImportChange {
    pub const fn as_str(self) -> &'static str {
        match self {
            ImportChange::Added => "added",
            ImportChange::Changed => "changed",
            ImportChange::Same => "same",
        }
    }
}

/// In which form a tracker's work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Beads,
    Github,
}

impl Format {
    pub const ALL: [Format; 3] = [Format::Markdown, Format::Beads, Format::Github];

    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Markdown => "markdown",
            Format::Beads => "beads",
            Format::Github => "github",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }

    /// The form that files of such a name have, where it says so.
    pub fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "md" | "markdown" => Some(Format::Markdown),
            "jsonl" => Some(Format::Beads),
            "json" => Some(Format::Github),
            _ => None,
        }
    }
}

/// Reads work. `source` is the name of the file: items of a checklist have no other.
pub fn read(format: Format, text: &str, source: &str) -> Result<Vec<Work>, TicketFault> {
    let work = match format {
        Format::Markdown => markdown(text, source)?,
        Format::Beads => beads(text)?,
        Format::Github => github(text)?,
    };
    if work.len() > IMPORTED {
        return Err(TicketFault(format!(
            "{} tickets are more than one import takes: {IMPORTED}",
            work.len()
        )));
    }
    let mut seen = BTreeMap::new();
    for (place, one) in work.iter().enumerate() {
        if let Some(first) = seen.insert(&one.external, place + 1) {
            return Err(TicketFault(format!(
                "{} is there twice: number {first} and {}",
                one.external,
                place + 1
            )));
        }
    }
    Ok(work)
}

impl Work {
    /// What it brings to a ticket that is there: another text, and an end where the ticket has none.
    pub fn about_for(&self, there: &Ticket) -> Option<&About> {
        (self.about != there.about).then_some(&self.about)
    }

    /// How the ticket is to stand; none where it stays. What runs here is ended here.
    pub fn status_for(&self, there: &Ticket) -> Option<Status> {
        let is_over = matches!(self.status, Status::Done | Status::Cancelled);
        let waits = matches!(there.status, Status::Initialized | Status::Queued);
        Some(self.status).filter(|_| is_over && waits)
    }
}

/// `- [ ] text` and `1. [x] text`, at any depth.
fn markdown(text: &str, source: &str) -> Result<Vec<Work>, TicketFault> {
    let source = end_of_path(source, EXTERNAL_BYTES / 3);
    let source: String = source.chars().map(|c| if c.is_whitespace() { '-' } else { c }).collect();
    let mut taken = BTreeSet::new();
    // How often each text was there: what says the same many times is not counted from the beginning each time.
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    let mut work = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        // What is shown within a fence is an example of a list, and none.
        if let Some(open) = fence {
            fence = Some(open).filter(|open| !closes(line, *open));
            continue;
        }
        fence = opened_fence(line);
        let Some((is_done, said)) = item(line) else { continue };
        let text = slug(said, EXTERNAL_BYTES / 2);
        let count = counted.entry(text.clone()).or_default();
        // Another item may say what a number makes of this one: `Fix`, `Fix`, `Fix 2`.
        let slug = loop {
            *count += 1;
            let slug = if *count == 1 { text.clone() } else { format!("{text}-{count}") };
            if taken.insert(slug.clone()) {
                break slug;
            }
        };
        work.push(Work {
            external: reference(&format!("md:{source}#{slug}"))?,
            about: About::new(said, None)?,
            status: if is_done { Status::Done } else { Status::Initialized },
            depends_on: Vec::new(),
        });
    }
    Ok(work)
}

/// The character and the length of the fence that a line opens.
fn opened_fence(line: &str) -> Option<(char, usize)> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix(['-', '*', '+']).map_or(rest, str::trim_start);
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let long = rest.chars().take_while(|c| *c == mark).count();
    // Backticks after it on the same line make it code within a line.
    let is_fence = long >= 3 && (mark == '~' || !rest[long..].contains('`'));
    is_fence.then_some((mark, long))
}

fn closes(line: &str, (mark, long): (char, usize)) -> bool {
    let line = line.trim();
    line.len() >= long && line.chars().all(|c| c == mark)
}

/// As many of the last names of a path as fit.
fn end_of_path(path: &str, most: usize) -> &str {
    let mut rest = path;
    while rest.len() > most
        && let Some((_, below)) = rest.split_once('/')
    {
        rest = below;
    }
    rest
}

/// A line of a checklist: whether it is ticked, and what it says.
fn item(line: &str) -> Option<(bool, &str)> {
    let rest = line.trim_start();
    let numbered = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match numbered.len() < rest.len() {
        true => numbered.strip_prefix(['.', ')'])?,
        false => rest.strip_prefix(['-', '*', '+'])?,
    }
    .trim_start();
    let (is_done, rest) = match rest.get(..3)? {
        "[ ]" => (false, &rest[3..]),
        "[x]" | "[X]" => (true, &rest[3..]),
        _ => return None,
    };
    let said = rest.trim();
    (rest.starts_with(char::is_whitespace) && !said.is_empty()).then_some((is_done, said))
}

/// Letters and digits of a text, with hyphens between.
fn slug(text: &str, most: usize) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if slug.len() + c.len_utf8() > most {
            break;
        }
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "item".to_owned() } else { slug.to_owned() }
}

#[derive(Deserialize)]
struct Bead {
    id: String,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    issue_type: Option<String>,
    #[serde(default)]
    dependencies: Option<Vec<BeadDependency>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BeadDependency {
    Id(String),
    Link {
        #[serde(default)]
        issue_id: Option<String>,
        #[serde(alias = "id")]
        depends_on_id: String,
        #[serde(rename = "type", alias = "dependency_type", default)]
        kind: Option<String>,
    },
}

/// One JSON object a line.
fn beads(text: &str) -> Result<Vec<Work>, TicketFault> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            let within = |fault: String| TicketFault(format!("line {}: {fault}", place + 1));
            let bead: Bead = serde_json::from_str(line).map_err(|error| within(error.to_string()))?;
            bead.work().map_err(|fault| within(fault.0))
        })
        .collect()
}

impl Bead {
    fn work(self) -> Result<Work, TicketFault> {
        let status = match self.status.as_deref() {
            Some("closed" | "done") => Status::Done,
            Some("tombstone" | "cancelled") => Status::Cancelled,
            _ => Status::Initialized,
        };
        let waits = self.dependencies.unwrap_or_default().into_iter().filter_map(|on| match on {
            BeadDependency::Id(id) => Some(id),
            BeadDependency::Link { issue_id, depends_on_id, kind } => {
                let is_own = issue_id.is_none_or(|id| id == self.id);
                let blocks = kind.is_none_or(|kind| kind == "blocks");
                (is_own && blocks).then_some(depends_on_id)
            }
        });
        let depends_on =
            waits.map(|id| reference(&format!("bead:{id}"))).collect::<Result<Vec<_>, TicketFault>>()?;
        Ok(Work {
            external: reference(&format!("bead:{}", self.id))?,
            about: About::new(
                &titled(&self.title, self.description.as_deref()),
                kind(self.issue_type.as_deref()),
            )?,
            status,
            depends_on,
        })
    }
}

#[derive(Deserialize)]
struct Issue {
    number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default, rename = "stateReason", alias = "state_reason")]
    state_reason: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

/// What `gh issue list --json number,title,body,state,labels,url` prints; or one of them, as `gh issue view` does.
fn github(text: &str) -> Result<Vec<Work>, TicketFault> {
    let issues: Vec<Issue> = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map(|issue| vec![issue]),
        false => serde_json::from_str(text),
    }
    .map_err(|error| TicketFault(error.to_string()))?;
    issues.into_iter().map(Issue::work).collect()
}

impl Issue {
    fn work(self) -> Result<Work, TicketFault> {
        let is = |word: &Option<String>, wanted: &str| {
            word.as_deref().is_some_and(|word| word.eq_ignore_ascii_case(wanted))
        };
        let status = match is(&self.state, "closed") {
            true if is(&self.state_reason, "not_planned") => Status::Cancelled,
            true => Status::Done,
            false => Status::Initialized,
        };
        let repository = self.url.as_deref().and_then(repository).unwrap_or_default();
        let labelled = |wanted: &[&str]| {
            self.labels.iter().any(|label| wanted.iter().any(|word| label.name.eq_ignore_ascii_case(word)))
        };
        let kind = match () {
            () if labelled(&["bug"]) => "bug",
            () if labelled(&["enhancement", "feature"]) => "feature",
            () => super::USUAL_TYPE,
        };
        Ok(Work {
            external: reference(&format!("gh:{repository}#{}", self.number))?,
            about: About::new(&titled(&self.title, self.body.as_deref()), Some(kind))?,
            status,
            depends_on: Vec::new(),
        })
    }
}

/// Owner and name, which are one repository's alone: `ann/shop` of `https://github.com/ann/shop/issues/412`.
fn repository(url: &str) -> Option<String> {
    let mut parts = url.rsplit('/').skip(2);
    let (name, owner) = (parts.next()?, parts.next()?);
    Some(format!("{owner}/{name}"))
}

fn titled(title: &str, body: Option<&str>) -> String {
    match body.map(str::trim).filter(|body| !body.is_empty()) {
        Some(body) => format!("{}\n\n{body}", title.trim()),
        None => title.trim().to_owned(),
    }
}

/// A type of another tracker, as far as it is a word of ours.
fn kind(text: Option<&str>) -> Option<&str> {
    text.filter(|kind| About::new("x", Some(kind)).is_ok())
}

fn reference(text: &str) -> Result<ExternalRef, TicketFault> {
    text.parse().map_err(|_| TicketFault(format!("{text:?} cannot be a reference")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(work: &[Work]) -> Vec<(&str, &str, Status)> {
        work.iter().map(|one| (one.external.as_str(), one.about.title(), one.status)).collect()
    }

    #[test]
    fn a_checklist_has_its_items() {
        let text = "# Plan\n\n- [ ] Fix the login\n  * [x] Write a test\n- no item\n- [ ]\n- [X] Fix the login\n+ [ ] Ünïcode!\n- [y] no\n1. [ ] Count\n  12) [x] Count on\n3 [ ] no\n";
        let work = read(Format::Markdown, text, "to do.md").unwrap();
        let elsewhere = read(Format::Markdown, "- [ ] x", "docs/to do.md").unwrap();
        assert_eq!(elsewhere[0].external.as_str(), "md:docs/to-do.md#x", "another file is other work");
        let deep = format!("{}/todo.md", "deep/".repeat(60));
        assert!(read(Format::Markdown, "- [ ] x", &deep).is_ok());
        let expected = [
            ("md:to-do.md#fix-the-login", "Fix the login", Status::Initialized),
            ("md:to-do.md#write-a-test", "Write a test", Status::Done),
            ("md:to-do.md#fix-the-login-2", "Fix the login", Status::Done),
            ("md:to-do.md#ünïcode", "Ünïcode!", Status::Initialized),
            ("md:to-do.md#count", "Count", Status::Initialized),
            ("md:to-do.md#count-on", "Count on", Status::Done),
        ];
        assert_eq!(shown(&work), expected);
        let shown_in_fences = "```md\n- [ ] an example\n~~~\n```\n- [ ] real\n~~~~\n- [ ] a\n~~~\n- [ ] b\n~~~~~\n- ```\n  - [ ] c\n  ```\n```x``` is code\n* [x] real too\n";
        let titles = read(Format::Markdown, shown_in_fences, "a").unwrap();
        let titles: Vec<&str> = titles.iter().map(|one| one.about.title()).collect();
        assert_eq!(titles, ["real", "real too"]);
        assert!(read(Format::Markdown, &format!("- [ ] {}", "long ".repeat(300)), "x.md").is_ok());
        let counted = read(Format::Markdown, "- [ ] Fix\n- [ ] Fix\n- [ ] Fix 2\n- [ ] Fix\n", "a").unwrap();
        let references: Vec<&str> = counted.iter().map(|one| one.external.as_str()).collect();
        assert_eq!(references, ["md:a#fix", "md:a#fix-2", "md:a#fix-2-2", "md:a#fix-3"]);
    }

    #[test]
    fn beads_have_their_dependencies() {
        let text = r#"{"id":"gt-1","title":"One","description":"All of it.","status":"open","issue_type":"bug","dependencies":[{"issue_id":"gt-1","depends_on_id":"gt-2","type":"blocks"},{"issue_id":"gt-1","depends_on_id":"gt-3","type":"related"}],"priority":1}

{"id":"gt-2","title":"Two","status":"closed","dependencies":["gt-9"]}"#;
        let work = read(Format::Beads, text, "issues.jsonl").unwrap();
        let expected = [("bead:gt-1", "One", Status::Initialized), ("bead:gt-2", "Two", Status::Done)];
        assert_eq!(shown(&work), expected);
        assert_eq!(work[0].about.intent, "One\n\nAll of it.");
        assert_eq!(work[0].about.kind, "bug");
        let on = |place: usize| work[place].depends_on.iter().map(ExternalRef::as_str).collect::<Vec<_>>();
        assert_eq!((on(0), on(1)), (vec!["bead:gt-2"], vec!["bead:gt-9"]));
        let fault = read(Format::Beads, "{\"id\":\"a\",\"title\":\"x\"}\nnonsense", "x").unwrap_err();
        assert!(fault.0.starts_with("line 2: "), "{fault}");
    }

    #[test]
    fn issues_have_their_repository() {
        let text = r#"[{"number":412,"title":"Login fails","body":"At noon.","state":"OPEN","labels":[{"name":"Bug"}],"url":"https://github.com/ann/shop/issues/412"},
            {"number":7,"title":"Old","body":"","state":"CLOSED","stateReason":"NOT_PLANNED","labels":[],"url":"https://github.com/ann/shop/issues/7"},
            {"number":8,"title":"Newer","state":"CLOSED"}]"#;
        let work = read(Format::Github, text, "issues.json").unwrap();
        let expected = [
            ("gh:ann/shop#412", "Login fails", Status::Initialized),
            ("gh:ann/shop#7", "Old", Status::Cancelled),
            ("gh:#8", "Newer", Status::Done),
        ];
        assert_eq!(shown(&work), expected);
        assert_eq!(work[0].about.kind, "bug");
        assert!(read(Format::Github, "{}", "x").is_err());
        let one = r#"{"number":9,"title":"Alone","state":"closed","state_reason":"not_planned","url":"https://api.github.com/repos/ann/shop/issues/9"}"#;
        let one = read(Format::Github, one, "issue.json").unwrap();
        assert_eq!(shown(&one), [("gh:ann/shop#9", "Alone", Status::Cancelled)]);
    }

    #[test]
    fn a_reference_that_is_there_twice_is_refused() {
        let text = "{\"id\":\"a\",\"title\":\"x\"}\n{\"id\":\"a\",\"title\":\"y\"}";
        let fault = read(Format::Beads, text, "x").unwrap_err();
        assert_eq!(fault.0, "bead:a is there twice: number 1 and 2");
    }

    proptest::proptest! {
        /// Files of other programs, whole or damaged, are read or refused.
        #[test]
        fn no_file_ends_a_reader(text in "\\PC{0,200}", lines in "(- \\[[ xX]\\] [a-zé#:]{0,12}\n){0,6}") {
            for format in Format::ALL {
                let _ = read(format, &text, &text);
                let _ = read(format, &lines, "todo.md");
            }
        }
    }
}
