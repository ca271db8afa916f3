//! `ostler doctor`: what works on this machine, what does not, and what cures it.

mod agents;
mod asked;
mod clock;
mod hub;
mod notices;
mod told;
mod tools;
mod users;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use clap::Args;
use ostler_client::{Campaign, Client, Home, NodeStatus};
use ostler_domain::{
    Refusal,
    config::Config,
    git_config::{Identity, identity},
    limits::PAGE_MOST,
    price::Prices,
    readiness::{Readiness, Trial},
    text::{one_line, shell_word},
};
use serde::Serialize;

use self::{
    agents::{providers, script},
    told::say,
};
use super::{config, price, service::is_the_machines, trial};
use crate::{
    app::{App, person_home},
    failure::{Failure, in_a_line},
    listing::Found,
    screen, words,
};

/// Below this much free space the store is at risk, where no daemon says how much it keeps free.
const FREE_LEAST: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Do not look for agent programs, which are asked for their versions
    #[arg(long)]
    quick: bool,
    /// Ask each agent that can work one small thing, in its sandbox; costs some tokens of each
    #[arg(long, conflicts_with = "quick")]
    ask: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
    /// Nothing is wrong: it is not there, and need not be.
    Absent,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    verdict: Verdict,
    about: Cow<'static, str>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, about: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { verdict, about: about.into(), text: text.into(), fix: None }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Warn | Verdict::Fail)
    }

    pub(super) fn cure(&self) -> &str {
        self.fix.as_deref().unwrap_or_default()
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

pub(crate) async fn run(app: &App, args: DoctorArgs) -> Result<u8, Failure> {
    let home = app.home()?;
    let mut findings = Vec::new();
    let mut agents = Vec::new();
    let mut least = FREE_LEAST;
    let mut last = None;
    match app.client().await {
        Ok(client) => {
            let status = client.status().await?;
            least = status.disk.map_or(least, |disk| disk.least);
            findings.extend(daemon(app.program.version, &status));
            last = clock::last_event(&client).await?;
            let campaigns = all_campaigns(&client).await?;
            findings.extend(hidden(&client, &campaigns).await?);
            findings.extend(tools::findings(&campaigns, &tools::here()));
            // That a setting cannot be used is said below.
            let named = config::current(app).ok().and_then(|config| config.hub().ok().flatten());
            findings.extend(hub::found(&client, named).await);
            findings.extend(notices::found(&client).await);
            // What cannot be read says nothing of providers; that it cannot is said below.
            if !args.quick && config::check(app).is_ok() {
                let all = client.providers().await?;
                let usual = config::current(app)?;
                let users = users::count(&client, &campaigns, usual.provider()).await?;
                let answers = asked::answers(&client, &status, &all, &campaigns, args.ask).await?;
                agents = providers(&all, usual.provider(), &users, &answers);
            }
        }
        Err(Failure::Refused(refusal)) => findings.push(refused("daemon", *refusal)),
        Err(failure) => return Err(failure),
    }
    findings.extend(settings(config::check(app), &findings)?);
    findings.push(clock::finding(clock::kept().await, last, words::now()));
    findings.push(disk(&home, least));
    findings.push(sandbox(&trial::try_sandbox(&app.program.path)));
    findings.push(prices(price::prices(app))?);
    if agents.is_empty() {
        findings.push(script(None));
        // Elsewhere they stand among the others.
        findings.extend(no_providers(&config::current(app)?));
    }
    findings.extend(agents);
    findings.push(git());
    findings.extend(logout());
    say(app, findings)
}

/// What is said of providers that there are not.
fn no_providers(config: &Config) -> Vec<Finding> {
    let unknown = config.unknown_providers().into_iter();
    unknown
        .map(|unknown| Finding::new(Verdict::Warn, "config", unknown.words()).fix("ostler config edit"))
        .collect()
}

/// A daemon that runs goes on with what it has read, and the next one would not start.
fn settings(checked: Result<(), Failure>, findings: &[Finding]) -> Result<Option<Finding>, Failure> {
    match checked {
        Ok(()) => Ok(None),
        Err(Failure::Refused(refusal)) => {
            let finding = refused("config", *refusal);
            let is_said = findings.iter().any(|other| other.is_wrong() && other.fix == finding.fix);
            Ok((!is_said).then_some(finding))
        }
        Err(failure) => Err(failure),
    }
}

/// What calls cost is only as right as the table is new.
fn prices(prices: Result<Prices, Failure>) -> Result<Finding, Failure> {
    match prices {
        Ok(prices) => {
            let models = words::plural(prices.models.len() as u64, "model", "models");
            Ok(Finding::new(Verdict::Ok, "prices", format!("table of {}, {models}", prices.date)))
        }
        Err(Failure::Refused(refusal)) => Ok(refused("prices", *refusal)),
        Err(failure) => Err(failure),
    }
}

fn refused(about: &'static str, refusal: Refusal) -> Finding {
    let why = refusal.why.map(|why| format!(": {}", in_a_line(&why))).unwrap_or_default();
    let finding = Finding::new(Verdict::Fail, about, format!("{}{why}", refusal.message));
    match refusal.hints.into_iter().next() {
        Some(hint) => finding.fix(hint.command),
        None => finding,
    }
}

fn daemon(version: &str, status: &NodeStatus) -> Vec<Finding> {
    let up = words::span(words::now().since(status.started));
    let sessions = words::plural(status.live_sessions, "session", "sessions");
    let store = words::bytes(status.store.database_bytes.saturating_add(status.store.search_bytes));
    let text = format!(
        "{}, pid {}, up {up} · {sessions} · store {store}, schema {}",
        status.version, status.pid, status.schema_version
    );
    let mut findings = vec![if status.version == version {
        Finding::new(Verdict::Ok, "daemon", text)
    } else {
        Finding::new(Verdict::Warn, "daemon", format!("{text}; this program is {version}"))
            .fix("ostler daemon restart")
    }];
    // Those that wait to start have none.
    let keepers = status.live_sessions.saturating_sub(status.waiting_sessions);
    let answering = format!("{} of {keepers} answer", keepers.saturating_sub(status.detached_sessions));
    findings.push(if status.detached_sessions == 0 {
        Finding::new(Verdict::Ok, "keepers", answering)
    } else {
        Finding::new(Verdict::Warn, "keepers", answering).fix("ostler ls --attention detached")
    });
    let held = match status.memory_held_by.as_str() {
        "" => None,
        "keeper" => {
            Some("the keeper adds up what a session takes, once a second, and ends it above its limit")
        }
        _ => Some("the kernel holds sessions to their limits"),
    };
    findings.extend(
        held.map(|held| Finding::new(Verdict::Ok, "memory", format!("{held} ({})", status.memory_held_by))),
    );
    if let Some(halt) = &status.halt {
        let word = if halt.freeze { "frozen" } else { "halted" };
        findings.push(
            Finding::new(Verdict::Warn, "halt", format!("all agents are {word}, by {}", halt.by.0))
                .fix("ostler halt --release"),
        );
    }
    if let Some(drain) = &status.drain {
        findings
            .push(Finding::new(Verdict::Warn, "drain", words::drained(drain)).fix("ostler node drain --end"));
    }
    findings
}

async fn all_campaigns(client: &Client) -> Result<Vec<Campaign>, Failure> {
    let ask = async |page| client.campaigns(page).await;
    Ok(Found::paged(Some(PAGE_MOST), None, ask).await?.rows)
}

/// What is wrong with campaigns that the sandbox cannot help.
async fn hidden(client: &Client, campaigns: &[Campaign]) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for campaign in campaigns {
        let campaign = client.campaign(&campaign.id.to_string()).await?;
        if let Some(warning) = screen::campaign::tracked(&campaign) {
            let first = campaign.tracked_hidden.first().cloned().unwrap_or_default();
            let stands = format!("{}: {warning}; it wants a new secret, too", campaign.name);
            let finding = Finding::new(Verdict::Warn, "hidden", stands);
            findings.push(finding.fix(format!("git rm --cached {}", shell_word(&first))));
        }
    }
    Ok(findings)
}

