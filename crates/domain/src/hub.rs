//! What a node and a hub say to each other: the frames, how far each has come, and when a node tries again. Pure.
//!
//! The node's log is the queue. The hub says how far it has the log; the node sends what is behind that, so much at once,
//! and sends again from there after any break. The hub takes each event once, by its place.

use std::{collections::VecDeque, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    limits::{HUB_AGAIN_FIRST, HUB_AGAIN_LONGEST, HUB_FRAME_EVENTS, HUB_WINDOW},
    notice::SecretPlace,
};

/// How they speak. A hub that does not know it says so and hangs up.
pub const SCHEMA: &str = "ostler.hub/1";

/// Which hub a node connects to, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    pub url: String,
    pub token: SecretPlace,
}

/// What a node says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToHub {
    /// First of all.
    Hello(Hello),
    /// What the log has, in its order.
    Events { events: Vec<Forwarded> },
    /// All that is listed now: in the place of what was listed before.
    Rows { rows: Vec<Row> },
    /// What came of a command.
    Answer(Answer),
    /// Asks for what all nodes list.
    List { id: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub schema: String,
    /// The node's id, which its log has for ever.
    pub node: String,
    pub version: String,
    /// Another one after each start of the daemon: what it has done before that it no longer knows.
    pub epoch: String,
    /// The end of its log.
    pub last: u64,
}

/// An event, as JSON has it everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forwarded {
    pub seq: u64,
    pub event: Value,
}

/// A session of a node's list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// As `/v1/sessions` has it.
    pub session: Value,
    /// As the library has it, for lists of several machines.
    #[serde(default)]
    pub view: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub id: String,
    /// As HTTP has it.
    pub status: u16,
    pub body: String,
}

/// What a hub says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToNode {
    /// How far it has the node's log; none, and it has nothing of it.
    Resume { after: Option<u64> },
    /// Everything up to here is durable there.
    Ack { seq: u64 },
    /// Somebody wants something done. The node decides by the token whether it is.
    Command(Command),
    /// What all nodes list.
    Listed { id: u64, nodes: Vec<Listed> },
    /// It will not talk to this node.
    Refused { why: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The same each time that this is asked: what was done is answered, and not done again.
    pub id: String,
    /// The share token of whoever asks.
    pub token: String,
    /// As of the node's own HTTP API.
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub body: String,
}

/// A node, and what it listed last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub name: String,
    pub node: String,
    /// Since when it is away, in RFC 3339; none while it is connected.
    #[serde(default)]
    pub stale_since: Option<String>,
    pub rows: Vec<Row>,
}

/// How far a node has come with its hub: so much may be on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    acked: u64,
    /// The places that the hub has not said it has, in order.
    on_the_way: VecDeque<u64>,
}

impl Window {
    /// Of a connection that begins behind this place.
    pub fn new(after: u64) -> Window {
        Window { acked: after, on_the_way: VecDeque::new() }
    }

    /// How many more may be sent before the hub has said that it has some.
    pub fn room(&self) -> usize {
        HUB_WINDOW.saturating_sub(self.on_the_way.len())
    }

    pub fn sent(&mut self, seq: u64) {
        self.on_the_way.push_back(seq);
    }

    /// The hub has everything up to here. Nobody has what was not sent.
    pub fn acked(&mut self, seq: u64) {
        while let Some(first) = self.on_the_way.pop_front_if(|first| *first <= seq) {
            self.acked = first;
        }
    }

    pub fn place(&self) -> u64 {
        self.acked
    }
}

/// Where a node begins: behind what the hub has; where the hub has nothing, behind what it had once; and with what is to
/// come where it never had anything.
pub fn begin(hub_has: Option<u64>, had_once: Option<u64>, end: u64) -> u64 {
    hub_has.or(had_once).unwrap_or(end).min(end)
}

/// Those of them that are new to who has the log this far, in order.
pub fn fresh(seen: u64, events: Vec<Forwarded>) -> Vec<Forwarded> {
    let mut last = seen;
    let is_new = |event: &Forwarded| {
        let is_new = event.seq > last;
        last = last.max(event.seq);
        is_new
    };
    events.into_iter().filter(is_new).collect()
}

/// How many events go into one frame after so many tries in vain. A frame is acknowledged whole or not at all: on a way that
/// breaks sooner than a large one has passed, only smaller ones ever arrive.
pub fn frame_events(tries: u32) -> usize {
    HUB_FRAME_EVENTS.checked_shr(tries).unwrap_or(0).max(1)
}

