//! Logins of agents' programs. Each is kept once, in a home of Ostler's own that no session ever sees, and is renewed there
//! and nowhere else, one at a time. Sessions are lent what calls the model, without what renews it: so none of them can log
//! the others out. See ADR 19.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use ostler_domain::{
    Name, Policy, Reason, Refusal, Time,
    limits::LOGIN_RENEWED_BEFORE,
    provider::{CallerKeys, Settings},
    redact::redacted,
    text::one_line,
};
use ostler_providers::{FoundProgram, Lent, LoginSpec, Provider};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    time::{Instant, timeout},
};

use crate::{
    Engine,
    group::Group,
    keeper::NotStarted,
    shared::Shared,
    upstream::{self, login_command},
};

/// How long a program may take to renew its login.
const RENEW_WITHIN: Duration = Duration::from_secs(60);
/// One that could not be renewed is not tried again before this: whoever starts many sessions waits for it once.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How much of what a program says about a renewal that failed is told.
const WHY_SHOWN: usize = 300;
/// Longest file of a login.
const FILE_BYTES: u64 = 1 << 20;

/// Which providers' logins could not be renewed: when that was tried, and what came of it.
pub(crate) type Failures = BTreeMap<PathBuf, (Instant, String)>;

/// How to have a program log in.
#[derive(Debug, Clone)]
pub struct LoginPlan {
    pub program: String,
    pub args: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Where the login is when it is done.
    pub file: String,
}

