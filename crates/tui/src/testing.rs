//! A screen at a fixed moment, and keys pressed on it.

use std::{collections::HashMap, time::Duration};

use ostler_client::{Approval, Received};
use ostler_domain::{
    ApprovalId, Event, Recorded, SessionId, Time,
    budget::Today,
    event::{AskKind, Text, ToolCall, ToolResult},
    price::Dollars,
    session::Attention,
};
use ostler_screen::{
    Look, row,
    sessions::CampaignNames,
    testing::{self, NOW, ago},
};
use ratatui::{Terminal, backend::TestBackend};

use crate::{
    draw::draw,
    message::{Effect, Key, Message},
    state::{Overview, Reach, State},
    update::update,
};

pub(crate) const ASKED: u128 = 0x00ab_cdef;

/// Nobody has asked the daemon yet.
pub(crate) fn opening() -> State {
    State::new(NOW, Look::plain(None), "build1".to_owned(), None)
}

/// One session of each sort, one question for leave and one in words.
pub(crate) fn overview() -> Overview {
    let mut sessions = testing::fleet();
    let mut dash = testing::session(10, "dash-tests");
    dash.attention = Some(Attention::WaitingInput);
    dash.attention_since = ago(40);
    dash.evidence = "Keep the old snapshot form?".to_owned();
    let approvals = vec![approval(sessions[0].id, ASKED), {
        let input = "Keep the old snapshot form?".to_owned();
        Approval { kind: AskKind::Question, input, why: String::new(), ..approval(dash.id, 7) }
    }];
    sessions.push(dash);
    sessions.sort_by(row::in_order);
    Overview {
        has_any: true,
        campaigns: CampaignNames(HashMap::from([(testing::campaign().id, "shop".to_owned())])),
        approvals,
        today: Some(Today {
            paid: Dollars(7_670_000),
            budget: Some(Dollars(25_000_000)),
            tokens: 2_100_000,
            ..Today::default()
        }),
        sessions,
        ..Overview::default()
    }
}

fn approval(session: SessionId, bits: u128) -> Approval {
    Approval {
        id: ApprovalId::new(NOW, bits),
        session,
        tool: "run".to_owned(),
        input: "cargo add governor".to_owned(),
        asks: "run: cargo add governor".to_owned(),
        kind: AskKind::Leave,
        why: "no rule allows cargo add governor".to_owned(),
        asked: ago(180),
        deadline: Some(NOW.plus(Duration::from_secs(43_020))),
        answer: None,
    }
}

/// A screen that has seen all of it, with the cursor on who asks for leave.
pub(crate) fn seen() -> State {
    let mut state = opening();
    tell(&mut state, Message::Overview(Box::new(overview())));
    let session = state.cursor.unwrap();
    tell(&mut state, Message::Told(session, story()));
    state
}

fn story() -> Vec<Received> {
    let call = |id: &str, tool: &str, summary: &str| {
        Event::AgentToolCall(ToolCall {
            tool_id: id.to_owned(),
            tool: tool.to_owned(),
            summary: summary.to_owned(),
            input: String::new(),
            subagent: None,
        })
    };
    let result = |id: &str, exit: i32, output: &str| {
        Event::AgentToolResult(ToolResult {
            tool_id: id.to_owned(),
            success: exit == 0,
            exit: Some(exit),
            output: output.to_owned(),
            subagent: None,
        })
    };
    let events = [
        Event::AgentCompletion(Text {
            text: "The login route \u{1b}[31mhas none yet.".to_owned(),
            subagent: None,
        }),
        call("a", "edit", "src/routes/login.rs"),
        result("a", 0, "+41 −3"),
        call("b", "run", "cargo test -p api login"),
        result("b", 101, "1 failed, 37 passed"),
    ];
    events.into_iter().zip(1..).map(|(event, seq)| received(seq, event)).collect()
}

pub(crate) fn received(seq: u64, event: Event) -> Received {
    Received::Known(Box::new(Recorded { seq, session: None, session_seq: None, time: ago(100), event }))
}

/// At the moment of the state.
pub(crate) fn tell(state: &mut State, message: Message) -> Vec<Effect> {
    let now = state.now;
    update(state, now, message)
}

pub(crate) fn press(state: &mut State, keys: &[Key]) -> Vec<Effect> {
    keys.iter().flat_map(|key| tell(state, Message::Key(*key))).collect()
}

pub(crate) fn type_in(state: &mut State, text: &str) {
    text.chars().for_each(|c| drop(press(state, &[Key::Char(c)])));
}

/// Later than what a key on its way could be meant for.
pub(crate) fn wait(state: &mut State) {
    let later: Time = state.now.plus(Duration::from_secs(1));
    update(state, later, Message::Tick);
}

pub(crate) fn picture(state: &State, width: u16, height: u16) -> String {
    pictured(state, width, height).0
}

/// As the shell shows it.
pub(crate) fn shown(state: &mut State, width: u16, height: u16) -> String {
    let (picture, reach) = pictured(state, width, height);
    state.reached(reach);
    picture
}

fn pictured(state: &State, width: u16, height: u16) -> (String, Reach) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut reach = Reach::default();
    terminal.draw(|frame| reach = draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    ((0..height).map(|y| line(y).trim_end().to_owned()).collect::<Vec<_>>().join("\n"), reach)
}
