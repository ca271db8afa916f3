//! `ostler metrics`: what is measured, for Prometheus or for a person in a hurry.

use clap::Args;
use ostler_domain::{Refusal, metrics};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::{app::App, exit_code, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {}

#[derive(Serialize)]
struct MetricsForm {
    samples: Vec<SampleForm>,
}

#[derive(Serialize)]
struct SampleForm {
    name: String,
    /// `counter`, `gauge` or `histogram`.
    r#type: &'static str,
    labels: BTreeMap<String, String>,
    value: f64,
}

pub(crate) async fn run(app: &App, _args: MetricsArgs) -> Result<u8, Failure> {
    let text = app.client().await?.metrics().await?;
    if app.ui.is_json() {
        app.ui.json(&form(&text)?)?;
    } else {
        app.ui.bytes(text.as_bytes())?;
    }
    Ok(exit_code::OK)
}

fn form(text: &str) -> Result<MetricsForm, Failure> {
    let samples = metrics::read(text)
        .map_err(|fault| Refusal::internal("the daemon's measurements cannot be read").because(fault))?;
    let samples = samples.into_iter().map(|sample| SampleForm {
        name: sample.name,
        r#type: sample.sort.as_str(),
        labels: sample.labels.into_iter().collect(),
        value: sample.value,
    });
    Ok(MetricsForm { samples: samples.collect() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_form_has_every_sample() {
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{b=\"c\"} 1.5\n";
        insta::assert_snapshot!(crate::output::to_json(&super::form(text).unwrap()), @r#"{"samples":[{"name":"a_total","type":"counter","labels":{"b":"c"},"value":1.5}]}"#);
    }
}
