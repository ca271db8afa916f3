//! What a search found.

use ostler_client::Received;
use ostler_domain::Time;

use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

/// An event that has the words, and whose it is: a session's, or a ticket's.
pub(crate) struct Found<'a> {
    pub(crate) event: &'a Received,
    /// The short id of whose it is.
    pub(crate) id: String,
    pub(crate) name: &'a str,
    pub(crate) snippet: &'a str,
}

pub(crate) fn table(found: &[Found<'_>], now: Time) -> Table {
    let columns = [
        Column::new("WHEN"),
        Column::new("ID"),
        Column::new("AGENT"),
        Column::new("WHAT"),
        Column::new("TEXT").gives_way_to(20),
        Column::new("SEQ").right().extra(),
        Column::new("SESSION").extra(),
    ];
    let mut table = Table::new(columns);
    for hit in found {
        table.row(vec![
            Line::new().faint(format!("{} ago", words::span(now.since(hit.event.time())))),
            Line::toned(Tone::Accent, &hit.id),
            Line::new().strong(hit.name),
            Line::of(what(hit.event)),
            Line::of(hit.snippet),
            Line::of(hit.event.seq().to_string()),
            Line::of(hit.event.session().map(|id| id.to_string()).unwrap_or_default()),
        ]);
    }
    table
}

/// `AGENT_COMPLETION` is `completion` here: all of them are somebody's.
fn what(event: &Received) -> String {
    let kind = event.kind().to_lowercase();
    kind.strip_prefix("agent_").unwrap_or(&kind).to_owned()
}

/// What there is to be searched through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    Nothing,
    /// Only what was done here: what was done elsewhere may be what is looked for.
    OwnAlone,
    Imported,
}

/// As many events are always on their way into the index while agents work.
const ON_THEIR_WAY: u64 = 100;

/// That the index has not reached the end of the log.
pub(crate) fn behind(events: u64) -> Option<Line> {
    let text = format!("the index is {} events behind; ask again in a moment", words::number(events));
    (events > ON_THEIR_WAY).then(|| Line::toned(Tone::Warn, text))
}

pub(crate) fn nothing(past: Past) -> Vec<Line> {
    let hint = |command: &str, effect: &str| {
        Line::of("  ").with(Tone::Accent, command).faint(format!("   {effect}"))
    };
    let run = || hint("ostler run \"…\"", "start one here");
    let word = || hint("ostler search 'word*'", "finds words that begin so");
    let import = || hint("ostler import all", "bring in Claude Code's, Codex's and OpenClaw's history");
    match past {
        Past::Nothing => vec![Line::of("Nothing found in 0 sessions."), run(), import()],
        Past::OwnAlone => vec![Line::of("Nothing found."), word(), import()],
        Past::Imported => vec![Line::of("Nothing found."), word()],
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::{Event, Recorded, event::Text};

    use super::*;
    use crate::testing::{self, NOW, ago};

    #[test]
    fn an_index_that_is_far_behind_is_named() {
        assert_eq!(behind(12), None);
        let said = behind(4_231).unwrap().show(&crate::output::Look::plain(None));
        assert_eq!(said, "the index is 4,231 events behind; ask again in a moment");
    }

    #[test]
    fn in_all_looks() {
        let session = testing::fleet()[0].id;
        let event = Event::AgentCompletion(Text::from("whatever".to_owned()));
        let recorded =
            Recorded { seq: 4_711, session: Some(session), session_seq: Some(3), time: ago(7_300), event };
        let event = Received::Known(Box::new(recorded));
        let snippet = "…the rate limit is five a minute for each address, and the tests say so since Tuesday";
        let of =
            |id: &str, name: &'static str, snippet| Found { event: &event, id: id.to_owned(), name, snippet };
        let hits = [
            of(&session.short(), "api-auth", snippet),
            of(&session.short(), "dash-tests", "rate limit"),
            of("tkt_9F3K", "gh:shop#412", "a rate limit for each address"),
        ];
        assert_snapshot!(testing::in_all_looks(|look| table(&hits, NOW).lines(look)));
        assert_snapshot!(testing::in_all_looks(|_| [Past::Imported, Past::OwnAlone, Past::Nothing]
            .map(nothing)
            .concat()));
    }
}
