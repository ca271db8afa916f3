//! A mission on a screen that has no room for all of it: who needs you first, then who works; what is done is counted.

use ostler_domain::{mission::draw, text::one_line};

use super::{Line, Look, Seen, drawn_line, drawn_width, moment, section, wait_lines};

impl Seen<'_> {
    /// All of it where it fits into so many lines, else what matters most.
    pub fn fitting(&self, look: &Look, rows: usize) -> Vec<Line> {
        let all = self.lines(look);
        if all.len() <= rows {
            return all;
        }
        let width = look.width;
        let line = |line: Line| line.cut(width.unwrap_or(usize::MAX));
        let objective = Line::of(format!("“{}”", one_line(&self.state.plan().objective, 400)));
        let mut lines = self.head().folded(width, 2);
        lines.push(line(objective));
        lines.extend(self.why().into_iter().flat_map(|why| why.folded(width, 2)));
        let (asks, waits): (Vec<_>, Vec<_>) =
            self.waits(&moment(self.now)).into_iter().partition(|one| one.is_for_you);
        // Nobody is asked by one that is over: what is left to do is what was not done.
        let urgent: Vec<Line> =
            section("FOR YOU", wait_lines(&asks)).into_iter().chain(self.merge()).map(line).collect();
        let rest =
            [self.not_done(), section("WAITS", wait_lines(&waits)), self.forecast(), self.role_table()];
        let rest: Vec<Line> = rest.into_iter().flatten().map(line).collect();

        let mut room = rows.saturating_sub(lines.len());
        let urgent = clipped(urgent, room.saturating_sub(room / 3));
        room = room.saturating_sub(urgent.len());
        let most = room.saturating_sub(rest.len().min(room / 3));
        let graph = draw::folded(self.state, self.now, (drawn_width(width), most), |id| self.doing(id));
        room = room.saturating_sub(graph.len());
        lines.extend(urgent);
        lines.extend(graph.iter().map(|line| drawn_line(line)));
        lines.extend(clipped(rest, room));
        lines.truncate(rows);
        lines
    }
}

/// As many lines as there is room for, with how many there are more.
fn clipped(mut lines: Vec<Line>, room: usize) -> Vec<Line> {
    if lines.len() > room {
        let shown = room.saturating_sub(1);
        let more = lines.len() - shown;
        lines.truncate(shown);
        lines.extend((room > 0).then(|| Line::new().faint(format!("… {more} more lines"))));
    }
    lines
}
