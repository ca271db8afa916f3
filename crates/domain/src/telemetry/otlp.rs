//! OTLP over HTTP, in its JSON form: what collectors take, and all that is needed of it.

use serde_json::{Value as Json, json};

use super::spans::{Span, Value};

/// Who tells.
#[derive(Debug, Clone)]
pub struct Sender {
    pub version: &'static str,
    /// This node's id: two daemons are told apart by it.
    pub node: String,
}

/// The body of one request.
pub fn request(sender: &Sender, spans: &[Span]) -> Vec<u8> {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = [
        text("service.name", "ostler"),
        text("service.version", sender.version),
        text("service.instance.id", &sender.node),
    ];
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": "ostler", "version": sender.version},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]});
    body.to_string().into_bytes()
}

/// Numbers of 64 bits are texts, ids are in hex.
fn span(span: &Span) -> Json {
    const OF_SELF: u8 = 1;
    const OF_SERVER: u8 = 3;
    const ERROR: u8 = 2;
    let nanos = |time: crate::Time| format!("{}", i128::from(time.micros()) * 1_000);
    let attributes: Vec<Json> =
        span.attributes.iter().map(|(key, value)| json!({"key": key, "value": any(value)})).collect();
    let mut said = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": if span.is_call { OF_SERVER } else { OF_SELF },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end.max(span.start)),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        said["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if let Some(error) = &span.error {
        said["status"] = json!({"code": ERROR, "message": error});
    }
    said
}

fn any(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Amount(amount) => json!({"doubleValue": amount}),
        Value::Switch(on) => json!({"boolValue": on}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    #[test]
    fn is_the_form_that_collectors_take() {
        let span = Span {
            trace: 0xabc,
            id: 0xdef,
            parent: Some(1),
            name: "chat m".to_owned(),
            is_call: true,
            start: Time::from_micros(1_763_000_000_000_001),
            end: Time::from_micros(1_763_000_000_500_000),
            attributes: vec![
                ("a", Value::Text("x".to_owned())),
                ("b", Value::Number(7)),
                ("c", Value::Amount(0.5)),
                ("d", Value::Switch(true)),
            ],
            error: Some(String::new()),
        };
        let sender = Sender { version: "0.1.0", node: "nod_1".to_owned() };
        let said: Json = serde_json::from_slice(&request(&sender, &[span])).unwrap();
        let resource = &said["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(resource[2], json!({"key": "service.instance.id", "value": {"stringValue": "nod_1"}}));
        assert_eq!(
            said["resourceSpans"][0]["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "00000000000000000000000000000abc",
                "spanId": "0000000000000def",
                "parentSpanId": "0000000000000001",
                "name": "chat m",
                "kind": 3,
                "startTimeUnixNano": "1763000000000001000",
                "endTimeUnixNano": "1763000000500000000",
                "attributes": [
                    {"key": "a", "value": {"stringValue": "x"}},
                    {"key": "b", "value": {"intValue": "7"}},
                    {"key": "c", "value": {"doubleValue": 0.5}},
                    {"key": "d", "value": {"boolValue": true}},
                ],
                "status": {"code": 2, "message": ""},
            })
        );
    }
}
