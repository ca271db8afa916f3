//! Views that fill the body: what was used, and missions.

use ostler_client::Mission;
use ostler_screen::{
    Line, Look, Tone,
    cost::{self, By, Sums},
    mission::{list, show::Seen},
};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::state::{Missions, State};

/// Missions that are listed above the one that is drawn.
const LISTED: usize = 6;

pub(super) fn cost(canvas: &mut Canvas<'_>, state: &State, area: Rect, by: By, sums: Option<&Sums>) {
    let span = if by == By::Day { "of the last seven days" } else { "since 00:00 UTC" };
    canvas.rule(area, 0, Line::new().strong(format!("COST by {}", by.word())).faint(format!("  {span}")));
    let body = below_title(area);
    let lines = match sums {
        None => vec![Line::new().faint("asking …")],
        Some(sums) if sums.rows.is_empty() => cost::nothing(Some(span), None),
        Some(sums) => {
            let look = Look { width: Some(usize::from(body.width)), ..state.look.clone() };
            cost::table(cost::head(by), &sums.rows, &sums.total).lines(&look)
        }
    };
    canvas.put_all(body, &lines);
}

/// What is below a title, a little to the right.
fn below_title(area: Rect) -> Rect {
    Rect {
        x: area.x + area.width.min(1),
        y: area.y + 1,
        width: area.width.saturating_sub(1),
        height: area.height.saturating_sub(1),
    }
}

pub(super) fn missions(canvas: &mut Canvas<'_>, state: &State, area: Rect, missions: &Missions) {
    canvas.rule(area, 0, Line::new().strong("MISSIONS"));
    let body = below_title(area);
    let width = usize::from(body.width);
    let Some(listed) = missions.listed.as_deref() else {
        canvas.put(body, 0, &Line::new().faint("asking …"));
        return;
    };
    if listed.is_empty() {
        canvas.put_all(body, &list::empty(false, false));
        return;
    }
    let current = listed.iter().position(|mission| Some(mission.id) == missions.chosen).unwrap_or(0);
    let first = current.saturating_sub(LISTED / 2).min(listed.len().saturating_sub(LISTED));
    let shown: Vec<&Mission> = listed.iter().skip(first).take(LISTED).collect();
    for (row, mission) in (0..).zip(&shown) {
        let is_current = Some(mission.id) == missions.chosen;
        canvas.put(body, row, &mission_line(mission, is_current));
        if is_current {
            canvas.mark(body, row);
        }
    }
    let used = u16::try_from(shown.len()).unwrap_or(u16::MAX).min(body.height);
    let rest = Rect { y: body.y + used, height: body.height - used, ..body };
    let graph = Rect { y: rest.y.saturating_add(1), height: rest.height.saturating_sub(1), ..rest };
    let look = Look { width: Some(width), ..state.look.clone() };
    let lines = match &missions.drawn {
        Some(drawn) if Some(drawn.state.id()) == missions.chosen => {
            let whole = Some(&drawn.whole);
            Seen { state: &drawn.state, sessions: &drawn.sessions, whole, now: state.now }.lines(&look)
        }
        _ => vec![Line::new().faint("…")],
    };
    canvas.put_all(graph, &lines);
}

fn mission_line(mission: &Mission, is_current: bool) -> Line {
    let (tone, sign) = list::sign(mission.status);
    let counts = mission.counts;
    Line::of(if is_current { "›" } else { " " })
        .with(tone, sign)
        .plain(" ")
        .strong(mission.name.as_str())
        .plain("  ")
        .with(tone, mission.status.as_str())
        .plain(format!("  {} of {}", counts.completed, counts.total))
        .with(Tone::Faint, format!("  {}", mission.objective))
}
