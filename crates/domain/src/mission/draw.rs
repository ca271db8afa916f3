//! A mission's graph as lines of text: in columns with lines between them where that can be drawn truly, else as waves.

use std::fmt::Write;

use super::{AssignmentStatus, Graph, Merging, State, words::short_span};
use crate::{
    SessionId, Time,
    price::Dollars,
    text::{count, one_line},
};

/// Graphs with more assignments than this are listed: nobody follows so many lines.
const DRAWN: usize = 60;
/// Most lines of a list.
const LISTED: usize = 400;

/// One assignment as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: String,
    /// `✓ 9m 412k $2.10`: how it stands, its time, tokens and cost.
    pub state: String,
    /// What it does now, behind the drawing.
    pub note: String,
}

/// What is known of a session beside its mission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doing {
    /// `run: npm test · 31s`.
    pub now: String,
    /// All that was paid for it so far; none where that is not known.
    pub cost: Option<Dollars>,
    pub tokens: u64,
    /// How it stands where its mission knows nothing of that: it has no place on this machine yet, or somebody paused it.
    pub stands: Option<AssignmentStatus>,
}

/// Draws a mission, in lines of at most `width` characters. `doing` says what sessions that run are at.
pub fn mission(
    state: &State,
    now: Time,
    width: usize,
    doing: impl Fn(SessionId) -> Option<Doing>,
) -> Vec<String> {
    let mut nodes: Vec<Node> =
        (0..state.slots().len()).map(|place| node(state, place, now, &doing)).collect();
    if state.plan().merge.is_none() {
        return lines(state.graph(), &nodes, width);
    }
    let sign = match state.merging() {
        Merging::NotBegun => '◌',
        Merging::Running { .. } | Merging::Checked { .. } | Merging::Moving { .. } => '●',
        Merging::Merged { .. } => '✓',
        Merging::Failed { .. } => '✗',
    };
    nodes.push(Node { name: "merge".to_owned(), state: sign.to_string(), note: String::new() });
    lines(&state.graph().with_end(), &nodes, width)
}

/// The same in at most so many lines, where there is no room for the drawing: whoever works first, then what failed and what
/// waits; what is done is counted.
pub fn folded(
    state: &State,
    now: Time,
    (width, most): (usize, usize),
    doing: impl Fn(SessionId) -> Option<Doing>,
) -> Vec<String> {
    let rank = |place: usize| match state.status_of(place) {
        AssignmentStatus::Running | AssignmentStatus::Paused => 0,
        AssignmentStatus::Failed => 1,
        AssignmentStatus::Ready => 2,
        AssignmentStatus::Pending => 3,
        AssignmentStatus::Completed | AssignmentStatus::Skipped | AssignmentStatus::Cancelled => 4,
    };
    let mut places: Vec<usize> =
        (0..state.slots().len()).filter(|place| !state.slots()[*place].removed).collect();
    places.sort_by_key(|place| (rank(*place), *place));
    let shown = places.iter().take_while(|place| rank(**place) < 4).count();
    let is_whole = shown + usize::from(shown < places.len()) <= most;
    let shown = if is_whole { shown } else { most.saturating_sub(1) };
    let nodes: Vec<Node> = places[..shown].iter().map(|place| node(state, *place, now, &doing)).collect();
    let all: Vec<usize> = (0..nodes.len()).collect();
    let mut lines: Vec<String> = nodes.iter().map(|node| alone(node, &all, &nodes, width)).collect();
    let mut counts: Vec<(AssignmentStatus, usize)> = Vec::new();
    for status in places[shown..].iter().map(|place| state.status_of(*place)) {
        match counts.iter_mut().find(|(counted, _)| *counted == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((status, 1)),
        }
    }
    let counts =
        counts.iter().map(|(status, count)| format!("{} {count} {}", status.sign(), status.as_str()));
    let counts = counts.collect::<Vec<_>>().join("  ");
    if !counts.is_empty() {
        lines.push(cut(&counts, width));
    }
    lines
}

