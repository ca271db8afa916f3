//! One text, however long: a piece of it at a time, each a page in place of the one before.

use askama::Template;
use ostler_client::{ListEvents, Place, Received, Session};
use ostler_domain::{
    Refusal,
    query::EventFilter,
    text::{bytes, visible},
};

use super::super::{activity, render};
use crate::{guard::Visitor, reply::Failure};

/// Bytes of a piece.
const PIECE: usize = 64 * 1024;

#[derive(Template)]
#[template(path = "text.html")]
struct Text {
    kind: String,
    /// Which part of how much.
    part: String,
    piece: String,
    earlier: String,
    later: String,
    story: String,
}

pub(super) async fn body(
    visitor: &Visitor,
    session: &Session,
    seq: u64,
    from: usize,
) -> Result<String, Failure> {
    let filter = EventFilter { session: Some(session.id), ..EventFilter::default() };
    let from_place = Place::After(seq.saturating_sub(1));
    let found = visitor.client.events(&ListEvents { filter, from: from_place, limit: 1 }).await?;
    let recorded = found.events.into_iter().find_map(|received| match received {
        Received::Known(recorded) if recorded.seq == seq => Some(recorded),
        _ => None,
    });
    let Some(recorded) = recorded else {
        return Err(Refusal::invalid(format!("this session has no event {seq}")).into());
    };
    let whole = activity::text_of(&recorded.event);
    let (begin, end) = piece(&whole, from);
    let to = |from: usize| format!("/sessions/{}/text?at={seq}&from={from}", session.id);
    let size = |n: usize| bytes(n as u64);
    render(&Text {
        kind: recorded.event.kind().name().to_lowercase().replace('_', " "),
        part: format!("{} to {} of {}", size(begin), size(end), size(whole.len())),
        piece: visible(&whole[begin..end]),
        earlier: if begin > 0 { to(begin.saturating_sub(PIECE)) } else { String::new() },
        later: if end < whole.len() { to(end) } else { String::new() },
        story: format!("/sessions/{}?after={}#e{seq}", session.id, seq.saturating_sub(1)),
    })
}

/// The piece of a text that begins at a byte, or a little before it: characters stay whole.
fn piece(whole: &str, from: usize) -> (usize, usize) {
    let begin = whole.floor_char_boundary(from);
    (begin, whole.floor_char_boundary(begin.saturating_add(PIECE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_text_are_all_of_it() {
        let whole = "€".repeat(PIECE);
        let (mut from, mut read) = (0, String::new());
        while from < whole.len() {
            let (begin, end) = piece(&whole, from);
            assert!(end > begin && end - begin <= PIECE);
            read.push_str(&whole[begin..end]);
            from = end;
        }
        assert_eq!(read, whole);
        assert_eq!(piece("short", 1_000), (5, 5), "behind the end there is nothing");
        assert_eq!(piece("€", 1), (0, 3));
    }
}
