//! Reads values out of a TOML file, each where it stands. What is wrong is noted, and the rest is read on.

use std::{marker::PhantomData, ops::RangeInclusive, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Fault;
use crate::{
    text::{nearest, one_line},
    time::span,
};

type Value<'a> = Spanned<DeValue<'a>>;

/// The text and what is wrong with it so far.
pub(super) struct Reader<'a> {
    text: PhantomData<&'a str>,
    /// Where lines end: a plan has thousands of keys, and each has a line.
    ends: Vec<usize>,
    pub(super) faults: Vec<Fault>,
}

/// One table of the file, with the keys that it may have.
#[derive(Clone, Copy)]
pub(super) struct Section<'t, 'a> {
    pub(super) table: &'t DeTable<'a>,
    /// `an agent`, `[limits]`.
    what: &'static str,
    /// Where it begins.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Self { text: PhantomData, ends, faults: Vec::new() }
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end < at) + 1
    }

    pub(super) fn fault(&mut self, at: usize, message: impl Into<String>) -> &mut Fault {
        let line = self.line(at);
        self.faults.push(Fault::new(Some(line), message));
        self.faults.last_mut().unwrap_or_else(|| unreachable!("one was just added"))
    }

    fn wrong(&mut self, at: usize, key: &str, found: &DeValue<'_>, expected: &str) {
        let found = match found {
            DeValue::String(text) => format!("\"{}\"", one_line(text, 40)),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.fault(at, format!("{key} is {found}; expected: {expected}"));
    }

    /// A table whose keys are among the known ones; others are noted.
    pub(super) fn section<'t>(
        &mut self,
        table: &'t DeTable<'a>,
        what: &'static str,
        at: usize,
        known: &[&str],
    ) -> Section<'t, 'a> {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("there are: {}", known.join(" ")),
            };
            let shown = one_line(name, 40);
            self.fault(key.span().start, format!("{what} has no key \"{shown}\"")).hint = Some(hint);
        }
        Section { table, what, at }
    }

    /// A table within another one.
    pub(super) fn inner<'t>(
        &mut self,
        section: Section<'t, 'a>,
        key: &str,
        what: &'static str,
        known: &[&str],
    ) -> Option<Section<'t, 'a>> {
        let (table, at) = self.any_table(section, key)?;
        Some(self.section(table, what, at, known))
    }

    /// A table with any keys.
    pub(super) fn any_table<'t>(
        &mut self,
        section: Section<'t, 'a>,
        key: &str,
    ) -> Option<(&'t DeTable<'a>, usize)> {
        let value = section.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span().start)),
            other => {
                self.wrong(value.span().start, key, other, "a table");
                None
            }
        }
    }

    pub(super) fn text(&mut self, section: Section<'_, 'a>, key: &str) -> Option<String> {
        self.word(section, key, "a text in quotes", |text| Some(text.to_owned()))
    }

    /// A text that is somebody's word for something.
    pub(super) fn word<T>(
        &mut self,
        section: Section<'_, 'a>,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = section.get(key)?;
        self.word_of(value, key, expected, parse)
    }

    pub(super) fn word_of<T>(
        &mut self,
        value: &Value<'a>,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let parsed = value.get_ref().as_str().and_then(parse);
        if parsed.is_none() {
            self.wrong(value.span().start, key, value.get_ref(), expected);
        }
        parsed
    }

    /// A text that must be there.
    pub(super) fn needed<T>(
        &mut self,
        section: Section<'_, 'a>,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if section.get(key).is_none() {
            self.fault(section.at, format!("{} has no {key}", section.what)).hint =
                Some(format!("{key} = {expected}"));
            return None;
        }
        self.word(section, key, expected, parse)
    }

    pub(super) fn number(
        &mut self,
        section: Section<'_, 'a>,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let value = section.get(key)?;
        self.number_of(value, key, range)
    }

    pub(super) fn number_of(
        &mut self,
        value: &Value<'a>,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            // A parameter's value is a text.
            DeValue::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            self.wrong(value.span().start, key, value.get_ref(), &expected);
        }
        number
    }

    pub(super) fn flag(&mut self, section: Section<'_, 'a>, key: &str) -> Option<bool> {
        let value = section.get(key)?;
        let flag = flag_of(value.get_ref());
        if flag.is_none() {
            self.wrong(value.span().start, key, value.get_ref(), "true or false");
        }
        flag
    }

    pub(super) fn span(&mut self, section: Section<'_, 'a>, key: &str) -> Option<Duration> {
        let some = |text: &str| span(text).filter(|span| !span.is_zero());
        self.word(section, key, "a span of time such as 90s, 10m or 2h", some)
    }

    /// A list, each part of it read by itself.
    pub(super) fn list<T>(
        &mut self,
        section: Section<'_, 'a>,
        key: &str,
        mut each: impl FnMut(&mut Self, &Value<'a>) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = section.get(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().filter_map(|one| each(self, one)).collect(),
            other => {
                self.wrong(value.span().start, key, other, "a list in [ ]");
                Vec::new()
            }
        }
    }

    /// Notes that a value is none of those that a key may have.
    pub(super) fn refuse(&mut self, value: &Value<'a>, key: &str, expected: &str) {
        self.wrong(value.span().start, key, value.get_ref(), expected);
    }
}

impl<'t, 'a> Section<'t, 'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'t Value<'a>> {
        self.table.get(key)
    }

    /// Where a key of it stands; it itself where it has no such key.
    pub(super) fn at(&self, key: &str) -> usize {
        let entry = self.table.iter().find(|(name, _)| name.get_ref() == key);
        entry.map_or(self.at, |(name, _)| name.span().start)
    }
}

pub(super) fn flag_of(value: &DeValue<'_>) -> Option<bool> {
    match value {
        DeValue::Boolean(flag) => Some(*flag),
        DeValue::String(text) => text.parse().ok(),
        _ => None,
    }
}
