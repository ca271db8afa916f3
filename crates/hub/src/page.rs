//! All nodes' sessions, on one page. What agents wrote is text.

use ostler_domain::{hub::Listed, text::one_line};
use serde_json::Value;

const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;color-scheme:light dark}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem .25rem 0;vertical-align:top}\
    th{font-weight:600}.stale{opacity:.6}.need{font-weight:600}h2{margin:1.5rem 0 .3rem}small{opacity:.75}";

pub(crate) fn page(nodes: &[Listed]) -> String {
    let parts: String = nodes.iter().map(part).collect();
    let parts = if parts.is_empty() {
        "<p>No machine has connected yet. <code>ostler hub node add NAME</code> makes a key for one.</p>"
            .to_owned()
    } else {
        parts
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"refresh\" content=\"10\"><title>Ostler hub</title><style>{STYLE}</style></head>\
         <body><main><h1>Ostler hub</h1>{parts}</main></body></html>\n"
    )
}

/// What a browser sees that was just let in: the way on, which it takes by itself.
pub(crate) fn come_in() -> String {
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\">\
     <title>Ostler hub</title></head><body><main><a href=\"/\">Come in</a></main></body></html>\n"
        .to_owned()
}

fn part(node: &Listed) -> String {
    let stale = node.stale_since.as_ref().map(|since| format!(" <small>away since {}</small>", text(since)));
    let class = if node.stale_since.is_some() { " class=\"stale\"" } else { "" };
    let rows: String = node.rows.iter().map(|row| line(&row.session)).collect();
    let table = if rows.is_empty() {
        "<p>No sessions.</p>".to_owned()
    } else {
        format!(
            "<table><thead><tr><th>session</th><th>name</th><th>campaign</th><th>provider</th><th>status</th>\
             <th>waits for</th></tr></thead><tbody>{rows}</tbody></table>"
        )
    };
    format!("<section{class}><h2>{}{}</h2>{table}</section>", text(&node.name), stale.unwrap_or_default())
}

fn line(session: &Value) -> String {
    let word = |key: &str| text(session[key].as_str().unwrap_or_default());
    let cells = ["short", "name", "campaign", "provider", "status", "attention"].map(word);
    let class = if session["attention"].as_str().is_some_and(|word| word.starts_with("waiting")) {
        "need"
    } else {
        ""
    };
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr class=\"{class}\">{cells}</tr>")
}

/// As text, whatever it is.
fn text(text: &str) -> String {
    one_line(text, 200)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use ostler_domain::hub::Row;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_agents_wrote_is_text_and_who_is_away_is_said_to_be() {
        let session = json!({"short": "k7q4x", "name": "<script>", "status": "WORKING", "attention": null});
        let node = Listed {
            name: "build1".to_owned(),
            node: "nod_1".to_owned(),
            stale_since: Some("2026-01-01T00:00:00Z".to_owned()),
            rows: vec![Row { session, view: Value::Null }],
        };
        let page = page(&[node]);
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
        assert!(page.contains("away since 2026") && page.contains("class=\"stale\""), "{page}");
    }
}
