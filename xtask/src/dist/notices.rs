//! The licences of everything that is linked into the program, as they want to be told with it. Cargo knows what that is;
//! the texts are in the sources that it built from.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{Failure, cargo::cargo, program::answer};

/// How the files of a library begin that say under which terms it comes.
const TERMS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// What stands between the fields of a line; no name or licence has it.
const BETWEEN: char = '\t';

/// A library that is a part of the program.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    name: String,
    version: String,
    licence: String,
    repository: String,
}

impl Library {
    /// `serde v1.0.228<TAB>MIT OR Apache-2.0<TAB>https://…`; none of a line that is about this workspace.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(BETWEEN);
        let (package, licence) = (fields.next()?, fields.next()?);
        let mut words = package.split_whitespace();
        let (name, version) = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
        // Those that are built from a directory have it behind them.
        let is_ours = words.any(|word| word.starts_with("(/"));
        let repository = fields.next().unwrap_or_default().to_owned();
        (!is_ours).then(|| Self { name, version, licence: licence.to_owned(), repository })
    }
}

/// What a package says of the libraries in it.
pub(super) fn notices(target: &str) -> Result<String, Failure> {
    let libraries = libraries(target)?;
    let sources = sources()?;
    let mut text = "Ostler is one program. These libraries are a part of it, each under its own terms, \
                    which follow.\n\n"
        .to_owned();
    let mut terms: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for Library { name, version, licence, repository } in &libraries {
        let library = format!("{name} {version}");
        text.push_str(&format!("{library}   {licence}   {repository}\n"));
        let found = sources.get(&format!("{name}-{version}")).map(|dir| terms_in(dir)).unwrap_or_default();
        if found.is_empty() {
            without.push(library.clone());
        }
        for text in found {
            terms.entry(text).or_default().push(library.clone());
        }
    }
    if !without.is_empty() {
        text.push_str(&format!(
            "\nThese name their licence and bring no text of it: {}\n",
            without.join(", ")
        ));
    }
    for (terms, whose) in terms {
        text.push_str(&format!("\n{}\n{}\n\n{terms}\n", "-".repeat(72), whose.join(", ")));
    }
    Ok(text)
}

/// Everything that is linked for a target: not what only builds or tests it.
fn libraries(target: &str) -> Result<BTreeSet<Library>, Failure> {
    let format = format!("{{p}}{BETWEEN}{{l}}{BETWEEN}{{r}}");
    let tree = answer(&mut cargo(&[
        "tree",
        "--locked",
        "--package",
        "ostler",
        "--edges",
        "normal,no-proc-macro",
        "--target",
        target,
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        &format,
    ]))?;
    Ok(tree.lines().filter_map(Library::parse).collect())
}

/// Where the sources of each library are, by `name-version`.
fn sources() -> Result<BTreeMap<String, PathBuf>, Failure> {
    let metadata = answer(&mut cargo(&["metadata", "--locked", "--format-version", "1"]))?;
    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let dir = |manifest: &str| {
        let dir = Path::new(manifest).parent()?;
        Some((dir.file_name()?.to_str()?.to_owned(), dir.to_owned()))
    };
    Ok(manifests.filter_map(dir).collect())
}

/// The texts at the top of the sources, and one directory below: there is what C libraries bring.
fn terms_in(dir: &Path) -> Vec<String> {
    let below = entries(dir).into_iter().filter(|path| path.is_dir()).flat_map(|dir| entries(&dir));
    let is_terms = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && TERMS.iter().any(|word| name.starts_with(word)) && !name.ends_with(".rs")
    };
    let files = entries(dir).into_iter().chain(below).filter(is_terms);
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    let trimmed: BTreeSet<String> = texts.map(|text| text.trim().replace('\r', "")).collect();
    trimmed.into_iter().filter(|text| !text.is_empty()).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_told_with_its_terms() {
        let notices = notices(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).unwrap();
        for name in ["serde ", "rusqlite ", "tokio ", "libsqlite3-sys "] {
            assert!(notices.contains(&format!("\n{name}")), "{name} is not in it");
        }
        // What only tests it, what only builds it, and what is our own.
        for name in ["insta ", "prost-build ", "ostler-domain "] {
            assert!(!notices.contains(&format!("\n{name}")), "{name} is in it");
        }
        assert!(notices.contains("Permission is hereby granted, free of charge"));
        assert!(!notices.contains("bring no text of it: serde"));
    }

    #[test]
    fn a_line_of_the_tree_is_read() {
        let line = "serde v1.0.228\tMIT OR Apache-2.0\thttps://example.org/serde";
        let library = Library::parse(line).unwrap();
        assert_eq!((library.name.as_str(), library.version.as_str()), ("serde", "1.0.228"));
        assert_eq!(library.licence, "MIT OR Apache-2.0");
        assert_eq!(Library::parse("ostler-domain v0.1.0 (/src/domain)\tMIT\t"), None);
    }
}
