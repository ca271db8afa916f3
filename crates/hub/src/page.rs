//! All nodes' sessions, on one page. What agents wrote is text.

use ostler_domain::{
    Time,
    hub::Listed,
    session::{Attention, Mark, Outcome, Rank, Status},
    text::one_line,
    time::age,
};
use serde_json::Value;

const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;color-scheme:light dark}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem .25rem 0;vertical-align:top}\
    th{font-weight:600}.stale{opacity:.6}.need{font-weight:600}h2{margin:1.5rem 0 .3rem}small{opacity:.75}\
    body,td{overflow-wrap:anywhere}\
    @media(min-width:52.01rem){th,td:not([data-is=name],[data-is=campaign],[data-is=now]){white-space:nowrap}\
    td[data-is=name]{min-width:9rem}td[data-is=campaign]{min-width:6rem}td[data-is=now]{width:45%;min-width:12rem}}\
    @media(max-width:52rem){body{margin:1rem}tbody,tr,td{display:block}thead{position:absolute;clip-path:inset(50%)}\
    tr{padding:.5rem 0;border-top:1px solid #8888}td{padding:0}td:empty{display:none}\
    td[data-is]::before{content:attr(data-is) ' ';opacity:.75;font-weight:400}}";

/// Brings the page up to date while somebody looks.
pub(crate) const SCRIPT: &str = include_str!("page.js");

pub(crate) fn page(nodes: &[Listed], now: Time) -> String {
    let mut nodes: Vec<&Listed> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.rows.iter().map(|row| rank(&row.session)).min() != Some(Rank::NeedsYou));
    let parts: String = nodes.into_iter().map(|node| part(node, now)).collect();
    let parts = if parts.is_empty() {
        "<p>No machine has connected yet. <code>ostler hub node add NAME</code> makes a key for one.</p>"
            .to_owned()
    } else {
        parts
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Ostler hub</title><style>{STYLE}</style><script src=\"/page.js\" defer></script></head>\
         <body><main><h1>Ostler hub</h1>{parts}</main><footer><p id=\"link\" role=\"status\"></p>\
         <noscript><p>Reload the page to see what is new.</p></noscript></footer></body></html>\n"
    )
}

/// What a browser sees that was just let in: the way on, which it takes by itself.
pub(crate) fn come_in() -> String {
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\">\
     <title>Ostler hub</title></head><body><main><a href=\"/\">Come in</a></main></body></html>\n"
        .to_owned()
}

fn part(node: &Listed, now: Time) -> String {
    let stale = node.stale_since.as_ref().map(|since| {
        let away = match Time::from_rfc3339(since) {
            Some(heard) => format!("away for {}", age(now.since(heard))),
            None => "away".to_owned(),
        };
        format!(" <small title=\"{}\">{away}</small>", text(since))
    });
    let class = if node.stale_since.is_some() { " class=\"stale\"" } else { "" };
    let mut rows: Vec<&Value> = node.rows.iter().map(|row| &row.session).collect();
    rows.sort_by_key(|session| rank(session));
    let rows: String = rows.into_iter().map(line).collect();
    let table = if rows.is_empty() {
        "<p>No sessions.</p>".to_owned()
    } else {
        format!(
            "<table><thead><tr><th>sign</th><th>session</th><th>name</th><th>campaign</th><th>provider</th><th>status</th>\
             <th>now</th></tr></thead><tbody>{rows}</tbody></table>"
        )
    };
    format!("<section{class}><h2>{}{}</h2>{table}</section>", text(&node.name), stale.unwrap_or_default())
}

fn attention(session: &Value) -> Option<Attention> {
    session["attention"].as_str().and_then(Attention::parse)
}

/// As its machine says; one that is newer may have a word that is none here, and is taken for running.
fn status(session: &Value) -> Status {
    session["status"].as_str().and_then(Status::parse).unwrap_or(Status::Running)
}

fn rank(session: &Value) -> Rank {
    Rank::of(status(session), attention(session))
}

fn mark(session: &Value) -> Mark {
    let outcome = session["outcome"].as_str().and_then(Outcome::parse);
    Mark::of(status(session), attention(session), outcome, !session["imported"].is_null())
}

/// What it asks for or does, as far as its machine says.
fn now(session: &Value) -> String {
    let doing = session["now"]["text"].as_str().filter(|_| attention(session) == Some(Attention::Working));
    let ended = session["obituary"]["sentence"].as_str().or(session["outcome"].as_str());
    let word = session["attention"].as_str().or(ended).unwrap_or_default();
    let evidence = session["evidence"].as_str().filter(|evidence| !evidence.is_empty());
    match (doing, evidence) {
        (Some(doing), _) => doing.to_owned(),
        (None, Some(evidence)) if attention(session).is_some() => format!("{word} · {evidence}"),
        (None, _) => word.to_owned(),
    }
}

fn line(session: &Value) -> String {
    let word = |key: &str| session[key].as_str().unwrap_or_default().to_owned();
    // Each with what it is, where there is no room for columns.
    let cells = [
        ("sign", mark(session).sign().to_owned()),
        ("session", word("short")),
        ("name", word("name")),
        ("campaign", word("campaign")),
        ("provider", word("provider")),
        ("status", word("status")),
        ("now", now(session)),
    ];
    let class = if rank(session) == Rank::NeedsYou { "need" } else { "" };
    let cells: String =
        cells.iter().map(|(is, word)| format!("<td data-is=\"{is}\">{}</td>", text(word))).collect();
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
        let now = Time::from_rfc3339("2026-01-01T03:10:00Z").unwrap();
        let page = page(&[node], now);
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
        assert!(page.contains(">away for 3h<") && page.contains("class=\"stale\""), "{page}");
    }

    #[test]
    fn who_needs_you_stands_first_with_what_is_asked() {
        let row = |session| Row { session, view: Value::Null };
        let node = |name: &str, rows| Listed {
            name: name.to_owned(),
            node: name.to_owned(),
            stale_since: None,
            rows,
        };
        let works = || {
            let now = json!({"text": "run make", "since": ""});
            row(
                json!({"name": "works", "status": "WORKING", "attention": "working", "now": now, "evidence": "e"}),
            )
        };
        let asks = row(json!({"name": "asks", "status": "WORKING", "attention": "waiting_approval",
            "evidence": "run git push"}));
        let page = page(&[node("calm", vec![works()]), node("busy", vec![works(), asks])], Time::default());
        let at = |word: &str| page.find(word).unwrap_or_else(|| panic!("no {word}: {page}"));
        assert!(at(">busy<") < at(">asks<") && at(">asks<") < at(">works<"), "{page}");
        assert!(at(">works<") < at(">calm<"), "{page}");
        assert!(page.contains("class=\"need\"><td data-is=\"sign\">!</td>"), "{page}");
        assert!(page.contains("waiting_approval · run git push") && page.contains(">run make<"), "{page}");
    }
}
