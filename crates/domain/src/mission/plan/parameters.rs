//! Parameters of a plan: `{{name}}` in any of its texts, declared with what they are for.
//!
//! They are put into values that were already read, so that no value can become a key or a table, and put in once: braces in
//! a parameter's value are the value's own. `{{!name}}` is the text `{{name}}`.

use std::collections::BTreeMap;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Fault, reader::Reader};
use crate::text::{nearest, one_line};

/// Before a name, says that the braces are meant as they stand.
const LITERAL: &str = "!";

/// Something that whoever starts the mission says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameter {
    /// What it is for.
    pub about: String,
    /// None for one that must be said.
    pub default: Option<String>,
}

pub(super) fn declared<'a>(reader: &mut Reader<'a>, root: &DeTable<'a>) -> BTreeMap<String, Parameter> {
    let Some(value) = root.get("parameters") else { return BTreeMap::new() };
    let DeValue::Table(table) = value.get_ref() else {
        reader.refuse(value, "parameters", "a table: [parameters]");
        return BTreeMap::new();
    };
    let mut declared = BTreeMap::new();
    for (name, value) in table {
        let parameter = match value.get_ref() {
            // `goal = "what it is for"` must be said; `{ about, default }` need not.
            DeValue::String(about) => Parameter { about: about.to_string(), default: None },
            DeValue::Table(table) => {
                let section = reader.section(table, "a parameter", value.span().start, &["about", "default"]);
                let about = reader.text(section, "about").unwrap_or_default();
                Parameter { about, default: reader.text(section, "default") }
            }
            _ => {
                reader.refuse(value, name.get_ref(), "a text, or { about = \"…\", default = \"…\" }");
                continue;
            }
        };
        if !is_name(name.get_ref()) {
            let message = format!("\"{}\" is no name of a parameter", one_line(name.get_ref(), 40));
            reader.fault(name.span().start, message).hint = Some("letters, digits, - and _".to_owned());
        }
        declared.insert(name.get_ref().to_string(), parameter);
    }
    declared
}

/// Puts the parameters' values where they are named, everywhere but in their own declarations.
pub(super) fn fill<'a>(
    reader: &mut Reader<'a>,
    root: &mut Spanned<DeTable<'a>>,
    given: &BTreeMap<String, String>,
) {
    let declared = declared(reader, root.get_ref());
    for name in given.keys().filter(|name| !declared.contains_key(*name)) {
        let hint = match nearest(name, declared.keys().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None if declared.is_empty() => "it has none".to_owned(),
            None => format!("there are: {}", declared.keys().cloned().collect::<Vec<_>>().join(" ")),
        };
        let message = format!("the plan has no parameter \"{}\"", one_line(name, 40));
        reader.faults.push(Fault::new(None, message).hint(hint));
    }
    let missing: Vec<&String> = declared
        .iter()
        .filter(|(name, parameter)| parameter.default.is_none() && !given.contains_key(*name))
        .map(|(name, _)| name)
        .collect();
    for name in missing {
        let message = format!("the parameter {name} has no value: {}", one_line(&declared[name].about, 120));
        reader.faults.push(Fault::new(None, message).hint(format!("--set {name}=VALUE")));
    }
    let mut values = BTreeMap::new();
    for (name, parameter) in &declared {
        // A value that is missing was told of; its places are no second fault.
        let value = given.get(name).or(parameter.default.as_ref()).cloned().unwrap_or_else(|| "x".to_owned());
        values.insert(name.as_str(), value);
    }
    for (name, value) in root.get_mut().iter_mut() {
        if name.get_ref() != "parameters" {
            fill_value(reader, value, &values);
        }
    }
}

fn fill_value<'a>(
    reader: &mut Reader<'a>,
    value: &mut Spanned<DeValue<'a>>,
    values: &BTreeMap<&str, String>,
) {
    let at = value.span().start;
    match value.get_mut() {
        DeValue::String(text) if text.contains("{{") => {
            let filled = fill_text(reader, at, text, values);
            *text = filled.into();
        }
        DeValue::Array(list) => list.iter_mut().for_each(|one| fill_value(reader, one, values)),
        DeValue::Table(table) => table.iter_mut().for_each(|(_, one)| fill_value(reader, one, values)),
        _ => {}
    }
}

fn fill_text(reader: &mut Reader<'_>, at: usize, text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, behind)) = next_place(rest) {
        filled.push_str(before);
        rest = behind;
        if let Some(literal) = name.strip_prefix(LITERAL) {
            filled.extend(["{{", literal, "}}"]);
            continue;
        }
        match values.get(name.trim()) {
            Some(value) => filled.push_str(value),
            None => {
                let hint = match nearest(name.trim(), values.keys().copied()) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "declare it in [parameters], or write {{!name}} for the text {{name}}".to_owned(),
                };
                let message = format!("there is no parameter \"{}\"", name.trim());
                reader.fault(at, message).hint = Some(hint);
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The text so that it is itself again when it was filled.
pub(super) fn unfilled(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, behind)) = next_place(rest) {
        kept.extend([before, "{{", LITERAL, name, "}}"]);
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

/// What stands before the next `{{name}}` or `{{!name}}`, what is between its braces, and what is behind it. Other braces are
/// somebody's own.
fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("{{").find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let (name, behind) = rest.strip_prefix("{{")?.split_once("}}")?;
        is_name(name.trim_start_matches(LITERAL).trim()).then_some((before, name, behind))
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
