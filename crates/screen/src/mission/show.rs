//! One mission: how far it is, its graph with what each does now, who waits for what.

mod fit;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ostler_client::{Session, reply::WholeMission};
use ostler_domain::{
    Now, SessionId, Time,
    mission::{
        Asked, AssignmentStatus, Beside, Hold, Merging, Progress, RoleCount, State, Status, Wait, asked, draw,
    },
    price::{Cost, Dollars},
    session::{self, Attention},
    text::one_line,
    time::BootId,
};

use super::list::sign;
use crate::{Line, Look, Tone, money, row, words};

/// Most of one kind of lines beside the roles.
const BESIDE: usize = 20;
/// Where there is less room than this for what stands beside the roles, it stands below them.
const ROOM: usize = 36;
const GAP: usize = 6;
/// Most answers that are written out to paste.
const ANSWERS: usize = 6;

/// A mission, and what is known of it beside its own events.
pub struct Seen<'a> {
    pub state: &'a State,
    pub sessions: &'a [Session],
    /// What the daemon says of it, and how long it takes.
    pub whole: Option<&'a WholeMission>,
    pub now: Time,
}

/// The moment for what is decided by the clock on the wall alone.
pub fn moment(now: Time) -> Now {
    Now { wall: now, since_boot: Duration::ZERO, boot: BootId::default() }
}

