//! A full disk: nothing is lost, nothing is pretended, and it goes on when there is room.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ostler_tape::frame::{Intake, Phase, RefusedReason, Rung, RungAction};
use ostler_tape::{How, KeeperNote, Stream, ToKeeper};

use crate::support::Session;

/// A file system of 512 KiB over a directory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(dir: &Path) -> Option<SmallDisk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs"]).arg(dir).stderr(Stdio::null());
        mount.status().ok()?.success().then(|| SmallDisk(dir.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_waited_for_without_losing_a_line() {
    let session = Session::new("read line; seq 1 20000; read line; echo heard $line; exit 4");
    let Some(_disk) = SmallDisk::mount(session.dir()) else {
        eprintln!("skipped: a_full_disk_is_waited_for_without_losing_a_line needs the right to mount");
        return;
    };
    let mut session = session.start();
    let ballast = session.dir().join("ballast");
    std::fs::write(&ballast, vec![1; 300_000]).unwrap();

    let mut daemon = session.connect(1);
    daemon.input(1, b"go\n");
    daemon.wait_for_state(|state| state.intake == Intake::DiskFull);
    daemon.input(2, &vec![b'x'; 200_000]);
    assert_eq!(daemon.refusal(), (RefusedReason::DiskFull, Some(2)));

    // The tape of 20000 lines needs more than the disk ever had, so a real one is put in its place.
    std::fs::remove_file(&ballast).unwrap();
    let grown = Command::new("mount").args(["-o", "remount,size=8m"]).arg(session.dir()).status().unwrap();
    assert!(grown.success());
    daemon.wait_for_state(|state| state.intake == Intake::Open);
    daemon.input(2, b"again\n");
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);

    let exit = session.end();
    assert_eq!((exit.how, exit.untaped_bytes), (How::Exited { code: 4 }, 0));
    let mut expected: Vec<String> = (1..=20_000).map(|number| number.to_string()).collect();
    expected.push("heard again".into());
    assert_eq!(session.text(Stream::Out), expected);
    assert_eq!(session.text(Stream::In), ["go\n", "again\n"]);
    assert!(session.notes().iter().any(|note| matches!(note, KeeperNote::DiskBack { .. })));
}

#[test]
fn the_exit_record_is_written_even_to_a_full_disk() {
    let session = Session::new("read line; seq 1 100000; exit 4");
    let Some(_disk) = SmallDisk::mount(session.dir()) else {
        eprintln!("skipped: the_exit_record_is_written_even_to_a_full_disk needs the right to mount");
        return;
    };
    let mut session = session.start();
    let mut daemon = session.connect(1);
    daemon.input(1, b"go\n");
    daemon.wait_for_state(|state| state.intake == Intake::DiskFull);
    let ladder = vec![Rung { action: RungAction::Kill, wait_ms: 60_000 }];
    daemon.send(&ToKeeper::Stop { by: "ada".into(), rule: "stop".into(), ladder });
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    let exit = session.end();
    assert_eq!(exit.how, How::Signaled { signal: 9, core: false });
    assert!(exit.untaped_bytes > 0, "it says what is missing");
}
