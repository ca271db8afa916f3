//! Going on here with what began outside: nobody else may be at it, it must have been in a campaign, and the agent is given
//! what its program remembers.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ostler_domain::{
    ConversationId, Reason, Refusal,
    campaign::Campaign,
    history::{Origin, Source},
    session::{Created, View},
    text::{one_line, shell_word},
};
use ostler_providers::Memory;

use super::{lines, locks, outside::Environment};
use crate::Engine;

/// Larger ones are not copied: the agent is told what had been said instead.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;

/// A process that has a dialogue open.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    name: String,
    /// The pane of tmux that it runs in.
    pane: Option<String>,
}

impl Engine {
    /// Refuses where somebody outside goes on, or has gone on, with the same dialogue.
    pub(crate) async fn check_sole_writer(&self, view: &View) -> Result<(), Refusal> {
        let Some(dialogue) = view.provider_id.as_deref() else { return Ok(()) };
        let source = Source::ALL.iter().copied().find(|source| source.provider() == view.provider);
        let Some(source) = source else { return Ok(()) };
        let Some(known) = self.shared.store.known_history(source, dialogue).await? else { return Ok(()) };
        let (file, read, id) = (known.file, known.mark.to, dialogue.to_owned());
        let cwd = view.working_dir.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let wanted =
                Wanted { file: Path::new(&file), program: source.as_str(), dialogue: &id, cwd: &cwd };
            let holder = holder(Path::new("/proc"), &wanted);
            let grown = fs::metadata(&file).ok().filter(|about| about.len() > read);
            (holder, grown.and_then(|about| about.modified().ok()), file)
        });
        let (holder, grown, file) =
            looked.await.map_err(|_| Refusal::internal("looking for another writer failed"))?;
        let short = view.id.short();
        let refusal = || Refusal::new(Reason::SecondWriter, "this conversation is open elsewhere".to_owned());
        if let Some(Holder { pid, name, pane }) = holder {
            let pane = pane.map(|pane| format!(", tmux pane {pane}")).unwrap_or_default();
            return Err(refusal()
                .because(format!("{}, pid {pid}{pane}, has it", one_line(&name, 64)))
                .hint(format!("ostler resume {short}"), "once it has been quit there"));
        }
        if let Some(written) = grown {
            let ago = SystemTime::now().duration_since(written).unwrap_or_default().as_secs();
            return Err(refusal()
                .because(format!("{} has grown since it was imported, {ago} s ago", one_line(&file, 200)))
                .hint(format!("ostler import {}", source.as_str()), "brings in what has come to it")
                .hint(format!("ostler resume {dialogue}"), "then goes on with all of it"));
        }
        Ok(())
    }

    /// Where somebody goes on with a session: in its campaign; with an imported one, in the campaign that its directory is in by
    /// now. `again`: the command that goes on, once it is in one.
    pub(crate) async fn campaign_to_go_on_in(
        &self,
        created: &Created,
        again: String,
    ) -> Result<Campaign, Refusal> {
        if created.imported.is_none() {
            return self.campaign(&created.campaign.to_string()).await;
        }
        let dir = &created.config.working_dir;
        let all = self.shared.store.campaigns().await?;
        let inside = all.into_iter().filter(|campaign| Path::new(dir).starts_with(&campaign.root.path));
        let around = inside.filter(|campaign| !self.is_elsewhere(campaign));
        around.max_by_key(|campaign| campaign.root.path.len()).ok_or_else(|| {
            Refusal::new(
                Reason::CampaignUnknown,
                format!("{} is in no campaign, so nobody goes on there", one_line(dir, 200)),
            )
            .because("an agent works in a directory that you have registered, and nowhere else")
            .hint(format!("ostler campaign add {}", shell_word(dir)), "agents may then read and write there")
            .hint(again, "then goes on")
        })
    }

    /// Gives the agent of a conversation what its program remembered of the dialogue. Where that cannot be had, the agent is
    /// told what had been said.
    pub(crate) async fn bring_memory(
        &self,
        conversation: ConversationId,
        origin: &Origin,
        memory: Option<Memory>,
    ) {
        let Some(memory) = memory else { return };
        let home = self.shared.options.state_dir.join("homes").join(conversation.to_string());
        let file = PathBuf::from(&origin.file);
        let copied = tokio::task::spawn_blocking(move || copy(&file, &home, &memory)).await;
        match copied {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%conversation, %error, "what its program remembered is not copied")
            }
            Err(error) => tracing::warn!(%conversation, %error, "what its program remembered is not copied"),
        }
    }
}

