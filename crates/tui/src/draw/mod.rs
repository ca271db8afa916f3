//! The picture of a state: what is where, at any size. Pure.

mod canvas;
mod dialog;
mod frame;
mod help;
mod list;
mod pages;
mod pane;

use ratatui::{Frame, layout::Rect};

use self::canvas::Canvas;
use crate::state::{Dialog, Reach, State, View};

/// Below this the session under the cursor stands below the list, not beside it.
const BESIDE: u16 = 100;
/// Below this there is only the list.
const BOTH: u16 = 60;
/// Rows that the session under the cursor has below a long list.
const PANE: u16 = 10;

/// Says how far what is seen can be scrolled: only the picture knows how many lines there are of it.
pub(crate) fn draw(state: &State, screen: &mut Frame) -> Reach {
    let area = screen.area();
    if area.height == 0 || area.width == 0 {
        return Reach::default();
    }
    let canvas = &mut Canvas { buffer: screen.buffer_mut(), look: &state.look, reach: Reach::default() };
    let said = frame::said(state, usize::from(area.width));
    let said_rows = u16::try_from(said.len()).unwrap_or(u16::MAX).min(area.height.saturating_sub(2) / 2);
    let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
    let foot = area.height.saturating_sub(1);
    let body = row(1, foot.saturating_sub(1 + said_rows));
    canvas.put(row(0, 1), 0, &frame::head(state, usize::from(area.width)));
    match &state.view {
        View::List => whole(canvas, state, body),
        View::Peek => pane::draw(canvas, state, body),
        View::Help => help::draw(canvas, body),
        View::Cost { by, sums } => pages::cost(canvas, state, body, *by, sums.as_deref()),
        View::Missions(missions) => pages::missions(canvas, state, body, missions),
    }
    canvas.put_all(row(foot - said_rows.min(foot), said_rows), &said);
    if foot > 0 {
        canvas.put(row(foot, 1), 0, &frame::keys(state, usize::from(area.width)));
    }
    let place = match &state.dialog {
        Some(Dialog::Filter { draft, .. }) => Some(dialog::filter(canvas, row(foot, 1), draft)),
        Some(open) => dialog::draw(canvas, state, body, open),
        None => None,
    };
    let reach = canvas.reach;
    if let Some(place) = place {
        screen.set_cursor_position(place);
    }
    reach
}

/// The list, and the session under the cursor where there is room.
fn whole(canvas: &mut Canvas<'_>, state: &State, body: Rect) {
    if body.width < BOTH || state.rows().is_empty() {
        list::draw(canvas, state, body);
        return;
    }
    if body.width < BESIDE {
        let wanted = list::height(state);
        let height = wanted.min(body.height.saturating_sub(PANE)).max(body.height.min(4));
        list::draw(canvas, state, Rect { height, ..body });
        let rest = Rect { y: body.y + height, height: body.height - height, ..body };
        pane::draw(canvas, state, rest);
        return;
    }
    let width = body.width / 2;
    list::draw(canvas, state, Rect { width, ..body });
    let line = ostler_screen::Line::new().faint("│");
    for row in 0..body.height {
        canvas.put(Rect { x: body.x + width, width: 1, ..body }, row, &line);
    }
    pane::draw(canvas, state, Rect { x: body.x + width + 1, width: body.width - width - 1, ..body });
}

#[cfg(test)]
mod tests;
