//! A session with a keeper of its own, and a daemon's side of its socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ostler_domain::confinement::{CampaignRoot, Confinement};
use ostler_tape::frame::{
    Decoder, FromKeeper, KeeperState, PROTOCOL, Phase, RefusedReason, ToKeeper, encode,
};
use ostler_tape::{
    Assembler, ExitRecord, KeeperNote, LaunchDocument, Line, LineBody, Reader, StatusLine, Stream,
    read_attempt, socket, write_attempt,
};
use tempfile::TempDir;

/// Far longer than anything here takes, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `condition` gives something.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) struct Session {
    pub(crate) document: LaunchDocument,
    base: TempDir,
    keeper: Option<Child>,
    starter: &'static [&'static str],
}

impl Session {
    /// A session whose agent is a shell script; `$1` is a directory it may use.
    pub(crate) fn new(script: &str) -> Session {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("session");
        std::fs::create_dir(&dir).unwrap();
        let mut document = LaunchDocument::new("ses_test", 1, dir, "/bin/sh".into());
        let args = ["-c", script, "agent", base.path().to_str().unwrap()];
        document.args = args.map(str::to_owned).to_vec();
        document.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        Session { document, base, keeper: None, starter: &[] }
    }

    /// A session whose script runs in a sandbox; `$1` is the campaign.
    pub(crate) fn confined(script: &str) -> Session {
        let mut session = Session::new(script);
        let camp = session.base.path().canonicalize().unwrap().join("camp");
        std::fs::create_dir(&camp).unwrap();
        let found = std::fs::metadata(&camp).unwrap();
        let root = CampaignRoot {
            path: camp.clone(),
            device: found.dev(),
            inode: found.ino(),
            read_only: false,
            leased: Vec::new(),
        };
        session.document.args[3] = camp.to_str().unwrap().to_owned();
        session.document.cwd = camp;
        session.document.confinement = Some(Confinement::new(root));
        session
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut LaunchDocument)) -> Session {
        change(&mut self.document);
        self
    }

    /// A session whose keeper runs.
    pub(crate) fn started(script: &str) -> Session {
        Session::new(script).start()
    }

    pub(crate) fn start(mut self) -> Session {
        let status = self.try_start();
        assert!(matches!(status, StatusLine::Ready { .. }), "{status:?}");
        self
    }

    /// Starts a keeper and returns what it said on its status pipe.
    pub(crate) fn try_start(&mut self) -> StatusLine {
        if read_attempt(self.dir()).unwrap().is_none() {
            write_attempt(self.dir(), self.document.attempt).unwrap();
        }
        let mut keeper = self
            .program()
            .args(["internal", "keeper"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.base.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        keeper.stdin.take().unwrap().write_all(&serde_json::to_vec(&self.document).unwrap()).unwrap();
        let mut stdout = BufReader::new(keeper.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(stdout.read(&mut [0]).unwrap(), 0, "the status pipe is closed behind its line");
        self.keeper = Some(keeper);
        serde_json::from_str(&line).unwrap()
    }

    /// The keeper itself, or what starts it somewhere else.
    fn program(&self) -> Command {
        let keeper = env!("CARGO_BIN_EXE_keeper-under-test");
        let Some((starter, args)) = self.starter.split_first() else { return Command::new(keeper) };
        let mut command = Command::new(starter);
        command.args(args).arg(keeper);
        command
    }

    /// Starts the keeper by another program.
    pub(crate) fn by(mut self, starter: &'static [&'static str]) -> Session {
        self.starter = starter;
        self
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.document.dir
    }

    /// The directory that the agent knows as `$1`.
    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn keeper_pid(&self) -> u32 {
        self.keeper.as_ref().unwrap().id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.base.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn kill_keeper(&mut self) {
        let keeper = self.keeper.as_mut().unwrap();
        keeper.kill().unwrap();
        keeper.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.keeper.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub(crate) fn wait_for_keeper(&mut self) -> ExitStatus {
        let keeper = self.keeper.as_mut().unwrap();
        eventually("the keeper ends", || keeper.try_wait().unwrap())
    }

    /// The exit record, once the keeper is gone.
    pub(crate) fn end(&mut self) -> ExitRecord {
        let status = self.wait_for_keeper();
        assert!(status.success(), "{status}\n{}", self.log());
        ExitRecord::read(self.dir()).unwrap().expect("an exit record")
    }

    /// All lines on the tape so far.
    pub(crate) fn lines(&self) -> Vec<Line<'static>> {
        let mut reader = Reader::open(self.dir()).unwrap();
        let mut assembler = Assembler::new(0);
        let mut all = Vec::new();
        loop {
            let batch = reader.read_from(assembler.offset(), 1 << 20).unwrap();
            assert_eq!(batch.damage, []);
            let mut lines = Vec::new();
            batch.records().for_each(|record| assembler.push(record, &mut lines));
            all.extend(lines.into_iter().map(owned));
            if batch.is_empty() {
                return all;
            }
        }
    }

    /// The lines of one stream, as text.
    pub(crate) fn text(&self, stream: Stream) -> Vec<String> {
        let lines = self.lines().into_iter().filter(|line| line.stream == stream);
        lines.map(|line| String::from_utf8_lossy(line.body.bytes()).into_owned()).collect()
    }

    pub(crate) fn notes(&self) -> Vec<KeeperNote> {
        let lines = self.lines().into_iter().filter(|line| line.stream == Stream::Keeper);
        lines.map(|line| KeeperNote::decode(line.body.bytes()).unwrap()).collect()
    }

    pub(crate) fn wait_for_line(&self, line: &str) {
        eventually(line, || self.text(Stream::Out).iter().any(|found| found == line).then_some(()));
    }

    /// The content of a file that the agent writes below `$1`, once there is a whole line in it.
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        let path = self.base().join(name);
        eventually(name, || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
            .trim()
            .to_owned()
    }

    pub(crate) fn wait_for_pid(&self, name: &str) -> u32 {
        self.wait_for_file(name).parse().unwrap()
    }

    pub(crate) fn connect(&self, epoch: u64) -> Daemon {
        let mut daemon = self.connect_silently();
        daemon.send(&ToKeeper::Hello { protocol: PROTOCOL, epoch, daemon_version: "test".into() });
        daemon
    }

    pub(crate) fn connect_silently(&self) -> Daemon {
        let stream = socket::connect(self.dir()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Daemon { stream, decoder: Decoder::new() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

/// A daemon's end of a connection.
pub(crate) struct Daemon {
    stream: UnixStream,
    decoder: Decoder<FromKeeper>,
}

impl Daemon {
    pub(crate) fn send(&mut self, verb: &ToKeeper) {
        self.send_with(verb, b"");
    }

    pub(crate) fn send_with(&mut self, verb: &ToKeeper, body: &[u8]) {
        self.stream.write_all(&encode(verb, body).unwrap()).unwrap();
    }

    pub(crate) fn input(&mut self, input_no: u64, bytes: &[u8]) {
        self.send_with(&ToKeeper::Input { input_no, tag: format!("tag {input_no}") }, bytes);
    }

    /// The next frame; nothing at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<FromKeeper> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame.verb);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no frame from the keeper: {error}"),
            }
        }
    }

    /// The first frame that `wanted` takes.
    pub(crate) fn expect<T>(&mut self, wanted: impl Fn(FromKeeper) -> Option<T>) -> T {
        loop {
            let frame = self.next().expect("a frame before the end of the connection");
            if let Some(found) = wanted(frame) {
                return found;
            }
        }
    }

    pub(crate) fn hello(&mut self) -> (bool, u64, KeeperState) {
        self.expect(|frame| match frame {
            FromKeeper::Hello { accepted, epoch, state, .. } => Some((accepted, epoch, state)),
            _ => None,
        })
    }

    pub(crate) fn wait_for_state(&mut self, wanted: impl Fn(&KeeperState) -> bool) -> KeeperState {
        self.expect(|frame| match frame {
            FromKeeper::Hello { state, .. } | FromKeeper::State(state) if wanted(&state) => Some(state),
            _ => None,
        })
    }

    pub(crate) fn wait_for_phase(&mut self, phase: Phase) -> KeeperState {
        self.wait_for_state(|state| state.phase == phase)
    }

    pub(crate) fn refusal(&mut self) -> (RefusedReason, Option<u64>) {
        self.expect(|frame| match frame {
            FromKeeper::Refused { reason, input_no, .. } => Some((reason, input_no)),
            _ => None,
        })
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    process_state(pid).is_some_and(|state| state != 'Z')
}

/// The state letter of a process.
pub(crate) fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn wait_until_dead(pid: u32) {
    eventually("a process ends", || (!is_alive(pid)).then_some(()));
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// The name of a cgroup v2 that this process may make; removed with it. To be dropped after the session.
pub(crate) struct TestCgroup {
    pub(crate) path: PathBuf,
}

impl TestCgroup {
    pub(crate) fn new() -> Option<TestCgroup> {
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let path = fields.next()?;
            (fields.next()? == "cgroup2").then(|| PathBuf::from(path))
        })?;
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let unique = tempfile::Builder::new().prefix("ostler-test-").tempdir().ok()?;
        let path = mount.join(own).join(unique.path().file_name()?);
        std::fs::create_dir(&path).ok()?;
        std::fs::remove_dir(&path).ok()?;
        Some(TestCgroup { path })
    }
}

impl TestCgroup {
    /// A group of one controller of version 1.
    pub(crate) fn old(controller: &str) -> Option<TestCgroup> {
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_it =
                fields.get(2) == Some(&"cgroup") && fields.get(3)?.split(',').any(|one| one == controller);
            is_it.then(|| PathBuf::from(fields[1]))
        })?;
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own =
            own.lines().find_map(|line| line.split_once(&format!(":{controller}:/")).map(|(_, own)| own))?;
        let unique = tempfile::Builder::new().prefix("ostler-test-").tempdir().ok()?;
        let path = mount.join(own).join(unique.path().file_name()?);
        std::fs::create_dir(&path).ok()?;
        std::fs::remove_dir(&path).ok()?;
        Some(TestCgroup { path })
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        eventually("the cgroup is empty", || {
            let gone = std::fs::remove_dir(&self.path).is_ok() || !self.path.exists();
            gone.then_some(())
        });
    }
}

fn owned(line: Line<'_>) -> Line<'static> {
    let body = match line.body {
        LineBody::Whole(bytes) => LineBody::Whole(bytes.into_owned().into()),
        LineBody::Partial(bytes) => LineBody::Partial(bytes.into_owned().into()),
        LineBody::Oversize { len } => LineBody::Oversize { len },
    };
    let Line { stream, start, end, time_us, input, .. } = line;
    Line { stream, start, end, time_us, body, input }
}
