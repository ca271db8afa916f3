//! Numbers of one kind, one for each round, and how they are written.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    PerSecond,
    Milliseconds,
    Microseconds,
    Bytes,
    Megabytes,
    Percent,
    Plain,
}

impl Unit {
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{}/s", grouped(value)),
            Unit::Milliseconds if value < 0.1 => format!("{:.0} µs", value * 1_000.0),
            Unit::Milliseconds if value < 10.0 => format!("{value:.2} ms"),
            Unit::Milliseconds => format!("{value:.0} ms"),
            Unit::Microseconds => format!("{value:.1} µs"),
            Unit::Bytes => format!("{} B", grouped(value)),
            Unit::Megabytes => format!("{value:.1} MB"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Plain => format!("{value:.2}"),
        }
    }
}

/// One number of each round.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) unit: Unit,
    pub(crate) values: Vec<f64>,
}

impl Sample {
    pub(crate) fn new(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        Self { unit, values: values.into_iter().collect() }
    }

    pub(crate) fn median(&self) -> f64 {
        percentile(&mut self.values.clone(), 50.0)
    }

    /// This sample's numbers by another's, round by round: only those of one round were taken side by side.
    pub(crate) fn by(&self, other: &Sample) -> Sample {
        Sample::new(Unit::Plain, self.values.iter().zip(&other.values).map(|(ours, raw)| ours / raw))
    }

    /// Median and, of several, the extremes.
    pub(crate) fn write(&self) -> String {
        let low = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let median = self.unit.write(self.median());
        match self.values.len() {
            0 => "–".to_owned(),
            1 => median,
            _ => format!("{median} [{}..{}]", bare(self.unit, low), bare(self.unit, high)),
        }
    }
}

fn bare(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Milliseconds if value < 10.0 => format!("{value:.2}"),
        Unit::Milliseconds => format!("{value:.0}"),
        unit => unit.write(value).split(' ').next().unwrap_or_default().trim_end_matches("/s").to_owned(),
    }
}

/// The value below which this share of the values lies (nearest rank); sorts them.
pub(crate) fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = (percent / 100.0 * last as f64).round() as usize;
    values[place.min(last)]
}

/// A whole number with narrow spaces between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 && digits.chars().nth(place - 1) != Some('-') {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        let sample = Sample::new(Unit::PerSecond, [3_000.0, 1_000.0, 2_000.0]);
        assert_eq!(sample.write(), "2\u{202f}000/s [1\u{202f}000..3\u{202f}000]");
        assert_eq!(Sample::new(Unit::Milliseconds, [0.05]).write(), "50 µs");
        assert_eq!(percentile(&mut (1..=100).map(f64::from).collect::<Vec<_>>(), 99.0), 99.0);
        assert_eq!(sample.by(&sample).median(), 1.0);
    }
}
