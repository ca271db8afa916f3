//! Where agents' programs are on this machine, and which version they have.

use std::{
    collections::{HashMap, HashSet},
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_domain::{Reason, Refusal, limits::SEARCH_DIRS, provider::Settings};
use ostler_providers::{FoundProgram, ProgramSpec, Provider, Version};
use serde::{Deserialize, Serialize};
use tokio::{io::AsyncReadExt, process::Command, sync::OnceCell, time::timeout};

use crate::group::Group;

/// How long a program may take to say its version; large ones start slowly on a busy machine. Whoever asks for a session
/// waits for it, and clients give up after a minute.
const VERSION_WITHIN: Duration = Duration::from_secs(40);
/// How long whoever only looks at a program waits for its version, or starts one of which any will do; the next one has it.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// How much of what it says is read for that.
const VERSION_BYTES: u64 = 64 * 1024;
/// Where people's package managers put programs, below their home.
const BELOW_HOME: [&str; 5] =
    [".local/bin", ".npm-global/bin", "node_modules/.bin", ".bun/bin", ".claude/local/node_modules/.bin"];
/// Variables that lead back to a person's own files.
const OF_HOMES: [&str; 4] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
/// Where node's version manager keeps its versions, below a home.
const NVM: &str = ".nvm/versions/node";
/// How much of a script is read to learn what runs it.
const SHEBANG_BYTES: usize = 128;

/// Programs that were looked at: a file that has not changed has not changed its version. What they said is kept in a file,
/// for the daemons that come after this one.
pub(crate) struct Programs {
    versions: Mutex<HashMap<Identity, Asked>>,
    kept: PathBuf,
    /// Where those who asked last look for programs: more may be there by now than when this daemon was started.
    searched_too: Mutex<Vec<PathBuf>>,
}

/// Asked once, however many want to know.
type Asked = Arc<OnceCell<Option<Version>>>;

/// A program was asked, and has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NotInTime;

/// One line of what is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    program: Identity,
    version: (u32, u32, u32),
}

/// Why a program cannot be started.
#[derive(Debug)]
pub(crate) enum Unusable {
    Missing(Refusal),
    /// It does not say which version it is, and that counts.
    Silent {
        found: Box<FoundProgram>,
        refusal: Refusal,
    },
    TooOld {
        found: PathBuf,
        version: Version,
        least: Version,
        refusal: Refusal,
    },
}

impl From<Unusable> for Refusal {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Missing(refusal)
            | Unusable::Silent { refusal, .. }
            | Unusable::TooOld { refusal, .. } => refusal,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Identity {
    path: PathBuf,
    inode: u64,
    bytes: u64,
    modified: i64,
}

impl Programs {
    /// With what was kept in this directory.
    pub(crate) fn below(state_dir: &Path) -> Arc<Self> {
        let kept = state_dir.join("programs.json");
        let known: Vec<Kept> =
            fs::read(&kept).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let known = known.into_iter().map(|Kept { program, version: (major, minor, patch) }| {
            let version = OnceCell::new_with(Some(Some(Version(major, minor, patch))));
            (program, Arc::new(version))
        });
        Arc::new(Self { versions: Mutex::new(known.collect()), kept, searched_too: Mutex::default() })
    }

    /// Has programs looked for in these directories too, behind those of the daemon's own search path.
    pub(crate) fn search_too(&self, mut dirs: Vec<PathBuf>) {
        let mut known = self.searched_too.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.append(&mut known);
        let mut seen = HashSet::new();
        dirs.retain(|dir| dir.is_absolute() && seen.insert(dir.clone()));
        dirs.truncate(SEARCH_DIRS);
        *known = dirs;
    }

    fn places(&self, home: Option<&Path>) -> Vec<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
        places.extend(self.searched_too.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        places.extend(home.iter().flat_map(|home| BELOW_HOME.map(|below| home.join(below))));
        places.extend(home.iter().flat_map(|home| node_versions(&home.join(NVM))));
        places.extend(["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"].map(PathBuf::from));
        places
    }