impl Seen<'_> {
    /// All of it, as `mission show` has it.
    pub fn lines(&self, look: &Look) -> Vec<Line> {
        let mut lines = self.head().folded(look.width, 2);
        lines.extend(
            Line::of(format!("“{}”", one_line(&self.state.plan().objective, 400))).folded(look.width, 1),
        );
        lines.extend(self.why().into_iter().flat_map(|line| line.folded(look.width, 2)));
        lines.extend(self.graph(look.width));
        lines.extend(self.roles(look.width));
        lines
    }

    /// `checkout-v2  running 18m  pipeline · 3 of 6 completed · ETA 14m (…) · $6.42 of $20.00`.
    pub fn head(&self) -> Line {
        let (state, progress) = (self.state, self.progress());
        let (tone, _) = sign(state.status());
        let ran = words::age(state.ran(self.now));
        let mut parts = vec![
            Line::of(state.plan().strategy.as_str()),
            Line::of(format!("{} of {} completed", progress.all.completed, progress.all.total)),
        ];
        if progress.all.failed > 0 {
            parts.push(Line::toned(Tone::Bad, format!("{} failed", progress.all.failed)));
        }
        if let Some(whole) = self.whole.filter(|_| !state.is_over()) {
            parts.push(Line::of(&whole.eta.words));
        }
        parts.push(self.money());
        Line::new()
            .strong(state.name().as_str())
            .plain("  ")
            .with(tone, state.status().as_str())
            .plain(if state.started_at().is_some() { format!(" {ran}  ") } else { "  ".to_owned() })
            .append(Line::joined(parts))
    }

    fn progress(&self) -> Progress {
        let waiting = self.sessions.iter().filter(|session| session.status == session::Status::Created);
        let waiting: BTreeSet<SessionId> = waiting.map(|session| session.id).collect();
        self.state.progress_beside(|session| waiting.contains(&session))
    }

    fn money(&self) -> Line {
        let mut cost = Cost::default();
        self.sessions.iter().for_each(|session| cost += &session.cost);
        let paid = match money::short(&cost) {
            nothing if nothing.is_empty() => Dollars(0).to_string(),
            paid => paid,
        };
        let budget = self.state.budget().unwrap_or_default();
        let dollars = match budget.dollars {
            Some(most) => format!("{paid} of {most}"),
            None if paid == "?" => unknown(&cost),
            None => paid,
        };
        let tokens: u64 = self.sessions.iter().map(|session| session.usage.total()).sum();
        let tokens = match (budget.tokens, tokens) {
            (Some(most), used) => Some(format!("{} of {} tokens", words::count(used), words::count(most))),
            // What has no price is told in tokens.
            (None, used) if !cost.unpriced.is_empty() => Some(format!("{} tokens", words::count(used))),
            (None, _) => None,
        };
        Line::of([Some(dollars), tokens].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// Why it is over, stands still, or ends.
    fn why(&self) -> Option<Line> {
        let (state, now) = (self.state, moment(self.now));
        if let Some(over) = state.ended().filter(|over| !over.why.is_empty()) {
            let ago = words::age(self.now.since(over.at));
            return Some(Line::of(one_line(&over.why, 400)).faint(format!(" · ended {ago} ago")));
        }
        // What its events do not say: that everything is halted.
        let told = || Some(self.whole?.wait.clone()).filter(|wait| !wait.is_empty() && !state.is_over());
        let wait = state.wait(false).map(|wait| wait.words(state, &now)).or_else(told)?;
        let waits = if wait.starts_with("paused") { "" } else { "waits " };
        Some(Line::toned(Tone::Warn, format!("{waits}{wait}")))
    }

    /// The drawn graph, with signs in colour.
    pub fn graph(&self, width: Option<usize>) -> Vec<Line> {
        let drawn = draw::mission(self.state, self.now, drawn_width(width), |id| self.doing(id));
        drawn.iter().map(|line| drawn_line(line)).collect()
    }

    fn doing(&self, id: SessionId) -> Option<draw::Doing> {
        let session = self.sessions.iter().find(|session| session.id == id)?;
        Some(draw::Doing {
            now: row::now(session, self.now).text(),
            cost: Some(session.cost.paid),
            tokens: session.usage.total(),
            stands: match (session.status, session.attention) {
                (_, Some(Attention::Paused)) => Some(AssignmentStatus::Paused),
                (session::Status::Created, _) => Some(AssignmentStatus::Ready),
                _ => None,
            },
        })
    }

    /// Roles, with who waits and what will collide beside them, or below where the screen is narrow.
    fn roles(&self, width: Option<usize>) -> Vec<Line> {
        let left = self.role_table();
        let right = self.beside();
        let column = left.iter().map(Line::width).max().unwrap_or(0);
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(column + GAP));
        if room < ROOM {
            return left.into_iter().chain(right.iter().flat_map(|line| line.folded(width, 2))).collect();
        }
        let count = left.len().max(right.len());
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        (0..count)
            .map(|_| {
                let left = left.next().unwrap_or_default();
                match right.next() {
                    Some(right) => left.padded(column + GAP).append(right.cut(room)),
                    None => left,
                }
            })
            .collect()
    }

    fn role_table(&self) -> Vec<Line> {
        let progress = self.progress();
        let name = progress.roles.iter().map(|(role, _)| role.chars().count()).max().unwrap_or(0).max(8);
        let has_left_out = progress.all.left_out > 0;
        let row = |role: &str, count: RoleCount| {
            let RoleCount { total, pending, running, completed, failed, left_out } = count;
            let mut text =
                format!("{role:<name$} {total:>6} {pending:>7} {running:>7} {completed:>9} {failed:>6}");
            if has_left_out {
                text.push_str(&format!(" {left_out:>8}"));
            }
            text
        };
        let mut head = format!("{:<name$}  TOTAL PENDING RUNNING COMPLETED FAILED", "ROLE");
        if has_left_out {
            head.push_str(" LEFT OUT");
        }
        let rows = progress.roles.iter().map(|(role, count)| Line::of(row(role, *count)));
        std::iter::once(Line::new().faint(head)).chain(rows).collect()
    }

    fn beside(&self) -> Vec<Line> {
        let waits = section("WAITS", wait_lines(&self.waits(&moment(self.now))));
        waits.into_iter().chain(self.not_done()).chain(self.forecast()).chain(self.merge()).collect()
    }

    fn not_done(&self) -> Vec<Line> {
        let state = self.state;
        let failed = (0..state.slots().len()).filter_map(|place| {
            let end = state.slots()[place].end()?;
            let tone = match end.status {
                AssignmentStatus::Failed => Tone::Bad,
                AssignmentStatus::Skipped => Tone::Warn,
                _ => return None,
            };
            let why = one_line(&end.why, 200);
            Some(Line::toned(tone, self.name(place)).plain(format!("  {}: {why}", end.status.as_str())))
        });
        section("NOT DONE", failed.collect())
    }

    fn forecast(&self) -> Vec<Line> {
        let collisions = self.state.collisions().iter().filter(|seen| !seen.paths.is_empty()).map(|seen| {
            let since = seen.turn.map_or_else(String::new, |turn| format!(" (since turn {turn})"));
            let paths = one_line(&seen.paths.join(", "), 120);
            let (one, other) = (self.name(seen.one), self.name(seen.other));
            Line::of(format!("{one} × {other} will collide in {paths}{since}"))
        });
        section("FORECAST", collisions.collect())
    }

    fn merge(&self) -> Vec<Line> {
        let Merging::Failed { output, .. } = self.state.merging() else { return Vec::new() };
        let said = output.lines().filter(|line| !line.trim().is_empty());
        section("MERGE", said.map(|line| Line::toned(Tone::Bad, one_line(line, 200))).collect())
    }

    fn name(&self, place: usize) -> &str {
        self.state.slots()[place].assignment.name.as_str()
    }

    /// Who waits, and for what: what its events say, and what only the daemon knows of a session or of this machine. Those
    /// who wait for a person come first.
    fn waits(&self, now: &Now) -> Vec<Waiting<'_>> {
        let state = self.state;
        let known: BTreeMap<usize, Wait> = state.waits(now, &self.known()).into_iter().collect();
        let rows = self.whole.map_or(&[][..], |whole| &whole.assignments).iter();
        let told: BTreeMap<&str, &str> = rows.map(|row| (row.name.as_str(), row.wait.as_str())).collect();
        let of = |place: usize| {
            let slot = &state.slots()[place];
            let who = slot.assignment.name.as_str();
            let told = told.get(who).copied().filter(|told| !told.is_empty() && slot.end().is_none());
            let (is_for_you, words) = match (known.get(&place), told) {
                (Some(Wait::Next) | None, Some(told)) => (false, told.to_owned()),
                (Some(wait), _) => {
                    (matches!(wait, Wait::Person { .. } | Wait::Answer(_)), wait.words(state, now))
                }
                (None, None) => return None,
            };
            Some(Waiting { who, words, is_for_you })
        };
        let merge = state.merge_wait().map(|wait| Waiting {
            who: "merge",
            words: wait.words(state, now),
            is_for_you: false,
        });
        let mut all: Vec<Waiting<'_>> = (0..state.slots().len()).filter_map(of).chain(merge).collect();
        all.sort_by_key(|one| !one.is_for_you);
        all
    }

    /// What its sessions say beside its own events.
    fn known(&self) -> Beside {
        let asked = self.sessions.iter().map(|session| (session.id, asked(session)));
        Beside { asked: asked.filter(|(_, asked)| !asked.is_empty()).collect(), ..Beside::default() }
    }

    /// What answers members that ask, to paste, and what each asks.
    fn answers(&self) -> Vec<(String, String)> {
        let of = |(place, wait)| match wait {
            Wait::Answer(asked) => {
                let name = self.state.slots()[place].assignment.name.to_string();
                asked
                    .into_iter()
                    .map(|one: Asked| (one.answer, format!("{name} asks: {}", one.what)))
                    .collect()
            }
            Wait::Person { hold, .. } => self.lets_go(hold, place),
            _ => Vec::new(),
        };
        let waits = self.state.waits(&moment(self.now), &self.known());
        waits.into_iter().flat_map(of).take(ANSWERS).collect()
    }

    /// What lets one go on that waits for a person, where its mission goes on without it.
    fn lets_go(&self, hold: Hold, place: usize) -> Vec<(String, String)> {
        let (mission, name) = (self.state.name(), self.name(place));
        if self.state.hold().is_some() {
            return Vec::new();
        }
        match hold {
            Hold::Dependency => vec![
                (format!("ostler mission retry {mission}"), format!("does again what {name} needs")),
                (format!("ostler mission rm {mission} {name}"), "takes it away".to_owned()),
            ],
            Hold::Budget | Hold::Time | Hold::Loop | Hold::NoProgress => {
                vec![(format!("ostler mission resume {mission}"), format!("lets {name} go on"))]
            }
        }
    }

    /// What to do next, to paste.
    pub fn steps(&self) -> Vec<(String, String)> {
        let usual = self.usual_steps().into_iter().map(|(command, effect)| (command, effect.to_owned()));
        self.answers().into_iter().chain(usual).collect()
    }

    fn usual_steps(&self) -> Vec<(String, &'static str)> {
        let (state, name) = (self.state, self.state.name());
        let verb = |verb: &str| format!("ostler mission {verb} {name}");
        match state.status() {
            Status::Created => vec![(verb("start"), "starts it"), (verb("cancel"), "does not")],
            Status::Running => vec![
                (format!("ostler mission show -w {name}"), "draws this again whenever something changes"),
                (format!("ostler ls --mission {name}"), "its sessions"),
                (verb("pause"), "freezes all of it"),
            ],
            Status::Paused => {
                let resume = match state.hold().map(|held| held.hold) {
                    Some(Hold::Budget) => format!("{} --budget AMOUNT", verb("resume")),
                    Some(Hold::Time) => format!("{} --time 30m", verb("resume")),
                    _ => verb("resume"),
                };
                vec![(resume, "says what goes on and what that costs, and asks"), (verb("cancel"), "ends it")]
            }
            Status::Completed => {
                vec![(verb("report"), "what came of it"), (format!("ostler cost --mission {name}"), "")]
            }
            Status::Partial | Status::Failed | Status::Cancelled => vec![
                (verb("report"), "what came of it"),
                (verb("retry"), "does again what was not completed; says the price first"),
            ],
        }
    }
}

