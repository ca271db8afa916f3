//! `ostler exec`: nothing of the caller's goes into the sandbox but the bytes of its streams, and those exactly.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    process::{Command, Stdio},
};

use ostler_testkit::{TestHome, process::Proc, wait};
use rustix::process::Signal;

use crate::OSTLER;

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

fn inside(home: &TestHome, script: &str) -> Command {
    home.command(&["exec", "--unlisted", "--", "sh", "-c", script])
}

#[test]
fn the_caller_s_own_descriptors_stay_outside() {
    let home = shop();
    let kept = home.path().join("kept");
    fs::write(&kept, "kept\n").unwrap();
    let open = || File::options().read(true).append(true).open(&kept).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut accepted = listener.accept().unwrap().0;
    let script = "readlink /proc/self/fd/0; readlink /proc/self/fd/1; readlink /proc/self/fd/2
        ls /proc/self/fd/0/ >&2; truncate -s 0 /dev/stdout 2>&1; chmod 777 /dev/stdout 2>&1; cat; ls /proc/$$/fd; true";
    let socket = Stdio::from(OwnedFd::from(socket));
    accepted.write_all(b"from the socket\n").unwrap();
    accepted.shutdown(std::net::Shutdown::Write).unwrap();
    let status = inside(&home, script).stdin(socket).stdout(open()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}");
    let said = fs::read_to_string(&kept).unwrap();
    let pipes = said.lines().filter(|line| line.starts_with("pipe:[")).count();
    assert!(said.starts_with("kept\n") && pipes == 3, "{said}");
    // Without a pipe or a redirection of the shell's own, which it would hold for a moment.
    assert!(said.ends_with("from the socket\n0\n1\n2\n"), "{said}");
    assert_ne!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o777);

    let directory = inside(&home, "ls /proc/self/fd/0/").stdin(File::open(home.path()).unwrap()).output();
    let directory = directory.unwrap();
    let why = String::from_utf8_lossy(&directory.stderr);
    assert_eq!((directory.status.code(), directory.stdout.len()), (Some(126), 0), "{why}");
    assert!(why.contains("its input would be a directory"), "{why}");
}

#[test]
fn a_traced_command_has_none_of_them_either() {
    let home = shop();
    let words = ["sandbox", "trace", "--", "sh", "-c", "readlink /proc/self/fd/0 /proc/self/fd/1"];
    let kept = File::create_new(home.path().join("kept")).unwrap();
    let output = home.command(&words).stdin(kept).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.lines().filter(|line| line.starts_with("pipe:[")).count(), 2, "{said}");
}

#[test]
fn bytes_are_carried_as_they_are_however_many() {
    let home = shop();
    let bytes: Vec<u8> = (0..8_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = home.path().join("bytes");
    fs::write(&path, &bytes).unwrap();
    let from_file = inside(&home, "cat").stdin(File::open(path).unwrap()).output().unwrap();
    assert!(from_file.stdout == bytes && from_file.stderr.is_empty());

    // Both directions at once, and both outputs: whoever waited for one would never come to the other.
    let mut child = inside(&home, "mkfifo p && { cat p >&2 & tee p; wait; }")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let feeder = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success() && output.stdout == bytes && output.stderr == bytes);
}

#[test]
fn what_goes_to_one_place_stays_in_order() {
    let home = shop();
    let path = home.path().join("both");
    let both = File::create_new(&path).unwrap();
    let script = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done";
    let status = inside(&home, script).stdout(both.try_clone().unwrap()).stderr(both).status().unwrap();
    assert!(status.success());
    let expected: String = (0..300).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_it_would_outside() {
    let home = shop();
    let mut child = inside(&home, "exec yes").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 4]).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));

    let full = File::options().write(true).open("/dev/full").unwrap();
    let lost = inside(&home, "echo hi").stdout(full).stderr(Stdio::piped()).output().unwrap();
    let why = String::from_utf8_lossy(&lost.stderr);
    assert_eq!(lost.status.code(), Some(1), "{why}");
    assert!(why.contains("output could not be written"), "{why}");
}

#[test]
fn input_ends_with_the_caller_s_and_is_left_alone_by_a_command_that_is_over() {
    let home = shop();
    assert_eq!(inside(&home, "wc -c").stdin(Stdio::null()).output().unwrap().stdout, b"0\n");
    // Nobody ever closes this input, and the command does not wait for that.
    let mut child = inside(&home, "exit 4").stdin(Stdio::piped()).spawn().unwrap();
    let _held = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// The command is over, what it said is not read, and its caller is told to go.
#[test]
fn a_signal_ends_whoever_only_waits_for_a_reader() {
    let home = shop();
    let (read, write) = std::io::pipe().unwrap();
    // As much as the caller's pipe and half of ours hold.
    let script = "head -c 98304 /dev/zero; touch over";
    let mut child = inside(&home, script).stdin(Stdio::null()).stdout(write).spawn().unwrap();
    wait::until("the command's end", wait::PATIENCE, || home.campaign_dir().join("over").exists());
    let runner = Proc::of(child.id()).unwrap();
    wait::until("its end", wait::PATIENCE, || {
        runner.signal(Signal::TERM);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    drop(read);
}
