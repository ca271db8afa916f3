//! What somebody with a share token wants of a node: passed on to it, and its answer back. The node decides.

use std::{sync::mpsc, time::Instant};

use ostler_domain::{
    Reason, Refusal,
    hub::{Command, ToNode},
    limits::HUB_COMMAND_TIME,
};

use crate::{
    house::House,
    http::{Reply, Request},
    keys::random,
};

/// How share tokens begin: a hub passes nothing else on.
const SHARE: &str = "shr_";
/// Commands of one node that wait at once.
const WAITING: usize = 64;

/// `/n/NODE/v1/…`, at an origin of the hub's own.
pub(crate) fn relay(house: &House, own: &str, request: &Request) -> Reply {
    let Some((name, path)) = request.path.strip_prefix("/n/").and_then(|rest| rest.split_once('/')) else {
        return Reply::nowhere("/n/NODE/v1/… is a node's API");
    };
    let Some(token) = request.bearer().filter(|token| token.starts_with(SHARE)) else {
        let refusal = Refusal::new(Reason::PermissionDenied, "nobody knows who asks")
            .because("a node takes share tokens")
            .hint("ostler share WHO", "makes one, there");
        return Reply::refused(401, &refusal);
    };
    if let Err(foreign) = request.check_by_token(own) {
        return Reply::foreign(foreign);
    }
    if request.accepts_events() {
        let refusal = Refusal::invalid("a hub passes on answers, and no streams")
            .because("the same without Accept: text/event-stream has a page, and after=SEQ what came since");
        return Reply::refused(400, &refusal);
    }
    let path = format!("/{path}{}{}", if request.query.is_empty() { "" } else { "?" }, request.query);
    let Ok(body) = String::from_utf8(request.body.clone()) else {
        return Reply::refused(400, &Refusal::invalid("the body is no text").because("it is JSON"));
    };
    // Whoever says the same id again has the answer of the first.
    let id = match request.change_name() {
        Ok(name) => name.map_or_else(random, |name| format!("{token}:{name}")),
        Err(refusal) => return Reply::refused(400, &refusal),
    };
    let command = Command { id, token: token.to_owned(), method: request.method.clone(), path, body };
    passed_on(house, name, command)
}

fn passed_on(house: &House, name: &str, command: Command) -> Reply {
    let away = || {
        let refusal = Refusal::new(Reason::DaemonUnreachable, format!("{name} is not connected"))
            .because("it comes back by itself")
            .hint("ostler hub node ls", "says which there are");
        Reply::refused(503, &refusal)
    };
    let (to, answer) = mpsc::sync_channel(1);
    let id = command.id.clone();
    let frame = serde_json::to_string(&ToNode::Command(command)).unwrap_or_default();
    let until = Instant::now() + HUB_COMMAND_TIME;
    if !house.is_node(name) {
        return away();
    }
    let said = house.with(name, |node| {
        let line = node.line.as_mut()?;
        if line.waiting.len() >= WAITING {
            return None;
        }
        line.waiting.insert(id.clone(), to);
        line.sayer.say(frame).then_some(line.epoch.clone())
    });
    let Some(Some(_)) = said else { return away() };
    match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(answer) => Reply::json(answer.status, answer.body),
        Err(_) => {
            house.with(name, |node| node.line.as_mut().map(|line| line.waiting.remove(&id)));
            let why = "the connection broke, or it took too long: look before you ask again";
            let refusal = Refusal::new(Reason::TimedOut, format!("nobody knows whether {name} did it"));
            Reply::refused(504, &refusal.because(why))
        }
    }
}
