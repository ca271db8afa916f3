//! Measurements as Prometheus reads them: its text format, version 0.0.4, written and read.
//!
//! No name of a session, a person or a path is ever a label: what a label may say is a short list, and what is beyond
//! [`limits::METRIC_LABELS`](crate::limits::METRIC_LABELS) is counted together as `other`.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use crate::limits::METRIC_LABELS;

/// What counts what the list of names has no room for.
pub const OTHER: &str = "other";

/// What a family's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Only grows, until the daemon starts anew.
    Counter,
    Gauge,
    Histogram,
}

impl Sort {
    const ALL: &'static [Sort] = &[Sort::Counter, Sort::Gauge, Sort::Histogram];

    pub const fn as_str(self) -> &'static str {
        match self {
            Sort::Counter => "counter",
            Sort::Gauge => "gauge",
            Sort::Histogram => "histogram",
        }
    }

    fn parse(text: &str) -> Option<Sort> {
        Sort::ALL.iter().copied().find(|sort| sort.as_str() == text)
    }
}

/// A page of measurements in the making.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a family: all samples of one name.
    pub fn family(&mut self, name: &'static str, sort: Sort, help: &str) -> Family<'_> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", sort.as_str());
        Family { page: &mut self.0, name }
    }

    /// A family of one number without labels.
    pub fn single(&mut self, name: &'static str, sort: Sort, help: &str, value: f64) {
        self.family(name, sort, help).sample(&[], value);
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

pub struct Family<'a> {
    page: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    pub fn histogram(&mut self, spans: &Spans) {
        let mut sum = 0;
        for (bound, count) in Spans::BOUNDS_MS.iter().zip(&spans.counts) {
            sum += count;
            let seconds = (*bound as f64 / 1_000.0).to_string();
            self.line("_bucket", &[("le", &seconds)], sum as f64);
        }
        sum += spans.longer;
        self.line("_bucket", &[("le", "+Inf")], sum as f64);
        self.line("_sum", &[], spans.sum_us as f64 / 1e6);
        self.line("_count", &[], sum as f64);
    }

    fn line(&mut self, ending: &str, labels: &[(&str, &str)], value: f64) {
        let shown: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let shown = if shown.is_empty() { String::new() } else { format!("{{{}}}", shown.join(",")) };
        let _ = writeln!(self.page, "{}{ending}{shown} {value}", self.name);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// How long something took, each time.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    counts: [u64; Spans::BOUNDS_MS.len()],
    longer: u64,
    sum_us: u64,
}

impl Spans {
    /// Upper bounds. A durable commit takes some milliseconds on a disk; what takes a second is trouble.
    const BOUNDS_MS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000];

    pub fn add(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        match Self::BOUNDS_MS.iter().position(|bound| us <= bound * 1_000) {
            Some(place) => self.counts[place] += 1,
            None => self.longer += 1,
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }
}

/// Counts by a name that somebody else chooses: the first names have a place of their own, all others share one.
#[derive(Debug, Clone)]
pub struct Named<T>(BTreeMap<String, T>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(BTreeMap::new())
    }
}

impl<T: Default> Named<T> {
    pub fn of(&mut self, name: &str) -> &mut T {
        let has_room = self.0.len() < METRIC_LABELS || self.0.contains_key(name);
        self.0.entry(if has_room { name } else { OTHER }.to_owned()).or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// One line of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    pub sort: Sort,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

/// Reads a page back, as strictly as a scraper does; the fault names its line.
pub fn read(text: &str) -> Result<Vec<Sample>, String> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut sorts: BTreeMap<&str, Sort> = BTreeMap::new();
    let mut helped = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let fault = |what: &str| format!("line {}: {what}: {line}", n + 1);
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, _) = rest.split_once(' ').ok_or_else(|| fault("no help"))?;
            helped.push(name);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, sort) = rest.split_once(' ').ok_or_else(|| fault("no type"))?;
            let sort = Sort::parse(sort).ok_or_else(|| fault("no type that there is"))?;
            if sorts.insert(name, sort).is_some() || !helped.contains(&name) {
                return Err(fault("a family begun twice, or without help"));
            }
        } else {
            let (name, labels, value) = sample(line).ok_or_else(|| fault("no sample"))?;
            let sort = family(name, &sorts).ok_or_else(|| fault("no family"))?;
            if samples.iter().any(|known| known.name == name && known.labels == labels) {
                return Err(fault("said twice"));
            }
            samples.push(Sample { name: name.to_owned(), sort, labels, value });
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    Ok(samples)
}