/// Copies a program's file to where its agent will look for it, unless one is there.
fn copy(file: &Path, home: &Path, memory: &Memory) -> io::Result<()> {
    let name = file.file_name().filter(|name| name.to_string_lossy().ends_with(&memory.name_ends));
    let Some(name) = name else { return Err(io::Error::other("its name is not the dialogue's")) };
    // The directories between the store and the file: programs find it there.
    let kept = memory.below.file_name();
    let inner = file.parent().into_iter().flat_map(Path::components);
    let inner = inner.skip_while(|part| Some(part.as_os_str()) != kept).skip(1);
    let inner: PathBuf = inner.filter(|part| matches!(part, Component::Normal(_))).collect();
    let dir = home.join(&memory.below).join(inner);
    let mut from = lines::open(file)?;
    if from.metadata()?.size() > MEMORY_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let to = dir.join(name);
    let part = to.with_extension("part");
    let _ = fs::remove_file(&part);
    let mut copied = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    io::copy(&mut from, &mut copied)?;
    copied.flush()?;
    copied.sync_all()?;
    // What an agent has made of it since is never overwritten.
    let done = fs::hard_link(&part, &to);
    fs::remove_file(&part)?;
    match done {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The dialogue that somebody may have.
struct Wanted<'a> {
    file: &'a Path,
    /// A word in the program's name.
    program: &'a str,
    dialogue: &'a str,
    /// Where its agent worked.
    cwd: &'a str,
}

/// The process that has the file open, or was told the dialogue's name, or is the program, works in the same place and may have
/// written to the file; none of Ostler's own sessions. Programs open their files only to write a line, and one that began a
/// dialogue was told no name.
fn holder(proc: &Path, wanted: &Wanted<'_>) -> Option<Holder> {
    let file = fs::canonicalize(wanted.file).ok();
    let written = fs::metadata(wanted.file).and_then(|about| about.modified()).ok();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let dir = entry.path();
        let command = fs::read(dir.join("cmdline")).unwrap_or_default();
        let has_open = || {
            let links = fs::read_dir(dir.join("fd")).into_iter().flatten().flatten();
            file.is_some() && links.into_iter().any(|link| fs::read_link(link.path()).ok() == file)
        };
        let may_have_written = || {
            is_program(&command, wanted.program)
                && fs::read_link(dir.join("cwd")).is_ok_and(|cwd| cwd == Path::new(wanted.cwd))
                && written.zip(began(proc, &dir)).is_some_and(|(written, began)| written >= began)
        };
        if !was_told(&command, wanted.program, wanted.dialogue) && !has_open() && !may_have_written() {
            continue;
        }
        let environment = Environment::of(&dir);
        if pid == std::process::id() || environment.is_of_ostler() {
            continue;
        }
        let name = fs::read_to_string(dir.join("comm")).unwrap_or_default().trim().to_owned();
        return Some(Holder { pid, name, pane: environment.pane() });
    }
    None
}

/// Of a second, in what the kernel tells of processes: the same on all machines that we run on.
const TICKS: u64 = 100;

/// When a process began.
fn began(proc: &Path, dir: &Path) -> Option<SystemTime> {
    let ticks = locks::started(&fs::read_to_string(dir.join("stat")).ok()?)?;
    let machine = fs::read_to_string(proc.join("stat")).ok()?;
    let machine = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let since = Duration::from_millis(ticks.saturating_mul(1_000 / TICKS));
    UNIX_EPOCH.checked_add(Duration::from_secs(machine))?.checked_add(since)
}

/// `claude`, `node …/codex`. A tool that an agent runs there, such as `rg claude`, has another program's name first.
fn is_program(command: &[u8], program: &str) -> bool {
    let mut words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let first = words.next().map(|word| name(&word)).unwrap_or_default();
    let is_interpreter = matches!(first.as_str(), "node" | "bun" | "deno");
    let script = words.find(|word| !word.starts_with('-')).map(|word| name(&word));
    let is_its = |name: &str| {
        name == program || name.strip_prefix(program).is_some_and(|rest| rest.starts_with(['.', '-']))
    };
    is_its(&first) || (is_interpreter && script.is_some_and(|script| is_its(&script)))
}