fn node(state: &State, place: usize, now: Time, doing: impl Fn(SessionId) -> Option<Doing>) -> Node {
    let slot = &state.slots()[place];
    let paid = |id: &SessionId| doing(*id).and_then(|doing| doing.cost).unwrap_or_default().0;
    let paid: u64 = match slot.spent.unpriced {
        // Some of it had no price when it ended, and may have one now.
        true => slot.sessions.iter().map(paid).fold(0, u64::saturating_add).max(slot.spent.cost.0),
        false => slot.session().as_ref().map_or(0, paid).saturating_add(slot.spent.cost.0),
    };
    let doing = slot.session().and_then(&doing).unwrap_or_default();
    let status = match state.status_of(place) {
        AssignmentStatus::Running => doing.stands.unwrap_or(AssignmentStatus::Running),
        known => known,
    };
    let mut text = status.sign().to_string();
    if let Some(took) = slot.took(now).filter(|_| slot.has_begun(status)) {
        let _ = write!(text, " {}", short_span(took));
    }
    let tokens = slot.spent.usage.total().saturating_add(doing.tokens);
    if tokens > 0 {
        let _ = write!(text, " {}", count(tokens));
    }
    if paid > 0 {
        let _ = write!(text, " {}", Dollars(paid));
    }
    Node { name: slot.assignment.name.to_string(), state: text, note: doing.now }
}

/// Draws a graph: in columns if it fits, else wave by wave.
pub fn lines(graph: &Graph, nodes: &[Node], width: usize) -> Vec<String> {
    let waves = graph.waves();
    if waves.len() == 1 {
        return waves[0].iter().map(|place| alone(&nodes[*place], &waves[0], nodes, width)).collect();
    }
    let drawn = joints(graph, &waves).and_then(|joints| columns(&waves, &joints, nodes, width));
    drawn.unwrap_or_else(|| list(graph, &waves, nodes, width))
}

fn alone(node: &Node, wave: &[usize], nodes: &[Node], width: usize) -> String {
    let label = label(node, wave, nodes);
    let line = if node.note.is_empty() { label } else { format!("{label}   {}", node.note) };
    cut(line.trim_end(), width)
}

/// How one column goes over into the next.
#[derive(Clone, Copy, PartialEq)]
enum Joint {
    /// All of one need all of the other.
    All,
    /// Each needs the one beside it.
    Beside,
}

/// How each column goes over into the next; none where lines would say something else than the graph.
fn joints(graph: &Graph, waves: &[Vec<usize>]) -> Option<Vec<Joint>> {
    if graph.len() > DRAWN {
        return None;
    }
    waves.windows(2).map(|pair| joint(graph, &pair[0], &pair[1])).collect()
}

fn joint(graph: &Graph, from: &[usize], to: &[usize]) -> Option<Joint> {
    let needs = |place: usize, needed: usize| graph.needs(place).contains(&(needed as u32));
    let joint = if to.iter().all(|place| from.iter().all(|needed| needs(*place, *needed))) {
        Joint::All
    } else if from.len() == to.len()
        && to.iter().enumerate().all(|(row, place)| {
            from.iter().enumerate().all(|(other, needed)| needs(*place, *needed) == (row == other))
        })
    {
        Joint::Beside
    } else {
        return None;
    };
    // What is needed from further back is drawn only if the way there leads through what is drawn.
    let is_implied = |place: &usize| {
        let near = from.iter().copied().filter(|needed| needs(*place, *needed));
        let behind = graph.reached(near, |graph, place| graph.needs(place));
        let is_near = |need: &usize| from.contains(need);
        graph.needs(*place).iter().map(|need| *need as usize).all(|need| is_near(&need) || behind[need])
    };
    // Whoever is needed by nobody beside it would seem to be needed.
    to.iter().all(is_implied).then_some(joint)
}

