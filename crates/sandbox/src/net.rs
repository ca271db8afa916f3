//! The network inside: loopback, and the port on which the gateway will be found.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

use ostler_domain::confinement::Confinement;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt::set_socket_reuseaddr,
};

use crate::channel::send_listener;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys;

/// Connections that wait while the gateway starts.
const BACKLOG: i32 = 128;

pub(crate) fn set_up(confinement: &Confinement, channel: impl AsFd) -> Result<(), Refusal> {
    const STAGE: Stage = Stage::Network;
    if !confinement.network.is_private() {
        return Ok(());
    }
    let socket = |kind| {
        socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)
            .or_refuse(STAGE, "opening a socket")
    };
    sys::loopback_up(socket(SocketType::DGRAM)?).or_refuse(STAGE, "bringing loopback up")?;
    // So that test servers may use port 80; kernels and containers that do not allow it are as good.
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    let Some(port) = confinement.gateway_port else { return Ok(()) };
    let listener = socket(SocketType::STREAM)?;
    let begin = || {
        set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        listen(&listener, BACKLOG)
    };
    begin().or_refuse(STAGE, format_args!("listening on 127.0.0.1:{port} inside"))?;
    // The agent could bind the port as soon as nobody has it: the keeper holds it as long as the session lives.
    send_listener(channel, listener.as_fd()).or_refuse(STAGE, "handing the listener to the keeper")
}