    /// The program of a provider, ready to be started. None when it is a part of this one.
    pub(crate) async fn find(
        self: &Arc<Self>,
        provider: &dyn Provider,
        settings: &Settings,
        home: Option<&Path>,
    ) -> Result<Option<FoundProgram>, Refusal> {
        Ok(self.find_within(VERSION_WITHIN, provider, settings, home).await?)
    }

    /// The same for who only looks: one that is slow to say its version is there all the same.
    pub(crate) async fn find_soon(
        self: &Arc<Self>,
        provider: &dyn Provider,
        settings: &Settings,
        home: Option<&Path>,
    ) -> Result<Option<FoundProgram>, Unusable> {
        match self.find_within(SEEN_WITHIN, provider, settings, home).await {
            Err(Unusable::Silent { found, .. }) => Ok(Some(*found)),
            found => found,
        }
    }

    async fn find_within(
        self: &Arc<Self>,
        limit: Duration,
        provider: &dyn Provider,
        settings: &Settings,
        home: Option<&Path>,
    ) -> Result<Option<FoundProgram>, Unusable> {
        let Some(spec) = provider.program() else { return Ok(None) };
        let asked = settings.program.clone().unwrap_or_else(|| PathBuf::from(&spec.name));
        let places = self.places(home);
        let Some(path) = look(&asked, &places) else {
            return Err(Unusable::Missing(missing(provider.name(), &spec, settings, &asked)));
        };
        let mut found = describe(&path, &spec, &places);
        let limit = if spec.least.is_some() { limit } else { limit.min(SEEN_WITHIN) };
        let said = self.version(&found, limit, spec.least.is_some()).await;
        found.version = said.ok().flatten();
        match (spec.least, found.version) {
            (Some(least), None) if said.is_err() => {
                let refusal = silent(provider.name(), &found.path, limit, least);
                let refusal = or_another(refusal, provider.name(), settings);
                Err(Unusable::Silent { found: Box::new(found), refusal })
            }
            (Some(least), Some(version)) if version < least => {
                let refusal = Refusal::new(
                    Reason::ProviderMissing,
                    format!("{} {version} is too old for Ostler", spec.name),
                )
                .because(format!(
                    "{} is version {version}; {least} or newer is needed",
                    found.path.display()
                ));
                let refusal = match &spec.install {
                    Some(install) => refusal.hint(install, "installs a newer one"),
                    None => refusal,
                };
                let refusal = or_another(refusal, provider.name(), settings);
                Err(Unusable::TooOld { found: found.path, version, least, refusal })
            }
            _ => Ok(Some(found)),
        }
    }

    /// What it says of its version, if that is one; or that it has not said anything in time.
    async fn version(
        self: &Arc<Self>,
        found: &FoundProgram,
        limit: Duration,
        counts: bool,
    ) -> Result<Option<Version>, NotInTime> {
        let Some(identity) = identity(&found.path) else { return Ok(None) };
        let asked = {
            let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
            versions.entry(identity).or_default().clone()
        };
        if let Some(version) = asked.get() {
            return Ok(*version);
        }
        let (programs, found) = (self.clone(), found.clone());
        // Whoever waits may give up: it is asked to its end for the next one.
        let asking = tokio::spawn(async move {
            let mut is_new = false;
            let version = asked.get_or_try_init(async || {
                is_new = true;
                match ask_version(&found, &programs.throw_away_home(&found.path)).await {
                    // It is asked again, as it may only have been slow; unless nobody needs to know.
                    Err(not_in_time) if counts => Err(not_in_time),
                    said => Ok(said.ok().flatten()),
                }
            });
            let version = *version.await?;
            if is_new && version.is_some() {
                programs.keep();
            }
            Ok::<_, NotInTime>(version)
        });
        match timeout(limit, asking).await {
            Ok(Ok(said)) => said,
            Ok(Err(_)) | Err(_) => Err(NotInTime),
        }
    }

    /// Where a program puts what it makes of a first start: nobody is to find that among their own files.
    fn throw_away_home(&self, path: &Path) -> PathBuf {
        let inode = identity(path).map_or(0, |program| program.inode);
        self.kept.with_file_name(format!("version-{inode}"))
    }

