//! Inside a session: how an agent's own processes speak of it, on its socket. Blocking and without a runtime, because the
//! smallest of them are such processes.
#![forbid(unsafe_code)]

mod socket;

use ostler_domain::{
    call::Reply,
    tool::{self, Told},
};
use serde_json::Value;

pub use socket::{Said, SessionSocket};

/// Does what a model wants of one of Ostler's tools, and says what came of it.
pub fn use_tool(socket: &SessionSocket, name: &str, arguments: &Value) -> Told {
    let call = match tool::call(name, arguments) {
        Ok(call) => call,
        Err(why) => return Told { ok: false, text: why },
    };
    let reply = socket.ask(&call);
    let reply = reply.unwrap_or_else(|refusal| Some(Reply::Refused(refusal)));
    tool::told(name, reply.as_ref())
}
