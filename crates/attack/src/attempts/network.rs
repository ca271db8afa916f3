//! The network: the host's loopback, other families of sockets, and the outside.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use super::{answer, any, said, way};
use crate::attempt::{Attempt, Said, Setting, harmless, usual, within};
use crate::scene::Scene;
use crate::sys::{self, Arg, call, plain};

const PATIENCE: Duration = Duration::from_secs(1);
const INET: u64 = libc::AF_INET as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const MPTCP: u64 = 262;
/// For documentation: nobody has it.
const NOWHERE: ([u8; 4], u16) = ([192, 0, 2, 1], 9);

fn connect(address: impl Into<SocketAddr>) -> Said {
    said(TcpStream::connect_timeout(&address.into(), PATIENCE).and_then(|mut stream| stream.write_all(b"x")))
}

fn raw_address(port: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

fn connect_by(scene: &Scene, protocol: u64) -> Said {
    let go = || {
        let socket = sys::descriptor(libc::SYS_socket, &mut [INET, STREAM, protocol].map(Arg::Number))?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket) as u64;
        let address = raw_address(scene.tcp);
        call(libc::SYS_connect, &mut [Arg::Number(number), Arg::In(&address), Arg::Number(16)])
    };
    said(go())
}

fn fast_open(scene: &Scene) -> Said {
    let go = || {
        let socket = sys::descriptor(libc::SYS_socket, &mut [INET, STREAM, 0].map(Arg::Number))?;
        let number = Arg::Number(std::os::fd::AsRawFd::as_raw_fd(&socket) as u64);
        let address = raw_address(scene.tcp);
        let flags = Arg::Number((libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL) as u64);
        call(
            libc::SYS_sendto,
            &mut [number, Arg::In(b"x"), Arg::Number(1), flags, Arg::In(&address), Arg::Number(16)],
        )
    };
    said(go())
}

fn families(number: libc::c_long) -> Said {
    let allowed = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let mut pair = [0_u8; 8];
    any((0..46_i32).filter(|family| !allowed.contains(family)).map(|family| {
        let kind = Arg::Number(libc::SOCK_DGRAM as u64);
        let mut args = [Arg::Number(family as u64), kind, Arg::Number(0), Arg::Out(&mut pair)];
        way(family, answer(call(number, &mut args)))
    }))
}

pub(super) const ALL: &[Attempt] = &[
    harmless("network/loopback", "connect to a service on the host's loopback", |scene| {
        connect(([127, 0, 0, 1], scene.tcp))
    }),
    harmless("network/loopback-6", "connect to a service on the host's IPv6 loopback", |scene| {
        match scene.tcp6 {
            Some(port) => connect((Ipv6Addr::LOCALHOST, port)),
            None => Said::Untried("the host has no IPv6".to_owned()),
        }
    }),
    harmless("network/loopback-mapped", "connect to the host's loopback by other names for it", |scene| {
        any([
            way("0.0.0.0", connect(([0, 0, 0, 0], scene.tcp))),
            way("127.1.2.3", connect(([127, 1, 2, 3], scene.tcp))),
            way("mapped", connect((Ipv6Addr::from([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1]), scene.tcp))),
        ])
    }),
    usual("network/datagram", "send a datagram to the host's loopback", |scene| {
        // Inside there is a loopback too, which takes it: only the host can tell.
        let _ =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", ("127.0.0.1", scene.udp)));
        Said::Tried("nobody outside received it".to_owned())
    }),
    usual("network/fast-open", "connect by sending", fast_open),
    usual("network/outside", "connect to an address outside", |_| connect(NOWHERE)),
    usual("network/broadcast", "send to everybody", |_| {
        let send = |to: &str| {
            UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
                socket.set_broadcast(true)?;
                socket.send_to(b"x", to)
            })
        };
        any([way("broadcast", said(send("255.255.255.255:9"))), way("outside", said(send("192.0.2.1:9")))])
    }),
    usual("network/names", "have a name resolved", |_| said("ostler-attack.invalid:80".to_socket_addrs())),
    usual("network/raw", "make packets of one's own", |_| {
        let raw = libc::SOCK_RAW as u64;
        any([
            way("IPv4", answer(plain(libc::SYS_socket, &[INET, raw, 1]))),
            way("IPv6", answer(plain(libc::SYS_socket, &[libc::AF_INET6 as u64, raw, 58]))),
            way("high bits", answer(plain(libc::SYS_socket, &[INET, raw | 1 << 32, 1]))),
            way("packets", answer(plain(libc::SYS_socket, &[libc::AF_PACKET as u64, raw, 0]))),
            way("packets by IPv4", answer(plain(libc::SYS_socket, &[INET, 10, 3]))),
        ])
    }),
    usual("network/families", "use sockets of other families", |_| families(libc::SYS_socket)),
    usual("network/family-pairs", "use pairs of sockets of other families", |_| {
        families(libc::SYS_socketpair)
    }),
    usual("network/netlink", "speak to the kernel's audit, firewall and device services", |_| {
        any([4_u64, 6, 9, 12, 15, 21].map(|protocol| {
            way(
                protocol,
                answer(plain(libc::SYS_socket, &[libc::AF_NETLINK as u64, libc::SOCK_RAW as u64, protocol])),
            )
        }))
    }),
    within(
        Setting::HostNetwork,
        "network/hosts-other-port",
        "connect to a port that was not granted",
        |scene| connect(([127, 0, 0, 1], scene.tcp)),
    ),
    within(Setting::HostNetwork, "network/hosts-multipath", "connect to it by multipath TCP", |scene| {
        connect_by(scene, MPTCP)
    }),
    within(Setting::HostNetwork, "network/hosts-fast-open", "connect to it by sending", fast_open),
    within(Setting::HostNetwork, "network/hosts-server", "listen on a port of the host's", |_| {
        said(TcpListener::bind("127.0.0.1:0"))
    }),
    within(
        Setting::HostNetwork,
        "network/hosts-unbound-server",
        "listen without a port, and have the kernel choose one",
        |_| {
            let listen = |family: i32| {
                let family = family as u64;
                let socket = sys::descriptor(libc::SYS_socket, &mut [family, STREAM, 0].map(Arg::Number))?;
                plain(libc::SYS_listen, &[std::os::fd::AsRawFd::as_raw_fd(&socket) as u64, 1])
            };
            any([way("IPv4", said(listen(libc::AF_INET))), way("IPv6", said(listen(libc::AF_INET6)))])
        },
    ),
    within(
        Setting::HostNetwork,
        "network/hosts-datagram",
        "send a datagram to a service of the host's",
        |scene| {
            let send = || UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", ("127.0.0.1", scene.udp));
            let unbound = || {
                let kind = libc::SOCK_DGRAM as u64;
                let socket = sys::descriptor(libc::SYS_socket, &mut [INET, kind, 0].map(Arg::Number))?;
                let number = Arg::Number(std::os::fd::AsRawFd::as_raw_fd(&socket) as u64);
                let address = raw_address(scene.udp);
                let mut args = [
                    number,
                    Arg::In(b"x"),
                    Arg::Number(1),
                    Arg::Number(0),
                    Arg::In(&address),
                    Arg::Number(16),
                ];
                call(libc::SYS_sendto, &mut args)
            };
            any([way("bound", said(send())), way("unbound", said(unbound()))])
        },
    ),
];
