//! Sessions in their groups, those that need you first.

use ostler_client::Session;
use ostler_screen::{Line, row, sessions};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::state::{Link, State};

/// Most columns of a name before what its session does.
const NAME: usize = 16;

enum Row<'a> {
    Title(&'static str),
    Session(&'a Session),
}

fn rows(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut title = "";
    for session in state.rows() {
        let group = row::group(session);
        if group != title {
            title = group;
            rows.push(Row::Title(group));
        }
        rows.push(Row::Session(session));
    }
    rows
}

/// Rows that the whole list would take.
pub(super) fn height(state: &State) -> u16 {
    u16::try_from(rows(state).len()).unwrap_or(u16::MAX)
}

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let rows = rows(state);
    if rows.is_empty() {
        canvas.put_all(Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area }, &empty(state));
        return;
    }
    let is_current = |row: &Row<'_>| matches!(row, Row::Session(session) if Some(session.id) == state.cursor);
    let current = rows.iter().position(is_current).unwrap_or(0);
    let height = usize::from(area.height);
    // The cursor is in the middle of what does not fit, so that it sees where it goes.
    let first = current.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let name = rows.iter().filter_map(|row| match row {
        Row::Session(session) => Some(Line::of(session.name.as_str()).width()),
        Row::Title(_) => None,
    });
    let name = name.max().unwrap_or(0).min(NAME);
    let last = area.height.saturating_sub(1);
    for (at, row) in (0..area.height).zip(&rows[first..]) {
        match row {
            // A title with nobody below it says nothing.
            Row::Title(_) if at == last && at > 0 => {}
            Row::Title(title) => canvas.rule(area, at, Line::new().strong(title)),
            Row::Session(session) => {
                let is_current = Some(session.id) == state.cursor;
                canvas.put(area, at, &session_line(state, session, name, is_current));
                if is_current {
                    canvas.mark(area, at);
                }
            }
        }
    }
}

fn session_line(state: &State, session: &Session, name: usize, is_current: bool) -> Line {
    let (tone, sign) = row::sign(session);
    Line::of(if is_current { "›" } else { " " })
        .with(tone, sign)
        .plain(" ")
        .append(Line::new().strong(session.name.as_str()).cut(name).padded(name))
        .plain("  ")
        .append(row::now(session, state.now))
}

/// What is seen where there is nobody.
fn empty(state: &State) -> Vec<Line> {
    match state.link {
        Link::Opening => vec![Line::new().faint("asking the daemon …")],
        _ if !state.filter.is_empty() => {
            let line = Line::of(format!("No session fits “{}”.", state.filter));
            vec![line, Line::of("  Esc  all of them again")]
        }
        _ => {
            let mut lines = sessions::empty(false, !state.overview.has_any);
            lines.push(Line::of("  n                start one on this screen"));
            lines
        }
    }
}