fn columns(waves: &[Vec<usize>], joints: &[Joint], nodes: &[Node], width: usize) -> Option<Vec<String>> {
    let rows = waves.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = vec![String::new(); rows];
    let mut notes = vec![String::new(); rows];
    for (n, wave) in waves.iter().enumerate() {
        let labels: Vec<String> = wave.iter().map(|place| label(&nodes[*place], wave, nodes)).collect();
        let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let next = waves.get(n + 1).map(|next| (next.len(), joints[n]));
        for (row, line) in lines.iter_mut().enumerate() {
            let label = labels.get(row);
            if let Some(place) = wave.get(row)
                && !nodes[*place].note.is_empty()
            {
                // Behind others of its row it says whose it is.
                let is_last = waves[n + 1..].iter().all(|later| later.len() <= row);
                notes[row] = match is_last {
                    true => nodes[*place].note.clone(),
                    false => format!("{}: {}", nodes[*place].name, nodes[*place].note),
                };
            }
            let text = label.map_or("", String::as_str);
            let room = widest - text.chars().count();
            line.push_str(text);
            let Some((next, joint)) = next else { continue };
            let (fill, is_here) = if label.is_some() { ('─', true) } else { (' ', false) };
            line.push(' ');
            line.extend(std::iter::repeat_n(fill, room + 1));
            if joint == Joint::All && wave.len().max(next) > 1 {
                line.push(junction(row, wave.len().max(next), is_here, row < next));
            }
            line.push(if row < next { '─' } else { ' ' });
            line.push(' ');
        }
    }
    for (line, note) in lines.iter_mut().zip(notes) {
        let used = line.trim_end().len();
        line.truncate(used);
        if line.chars().count() > width {
            return None;
        }
        let room = width.saturating_sub(line.chars().count() + 3);
        if !note.is_empty() && room >= 8 {
            let _ = write!(line, "   {}", one_line(&note, room));
        }
    }
    Some(lines)
}

/// The sign where lines of `rows` rows meet.
fn junction(row: usize, rows: usize, left: bool, right: bool) -> char {
    match (row > 0, row + 1 < rows, left, right) {
        _ if row >= rows => ' ',
        (false, false, ..) => '─',
        (false, true, true, true) => '┬',
        (false, true, true, false) => '┐',
        (false, true, false, true) => '┌',
        (true, true, true, true) => '┼',
        (true, true, true, false) => '┤',
        (true, true, false, true) => '├',
        (true, false, true, true) => '┴',
        (true, false, true, false) => '┘',
        (true, false, false, true) => '└',
        (_, _, false, false) => '│',
    }
}

/// Its name and state, aligned with those of its wave.
fn label(node: &Node, wave: &[usize], nodes: &[Node]) -> String {
    let widest = wave.iter().map(|place| nodes[*place].name.chars().count()).max().unwrap_or(0);
    format!("{:widest$} {}", node.name, node.state)
}

/// Wave by wave, each with what it needs.
fn list(graph: &Graph, waves: &[Vec<usize>], nodes: &[Node], width: usize) -> Vec<String> {
    let digits = waves.len().to_string().len();
    let mut lines = Vec::new();
    for (n, wave) in waves.iter().enumerate() {
        for (row, place) in wave.iter().enumerate() {
            if lines.len() == LISTED {
                lines.push(format!("… and {} more", graph.len() - LISTED));
                return lines;
            }
            let number = if row == 0 { (n + 1).to_string() } else { String::new() };
            let needs: Vec<&str> =
                graph.needs(*place).iter().map(|need| nodes[*need as usize].name.as_str()).collect();
            let mut line = format!("{number:>digits$}  {}", label(&nodes[*place], wave, nodes));
            if !needs.is_empty() {
                let _ = write!(line, "  ← {}", needs.join(" "));
            }
            if !nodes[*place].note.is_empty() {
                let _ = write!(line, "   {}", nodes[*place].note);
            }
            lines.push(cut(&line, width));
        }
    }
    lines
}