fn family(name: &str, sorts: &BTreeMap<&str, Sort>) -> Option<Sort> {
    let ending = |ending: &str| sorts.get(name.strip_suffix(ending)?).copied();
    let of_histogram = || ["_bucket", "_sum", "_count"].iter().find_map(|end| ending(end));
    sorts.get(name).copied().or_else(|| of_histogram().filter(|sort| *sort == Sort::Histogram))
}

type Labels = Vec<(String, String)>;

fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            is_name(label).then(|| labels.push((label.to_owned(), value)))?;
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => break rest = after.strip_prefix('}')?,
            }
        }
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    is_name(name).then_some((name, labels, value))
}

/// A value up to its closing quote, and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut page = Page::default();
        page.single("a_total", Sort::Counter, "Back\\slash and\nline.", 3.0);
        let mut family = page.family("b", Sort::Gauge, "Two.");
        family.sample(&[("x", "a \"b\"\\c\nd"), ("y", "")], 0.25);
        family.sample(&[("x", "e"), ("y", "")], 12_345_678.0);
        let text = page.into_text();
        assert_eq!(
            text,
            "# HELP a_total Back\\\\slash and\\nline.\n# TYPE a_total counter\na_total 3\n# HELP b Two.\n# TYPE b gauge\n\
             b{x=\"a \\\"b\\\"\\\\c\\nd\",y=\"\"} 0.25\nb{x=\"e\",y=\"\"} 12345678\n"
        );
        let samples = read(&text).unwrap();
        assert_eq!(samples[1].labels[0].1, "a \"b\"\\c\nd");
        assert_eq!((samples[0].sort, samples[2].value), (Sort::Counter, 12_345_678.0));
    }

    #[test]
    fn a_histogram_counts_up() {
        let mut spans = Spans::default();
        for ms in [0, 1, 7, 9_000] {
            spans.add(Duration::from_millis(ms));
        }
        let mut page = Page::default();
        page.family("t_seconds", Sort::Histogram, "Time.").histogram(&spans);
        let samples = read(&page.into_text()).unwrap();
        let value = |name: &str, le: &str| {
            let fits =
                |sample: &&Sample| sample.name == name && sample.labels.iter().all(|label| label.1 == le);
            samples.iter().find(fits).map(|sample| sample.value)
        };
        assert_eq!(value("t_seconds_bucket", "0.001"), Some(2.0));
        assert_eq!(value("t_seconds_bucket", "0.01"), Some(3.0));
        assert_eq!(value("t_seconds_bucket", "5"), Some(3.0));
        assert_eq!(value("t_seconds_bucket", "+Inf"), Some(4.0));
        assert_eq!(value("t_seconds_count", ""), Some(4.0));
        assert!((value("t_seconds_sum", "").unwrap() - 9.008).abs() < 1e-9);
    }

    #[test]
    fn names_that_others_choose_are_few() {
        let mut named: Named<u64> = Named::default();
        for n in 0..10 * METRIC_LABELS {
            *named.of(&format!("model-{n}")) += 1;
        }
        *named.of("model-0") += 1;
        assert_eq!(named.iter().count(), METRIC_LABELS + 1);
        let of = |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
        assert_eq!((of("model-0"), of(OTHER)), (Some(2), Some(9 * METRIC_LABELS as u64)));
    }

    #[test]
    fn what_no_scraper_takes_is_refused() {
        for wrong in [
            "a 1\n",
            "# HELP a x\n# TYPE a counter\na one\n",
            "# HELP a x\n# TYPE a counter\na 1",
            "# HELP a x\n# TYPE a counter\na{b=\"c} 1\n",
            "# HELP a x\n# TYPE a counter\na 1\na 2\n",
            "# HELP a x\n# TYPE a counter\na_sum 1\n",
            "# TYPE a counter\na 1\n",
            "# HELP a x\n# TYPE a thing\n",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