impl Engine {
    /// Makes the home of a provider's login, and says what to run in it.
    pub async fn prepare_login(&self, name: &str, profile: Option<&Name>) -> Result<LoginPlan, Refusal> {
        let provider = self.shared.provider(name)?;
        let Some(spec) = provider.login() else {
            return Err(Refusal::invalid(format!("{name} has no login that Ostler could keep"))
                .hint(format!("ostler config set providers.{name}.api_key_env VARIABLE"), "names its key"));
        };
        let settings = self.shared.options.providers.of_account(name, profile)?;
        if let Some(profile) = profile.filter(|_| settings.login_of.is_none()) {
            return Err(Refusal::invalid(format!("the profile {profile} of {name} has a key, and no login"))
                .hint(format!("ostler config get providers.{name}.profiles.{profile}"), "says what it has"));
        }
        let home_dir = self.shared.options.home_dir.as_deref();
        let program = self.shared.programs.find(provider.as_ref(), &settings, home_dir).await?;
        let program = program.ok_or_else(|| Refusal::internal("a login without a program"))?;
        let home = self.shared.login_home(name, &settings);
        let unusable =
            |error: io::Error| Refusal::internal(format!("{} cannot be made: {error}", home.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(home.join(spec.state.1)).map_err(unusable)?;
        let file = home.join(spec.path()).to_string_lossy().into_owned();
        Ok(LoginPlan {
            environment: environment(spec, &home, &program).into_iter().collect(),
            program: program.path.to_string_lossy().into_owned(),
            args: spec.words.iter().map(|word| (*word).to_owned()).collect(),
            file,
        })
    }
}

impl Shared {
    fn login_home(&self, provider: &str, settings: &Settings) -> PathBuf {
        let of_account = settings.login_of.as_ref().map(|account| format!("{provider}@{account}"));
        self.options.state_dir.join("credentials").join(of_account.as_deref().unwrap_or(provider))
    }

    /// What is there of a provider's login now.
    pub(crate) fn login(&self, provider: &dyn Provider, settings: &Settings) -> Option<Lent> {
        let spec = provider.login()?;
        spec.lent(&read(&self.login_home(provider.name(), settings).join(spec.path())).ok()?)
    }

    /// What a session that begins now is lent, renewed if it is about to end. One that cannot be renewed is lent as it is
    /// while it lasts; one that has ended could only be refused by the model's server, and is refused here with the cure.
    pub(crate) async fn lend(
        &self,
        provider: &dyn Provider,
        settings: &Settings,
        program: &FoundProgram,
    ) -> Result<Option<Lent>, NotStarted> {
        let mut failures = self.renewing.lock().await;
        let (Some(login), Some(spec)) = (self.login(provider, settings), provider.login()) else {
            return Ok(None);
        };
        let now = self.clock.now().wall;
        if !ends_soon(&login, now) {
            return Ok(Some(login));
        }
        let name = provider.name();
        let home = self.login_home(name, settings);
        let (login, why) = match failures.get(&home) {
            Some((tried, why)) if tried.elapsed() < TRIED_AGAIN_AFTER => (login, why.clone()),
            _ => {
                let said = match timeout(RENEW_WITHIN, renew(spec, &home, program)).await {
                    Ok(Ok(said)) => said,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => format!("its program was not done within {} s", RENEW_WITHIN.as_secs()),
                };
                // Whatever the program said: what counts is the login that is there now.
                let renewed = self.login(provider, settings);
                let is_renewed = renewed.as_ref().is_some_and(|renewed| renewed.text != login.text);
                let login = renewed.unwrap_or(login);
                if !ends_soon(&login, now) {
                    failures.remove(&home);
                    return Ok(Some(login));
                }
                if !is_renewed {
                    tracing::warn!(provider = name, why = said, "the login is not renewed");
                }
                // Also where what its server grants is short: whoever begins in the same minute is lent that.
                failures.insert(home, (Instant::now(), said.clone()));
                (login, said)
            }
        };
        if !has_ended(&login, self.clock.now().wall) {
            return Ok(Some(login));
        }
        let whose = match &settings.login_of {
            Some(account) => format!("the profile {account} of {name}"),
            None => name.to_owned(),
        };
        let refusal = Refusal::new(
            Reason::ProviderAuth,
            format!("the login of {whose} has ended, and could not be renewed"),
        );
        let refusal = refusal.because(why).hint(login_command(name, settings), "logs in again");
        Err(NotStarted::refused(Reason::ProviderAuth.as_str(), refusal))
    }

    /// Whether a login has ended and could not be renewed when that was tried last.
    pub(crate) fn is_logged_out(&self, provider: &dyn Provider, settings: &Settings) -> bool {
        let now = self.clock.now().wall;
        let has_ended = self.login(provider, settings).is_some_and(|login| has_ended(&login, now));
        // Whoever renews one just now will know better.
        has_ended
            && self
                .renewing
                .try_lock()
                .is_ok_and(|failures| failures.contains_key(&self.login_home(provider.name(), settings)))
    }

    /// Whether a session that is asked for with these keys calls its model through its gateway.
    pub(crate) fn has_model(&self, provider: &dyn Provider, settings: &Settings, keys: &CallerKeys) -> bool {
        upstream::has_model(provider, settings, keys, self.login(provider, settings).is_some())
    }

    /// Refuses a session whose program would find neither a key nor a login.
    pub(crate) fn check_login(
        &self,
        provider: &dyn Provider,
        settings: &Settings,
        has_model: bool,
        told: &BTreeMap<String, String>,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        let is_told = |variable: &&str| {
            settings.env.contains_key(*variable)
                || told.contains_key(*variable)
                || policy.env.iter().any(|name| name == variable)
        };
        let Some(spec) = provider.login() else {
            // Whoever gives it variables of its own may mean another way to its model.
            let usual = provider.key_variable().filter(|_| settings.env.is_empty() && !has_model);
            return match usual.filter(|usual| !self.options.unconfined && !is_told(usual)) {
                Some(usual) => Err(without_key(provider.name(), usual)),
                None => Ok(()),
            };
        };
        let has_way = has_model || spec.variables.iter().any(is_told);
        if has_way || self.options.unconfined || self.login(provider, settings).is_some() {
            return Ok(());
        }
        let name = provider.name();
        if let Some(account) = &settings.login_of {
            return Err(Refusal::new(
                Reason::ProviderAuth,
                format!("the profile {account} of {name} is not logged in"),
            )
            .hint(login_command(name, settings), "logs it in"));
        }
        let usual = provider.key_variable().unwrap_or("a variable");
        Err(Refusal::new(Reason::ProviderAuth, format!("{name} is not logged in"))
            .because(format!("there is no login of it here, and {usual} is not set"))
            .hint(
                format!("ostler provider login {name}"),
                "runs its own login, or takes over one of yours (--from)",
            )
            .hint(format!("ostler config set providers.{name}.api_key_env VARIABLE"), "names the key to use"))
    }
}

/// A program that has no login of its own was given no key.
fn without_key(name: &str, usual: &str) -> Refusal {
    Refusal::new(Reason::ProviderAuth, format!("{name} has neither a key nor a server of its own"))
        .because(format!("{usual} is not set, and the configuration names no other place for a key"))
        .hint(format!("export {usual}=…"), "brings its key; then ask again")
        .hint(format!("ostler config set providers.{name}.api_key_file PATH"), "names a file that has it")
        .hint(format!("ostler config set providers.{name}.base_url URL"), "names a server that wants none")
}

fn ends_soon(login: &Lent, now: Time) -> bool {
    ends_within(login, now, LOGIN_RENEWED_BEFORE)
}

fn has_ended(login: &Lent, now: Time) -> bool {
    ends_within(login, now, Duration::ZERO)
}

fn ends_within(login: &Lent, now: Time, span: Duration) -> bool {
    let then = now.micros() / 1_000_000 + i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    login.expires.is_some_and(|expires| expires < then)
}

fn read(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    fs::File::open(path)?.take(FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The program's own things are below this home and nowhere else.
fn environment(spec: &LoginSpec, home: &Path, program: &FoundProgram) -> Vec<(String, String)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let (variable, state) = spec.state;
    let mut environment =
        vec![("HOME".to_owned(), text(home.to_owned())), (variable.to_owned(), text(home.join(state)))];
    environment.extend(spec.quiet.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search = program.search.iter().cloned().chain(std::env::split_paths(&search));
    if let Some(path) = std::env::join_paths(search).ok().and_then(|path| path.into_string().ok()) {
        environment.push(("PATH".to_owned(), path));
    }
    environment
}

/// Has the program renew its login where that is kept. Gives what it said at the end, for the case that it did not.
async fn renew(spec: &LoginSpec, home: &Path, program: &FoundProgram) -> io::Result<String> {
    let mut command = Command::new(&program.path);
    command
        .args(spec.refresh.words)
        .envs(environment(spec, home, program))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir(home);
    let mut child = Group::start(&mut command)?;
    let said = told(&mut child, spec).await?;
    // Closed input ends whoever still waits for more of it.
    drop(child.stdin.take());
    let status = child.wait().await?;
    Ok(if said.is_empty() { format!("its program ended with {status}, and said nothing") } else { said })
}

/// Tells it what it is told, and reads what it says until it is done. Gives the last of that, without what may be a secret.
async fn told(child: &mut Child, spec: &LoginSpec) -> io::Result<String> {
    if let Some(stdin) = &mut child.stdin {
        let lines: String = spec.refresh.input.iter().map(|line| format!("{line}\n")).collect();
        match stdin.write_all(lines.as_bytes()).await {
            // One that ended without listening may have said why.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    if spec.refresh.done.is_none() {
        drop(child.stdin.take());
    }
    let mut last = String::new();
    let Some(stdout) = child.stdout.take() else { return Ok(last) };
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        let is_done = spec.refresh.done.is_some_and(|done| line.contains(done));
        last = one_line(&redacted(words_of(line)), WHY_SHOWN);
        if is_done {
            break;
        }
    }
    Ok(last)
}

/// What a line says to people. Of a message between programs that is its error.
fn words_of(line: String) -> String {
    let Ok(Value::Object(message)) = serde_json::from_str(&line) else { return line };
    match message.get("error").map(|error| error.get("message").unwrap_or(error)) {
        Some(Value::String(error)) => error.clone(),
        Some(error) => error.to_string(),
        None => "its program was asked for another, and gave none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that renews its login by writing its file anew, and waits for words where it is to be told some.
    fn program(dir: &Path, script: &str) -> FoundProgram {
        let path = dir.join("agent");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        FoundProgram { path, version: None, read_only: Vec::new(), search: Vec::new() }
    }

    const SPEC: LoginSpec = LoginSpec {
        words: &[],
        state: ("AGENT_DIR", ".agent"),
        quiet: &[("TELEMETRY", "off")],
        file: "login.json",
        hosts: &[],
        variables: &[],
        refresh: ostler_providers::Refresh { words: &["renew"], input: &["please"], done: Some("done") },
        lend: |_| None,
    };

    #[tokio::test]
    async fn a_program_renews_its_login_where_that_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".agent")).unwrap();
        let told = program(
            dir.path(),
            "read word; echo \"$1 $word $TELEMETRY $HOME\" > $AGENT_DIR/login.json; echo is done; exec cat > /dev/null",
        );
        assert_eq!(renew(&SPEC, dir.path(), &told).await.unwrap(), "is done");
        let login = fs::read_to_string(dir.path().join(".agent/login.json")).unwrap();
        assert_eq!(login, format!("renew please off {}\n", dir.path().display()));
    }

    #[tokio::test]
    async fn a_program_that_does_not_renew_it_has_its_last_words_told() {
        let dir = tempfile::tempdir().unwrap();
        for (script, said) in [
            ("echo once; echo the refresh token was used already", "the refresh token was used already"),
            (r#"echo '{"id":1,"error":{"code":-32603,"message":"it was used up"}}'"#, "it was used up"),
            (
                r#"echo '{"id":"refresh","result":{"account":null}}'"#,
                "its program was asked for another, and gave none",
            ),
            ("exit 3", "its program ended with exit status: 3, and said nothing"),
        ] {
            assert_eq!(renew(&SPEC, dir.path(), &program(dir.path(), script)).await.unwrap(), said);
        }
    }

    #[test]
    fn a_login_is_renewed_an_hour_before_its_end() {
        let login = |expires| Lent { text: String::new(), secrets: Vec::new(), expires, is_key: false };
        let now = Time::from_micros(1_700_000_000_000_000);
        assert!(!ends_soon(&login(None), now));
        assert!(!ends_soon(&login(Some(1_700_003_601)), now));
        assert!(ends_soon(&login(Some(1_700_003_599)), now) && ends_soon(&login(Some(1_600_000_000)), now));
        assert!(!has_ended(&login(Some(1_700_003_599)), now) && has_ended(&login(Some(1_600_000_000)), now));
    }
}
