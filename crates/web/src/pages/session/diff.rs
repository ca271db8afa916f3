//! What a session changed, turn by turn. A line can be spoken about, and files be put back.

use std::fmt::Write;

use ostler_client::{Error, Session};
use ostler_domain::{
    session::Attention,
    snapshot::{FileChange, readable},
    text::visible,
};
use serde_json::json;

use super::{
    super::{
        encoded, patch, render,
        sessions::Chip,
        tables::{Button, List, Table, TableRow, cell, toned},
    },
    escaped, nothing,
};
use crate::{guard::Visitor, reply::Failure};

pub(super) async fn body(visitor: &Visitor, session: &Session, span: &str) -> Result<String, Failure> {
    let (id, short) = (session.id.to_string(), session.id.short());
    let difference = match visitor.client.difference(&id, span, true).await {
        Ok(difference) => difference,
        Err(Error::Refused(refusal)) => {
            return Ok(nothing(&refusal.message, &refusal.why.unwrap_or_default()));
        }
        Err(error) => return Err(error.into()),
    };
    let turns: Vec<u32> = {
        let mut turns: Vec<u32> =
            visitor.client.tree(&id).await?.snapshots.iter().map(|taken| taken.turn).collect();
        turns.dedup();
        turns
    };
    let chip = |word: String, wanted: &str| Chip {
        href: match wanted {
            "" => format!("/sessions/{id}/diff"),
            wanted => format!("/sessions/{id}/diff?span={}", encoded(wanted)),
        },
        word,
        here: wanted == span,
    };
    let mut chips = vec![chip("all of it".to_owned(), "")];
    chips.extend(
        turns.iter().filter(|turn| **turn > 0).map(|turn| chip(format!("turn {turn}"), &turn.to_string())),
    );
    let rewind = |turn: &u32| Button {
        preview: format!("/v1/sessions/{id}/rewind"),
        preview_body: json!({ "turn": turn.to_string(), "dry_run": true }).to_string(),
        ..Button::new(
            format!("Put files back to turn {turn}…"),
            format!("/v1/sessions/{id}/rewind"),
            format!("ostler rewind {short} {turn} --files"),
        )
        .body(&json!({ "turn": turn.to_string() }))
        .confirm(format!("Put files back as they were after turn {turn}?"))
    };
    // The turn that is looked at, and the beginning.
    let looked_at = turns.iter().filter(|turn| **turn == 0 || turn.to_string() == span);
    let row = |file: &FileChange| {
        let lines =
            |count: Option<u64>, sign: &str| count.map(|count| format!("{sign}{count}")).unwrap_or_default();
        TableRow {
            cells: vec![
                toned(visible(&file.path), "mono"),
                cell(file.status.as_str()),
                toned(lines(file.added, "+"), "num good"),
                toned(lines(file.removed, "−"), "num bad"),
            ],
            ..TableRow::default()
        }
    };
    let has_files = !difference.files.is_empty();
    let list = List {
        chips,
        tables: vec![Table {
            heads: vec!["File", "", "", ""],
            rows: difference.files.iter().map(row).collect(),
            nothing: unchanged(session, span).to_owned(),
            ..Table::default()
        }],
        below: if has_files {
            drawn(&difference.patch, difference.is_cut, &id, &short)
        } else {
            String::new()
        },
        actions: looked_at.map(rewind).collect(),
        title: "Files".to_owned(),
        clis: vec![format!("ostler diff {short} {span}").trim_end().to_owned()],
        ..List::default()
    };
    Ok(render(&list)?.replacen("<h1>Files</h1>", "<h2>Files</h2>", 1))
}

/// Of whom no change is known: snapshots are taken where a turn ends.
fn unchanged(session: &Session, span: &str) -> &'static str {
    let at_rest = matches!(session.attention, None | Some(Attention::Idle | Attention::TurnFailed));
    match (at_rest, span) {
        (false, "") if session.turns <= 1 => "What its first turn changes is known when that turn ends.",
        (false, "") => {
            "It has changed no files in the turns that have ended; what this one changes is known when it ends."
        }
        _ => "It has changed no files.",
    }
}

fn drawn(patch: &[u8], is_cut: bool, id: &str, short: &str) -> String {
    let (lines, has_more) = patch::of_patch(&readable(patch));
    let mut html = format!(
        "<h2>Patch</h2><p class=\"faint needs-script\">Click a line to say something about it.</p>\
         <div class=\"patch\" tabindex=\"0\" role=\"region\" aria-label=\"patch\" data-to=\"/v1/sessions/{id}/messages\" data-short=\"{short}\">"
    );
    for line in lines {
        let at = match line.at.is_empty() {
            true => String::new(),
            false => format!(" data-at=\"{}\" tabindex=\"-1\"", escaped(&line.at)),
        };
        let _ = write!(html, "<div class=\"{}\"{at}>{}</div>", line.class, escaped(&line.text));
    }
    html.push_str("</div>");
    if is_cut || has_more {
        html.push_str("<p class=\"faint\">There is more than is shown here.</p>");
    }
    html
}

#[cfg(test)]
mod tests {
    use ostler_screen::testing;

    use super::*;

    #[test]
    fn while_a_turn_is_open_nobody_says_that_nothing_was_changed() {
        let [_, mut works, rests, ..] = <[Session; 9]>::try_from(testing::fleet()).unwrap();
        works.turns = 1;
        assert!(unchanged(&works, "").contains("first turn changes is known when"));
        works.turns = 2;
        assert!(unchanged(&works, "").contains("in the turns that have ended"));
        assert_eq!(unchanged(&works, "1"), "It has changed no files.", "that one has ended");
        assert_eq!(unchanged(&rests, ""), "It has changed no files.");
    }
}
