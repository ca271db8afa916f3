//! A program of the machine's owner that the daemon waits for, in a group of its own: whoever stops waiting for it ends all
//! that it started and waits for itself. What it leaves behind when it is done is its own affair.

use std::{
    io,
    ops::{Deref, DerefMut},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

pub(crate) struct Group(Child);

impl Group {
    pub(crate) fn start(command: &mut Command) -> io::Result<Group> {
        command.process_group(0).kill_on_drop(true).spawn().map(Group)
    }
}

impl Deref for Group {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Group {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It has a number as long as nobody has waited for it, so that the group is nobody else's.
        let group = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Stdio, time::Duration};

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn whoever_stops_waiting_ends_all_that_was_started() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sh -c 'sleep 600; true' & echo $!; wait"]).stdout(Stdio::piped());
        let mut group = Group::start(&mut command).unwrap();
        let mut said = [0; 32];
        let count = group.stdout.as_mut().unwrap().read(&mut said).await.unwrap();
        let inner = String::from_utf8_lossy(&said[..count]).trim().to_owned();
        drop(group);
        let stat = Path::new("/proc").join(inner).join("stat");
        let is_over = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        while !is_over() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
