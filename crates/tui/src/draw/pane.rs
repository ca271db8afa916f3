//! The session under the cursor: who it is, what it did, what it asks, what it used.

use ostler_client::{Approval, Session};
use ostler_domain::{approval::goes_by_rules, text::visible};
use ostler_screen::{Line, Tone, hold, money, row, words};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::state::{Focus, State, wants_words};

/// Most lines of a request that are shown before it is opened in full.
const ASKED: usize = 4;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let Some(session) = state.current() else { return };
    if area.height == 0 {
        return;
    }
    canvas.rule(area, 0, title(state, session));
    let width = usize::from(area.width);
    let below = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX);
    let used = used(session);
    let card = match state.question() {
        Some(approval) => card(state, approval, width),
        None => held(session, width),
    };
    let room = area.height - 1;
    let foot = below(usize::from(!used.is_empty())).min(room);
    let asked = below(card.len()).min(room - foot);
    let told = room - foot - asked;
    let (lines, most) = story_lines(state, session, width, usize::from(told));
    canvas.reach.story = Some(most);
    let story = Rect { y: area.y + 1, height: told.min(below(lines.len())), ..area };
    canvas.put_all(story, &lines);
    canvas.put_all(Rect { y: story.bottom(), height: asked, ..area }, &card);
    if foot > 0 {
        canvas.put(Rect { y: area.bottom() - 1, height: 1, ..area }, 0, &Line::of(" ").append(used));
    }
}

fn title(state: &State, session: &Session) -> Line {
    Line::joined([
        Line::new().strong(session.name.as_str()).plain("  ").with(Tone::Accent, session.id.short()),
        Line::of(format!("{}{}", session.provider, row::model(session))),
        Line::of(state.overview.campaigns.of(&session.campaign)),
    ])
}

/// The end of the story, or what is above of it where somebody scrolled up; and how far that can be.
fn story_lines(state: &State, session: &Session, width: usize, room: usize) -> (Vec<Line>, usize) {
    let mut lines = match &session.obituary {
        Some(obituary) => {
            let why = Line::of("  ").with(Tone::Faint, "why     ").plain(&obituary.sentence);
            why.folded(Some(width), 10)
        }
        None => Vec::new(),
    };
    let top = lines.len().min(room);
    lines.truncate(top);
    let room = room - top;
    let told = state.story.lines(width, state.now);
    if told.is_empty() {
        let since = words::span(state.now.since(session.created_at));
        lines.push(Line::new().faint(match state.story.is_known {
            true => format!("  started {since} ago, no output yet"),
            false => "  …".to_owned(),
        }));
        return (lines, 0);
    }
    let most = told.len().saturating_sub(room);
    let scrolled = state.scrolled.min(most);
    let first = most - scrolled;
    let mut shown: Vec<Line> = told.into_iter().skip(first).take(room).collect();
    if scrolled > 0
        && let Some(last) = shown.last_mut()
    {
        *last = Line::toned(Tone::Accent, format!("  ↓ {scrolled} more, PgDn"));
    }
    lines.extend(shown);
    (lines, most)
}

/// What it asks, and the keys that answer.
fn card(state: &State, approval: &Approval, width: usize) -> Vec<Line> {
    let has_focus = state.focus == Focus::Card;
    let sign = Line::toned(Tone::Warn, if has_focus { "›? " } else { " ? " });
    let text = if wants_words(approval) { visible(&approval.input) } else { approval.asks.clone() };
    let mut asked = text.lines();
    let first = sign.strong(asked.next().unwrap_or_default());
    let mut lines = first.folded(Some(width), 3);
    lines.extend(asked.flat_map(|line| Line::of("   ").plain(line).folded(Some(width), 3)));
    if lines.len() > ASKED {
        lines.truncate(ASKED - 1);
        lines.push(Line::new().faint("   … v shows all of it"));
    }
    if !approval.why.is_empty() {
        lines.extend(Line::of("   ").faint(&approval.why).folded(Some(width), 3));
    }
    if let Some(deadline) = approval.deadline {
        let left = words::span(deadline.since(state.now));
        lines.push(
            Line::of("   ")
                .faint(format!("denied in {left} if nobody answers · apr {}", approval.id.short())),
        );
    }
    lines.extend(answers(state, approval, has_focus).folded(Some(width), 3));
    lines
}

/// What lets it go on where a budget holds it.
fn held(session: &Session, width: usize) -> Vec<Line> {
    let said = hold::at_a_budget(session).map(|line| Line::toned(Tone::Warn, " ! ").append(line));
    said.map(|line| line.folded(Some(width), 3)).unwrap_or_default()
}

fn answers(state: &State, approval: &Approval, has_focus: bool) -> Line {
    if !has_focus {
        return Line::of("   ").with(Tone::Accent, "Tab").plain(" to answer");
    }
    let campaign = state.campaign_of(approval.session);
    let keys: Vec<(&str, String)> = match wants_words(approval) {
        true => vec![("a", "answer".to_owned()), ("d", "none".to_owned()), ("v", "full".to_owned())],
        false => {
            let always = goes_by_rules(&approval.why).then(|| ("A", format!("always in {campaign}…")));
            let rest = [("d", "deny"), ("m", "say why"), ("v", "full")];
            let rest = rest.into_iter().map(|(key, means)| (key, means.to_owned()));
            std::iter::once(("a", "once".to_owned())).chain(always).chain(rest).collect()
        }
    };
    keys.iter().fold(Line::of("  "), |line, (key, means)| {
        line.plain(" ").with(Tone::Accent, key).plain(format!(" {means}  "))
    })
}

/// `61% context · 2.1M tokens · $3.18`
fn used(session: &Session) -> Line {
    let context = session.context.as_ref().map(|context| format!("context {}", words::context(context)));
    let tokens = match session.usage.total() {
        0 => String::new(),
        total => format!("{} tokens", words::count(total)),
    };
    Line::joined([
        Line::of(context.unwrap_or_default()),
        Line::of(tokens),
        Line::of(money::short(&session.cost)),
    ])
}
