//! Loopback, and nothing else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use ostler_domain::confinement::Network;

use crate::support::{Campaign, each_way, eventually};

const CONNECT: &str =
    "use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 5) or exit 1;";

#[test]
fn there_is_loopback_and_nothing_else() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        assert_eq!(campaign.run("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let address = server.local_addr().unwrap();
        campaign.all_fail(&[
            &format!("perl -e '{CONNECT}' {address}"),
            &format!("perl -e '{CONNECT}' 192.0.2.1:80"),
            "cat /etc/resolv.conf",
        ]);
        assert!(server.accept().is_err());
        // A test server, on a port that is root's elsewhere.
        let serve = "use IO::Socket::INET; my $l = IO::Socket::INET->new(LocalAddr => q(127.0.0.1:80), Listen => 1) or exit 1;
            IO::Socket::INET->new(PeerAddr => q(localhost:80)) or exit 2; print q(served)";
        assert_eq!(campaign.run(&format!("perl -e '{serve}'")), "served");
    });
}

#[test]
fn the_gateways_port_is_in_the_keepers_hands() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| {
            confinement.network = Network::Provider;
            confinement.gateway_port = Some(3128);
        });
        let talk = format!(
            "perl -e '{CONNECT} print $s qq(ping\\n); print scalar <$s>' 127.0.0.1:3128; \
            perl -e 'use IO::Socket::INET; IO::Socket::INET->new(LocalAddr => q(127.0.0.1:3128), Listen => 1, ReuseAddr => 1) and exit 1'"
        );
        let mut inside = campaign.start(&talk);
        inside.agent_pid();
        let listener = TcpListener::from(inside.listener.take().unwrap());
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut ping = [0; 5];
        stream.read_exact(&mut ping).unwrap();
        stream.write_all(b"pong\n").unwrap();
        let ended = inside.end();
        assert_eq!((ended.stdout.as_str(), ended.status.success()), ("pong\n", true), "{ended:?}");
        drop(listener);
    });
}

#[test]
fn the_hosts_network_is_open_for_listed_ports_only() {
    each_way(|way| {
        let listen = || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            server.set_nonblocking(true).unwrap();
            let port = server.local_addr().unwrap().port();
            (server, port)
        };
        let ((open, open_port), (closed, closed_port)) = (listen(), listen());
        let campaign = Campaign::new(way)
            .with(|confinement| confinement.network = Network::Host { ports: vec![open_port] });
        campaign.run(&format!("perl -e '{CONNECT}' 127.0.0.1:{open_port}"));
        eventually("a connection", || open.accept().ok());
        campaign.all_fail(&[
            &format!("perl -e '{CONNECT}' 127.0.0.1:{closed_port}"),
            "perl -e 'use IO::Socket::INET; IO::Socket::INET->new(LocalAddr => q(127.0.0.1:0), Listen => 1) or exit 1'",
        ]);
        assert!(closed.accept().is_err());
    });
}
