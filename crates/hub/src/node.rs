//! A node's connection, from its hello to its end.

use std::{
    collections::HashMap,
    io::{self, Write},
    ops::ControlFlow,
    sync::Arc,
};

use ostler_domain::hub::{SCHEMA, ToHub, ToNode};
use ostler_gateway::socket::{Socket, queue};

use crate::{
    house::{House, Line},
    keys::Key,
};

/// Serves a node until its connection ends.
pub(crate) fn serve(house: &Arc<House>, key: &Key, socket: Socket) {
    let Ok((sayer, said)) = queue() else { return };
    let number = house.number();
    let mut has_said_hello = false;
    let why = socket.carry(&said, |text| {
        let Ok(frame) = serde_json::from_str::<ToHub>(&text) else {
            // A newer node may say what this hub does not know; but it says who it is first.
            return if has_said_hello { ControlFlow::Continue(Vec::new()) } else { ControlFlow::Break(()) };
        };
        // Whose key was taken back is not listened to any more.
        if !house.keys.has(key) {
            return ControlFlow::Break(());
        }
        match frame {
            ToHub::Hello(hello) if hello.schema == SCHEMA => {
                has_said_hello = true;
                let begun = house.with_new(&key.name, |node| {
                    node.is(&hello.node, hello.last)?;
                    node.heard();
                    // Who comes again is the same node: the connection before is dead, whether it knows or not.
                    node.line = Some(Line {
                        number,
                        sayer: sayer.clone(),
                        epoch: hello.epoch.clone(),
                        waiting: HashMap::new(),
                    });
                    Ok::<_, io::Error>(node.log.last())
                });
                match begun.and_then(|begun| begun) {
                    Ok(after) => ControlFlow::Continue(vec![said_as(&ToNode::Resume { after })]),
                    Err(error) => refused(&format!("it cannot be written down: {error}")),
                }
            }
            ToHub::Hello(hello) => refused(&format!("this hub speaks {SCHEMA}, not {}", hello.schema)),
            _ if !has_said_hello => ControlFlow::Break(()),
            // Asked outside of the house's lock.
            ToHub::List { id } => {
                let nodes = if key.sees_all { house.listed() } else { Vec::new() };
                ControlFlow::Continue(vec![said_as(&ToNode::Listed { id, nodes })])
            }
            frame => heard(house, key, number, frame),
        }
    });
    complain(&format!("{} has gone: {why}", key.name));
    house.with(&key.name, |node| {
        if node.line.as_ref().is_some_and(|line| line.number == number) {
            node.line = None;
            node.heard();
            node.keep(house, &key.name);
        }
    });
    house.tell();
}

fn heard(house: &Arc<House>, key: &Key, number: u64, frame: ToHub) -> ControlFlow<(), Vec<String>> {
    let replies = house.with(&key.name, |node| {
        // Another connection has taken its place.
        if node.line.as_ref().is_none_or(|line| line.number != number) {
            return ControlFlow::Break(());
        }
        node.heard();
        match frame {
            ToHub::Events { events } => match node.log.take(events) {
                Ok(Some(seq)) => ControlFlow::Continue(vec![said_as(&ToNode::Ack { seq })]),
                Ok(None) => ControlFlow::Continue(Vec::new()),
                // The node keeps it, and comes again.
                Err(error) => {
                    complain(&format!("events of {} cannot be kept: {error}", key.name));
                    ControlFlow::Break(())
                }
            },
            ToHub::Rows { rows } => {
                node.lists(rows);
                node.keep(house, &key.name);
                ControlFlow::Continue(Vec::new())
            }
            ToHub::Answer(answer) => {
                let waiting = node.line.as_mut().and_then(|line| line.waiting.remove(&answer.id));
                // Whoever asked may have gone.
                waiting.map(|to| to.try_send(answer));
                ControlFlow::Continue(Vec::new())
            }
            ToHub::List { .. } | ToHub::Hello(_) => ControlFlow::Continue(Vec::new()),
        }
    });
    house.tell();
    replies.unwrap_or(ControlFlow::Break(()))
}

/// To whoever watches the hub's process.
fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

fn said_as(frame: &ToNode) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}

fn refused(why: &str) -> ControlFlow<(), Vec<String>> {
    ControlFlow::Continue(vec![said_as(&ToNode::Refused { why: why.to_owned() })])
}