/// `claude --resume <id>`, `node …/codex resume <id>`. Whoever only passes the name on, such as `timeout 9 ostler show <id>`, is
/// not the program.
fn was_told(command: &[u8], program: &str, dialogue: &str) -> bool {
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let Some(at) = words.iter().position(|word| word == dialogue) else { return false };
    let is_program = |word: &str| word.rsplit('/').next().is_some_and(|name| name.contains(program));
    words[..at].iter().any(|word| is_program(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, command: &[&str], environment: &str) -> PathBuf {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(dir.join("fd")).unwrap();
        fs::write(dir.join("cmdline"), command.join("\0")).unwrap();
        fs::write(dir.join("environ"), environment).unwrap();
        fs::write(dir.join("comm"), "claude\n").unwrap();
        dir
    }

    #[test]
    fn whoever_has_the_file_open_or_was_told_the_dialogue_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rollout-d1.jsonl");
        fs::write(&file, "").unwrap();
        let proc = dir.path().join("proc");
        process(&proc, 4_000_001, &["claude"], "");
        process(&proc, 4_000_002, &["timeout", "9", "ostler", "resume", "d1"], "");
        process(&proc, 4_000_003, &["claude", "--resume", "d1"], "A=b\0OSTLER_SESSION_ID=ses_1\0");
        let wanted = Wanted { file: &file, program: "claude", dialogue: "d1", cwd: "/srv/shop" };
        assert_eq!(holder(&proc, &wanted), None);
        let open = process(&proc, 4_000_004, &["codex"], "TMUX_PANE=%3\0");
        std::os::unix::fs::symlink(fs::canonicalize(&file).unwrap(), open.join("fd/7")).unwrap();
        let found = holder(&proc, &wanted).unwrap();
        assert_eq!((found.pid, found.pane.as_deref()), (4_000_004, Some("%3")));
        fs::remove_dir_all(&open).unwrap();
        process(&proc, 4_000_005, &["claude", "--resume", "d1"], "");
        assert_eq!(holder(&proc, &wanted).map(|holder| holder.pid), Some(4_000_005));
    }

    #[test]
    fn whoever_works_there_and_may_have_written_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("d1.jsonl");
        fs::write(&file, "").unwrap();
        let proc = dir.path().join("proc");
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        let now = written.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let began = |pid: u32, command: &[&str], cwd: &str, seconds: u64| {
            let dir = process(&proc, pid, command, "TMUX_PANE=%7\0");
            std::os::unix::fs::symlink(cwd, dir.join("cwd")).unwrap();
            let fields: Vec<String> =
                (4..=52).map(|n| if n == 22 { seconds * TICKS } else { 0 }.to_string()).collect();
            fs::write(dir.join("stat"), format!("{pid} (node) S {}", fields.join(" "))).unwrap();
        };
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("stat"), format!("cpu 1 2\nbtime {}\n", now - 1_000)).unwrap();
        let wanted = Wanted { file: &file, program: "claude", dialogue: "d1", cwd: "/srv/shop" };
        began(4_000_001, &["claude"], "/srv/other", 10);
        began(4_000_002, &["node", "/usr/bin/codex"], "/srv/shop", 10);
        began(4_000_003, &["rg", "claude"], "/srv/shop", 10);
        began(4_000_004, &["claude"], "/srv/shop", 1_500);
        assert_eq!(holder(&proc, &wanted), None, "elsewhere, another program, or begun since");
        began(4_000_005, &["node", "--no-warnings", "/usr/lib/claude"], "/srv/shop", 990);
        let found = holder(&proc, &wanted).unwrap();
        assert_eq!((found.pid, found.pane.as_deref()), (4_000_005, Some("%7")));
    }

    #[test]
    fn a_copy_lies_where_the_program_looks_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join(".claude/projects/-srv-shop");
        fs::create_dir_all(&store).unwrap();
        fs::write(store.join("d1.jsonl"), "one\n").unwrap();
        let memory = Memory { below: ".claude/projects".into(), name_ends: "d1.jsonl".to_owned() };
        let home = dir.path().join("home");
        copy(&store.join("d1.jsonl"), &home, &memory).unwrap();
        let copied = home.join(".claude/projects/-srv-shop/d1.jsonl");
        assert_eq!(fs::read_to_string(&copied).unwrap(), "one\n");
        assert_eq!(fs::metadata(&copied).unwrap().mode() & 0o777, 0o600);
        fs::write(&copied, "one\ntwo\n").unwrap();
        copy(&store.join("d1.jsonl"), &home, &memory).unwrap();
        assert_eq!(fs::read_to_string(&copied).unwrap(), "one\ntwo\n");
        let names: Vec<_> = fs::read_dir(copied.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left over");
    }
}