/// Somebody who waits.
struct Waiting<'a> {
    who: &'a str,
    words: String,
    is_for_you: bool,
}

fn wait_lines(waits: &[Waiting<'_>]) -> Vec<Line> {
    let widest = waits.iter().map(|one| one.who.chars().count()).max().unwrap_or(0);
    waits.iter().map(|Waiting { who, words, .. }| Line::of(format!("{who:<widest$}  {words}"))).collect()
}

fn drawn_width(width: Option<usize>) -> usize {
    width.unwrap_or(160).saturating_sub(2).max(20)
}

fn drawn_line(drawn: &str) -> Line {
    Line::of("  ").append(coloured(drawn))
}

/// `cost unknown (no price for foo-1)`.
fn unknown(cost: &Cost) -> String {
    let models: Vec<&str> =
        cost.unpriced.keys().map(String::as_str).filter(|model| !model.is_empty()).collect();
    match models.as_slice() {
        [] => "cost unknown".to_owned(),
        [first] => format!("cost unknown (no price for {})", one_line(first, 40)),
        [first, more @ ..] => {
            format!("cost unknown (no price for {} and {} more)", one_line(first, 40), more.len())
        }
    }
}

fn section(head: &str, lines: Vec<Line>) -> Vec<Line> {
    if lines.is_empty() {
        return lines;
    }
    let more = lines.len().saturating_sub(BESIDE);
    let more = (more > 0).then(|| Line::new().faint(format!("… {more} more")));
    std::iter::once(Line::new().faint(head)).chain(lines.into_iter().take(BESIDE)).chain(more).collect()
}

fn coloured(drawn: &str) -> Line {
    let mut line = Line::new();
    let mut plain = String::new();
    for c in drawn.chars() {
        let tone = match c {
            '✓' | '●' => Tone::Good,
            '✗' => Tone::Bad,
            '‖' => Tone::Accent,
            '◌' | '–' => Tone::Faint,
            _ => {
                plain.push(c);
                continue;
            }
        };
        line = line.plain(std::mem::take(&mut plain)).with(tone, c.to_string());
    }
    line.plain(plain)
}

#[cfg(test)]
mod tests;