fn sandbox(readiness: &Readiness) -> Finding {
    match &readiness.trial {
        Trial::Ran { .. } => Finding::new(Verdict::Ok, "sandbox", trial::words(readiness)),
        Trial::Refused { hint, .. } => {
            let finding = Finding::new(Verdict::Fail, "sandbox", trial::words(readiness));
            if hint.is_empty() { finding } else { finding.fix(hint) }
        }
    }
}

fn disk(home: &Home, least: u64) -> Finding {
    let state = home.state();
    match rustix::fs::statvfs(state) {
        Ok(facts) => {
            let free = facts.f_bavail.saturating_mul(facts.f_frsize);
            let text = format!("{} free in {}", words::bytes(free), state.display());
            if facts.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
                Finding::new(Verdict::Fail, "disk", format!("{} is mounted read-only", state.display()))
            } else if free < least {
                let text = format!("only {text}, {} stay free: nothing new starts", words::bytes(least));
                Finding::new(Verdict::Warn, "disk", text).fix("ostler du")
            } else {
                Finding::new(Verdict::Ok, "disk", text)
            }
        }
        Err(error) => {
            Finding::new(Verdict::Fail, "disk", format!("{} cannot be looked at: {error}", state.display()))
        }
    }
}

/// Agents commit: without an identity no commit of theirs works.
fn git() -> Finding {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        return Finding::new(Verdict::Warn, "git", "not installed; agents cannot commit");
    }
    let home = person_home().unwrap_or_default();
    let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let read = |file: &Path| std::fs::read_to_string(file).ok();
    // What agents are given, which is not all that git itself knows here.
    identity_finding(&identity(Path::new(&home), xdg.as_deref(), read))
}

