//! Sockets of the host's that have names, in the file system or not.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

use super::{any, said, way};
use crate::attempt::{Attempt, Said, Setting, harmless, usual, within};
use crate::scene::Scene;

fn stream(name: &str) -> Said {
    let connect = || {
        let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        stream.write_all(b"hello")
    };
    said(connect())
}

fn datagram(scene: &Scene) -> Said {
    let send = || {
        let name = SocketAddr::from_abstract_name(format!("{}-datagram", scene.abstract_name))?;
        UnixDatagram::unbound()?.send_to_addr(b"hello", &name)
    };
    said(send())
}

pub(super) const ALL: &[Attempt] = &[
    harmless("sockets/abstract", "connect to an abstract socket of the host's", |scene| {
        stream(&scene.abstract_name)
    }),
    harmless("sockets/abstract-datagram", "send to an abstract socket of the host's", datagram),
    harmless("sockets/path", "connect to a socket beside the campaign", |scene| {
        said(UnixStream::connect(scene.outside("socket")))
    }),
    harmless("sockets/path-datagram", "send to a socket beside the campaign", |scene| {
        let send = || UnixDatagram::unbound()?.send_to(b"hello", scene.outside("socket-datagram"));
        said(send())
    }),
    harmless("sockets/path-by-link", "connect to a socket through a link in the campaign", |scene| {
        let link = scene.scratch("socket");
        let _ = symlink(scene.outside("socket"), &link);
        said(UnixStream::connect(link))
    }),
    harmless("sockets/path-by-dots", "connect to a socket by dots", |_| {
        said(UnixStream::connect("../../outside/socket"))
    }),
    usual("sockets/services", "connect to the host's services: containers, buses, init, displays", |_| {
        let paths = [
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/containerd/containerd.sock",
            "/run/podman/podman.sock",
            "/run/dbus/system_bus_socket",
            "/run/systemd/private",
            "/run/systemd/journal/socket",
            "/run/user/1000/bus",
            "/run/snapd.socket",
            "/run/nscd/socket",
            "/tmp/.X11-unix/X0",
            "/run/udev/control",
            "/dev/log",
        ];
        any(paths.map(|path| way(path, said(UnixStream::connect(path)))))
    }),
    usual("sockets/abstract-services", "connect to abstract sockets that services are known to have", |_| {
        let names = [
            "/tmp/.X11-unix/X0",
            "/org/kernel/linux/storage/multipathd",
            "/containerd-shim/1.sock",
            "/run/systemd/notify",
        ];
        any(names.map(|name| way(name, stream(name))))
    }),
    within(
        Setting::HostNetwork,
        "sockets/abstract-in-hosts-network",
        "connect to an abstract socket from within the host's network",
        |scene| stream(&scene.abstract_name),
    ),
    within(
        Setting::HostNetwork,
        "sockets/abstract-datagram-in-hosts-network",
        "send to an abstract socket from within the host's network",
        datagram,
    ),
];