    /// Writes down what is known. What cannot be kept is asked again another day.
    fn keep(&self) {
        let Ok(versions) = self.versions.lock() else { return };
        let known = versions.iter().filter_map(|(program, asked)| {
            let Version(major, minor, patch) = (*asked.get()?)?;
            let is_there = identity(&program.path).as_ref() == Some(program);
            is_there.then(|| Kept { program: program.clone(), version: (major, minor, patch) })
        });
        let known: Vec<Kept> = known.collect();
        let half = self.kept.with_extension("half");
        let written = serde_json::to_vec(&known).map_err(io::Error::from);
        let private = || OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half);
        let written =
            written.and_then(|text| private()?.write_all(&text)).and_then(|()| fs::rename(&half, &self.kept));
        if let Err(error) = written {
            tracing::debug!(%error, "the versions of programs are not kept");
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some(Identity { path: path.to_owned(), inode: found.ino(), bytes: found.size(), modified: found.mtime() })
}

/// The first hint is what helps soonest. Where one is configured, none that is installed would be taken.
fn missing(provider: &str, spec: &ProgramSpec, settings: &Settings, asked: &Path) -> Refusal {
    let refusal = Refusal::new(Reason::ProviderMissing, format!("the program of {provider} was not found"));
    let refusal = if asked.is_absolute() {
        refusal.because(format!("{} is no program that can be run", asked.display()))
    } else {
        refusal.because(format!("{} is in none of the directories that were searched", asked.display()))
    };
    let place = format!("ostler config set providers.{provider}.program PATH");
    let refusal = match &spec.install {
        Some(install) if settings.program.is_none() => refusal.hint(install, "installs it"),
        _ => or_another(refusal, provider, settings),
    };
    refusal.hint(place, "says where it is")
}

/// It runs on where others say one line and end.
fn silent(provider: &str, found: &Path, waited: Duration, least: Version) -> Refusal {
    let seconds = waited.as_secs();
    let message = format!("the program of {provider} did not say its version within {seconds} s");
    let asked = format!("{} --version", found.display());
    Refusal::new(Reason::ProviderMissing, message)
        .because(format!("{asked} was still running then; {least} or newer is needed"))
        .hint(asked, "shows what it does")
}

/// What is configured stands in the way of one that is installed later.
fn or_another(refusal: Refusal, provider: &str, settings: &Settings) -> Refusal {
    if settings.program.is_none() {
        return refusal;
    }
    let unset = format!("ostler config unset providers.{provider}.program");
    refusal.hint(unset, "takes the one that is found in the usual places")
}

/// A program by its path, or by its name in the first of these places that has it.
fn look(asked: &Path, places: &[PathBuf]) -> Option<PathBuf> {
    if asked.is_absolute() {
        return is_program(asked).then(|| fs::canonicalize(asked).ok())?;
    }
    places
        .iter()
        .map(|dir| dir.join(asked))
        .find(|path| is_program(path))
        .and_then(|path| fs::canonicalize(path).ok())
}

/// The newest first.
fn node_versions(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.sort_by_key(|path| {
        std::cmp::Reverse(Version::find(&path.file_name().unwrap_or_default().to_string_lossy()))
    });
    found.into_iter().map(|dir| dir.join("bin")).collect()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a program is and needs: npm's launchers lead to the program itself, scripts to what runs them.
fn describe(path: &Path, spec: &ProgramSpec, places: &[PathBuf]) -> FoundProgram {
    let of = |path: PathBuf, read_only, search| FoundProgram { path, version: None, read_only, search };
    let packages: Vec<&Path> =
        path.ancestors().filter(|dir| dir.file_name().is_some_and(|name| name == "node_modules")).collect();
    let below =
        |dir: &Path| spec.natives.iter().map(|native| dir.join(native)).find(|native| is_program(native));
    // A package may have its native part in a `node_modules` of its own.
    let inner: Vec<PathBuf> = path
        .ancestors()
        .map(|dir| dir.join("node_modules"))
        .take_while(|dir| dir.components().count() > 2)
        .collect();
    let native = packages.iter().copied().chain(inner.iter().map(PathBuf::as_path)).find_map(below);
    if let Some(native) = native.and_then(|native| fs::canonicalize(native).ok()) {
        let package = native.parent().map(Path::to_owned).unwrap_or_else(|| native.clone());
        return of(native, vec![package], Vec::new());
    }
    match interpreter(path) {
        None => of(path.to_owned(), vec![path.to_owned()], Vec::new()),
        Some(interpreter) => {
            let package = packages.last().copied().or(path.parent()).unwrap_or(path).to_owned();
            let runtime = beside(&packages, &interpreter).or_else(|| look(Path::new(&interpreter), places));
            let search = runtime.iter().filter_map(|runtime| runtime.parent().map(Path::to_owned)).collect();
            of(path.to_owned(), [package].into_iter().chain(runtime).collect(), search)
        }
    }
}

/// What runs a script, where it was installed with it: the search path may have one that is too old for it.
fn beside(packages: &[&Path], interpreter: &str) -> Option<PathBuf> {
    let places = packages.iter().flat_map(|dir| [dir.join(".bin"), dir.join("../../bin")]);
    let found = places.map(|place| place.join(interpreter)).find(|path| is_program(path));
    found.and_then(|path| fs::canonicalize(path).ok())
}

/// The name of what runs a script: `node` for `#!/usr/bin/env node`.
fn interpreter(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut first = Vec::new();
    fs::File::open(path).ok()?.take(SHEBANG_BYTES as u64).read_to_end(&mut first).ok()?;
    let text = String::from_utf8_lossy(&first);
    let words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    let name = words.filter(|word| !word.starts_with('-')).find(|word| !word.ends_with("/env"))?;
    Some(name.rsplit('/').next().unwrap_or(name).to_owned())
}

/// Asks the program itself. It is the user's own, and what it says goes into no file.
async fn ask_version(found: &FoundProgram, home: &Path) -> Result<Option<Version>, NotInTime> {
    if DirBuilder::new().recursive(true).mode(0o700).create(home).is_err() {
        return Ok(None);
    }
    let version = say_version(found, home).await;
    if let Err(error) = fs::remove_dir_all(home) {
        tracing::debug!(%error, "what a program left when it was asked for its version is still there");
    }
    version
}

async fn say_version(found: &FoundProgram, home: &Path) -> Result<Option<Version>, NotInTime> {
    let path = env::var_os("PATH").unwrap_or_default();
    let Ok(search) = env::join_paths(found.search.iter().cloned().chain(env::split_paths(&path))) else {
        return Ok(None);
    };
    let mut program = Command::new(&found.path);
    for variable in OF_HOMES {
        program.env_remove(variable);
    }
    let asked = program
        .arg("--version")
        .env("PATH", search)
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/");
    let Ok(mut group) = Group::start(asked) else { return Ok(None) };
    let said = async {
        let mut said = Vec::new();
        group.stdout.take()?.take(VERSION_BYTES).read_to_end(&mut said).await.ok()?;
        group.wait().await.ok()?;
        Some(said)
    };
    let said = timeout(VERSION_WITHIN, said).await.map_err(|_| NotInTime)?;
    Ok(said.and_then(|said| Version::find(&String::from_utf8_lossy(&said))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn spec() -> ProgramSpec {
        ProgramSpec {
            name: "agent".to_owned(),
            natives: vec!["@maker/agent-linux-x64/agent".into()],
            least: Some(Version(2, 0, 0)),
            install: Some("npm install -g agent".to_owned()),
        }
    }

    #[test]
    fn a_launcher_of_npm_leads_to_the_program_itself() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let launcher = root.join("lib/node_modules/@maker/agent/cli.js");
        program(&launcher, "#!/usr/bin/env node\n");
        let found = describe(&launcher, &spec(), &[]);
        assert_eq!(found.path, launcher);
        assert_eq!(found.read_only[0], root.join("lib/node_modules"), "a script needs its package");
        for native in [
            "lib/node_modules/@maker/agent/node_modules/@maker/agent-linux-x64/agent",
            "lib/node_modules/@maker/agent-linux-x64/agent",
        ] {
            program(&root.join(native), "\u{7f}ELF");
            assert_eq!(describe(&launcher, &spec(), &[]).path, root.join(native));
        }
    }

    #[test]
    fn a_program_is_found_below_a_home_and_a_missing_one_says_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".nvm/versions/node/v20.1.0/bin/some-agent-of-a-test");
        let programs = Programs::below(home.path());
        let look = || look(Path::new("some-agent-of-a-test"), &programs.places(Some(home.path())));
        assert_eq!(look(), None);
        program(&path, "#!/bin/sh\n");
        let found = look();
        assert_eq!(found, fs::canonicalize(&path).ok());
        let hints = |settings: Settings| {
            let asked = settings.program.clone().unwrap_or_else(|| "agent".into());
            let refusal = missing("agent", &spec(), &settings, &asked);
            assert_eq!(refusal.reason, Reason::ProviderMissing);
            refusal.hints.into_iter().map(|hint| hint.command).collect::<Vec<_>>()
        };
        let set = "ostler config set providers.agent.program PATH";
        assert_eq!(hints(Settings::default()), ["npm install -g agent", set]);
        let configured = Settings { program: Some("/nothere".into()), ..Settings::default() };
        assert_eq!(hints(configured), ["ostler config unset providers.agent.program", set]);
    }

    #[test]
    fn a_program_is_found_where_whoever_asks_would_find_it() {
        let dir = tempfile::tempdir().unwrap();
        let programs = Programs::below(dir.path());
        let look = || look(Path::new("some-agent-of-a-test"), &programs.places(None));
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        program(&one.join("some-agent-of-a-test"), "");
        program(&other.join("some-agent-of-a-test"), "");
        assert_eq!(look(), None);
        programs.search_too(vec![PathBuf::from("relative"), one.clone()]);
        assert_eq!(look(), fs::canonicalize(one.join("some-agent-of-a-test")).ok());
        programs.search_too(vec![other.clone()]);
        assert_eq!(look(), fs::canonicalize(other.join("some-agent-of-a-test")).ok(), "who asked last");
        fs::remove_dir_all(&other).unwrap();
        assert!(look().is_some(), "who asked before is not forgotten");
        programs.search_too((0..1_000).map(|n| PathBuf::from(format!("/nowhere/{n}"))).collect());
        assert_eq!((look(), programs.searched_too.lock().unwrap().len()), (None, SEARCH_DIRS));
    }

    /// A program that says a version, and writes down that it was asked.
    fn of_version(dir: &Path, version: &str, wait: &str) -> Settings {
        let path = dir.join("agent");
        program(&path, &format!("#!/bin/sh\necho x >> {}/asked\n{wait}\necho {version}\n", dir.display()));
        Settings { program: Some(path), ..Settings::default() }
    }

    fn times_asked(dir: &Path) -> usize {
        fs::read_to_string(dir.join("asked")).unwrap_or_default().lines().count()
    }

    #[tokio::test]
    async fn a_version_is_asked_once_and_the_next_daemon_knows_it() {
        let dir = tempfile::tempdir().unwrap();
        let settings = of_version(dir.path(), "99.1.2", "sleep 0.3");
        let codex = ostler_providers::registry::find("codex").unwrap();
        let programs = Programs::below(dir.path());
        let soon = programs.find_within(Duration::from_millis(1), codex.as_ref(), &settings, None).await;
        assert!(matches!(soon, Err(Unusable::Silent { .. })), "it is there, and has not said: {soon:?}");
        let found = programs.find(codex.as_ref(), &settings, None).await.unwrap().unwrap();
        assert_eq!(found.version, Some(Version(99, 1, 2)));
        while !dir.path().join("programs.json").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mode = fs::metadata(dir.path().join("programs.json")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let next = Programs::below(dir.path());
        let found = next.find(codex.as_ref(), &settings, None).await.unwrap().unwrap();
        assert_eq!((found.version, times_asked(dir.path())), (Some(Version(99, 1, 2)), 1));
        of_version(dir.path(), "99.10.20", "");
        let found = next.find(codex.as_ref(), &settings, None).await.unwrap().unwrap();
        assert_eq!(found.version, Some(Version(99, 10, 20)), "another file");
    }

    #[tokio::test]
    async fn one_that_never_says_its_version_is_named_where_that_counts_and_else_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let settings = of_version(dir.path(), "99.1.2", "exec sleep 100");
        let soon = Duration::from_millis(200);
        let programs = Programs::below(dir.path());
        let codex = ostler_providers::registry::find("codex").unwrap();
        match programs.find_within(soon, codex.as_ref(), &settings, None).await.unwrap_err() {
            Unusable::Silent { found, refusal } => {
                assert_eq!(Some(&found.path), settings.program.as_ref());
                assert!(
                    refusal.why.as_ref().unwrap().contains("agent --version was still running"),
                    "{refusal}"
                );
            }
            other => panic!("{other:?}"),
        }
        let only_seen = programs.find_soon(codex.as_ref(), &settings, None).await.unwrap();
        assert_eq!(only_seen.unwrap().version, None);
        let any = ostler_providers::registry::find("acp:agent").unwrap();
        let began = std::time::Instant::now();
        assert!(programs.find(any.as_ref(), &settings, None).await.unwrap().is_some());
        assert!(began.elapsed() < VERSION_WITHIN / 4, "any of its versions will do");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_is_thrown_away() {
        let dir = tempfile::tempdir().unwrap();
        let leave = format!(r#"mkdir -p "$HOME/.cache"; echo "$HOME" > {}/home"#, dir.path().display());
        let settings = of_version(dir.path(), "99.1.2", &leave);
        let codex = ostler_providers::registry::find("codex").unwrap();
        let found = Programs::below(dir.path()).find(codex.as_ref(), &settings, None).await.unwrap().unwrap();
        assert_eq!(found.version, Some(Version(99, 1, 2)));
        let home = fs::read_to_string(dir.path().join("home")).unwrap();
        let home = Path::new(home.trim());
        assert_ne!(Some(home), env::home_dir().as_deref());
        assert!(home.starts_with(dir.path()) && !home.exists(), "{}", home.display());
    }

    #[tokio::test]
    async fn one_that_is_too_old_is_not_said_to_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let settings = of_version(dir.path(), "0.0.1", "");
        let codex = ostler_providers::registry::find("codex").unwrap();
        let unusable = Programs::below(dir.path()).find_soon(codex.as_ref(), &settings, None).await;
        match unusable.unwrap_err() {
            Unusable::TooOld { version, least, refusal, .. } => {
                assert!(version == Version(0, 0, 1) && version < least);
                assert!(refusal.message.contains("0.0.1 is too old"), "{refusal:?}");
                let hints: Vec<_> = refusal.hints.iter().map(|hint| hint.command.as_str()).collect();
                assert!(hints[0].contains("npm install"), "{refusal:?}");
                assert_eq!(hints[1], "ostler config unset providers.codex.program");
            }
            missing => panic!("{missing:?}"),
        }
    }

    #[test]
    fn a_script_is_run_by_what_was_installed_with_it() {
        for (script, runtime) in [
            ("node_modules/agent/cli.js", "node_modules/.bin/node"),
            ("v24/lib/node_modules/agent/cli.js", "v24/bin/node"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            program(&root.join(script), "#!/usr/bin/env node\n");
            program(&root.join(runtime), "\u{7f}ELF");
            let found = describe(&root.join(script), &spec(), &[]);
            assert_eq!(found.search, [root.join(runtime).parent().unwrap()]);
        }
    }

    #[test]
    fn a_script_names_what_runs_it() {
        let dir = tempfile::tempdir().unwrap();
        for (first, name) in [
            ("#!/usr/bin/env node", Some("node")),
            ("#!/usr/bin/env -S node --x", Some("node")),
            ("#!/bin/sh -e", Some("sh")),
            ("\u{7f}ELF", None),
        ] {
            let path = dir.path().join("script");
            fs::write(&path, format!("{first}\nmore\n")).unwrap();
            assert_eq!(interpreter(&path).as_deref(), name, "{first}");
        }
    }
}