fn identity_finding(identity: &Identity) -> Finding {
    let lacks = |what: &str| Finding::new(Verdict::Warn, "git", format!("no {what}: commits of agents fail"));
    match identity {
        Identity { name: Some(name), email: Some(email) } => {
            let who = one_line(&format!("{name} <{email}>"), 80);
            Finding::new(Verdict::Ok, "git", format!("agents commit as {who}"))
        }
        Identity { email: None, .. } => {
            lacks("address").fix("git config --global user.email you@example.org")
        }
        Identity { name: None, .. } => lacks("name").fix("git config --global user.name \"Your Name\""),
    }
}

/// Whether agents outlive the login, where a login manager would end them.
pub(super) fn logout() -> Option<Finding> {
    logout_below(Path::new("/"), &std::env::var("USER").ok()?)
}

/// `root` is the root of the file system. Nobody's login ends what root runs as a service of the machine.
fn logout_below(root: &Path, user: &str) -> Option<Finding> {
    let is_systemd = root.join("run/systemd/system").exists();
    if !is_systemd || user.is_empty() || user == "root" {
        return None;
    }
    Some(if is_the_machines(root, user) {
        Finding::new(Verdict::Ok, "logout", "agents are the machine's, and go on when you log out")
    } else if root.join("var/lib/systemd/linger").join(user).exists() {
        Finding::new(Verdict::Ok, "logout", "agents go on when you log out")
    } else {
        Finding::new(Verdict::Warn, "logout", "agents may end when you log out: lingering is off")
            .fix("loginctl enable-linger")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ostler_client::reply::StoreSizes;
    use ostler_domain::provider::{SCRIPT, Status};

    use super::{agents::provider, asked::Answer, told::lines, *};
    use crate::output::Look;
    use crate::testing;

    #[test]
    fn lingering_is_looked_for_where_systemd_runs() {
        let machine = tempfile::tempdir().unwrap();
        let finding = |user| logout_below(machine.path(), user);
        assert!(finding("ann").is_none(), "nobody ends agents here");
        std::fs::create_dir_all(machine.path().join("run/systemd/system")).unwrap();
        let off = finding("ann").unwrap();
        assert_eq!(off.verdict, Verdict::Warn);
        assert_eq!(off.fix.as_deref(), Some("loginctl enable-linger"));
        assert!(finding("root").is_none());
        let lingering = machine.path().join("var/lib/systemd/linger");
        std::fs::create_dir_all(&lingering).unwrap();
        std::fs::write(lingering.join("ann"), "").unwrap();
        assert_eq!(finding("ann").unwrap().verdict, Verdict::Ok);
        assert_eq!(finding("bob").unwrap().verdict, Verdict::Warn);
        let units = machine.path().join("etc/systemd/system");
        std::fs::create_dir_all(&units).unwrap();
        std::fs::write(units.join("ostler.service"), "[Service]\nUser=bob\n").unwrap();
        assert_eq!(finding("bob").unwrap().verdict, Verdict::Ok, "no login of theirs is what agents live by");
        assert_eq!(finding("bo").unwrap().verdict, Verdict::Warn);
    }

    #[test]
    fn agent_programs_are_told_and_whether_any_can_work() {
        let of =
            |name: &str| Status { name: name.to_owned(), key: "ANY_KEY".to_owned(), ..Status::default() };
        let script = of(SCRIPT);
        let absent = Status {
            problem: Some("there is no codex here".to_owned()),
            lacks: Some("its program".to_owned()),
            cure: Some("install codex".to_owned()),
            ..of("codex")
        };
        let closed = Status {
            program: Some("/usr/bin/claude".to_owned()),
            version: Some("2.1.203".to_owned()),
            lacks: Some("a key or a login".to_owned()),
            cure: Some("ostler provider login claude-code".to_owned()),
            ..of("claude-code")
        };
        let keyless = Status { lacks: closed.lacks.clone(), cure: closed.cure.clone(), ..of("openai-api") };
        assert_eq!(
            provider(&keyless, None, 0, None).verdict,
            Verdict::Absent,
            "nobody has to have a key of it"
        );
        assert_eq!(provider(&keyless, Some("openai-api"), 0, None).verdict, Verdict::Fail);
        let ready = Status { version: Some("1.0".to_owned()), ..of("acp:opencode") };
        let seen = |all: &[&Status], usual| {
            let all: Vec<Status> = all.iter().map(|status| (*status).clone()).collect();
            let found = providers(&all, usual, &BTreeMap::new(), &BTreeMap::new());
            found
                .into_iter()
                .skip(1)
                .map(|one| (one.verdict, one.about.into_owned(), one.fix))
                .collect::<Vec<_>>()
        };
        let login = Some("ostler provider login claude-code".to_owned());
        let none = seen(&[&script, &closed, &absent], None);
        assert_eq!(none[0], (Verdict::Warn, "claude-code".to_owned(), login.clone()));
        assert_eq!(none[1], (Verdict::Absent, "codex".to_owned(), None));
        assert_eq!((none[2].0, none[2].1.as_str(), none.len()), (Verdict::Warn, "agents", 3));
        assert!(none[2].2.as_deref().is_some_and(|fix| fix.contains("ostler provider ls")));
        let some = seen(&[&script, &closed, &absent, &ready], None);
        assert_eq!(some[2], (Verdict::Ok, "acp:opencode".to_owned(), None));
        assert_eq!(some.len(), 3, "one that can work is enough");
        assert_eq!(
            seen(&[&closed, &ready], Some("claude-code"))[0],
            (Verdict::Fail, "claude-code".to_owned(), login)
        );
        assert_eq!(seen(&[&absent, &ready], Some("codex"))[0].0, Verdict::Fail);
        let needed = provider(&absent, None, 2, None);
        assert_eq!(
            (needed.verdict, needed.text.as_str()),
            (Verdict::Fail, "there is no codex here; 2 agents use it")
        );
        let silent = provider(&ready, None, 0, Some(&Answer::None("it did not answer".to_owned())));
        assert_eq!(
            (silent.verdict, silent.cure()),
            (Verdict::Warn, "ostler provider test acp:opencode --ask")
        );
    }

    fn machine() -> NodeStatus {
        NodeStatus {
            pid: 4121,
            version: "0.1.0".to_owned(),
            node: ostler_domain::NodeId::new(testing::NOW, 1),
            epoch: 3,
            started: words::now(),
            state_dir: "/home/ann/.local/state/ostler".to_owned(),
            live_sessions: 5,
            detached_sessions: 0,
            halt: None,
            drain: None,
            store: StoreSizes {
                database_bytes: 1_100 << 20,
                search_bytes: 100 << 20,
                sessions: 1_842,
                ..StoreSizes::default()
            },
            last_seq: 90_000,
            schema_version: 7,
            memory_held_by: "cgroup v2".to_owned(),
            waiting_sessions: 0,
            disk: None,
            machine_restart: None,
            keeper_versions: Default::default(),
        }
    }

    #[test]
    fn a_whole_page() {
        let here = tools::Here::from([
            ("@node", vec!["~/.nvm".to_owned()]),
            ("@rust", vec!["~/.cargo/bin".to_owned(), "~/.rustup".to_owned()]),
        ]);
        let mut campaign = testing::campaign();
        campaign.policy.read = vec!["@rust".to_owned(), "@node".to_owned()];
        let of = |name: &str, version: &str, key: &str| Status {
            name: name.to_owned(),
            program: Some(format!("/usr/bin/{name}")),
            version: Some(version.to_owned()),
            key: key.to_owned(),
            ..Status::default()
        };
        let all = [
            of("claude-code", "2.1.203", "its login"),
            Status {
                lacks: Some("a login or a key".to_owned()),
                cure: Some("ostler provider login codex".to_owned()),
                ..of("codex", "0.144", "not logged in")
            },
            Status {
                program: None,
                problem: Some("not found".to_owned()),
                lacks: Some("its program".to_owned()),
                ..of("openclaw", "", "")
            },
        ];
        let users = BTreeMap::from([("codex".to_owned(), 2), ("claude-code".to_owned(), 1)]);
        let within = |ms| Answer::Within(std::time::Duration::from_millis(ms));
        let answers =
            BTreeMap::from([(SCRIPT.to_owned(), within(31)), ("claude-code".to_owned(), within(900))]);
        let mut findings = daemon("0.1.0", &machine());
        findings.extend(tools::findings(&[campaign], &here));
        let date = "2026-11-01".to_owned();
        let table = Prices { date, ..ostler_domain::price::PriceBook::default().prices() };
        findings.push(prices(Ok(Prices { models: Default::default(), ..table })).unwrap());
        findings.extend(providers(&all, None, &users, &answers));
        insta::assert_snapshot!(testing::in_all_looks(|look| lines(&findings, look)));
    }

    #[test]
    fn who_commits_is_said_or_what_is_missing() {
        let of = |name: Option<&str>, email: Option<&str>| {
            let identity = Identity { name: name.map(str::to_owned), email: email.map(str::to_owned) };
            let finding = identity_finding(&identity);
            (finding.is_wrong(), format!("{} {}", finding.text, finding.cure()))
        };
        assert_eq!(of(Some("Ann"), Some("a@b")), (false, "agents commit as Ann <a@b> ".to_owned()));
        assert!(of(None, None).1.contains("user.email") && of(None, None).0);
        assert!(of(None, Some("a@b")).1.contains("user.name"));
    }

    #[test]
    fn verdicts_have_words_and_cures() {
        let findings = [
            Finding::new(Verdict::Ok, "daemon", "0.1.0, pid 4121, up 2h"),
            Finding::new(Verdict::Warn, "logout", "agents may end when you log out")
                .fix("loginctl enable-linger"),
            Finding::new(Verdict::Fail, "disk", "mounted read-only"),
        ];
        let look = Look::plain(Some(100));
        let text: Vec<_> = lines(&findings, &look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        let narrow = Look::plain(Some(40));
        let text: Vec<_> = lines(&findings, &narrow).iter().map(|line| line.show(&narrow)).collect();
        assert_eq!(text[2].trim_start(), "fix: loginctl enable-linger", "{text:#?}");
        assert!(text.iter().all(|line| line.chars().count() <= 40) && text.len() == 4, "{text:#?}");
        insta::assert_snapshot!(crate::testing::in_all_looks(|look| lines(&findings, look)));
    }
}