/// The beginning of a line, with its spaces.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssignmentId, mission::Assignment};

    /// A graph of `name state < needs`.
    fn graph(text: &str) -> (Graph, Vec<Node>) {
        let mut nodes: Vec<Node> = Vec::new();
        let mut assignments = Vec::new();
        for (n, line) in text.trim().lines().enumerate() {
            let (left, needs) = line.trim().split_once(" < ").unwrap_or((line.trim(), ""));
            let (name, state) = left.split_once(' ').unwrap();
            let (state, note) = state.split_once(" | ").unwrap_or((state, ""));
            let place = |name: &str| nodes.iter().position(|node| node.name == name).unwrap() as u32;
            let needs = needs.split_whitespace().map(place).collect();
            assignments.push(Assignment {
                id: AssignmentId::new(Time::from_micros(1), n as u128),
                name: name.parse().unwrap(),
                role: "r".parse().unwrap(),
                instance: 1,
                member: 0,
                needs,
                stage: None,
                added_by: None,
                depth: 0,
            });
            nodes.push(Node { name: name.to_owned(), state: state.to_owned(), note: note.to_owned() });
        }
        (Graph::of(&assignments), nodes)
    }

    fn drawn(text: &str, width: usize) -> String {
        let (graph, nodes) = graph(text);
        lines(&graph, &nodes, width).join("\n")
    }

    #[test]
    fn a_fork_and_a_join_are_drawn_as_such() {
        let text = "plan ✓ 3m $0.41
            build-api ✓ 9m $2.10 < plan
            build-db ✓ 7m $1.66 < plan
            build-ui ● 11m $2.25 | run: npm test · 31s < plan
            review ◌ < build-api build-db build-ui plan
            merge ◌ < review";
        let text = text.replace(" | run: npm test · 31s < plan", " < plan");
        assert_eq!(
            drawn(&text, 100),
            "plan ✓ 3m $0.41 ─┬─ build-api ✓ 9m $2.10 ──┬─ review ◌ ── merge ◌\n                 \
             ├─ build-db  ✓ 7m $1.66 ──┤\n                 \
             └─ build-ui  ● 11m $2.25 ─┘"
        );
    }

    #[test]
    fn what_runs_says_what_it_does_behind_the_drawing() {
        let (graph, mut nodes) = graph("a ✓\nb ● < a\nc ● < a");
        nodes[2].note = "run: npm test · 31s".to_owned();
        assert_eq!(lines(&graph, &nodes, 60), ["a ✓ ─┬─ b ●", "     └─ c ●   run: npm test · 31s"]);
        assert_eq!(lines(&graph, &nodes, 24), ["a ✓ ─┬─ b ●", "     └─ c ●   run: npm …"]);
        let (graph, mut nodes) = self::graph("a ●\nb ◌ < a");
        nodes[0].note = "think".to_owned();
        assert_eq!(lines(&graph, &nodes, 60), ["a ● ── b ◌   a: think"], "b does not think");
    }

    #[test]
    fn chains_stages_and_rows_are_drawn() {
        assert_eq!(drawn("a ✓\nb ● < a\nc ◌ < b", 80), "a ✓ ── b ● ── c ◌");
        assert_eq!(drawn("a ✓\nlonger ●\nc ◌", 80), "a      ✓\nlonger ●\nc      ◌");
        assert_eq!(
            drawn("a ✓\nb ✓\nx ◌ < a b\ny ◌ < a b\nz ◌ < a b", 80),
            "a ✓ ─┬─ x ◌\nb ✓ ─┼─ y ◌\n     └─ z ◌"
        );
        assert_eq!(drawn("a ✓\nb ✓\nx ◌ < a\ny ◌ < b\nz ◌ < x y", 80), "a ✓ ── x ◌ ─┬─ z ◌\nb ✓ ── y ◌ ─┘");
    }

    #[test]
    fn what_lines_cannot_say_truly_is_listed() {
        let crossed = "a ✓\nb ✓\nx ◌ < a\ny ◌ < a b";
        assert_eq!(drawn(crossed, 80), "1  a ✓\n   b ✓\n2  x ◌  ← a\n   y ◌  ← a b");
        let wide = "plan ✓ 3m\nbuild-the-whole-thing ● 11m $2.25 < plan\nreview ◌ < build-the-whole-thing";
        assert_eq!(
            drawn(wide, 40),
            "1  plan ✓ 3m\n2  build-the-whole-thing ● 11m $2.25  ←…\n3  review ◌  ← build-the-whole-thing"
        );
        for width in 1..60 {
            assert!(drawn(wide, width).lines().all(|line| line.chars().count() <= width), "{width}");
        }
    }
}