/// How long a node waits before it tries again, after so many tries in vain. `chance` is a number between 0 and 1: nodes
/// that lost their hub together do not come back together.
pub fn again(tries: u32, chance: f64) -> Duration {
    let longest = HUB_AGAIN_FIRST.saturating_mul(1 << tries.min(20)).min(HUB_AGAIN_LONGEST);
    HUB_AGAIN_FIRST + longest.saturating_sub(HUB_AGAIN_FIRST).mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn event(seq: u64) -> Forwarded {
        Forwarded { seq, event: json!({ "seq": seq }) }
    }

    #[test]
    fn frames_are_written_as_they_are_documented() {
        let said = |frame: &ToHub| serde_json::to_string(frame).unwrap();
        assert_eq!(
            said(&ToHub::Events { events: vec![event(7)] }),
            r#"{"kind":"events","events":[{"seq":7,"event":{"seq":7}}]}"#
        );
        assert_eq!(
            said(&ToHub::Answer(Answer { id: "c1".to_owned(), status: 403, body: "{}".to_owned() })),
            r#"{"kind":"answer","id":"c1","status":403,"body":"{}"}"#
        );
        let told = |text: &str| serde_json::from_str::<ToNode>(text).unwrap();
        assert_eq!(told(r#"{"kind":"resume","after":null}"#), ToNode::Resume { after: None });
        assert_eq!(told(r#"{"kind":"ack","seq":9,"more":1}"#), ToNode::Ack { seq: 9 });
        assert!(serde_json::from_str::<ToNode>(r#"{"kind":"dance"}"#).is_err());
    }

    #[test]
    fn a_node_begins_where_the_hub_ends() {
        assert_eq!(begin(Some(5), Some(9), 20), 5, "what was acknowledged and lost by the hub is sent again");
        assert_eq!(begin(None, Some(9), 20), 9);
        assert_eq!(begin(None, None, 20), 20, "not years");
        assert_eq!(begin(Some(30), None, 20), 20, "the node's log was put back");
    }

    #[test]
    fn tries_become_rarer_and_never_stop() {
        assert_eq!(again(0, 1.0), HUB_AGAIN_FIRST);
        assert_eq!(again(3, 1.0), HUB_AGAIN_FIRST * 8);
        assert_eq!(again(u32::MAX, 1.0), HUB_AGAIN_LONGEST);
        assert_eq!(again(30, 0.0), HUB_AGAIN_FIRST);
        assert_eq!([0, 1, 6, u32::MAX].map(frame_events), [HUB_FRAME_EVENTS, HUB_FRAME_EVENTS / 2, 1, 1]);
    }

    proptest! {
        /// Connections that break anywhere: frames lost, acknowledgements lost, frames sent twice.
        #[test]
        fn nothing_is_lost_or_doubled_however_often_it_breaks(
            end in 1_u64..200,
            breaks in proptest::collection::vec((1_usize..40, 0_usize..40), 0..30),
        ) {
            let (mut hub, mut node): (Vec<u64>, Option<u64>) = (Vec::new(), Some(0));
            let mut breaks = breaks.into_iter().chain([(usize::MAX, usize::MAX)]);
            loop {
                let (arrives, acknowledged) = breaks.next().unwrap();
                let from = begin(hub.last().copied(), node, end);
                let mut window = Window::new(from);
                let (mut seq, mut arrived, mut acks) = (from, 0, 0);
                while seq < end && arrived < arrives {
                    let mut frame = Vec::new();
                    while seq < end && window.room() > 0 && frame.len() < 8 {
                        seq += 1;
                        window.sent(seq);
                        frame.push(event(seq));
                    }
                    prop_assert!(!frame.is_empty(), "a window that never opens again");
                    arrived += 1;
                    hub.extend(fresh(hub.last().copied().unwrap_or(0), frame).iter().map(|event| event.seq));
                    // Acknowledged late, or never: the hub says only the last.
                    acks += 1;
                    if acks <= acknowledged {
                        window.acked(*hub.last().unwrap());
                        node = Some(window.place());
                    } else if window.room() == 0 {
                        break;
                    }
                }
                if arrives == usize::MAX {
                    break;
                }
            }
            // Its own note may lag behind what the hub has, and is never ahead of it.
            prop_assert!(node <= hub.last().copied());
            prop_assert_eq!(hub, (1..=end).collect::<Vec<_>>());
        }
    }
}
