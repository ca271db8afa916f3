//! The bridge between standard streams and a WebSocket, with a server of the test's own.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use tungstenite::{
    Message, WebSocket,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A bridge at work beside a program that does nothing but live.
struct Bridge {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Bridge {
    fn to(port: u16, program: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_agent-under-test"))
            .args(["bridge", "--"])
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        writeln!(input, r#"{{"bridge":"ws://127.0.0.1:{port}"}}"#).unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (said, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = said.send(line);
            }
        });
        Self { process, input, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn end(mut self) -> Option<i32> {
        drop(self.input);
        self.process.wait().unwrap().code()
    }
}

fn accept(listener: &TcpListener) -> WebSocket<TcpStream> {
    let (stream, _) = listener.accept().unwrap();
    tungstenite::accept(stream).unwrap()
}

fn text(socket: &mut WebSocket<TcpStream>) -> String {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            return text.to_string();
        }
    }
}

#[test]
fn a_frame_is_a_line_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bridge = Bridge::to(listener.local_addr().unwrap().port(), &["sleep", "300"]);
    let mut server = accept(&listener);
    // The first frame may come in one piece with the handshake.
    server.send(Message::text("{\"a\":\n 1}")).unwrap();
    assert_eq!(bridge.line(), "{\"a\":  1}");
    for n in 0..200 {
        writeln!(bridge.input, "{{\"n\":{n}}}").unwrap();
        server.send(Message::Ping(vec![1].into())).unwrap();
    }
    for n in 0..200 {
        assert_eq!(text(&mut server), format!("{{\"n\":{n}}}"));
    }
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(4 << 20));
    server.send(Message::text(large.clone())).unwrap();
    assert_eq!(bridge.line(), large);
    assert_eq!(bridge.end(), Some(0), "the end of input ends the program");
}

#[test]
fn a_server_that_is_not_ready_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bridge = Bridge::to(listener.local_addr().unwrap().port(), &["sleep", "300"]);
    let mut server = accept(&listener);
    server.close(Some(CloseFrame { code: CloseCode::Again, reason: "starting".into() })).unwrap();
    let _ = server.read();
    let mut server = accept(&listener);
    server.send(Message::text("{}")).unwrap();
    assert_eq!(bridge.line(), "{}");
    assert_eq!(bridge.end(), Some(0));
}

#[test]
fn a_lost_connection_and_a_dead_program_are_failures() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut bridge = Bridge::to(port, &["sleep", "300"]);
    drop(accept(&listener));
    assert_eq!(bridge.process.wait().unwrap().code(), Some(1));
    let mut bridge = Bridge::to(port, &["sh", "-c", "sleep 1; exit 7"]);
    let _server = accept(&listener);
    assert_eq!(bridge.process.wait().unwrap().code(), Some(7));
    let unheard = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut bridge = Bridge::to(unheard, &["false"]);
    assert_eq!(bridge.process.wait().unwrap().code(), Some(1));
}
